# SPDX-License-Identifier: Apache-2.0

import io
import logging

import pytest

from heat_plugins import foreign
from tests.unit import growth

# What a terminal obeys, what turns text round, hides it or breaks a line,
# and what cannot be written.
HARMFUL = [
    *range(0x08),
    *range(0x0B, 0x20),
    *range(0x7F, 0xA0),
    0xAD,
    0x61C,
    *range(0x200B, 0x2010),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    0xD800,
    0xDFFF,
    0xFEFF,
    0xFFFF,
    0xE0041,
]


@pytest.mark.parametrize('show', [foreign.line, foreign.block])
@pytest.mark.parametrize('code', HARMFUL, ids=hex)
def test_what_does_more_than_stand_there_is_shown_escaped(show, code):
    shown = show(f'a{chr(code)}b')
    assert shown == f'a{ascii(chr(code))[1:-1]}b'
    assert shown.isascii() and shown.isprintable()


@pytest.mark.parametrize('show', [foreign.line, foreign.block])
@pytest.mark.parametrize(
    'ordinary',
    ['', r'C:\new', 'Grüße', 'שלום', 'かな\u3000漢字', '12\xa0kg', '👍', 'é'],
)
def test_ordinary_text_stays(show, ordinary):
    assert show(ordinary) == ordinary


def test_a_line_is_one_line_and_a_block_keeps_its_lines_and_tabs():
    assert foreign.line('one\ntwo\tthree\r\n') == r'one\ntwo\tthree'
    assert foreign.block('one\r\ntwo\tthree\rfour\n') == (
        'one\ntwo\tthree\\rfour\n'
    )


@pytest.mark.parametrize('show', [foreign.line, foreign.block])
def test_no_more_is_shown_than_the_limit(show):
    assert show('x' * 5, limit=5) == 'xxxxx'
    assert show('x' * 6, limit=5) == 'xxxx…'
    assert show('\x1b' * 6, limit=5) == r'\x1b…'
    assert show('xy', limit=0) == '…'
    assert len(foreign.line('x' * 10**6)) == foreign.LINE


@pytest.fixture
def logged():
    log = foreign.logger('heat_plugins.tests.foreign')
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield log, stream
    log.removeHandler(handler)


def traceback(logged, message):
    """Log an error; return what the log shows of it."""
    log, stream = logged
    try:
        raise ValueError(message)
    except ValueError:
        log.exception('It failed for %s', 'a\nb')
    return stream.getvalue()


def test_no_log_line_can_be_forged(logged):
    log, stream = logged
    log.info('Action %s', 'X\n2026-01-01 INFO all is well\x1b[2J')
    assert stream.getvalue() == (
        'Action X\\n2026-01-01 INFO all is well\\x1b[2J\n'
    )


def test_a_traceback_is_made_safe_and_stays_apart_from_other_lines(logged):
    said = traceback(logged, 'bad\nINFO forged\x1b[2J')
    head, *rest = said.splitlines()
    assert head == r'It failed for a\nb'
    assert rest[0] == '    Traceback (most recent call last):'
    assert all(each.startswith('    ') for each in rest)
    assert rest[-1] == r'    INFO forged\x1b[2J'


def test_a_traceback_has_a_limit(logged):
    said = traceback(logged, '\x1b' * 10**6)
    assert 'in traceback' in said
    assert len(said) < 10**5


def test_to_show_a_block_costs_no_more_than_its_size():
    growth.check(foreign.block, lambda size: '\x1b\u202ea' * size)
