# SPDX-License-Identifier: Apache-2.0
"""Charts as drawings."""

import re
from xml.etree import ElementTree as etree

import testtools

from heat_plugins.timeline import svg
from tests.unit.timeline import base

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
    def test_a_bar_is_where_and_as_long_as_its_time(self):
        root = drawn(
            base.row('one', base.bar('CREATE', 0, 100)),
            base.row('two', base.bar('CREATE', 50, 25)),
        )
        (x, width), (begin, length) = (
            [float(one.get(key)) for key in ('x', 'width')]
            for one in boxes(root, 'complete')
        )
        self.assertAlmostEqual(width / 4, length, delta=0.2)
        self.assertAlmostEqual(x + width / 2, begin, delta=0.2)

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

    def test_waiting_and_work_are_two_parts_of_a_bar(self):
        bar = base.bar('A', 0, None, 'running', working_after=50)
        root = drawn(base.row('db', bar))
        (waiting,), (running,) = boxes(root, 'waiting'), boxes(root, 'running')
        edge = float(waiting.get('x')) + float(waiting.get('width'))
        self.assertAlmostEqual(edge, float(running.get('x')), delta=0.2)
        titles = [each.text for each in root.iter(f'{_SVG}title')]
        (title,) = [each for each in titles if each.startswith('A ')]
        assert 'reported by the server after 50 s' in title
