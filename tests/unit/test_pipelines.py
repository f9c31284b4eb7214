# SPDX-License-Identifier: Apache-2.0
"""The examples for pipelines, with an ``openstack`` that only answers."""

import json
import os
import subprocess

import pytest
import yaml

from tests import pipelines

_FAILURE = {
    'stack': 'shop',
    'server_name': 'orders',
    'reason': 'no space left on device',
}


@pytest.fixture
def answering(tmp_path):
    """Return what runs an example, over an answer of the command."""

    def run(kind, code, state):
        result = {'id': '7c19be52', 'state': state, 'reason': 'because'}
        result['failures'] = [_FAILURE] * (state == 'failed')
        command = tmp_path / 'openstack'
        command.write_text(
            f'#!/bin/sh\necho "$@" > {tmp_path}/argv\necho meanwhile >&2\n'
            + (f"echo '{json.dumps(result)}'\n" if state else '')
            + f'exit {code}\n'
        )
        command.chmod(0o755)
        path = os.pathsep.join((str(tmp_path), os.environ['PATH']))
        done = subprocess.run(
            pipelines.argv(kind),
            env={**os.environ, **pipelines.ENV, 'PATH': path},
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        words = (tmp_path / 'argv').read_text()
        assert words.startswith('software deployment run start BACKUP ')
        # Without a terminal, more than ten targets need it.
        assert ' --yes' in words
        return done

    return run


@pytest.mark.parametrize('kind', pipelines.KINDS)
def test_a_pipeline_fails_with_its_run(answering, kind, tmp_path):
    done = answering(kind, 0, 'complete')
    assert done.returncode == 0, done.stdout + done.stderr
    # Ansible takes seconds, and cannot read an answer that is not there.
    if kind != 'playbook.yaml':
        refused = answering(kind, 1, None)
        assert refused.returncode != 0
        assert 'Traceback' not in refused.stderr
    failed = answering(kind, 3, 'failed')
    assert failed.returncode != 0
    if kind == 'gitlab-ci.yml':
        result = json.loads((tmp_path / 'backup.json').read_text())
        assert result['failures'] == [_FAILURE]
    else:
        assert 'orders' in failed.stdout


def test_a_job_keeps_what_its_script_writes():
    job = yaml.safe_load((pipelines.FOLDER / 'gitlab-ci.yml').read_text())
    (script,) = job['backup']['script']
    for path in job['backup']['artifacts']['paths']:
        assert path in script
