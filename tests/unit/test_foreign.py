# SPDX-License-Identifier: Apache-2.0

import io
import logging

import pytest

from heat_plugins import foreign
from tests.unit import growth

# What a terminal obeys, what turns text round, hides it or breaks a line,
# and what cannot be written.
HARMFUL = [*range(0x08), *range(0x0B, 0x20), *range(0x7F, 0xA0)]
HARMFUL += [*range(0x200B, 0x2010), *range(0x2028, 0x202F)]
HARMFUL += [*range(0x2066, 0x206A), 0xAD, 0x61C]
HARMFUL += [0xD800, 0xDFFF, 0xFEFF, 0xFFFF, 0xE0041]


ORDINARY = ['', r'C:\new', 'Grüße', 'שלום', 'かな\u3000漢字', '12\xa0kg']


@pytest.mark.parametrize('show', [foreign.line, foreign.block])
def test_what_does_more_than_stand_there_is_shown_escaped(show):
    for code in HARMFUL:
        shown = show(f'a{chr(code)}b')
        assert shown == f'a{ascii(chr(code))[1:-1]}b'
        assert shown.isascii() and shown.isprintable()
    for text in (*ORDINARY, '👍', 'é'):
        assert show(text) == text
    assert show('x' * 5, limit=5) == 'xxxxx'
    assert show('x' * 6, limit=5) == 'xxxx…'
    assert show('\x1b' * 6, limit=5) == r'\x1b…'
    assert show('xy', limit=0) == '…'


def test_a_line_is_one_line_and_a_block_keeps_its_lines_and_tabs():
    assert foreign.line('one\ntwo\tthree\r\n') == r'one\ntwo\tthree'
    shown = foreign.block('one\r\ntwo\tthree\rfour\n')
    assert shown == 'one\ntwo\tthree\\rfour\n'
    assert len(foreign.line('x' * 10**6)) == foreign.LINE
    growth.check(foreign.block, lambda size: '\x1b\u202ea' * size)


@pytest.fixture
def traceback():
    """Log an error; return what the log shows of it."""
    log = foreign.logger('heat_plugins.tests.foreign')
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)

    def logged(message):
        try:
            raise ValueError(message)
        except ValueError:
            log.exception('It failed for %s', 'a\nINFO well\x1b[2J')
        return stream.getvalue()

    yield logged
    log.removeHandler(handler)


def test_no_log_line_can_be_forged_nor_of_a_traceback(traceback):
    said = traceback('bad\nINFO forged\x1b[2J')
    head, *rest = said.splitlines()
    assert head == r'It failed for a\nINFO well\x1b[2J'
    assert rest[0] == '    Traceback (most recent call last):'
    assert all(each.startswith('    ') for each in rest)
    assert rest[-1] == r'    INFO forged\x1b[2J'


def test_a_traceback_has_a_limit(traceback):
    said = traceback('\x1b' * 10**6)
    assert 'in logged' in said
    assert len(said) < 10**5
