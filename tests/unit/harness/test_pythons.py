# SPDX-License-Identifier: Apache-2.0
"""Which Pythons the tests run under."""

import shutil
import subprocess

import pytest

from tests import pythons


@pytest.fixture
def pyenv(tmp_path, monkeypatch):
    """Make versions of pyenv; its shims, on PATH, lead nowhere."""
    shims = tmp_path / 'shims'
    shims.mkdir()
    monkeypatch.setenv('PATH', f'{shims}:/usr/bin:/bin')
    monkeypatch.setenv('PYENV_ROOT', str(tmp_path))
    monkeypatch.setattr(shutil, 'which', _which(shims))

    def make(version, answer=None):
        answer = answer or version.rpartition('.')[0]
        minor = version.rpartition('.')[0]
        for folder, text in (
            (shims, 'exit 127'),
            (tmp_path / 'versions' / version / 'bin', f'echo {answer}'),
        ):
            folder.mkdir(parents=True, exist_ok=True)
            program = folder / f'python{minor}'
            program.write_text(f'#!/bin/sh\n{text}\n')
            program.chmod(0o755)

    return make


def _which(folder):
    def which(name):
        path = folder / name
        return str(path) if path.exists() else None

    return which


def test_the_path_of_the_newest_is_printed(pyenv, tmp_path, capsys):
    pyenv('3.98.1')
    pyenv('3.101.0')
    assert pythons.main(['newest', '3.101', '3.98', '3.102']) == 0
    path = tmp_path / 'versions/3.101.0/bin/python3.101'
    assert capsys.readouterr().out == f'{path}\n'
    assert pythons.main(['newest', '3.99']) == 1
    assert capsys.readouterr().out == ''


def test_what_is_another_python_is_not_found(pyenv):
    pyenv('3.98.1', answer='3.97')
    assert pythons.find('3.98') is None


def test_the_newest_has_the_functional_tests_and_the_missing_is_named(
    pyenv, monkeypatch, capsys
):
    pyenv('3.98.1')
    pyenv('3.101.0')
    calls = []
    real = subprocess.run

    def run(command, **options):
        if 'tox' not in command:
            return real(command, **options)
        calls.append(command)
        return subprocess.CompletedProcess(command, 1)

    monkeypatch.setattr(subprocess, 'run', run)
    assert pythons.main(['run', '3.98', '3.99', '3.101']) == 1
    (command,) = calls
    assert command[-1] == 'py398,py3101-functional'
    output = capsys.readouterr().out
    assert output.startswith('Not run: the tests under Python 3.99, ')
    assert len(output.splitlines()) == 1
