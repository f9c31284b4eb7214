# SPDX-License-Identifier: Apache-2.0
"""Nested stacks in a row each."""

import testtools

from heat_plugins.timeline import chart
from tests.unit.timeline import base

RUN = chart.RowKind.RUN


def fold(*inside, own=None):
    own = own or base.row('group', base.bar('CREATE', 0, 9))
    return chart.fold(own, inside, base.NOON + 100)


def backup(name, *bars):
    return base.row(name, *bars, kind=RUN, what='BACKUP')


class FoldingTest(testtools.TestCase):
    def test_the_row_says_how_many_resources_are_in_it(self):
        (found,) = fold(
            base.row('one', base.bar('CREATE', 1, 3)),
            base.row('two', base.bar('CREATE', 1, 3)),
        )
        self.assertEqual('group (+2)', found.title)
        self.assertEqual(9, found.bars[0].end - found.bars[0].start)

    def test_a_resource_counts_once_whatever_ran_on_it(self):
        found = fold(
            base.row('one', base.bar('CREATE', 1, 3)),
            backup('one', base.bar('BACKUP', 5, 1)),
        )
        self.assertEqual(
            ['group (+1)', 'group BACKUP (+1)'], [row.title for row in found]
        )

    def test_runs_at_one_time_become_one_bar(self):
        _, found = fold(
            backup('one', base.bar('BACKUP', 10, 5)),
            backup('two', base.bar('BACKUP', 12, 5, 'failed')),
            backup('three', base.bar('BACKUP', 30, 5)),
        )
        first, second = found.bars
        self.assertEqual('2 x BACKUP', first.label)
        self.assertEqual('1 complete, 1 failed', first.reason)
        self.assertEqual(chart.State.FAILED, first.state)
        self.assertEqual(7, first.end - first.start)
        self.assertEqual('BACKUP', second.label)

    def test_it_goes_on_as_long_as_one_does(self):
        _, found = fold(
            backup('one', base.bar('BACKUP', 10, 5, 'failed')),
            backup('two', base.bar('BACKUP', 10, None, 'waiting')),
        )
        (bar,) = found.bars
        self.assertIsNone(bar.end)
        self.assertEqual(chart.State.WAITING, bar.state)

    def test_what_follows_one_that_goes_on_is_in_its_bar(self):
        _, found = fold(
            backup('one', base.bar('BACKUP', 10, None, 'running')),
            backup('two', base.bar('BACKUP', 50, 5)),
        )
        self.assertEqual(1, len(found.bars))

    def test_actions_have_rows_of_their_own(self):
        found = fold(
            backup('one', base.bar('BACKUP', 10, 5)),
            base.row(
                'one', base.bar('RELOAD', 10, 5), kind=RUN, what='RELOAD'
            ),
        )
        self.assertEqual(['', 'BACKUP', 'RELOAD'], [row.what for row in found])

    def test_a_nested_stack_without_a_bar_has_no_row_itself(self):
        found = fold(
            backup('one', base.bar('BACKUP', 10, 5)), own=base.row('group')
        )
        self.assertEqual(['group BACKUP (+1)'], [row.title for row in found])


class LanesTest(testtools.TestCase):
    def test_bars_that_overlap_are_in_different_lanes(self):
        first, second, third = (
            base.bar('a', 0, 10),
            base.bar('b', 5, 10),
            base.bar('c', 10, 5),
        )
        lanes = base.row('x', third, second, first).lanes(base.NOON + 100)
        self.assertEqual([[first, third], [second]], lanes)
