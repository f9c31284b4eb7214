# SPDX-License-Identifier: Apache-2.0
"""Charts on a terminal, and as drawings."""

import re
from xml.etree import ElementTree as etree

import pytest
from rich import cells
import testtools

from heat_plugins.timeline import chart
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import svg
from tests.unit.timeline import base

#: A bar that is about to start waits.
STATES = [each for each in chart.State if each != 'starting']


def lines(*rows, width=80, glyphs=plain_text.BLOCKS, **more):
    drawn = base.stack(*rows, **more)
    return [line.plain for line in plain_text.draw(drawn, width, glyphs)]


def test_a_bar_is_where_and_as_long_as_its_time():
    _, _, one, two, *_ = lines(
        base.row('one', base.bar('CREATE', 0, 100)),
        base.row('two', base.bar('CREATE', 50, 25)),
    )
    assert abs(one.count('█') / 4 - two.count('█')) <= 1
    middle = one.index('█') + one.count('█') / 2
    assert abs(middle - two.index('█')) <= 1
    # What takes no time is seen, too.
    short = base.row('short', base.bar('CREATE', 5000, 0))
    shown = lines(base.row('long', base.bar('CREATE', 0, 10_000)), short)
    assert shown[3].count('█') == 1


@pytest.mark.parametrize('glyphs', [plain_text.BLOCKS, plain_text.ASCII])
def test_states_differ_without_colours(glyphs):
    rows = [base.row(each, base.bar('A', 0, 50, each)) for each in STATES]
    shown = lines(*rows, glyphs=glyphs)[2 : 2 + len(STATES)]
    assert len({row.split()[1][0] for row in shown}) == len(STATES)


def test_waiting_work_and_what_continues_differ():
    row, legend = lines(
        base.row('x', base.bar('BACKUP', 0, 100, working_after=50))
    )[2:]
    assert re.search('░{9,}█{9,}', row), row
    assert '░ waiting' in legend
    row = lines(base.row('x', base.bar('CREATE', 60, None, 'running')))[2]
    assert '▒▸' in row
    assert 'CREATE running 40 s' in row


def test_reasons_of_the_last_failures_are_below():
    broken = base.bar('UPDATE', 0, 5, 'failed', reason='no space left')
    refused = base.bar('SIGNAL', 50, 0, 'failed', reason='no X', aside=True)
    shown = lines(
        base.row('db', broken),
        base.row('web', broken, base.bar('UPDATE', 9, 3)),
        base.row('app', base.bar('CREATE', 0, 9), refused),
        notes=('Mistral answered 503',),
    )
    assert 'CREATE complete 9 s' in shown[4]
    assert shown[-3:] == [
        'db UPDATE failed: no space left',
        'app SIGNAL failed: no X',
        'Note: Mistral answered 503',
    ]
    assert lines()[1] == 'No events are known.'


@pytest.mark.parametrize('width', [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    for line in lines(
        base.row('ü日本' * 40, base.bar('CREATE', 0, 10)),
        base.row('x', base.bar('C' * 99, 86400, 10), what='y' * 99),
        width=width,
    ):
        assert cells.cell_len(line) <= width, line


def test_a_name_cannot_do_anything_to_a_terminal():
    odd = base.row('\x1b[31m\n[b]\u202e', base.bar('CREATE', 0, 1))
    shown = ''.join(lines(odd, stack='\x07'))
    assert shown.isprintable()
    assert r'\x1b[31m\n[b]\u202e' in shown


def test_a_name_keeps_its_ends_and_is_filled_up():
    assert plain_text.fitted('beginning-the-end', 9) == 'begi…-end'
    assert plain_text.fitted('ab', 4) == 'ab  '


_SVG = '{http://www.w3.org/2000/svg}'
ODD = '</text><script>alert("x")</script> & \x1b\x00\u202e'


def drawn(*rows, **more):
    return etree.fromstring(svg.draw(base.stack(*rows, **more)))


def boxes(root, look):
    found = root.iter(f'{_SVG}rect')
    group = [one for one in found if one.get('class') == f'bar {look}']
    # Those of the legend are all of one size.
    return [one for one in group if one.get('height') != '12']


class SvgTest(testtools.TestCase):
    def test_names_and_reasons_are_text_only(self):
        bad = base.bar(ODD, 0, 1, 'failed', reason=ODD)
        found = base.stack(
            base.row(ODD, bad, what=ODD), stack=ODD, notes=(ODD,)
        )
        root = etree.fromstring(svg.draw(found))
        assert list(root.iter(f'{_SVG}script')) == []
        shown = ' '.join(one.text or '' for one in root.iter())
        assert '<script>alert("x")</script> & \\x1b\\x00\\u202e' in shown
        # Nor does a page need anything from elsewhere.
        page = svg.page(found)
        assert '<script' not in page
        links = re.findall(r'https?://[^"\s]+|\bsrc=|\bhref=|@import', page)
        assert links == ['http://www.w3.org/2000/svg']

    def test_reasons_and_notes_stand_below_in_lines_that_fit(self):
        why = 'exit code 7: ' + 'the disk is full, ' * 30
        failed = base.bar('BACKUP', 0, 9, 'failed', reason=why)
        root = drawn(
            base.row('db', failed),
            base.row('web', base.bar('RESTART', 20, 9)),
            notes=('Cannot list the runs: ' + 'there is no store, ' * 30,),
        )
        # A failure has a pattern.
        assert len(boxes(root, 'hatch')) == 1
        texts = [*root.iter(f'{_SVG}text')]
        height = float(root.get('height'))
        assert max(float(one.get('y')) for one in texts) <= height
        lines = [one.text for one in texts]
        assert max(map(len, lines)) < 200
        whole = ' '.join(lines)
        assert f'db BACKUP failed: {why}'.rstrip() in whole
        assert whole.count('there is no store,') == 30

    def test_a_row_is_told_in_words(self):
        assert 'No events are known.' in svg.draw(base.stack())
        bar = base.bar('CREATE', 0, 90, reason='all well')
        root = drawn(base.row('db', bar))
        assert root.get('role') == 'list'
        title, description = (
            root.find(f"{_SVG}*[@id='{name}']").text
            for name in root.get('aria-labelledby').split()
        )
        assert title == 'Timeline of stack shop CREATE_COMPLETE'
        assert '1 complete' in description
        (row,) = root.findall(f"{_SVG}g[@role='listitem']")
        assert row.get('aria-label') == (
            'deployment db: CREATE complete after 1 min 30 s, begun '
            '2027-01-15 12:00:00 UTC. all well'
        )
