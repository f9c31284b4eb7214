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
        one, two = boxes(root, 'complete')
        size = {key: float(one.get(key)) for key in ('x', 'width')}
        self.assertAlmostEqual(
            size['width'] / 4, float(two.get('width')), delta=0.2
        )
        self.assertAlmostEqual(
            size['x'] + size['width'] / 2, float(two.get('x')), delta=0.2
        )

    def test_it_needs_nothing_from_elsewhere(self):
        text = svg.page(base.stack(base.row('x', base.bar('A', 0, 1))))
        links = re.findall(r'https?://[^"\s]+|\bsrc=|\bhref=|@import', text)
        assert links == ['http://www.w3.org/2000/svg']

    def test_names_and_reasons_are_text_only(self):
        bad = base.bar(ODD, 0, 1, 'failed', reason=ODD)
        found = base.stack(
            base.row(ODD, bad, what=ODD), stack=ODD, notes=(ODD,)
        )
        root = etree.fromstring(svg.draw(found))
        assert list(root.iter(f'{_SVG}script')) == []
        shown = ' '.join(one.text or '' for one in root.iter())
        assert '<script>alert("x")</script> & \\x1b\\x00\\u202e' in shown
        assert '<script' not in svg.page(found)

    def test_reasons_and_notes_stand_below_in_lines_that_fit(self):
        why = 'exit code 7: ' + 'the disk is full, ' * 30
        root = drawn(
            base.row('db', base.bar('BACKUP', 0, 9, 'failed', reason=why)),
            notes=('Cannot list the runs: ' + 'there is no store, ' * 30,),
        )
        texts = [
            (float(one.get('y')), one.text) for one in root.iter(f'{_SVG}text')
        ]
        height = float(root.get('height'))
        assert [one for one in texts if one[0] > height] == []
        lines = [text for _, text in texts]
        assert max(map(len, lines)) < 200
        whole = ' '.join(lines)
        assert f'db BACKUP failed: {why}'.rstrip() in whole
        assert whole.count('there is no store,') == 30

    def test_a_row_is_told_in_words(self):
        root = drawn(
            base.row('db', base.bar('CREATE', 0, 90, reason='all well'))
        )
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
        root = drawn(
            base.row('db', base.bar('A', 0, None, 'running', working_after=50))
        )
        (waiting,), (running,) = boxes(root, 'waiting'), boxes(root, 'running')
        edge = float(waiting.get('x')) + float(waiting.get('width'))
        self.assertAlmostEqual(edge, float(running.get('x')), delta=0.2)
        titles = [each.text for each in root.iter(f'{_SVG}title')]
        (title,) = [each for each in titles if each.startswith('A ')]
        assert 'reported by the server after 50 s' in title

    def test_a_failure_has_a_pattern(self):
        for state, number in (('failed', 1), ('complete', 0)):
            root = drawn(base.row('db', base.bar('A', 0, 9, state)))
            assert len(boxes(root, 'hatch')) == number

    def test_a_name_is_whole_where_there_is_room(self):
        name = 'a_database_with_a_rather_long_resource_name_0123'
        workflow = 'shop.nightly.backup.of.everything'
        root = drawn(
            base.row(name, base.bar('CREATE', 0, 90)),
            base.row(
                'nightly', base.bar(workflow, 0, 90, 'failed'), what=workflow
            ),
            base.row('x' * 200, base.bar('CREATE', 0, 90)),
        )
        texts = [one.text for one in root.iter(f'{_SVG}text')]
        assert name in texts
        assert f'nightly {workflow}' in texts
        # What is longer leaves the bars half of the picture.
        left = float(boxes(root, 'complete')[0].get('x'))
        assert left < 500

    def test_a_label_stands_beside_a_bar_that_is_too_short_for_it(self):
        short = base.bar('BACKUP', 0, 1)
        root = drawn(base.row('db', short, base.bar('RESTART', 30, 70)))
        (text,) = [
            one for one in root.iter(f'{_SVG}text') if one.text == 'BACKUP 1 s'
        ]
        bar = boxes(root, 'complete')[0]
        right = float(bar.get('x')) + float(bar.get('width'))
        assert float(text.get('x')) > right
        after = base.bar('RESTART', 2, 98)
        root = drawn(base.row('db', short, after))
        texts = [one.text for one in root.iter(f'{_SVG}text')]
        assert 'BACKUP 1 s' not in texts

    def test_each_row_adds_to_the_height_and_none_is_outside(self):
        for count in (0, 1, 100):
            root = drawn(
                *(base.row(f'r{n}', base.bar('A', n, 1)) for n in range(count))
            )
            height, width = (
                float(root.get(key)) for key in ('height', 'width')
            )
            for one in root.iter(f'{_SVG}text'):
                assert 0 < float(one.get('y')) < height
                assert 0 < float(one.get('x')) < width
