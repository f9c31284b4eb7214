# SPDX-License-Identifier: Apache-2.0
"""Time on the axis."""

import itertools

import testtools

from heat_plugins.timeline import scales
from tests.unit import growth
from tests.unit.timeline import base

NIGHT = 86400


def test_the_position_of_a_time_is_not_sought_among_all_stretches():
    growth.check(
        lambda found: [found.position(one.start) for one in found.stretches],
        lambda size: scales.Scale(
            [(day * NIGHT, day * NIGHT + 1) for day in range(size)]
        ),
        start=2**6,
        largest=2**14,
    )


class ScaleTest(testtools.TestCase):
    def test_time_runs_from_left_to_right(self):
        found = scales.Scale([(0, 10), (5, 60), (100_000, 100_030)])
        times = [0, 5, 10, 60, 50_000, 100_000, 100_030]
        positions = [found.position(time) for time in times]
        self.assertEqual(sorted(set(positions)), positions)
        self.assertTrue(positions[0] >= 0 and positions[-1] <= 1)

    def test_what_happens_without_a_pause_is_drawn_to_scale(self):
        found = scales.Scale([(0, 100)])
        self.assertEqual([], found.cuts)
        self.assertAlmostEqual(0.5, found.position(50))

    def test_a_short_pause_stays(self):
        self.assertEqual([], scales.Scale([(0, 50), (60, 100)]).cuts)

    def test_a_long_pause_is_cut_short(self):
        (cut,) = scales.Scale([(0, 60), (NIGHT, NIGHT + 60)]).cuts
        self.assertTrue(60 < cut.start < cut.end < NIGHT)
        self.assertAlmostEqual(0.05, cut.right - cut.left)

    def test_many_cuts_leave_more_than_half_to_what_happens(self):
        nights = [(n * NIGHT, n * NIGHT + 20) for n in range(100)]
        found = scales.Scale(nights)
        self.assertEqual(99, len(found.cuts))
        width = sum(cut.right - cut.left for cut in found.cuts)
        self.assertAlmostEqual(0.4, width)

    def test_the_parts_leave_no_gap(self):
        found = scales.Scale([(0, 60), (NIGHT, NIGHT + 60)]).stretches
        for one, after in itertools.pairwise(found):
            self.assertEqual(one.end, after.start)
            self.assertEqual(one.right, after.left)
        self.assertEqual(0, found[0].left)
        self.assertAlmostEqual(1, found[-1].right)

    def test_what_takes_no_time_has_a_place_too(self):
        found = scales.Scale([(7, 7)])
        self.assertAlmostEqual(0.5, found.position(7))


class LabelTest(testtools.TestCase):
    def labels(self, *spans, characters=100):
        found = scales.Scale(
            (base.NOON + start, base.NOON + end) for start, end in spans
        )
        return found.labels(characters)

    def test_the_day_stands_with_its_first_time(self):
        texts = [one.text for one in self.labels((0, 40))]
        self.assertEqual('2027-01-15 12:00:00', texts[0])
        self.assertTrue(all(len(text) == 8 for text in texts[1:]))
        self.assertTrue(len(texts) > 2)

    def test_another_day_is_told_without_the_year(self):
        found = self.labels((0, 40), (NIGHT, NIGHT + 40))
        days = [one.text for one in found if '-' in one.text]
        self.assertEqual(2, len(days))
        self.assertTrue(days[1].startswith('01-16 12:00:'))

    def test_they_do_not_overlap(self):
        spans = [(n * NIGHT, n * NIGHT + 20 * n) for n in range(1, 9)]
        for characters in (30, 60, 200):
            free = 0
            for label in self.labels(*spans, characters=characters):
                column = label.position * characters
                self.assertTrue(column >= free)
                free = column + len(label.text) + 1
            self.assertTrue(0 < free <= characters + 1)

    def test_long_times_are_told_by_hours_or_days(self):
        texts = [one.text for one in self.labels((0, 30 * NIGHT))]
        self.assertTrue(len(texts) > 3)
        self.assertTrue(all('-' in text for text in texts))
