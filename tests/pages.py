# SPDX-License-Identifier: Apache-2.0
"""What the pages for users let their readers type."""

import pathlib
import re
import textwrap

_FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'doc/source'
_BLOCK = re.compile(r'::(?: yaml)?\n\n((?:(?: {4}.*)?\n)+)')


def read(name, section=''):
    """Return a page of doc/source, or one of its sections."""
    text = (_FOLDER / f'{name}.rst').read_text()
    return _section(text, section) if section else text


def readme(section):
    """Return a section of the README."""
    return _section((_FOLDER / '../../README.rst').read_text(), section)


def _section(text, section):
    line = '=' * len(section)
    _, title, rest = text.partition(f'\n{section}\n{line}\n')
    assert title, f'there is no section "{section}"'
    return re.split(r'\n.+\n===', rest, maxsplit=1)[0]


def blocks(text):
    """Return the indented blocks that follow a line ending in ``::``."""
    return [
        textwrap.dedent(block).strip('\n') + '\n'
        for block in _BLOCK.findall(text)
    ]
