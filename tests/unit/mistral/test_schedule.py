# SPDX-License-Identifier: Apache-2.0
"""When cron triggers run."""

import datetime

import testtools

from heat_plugins.mistral.triggers import schedule

AT = datetime.datetime(2030, 1, 1, 10, 0)


def minutes(number):
    return datetime.timedelta(minutes=number)


class UpcomingTest(testtools.TestCase):
    def test_the_next_three_times(self):
        self.assertEqual(
            '2030-01-02 02:30, 2030-01-03 02:30, 2030-01-04 02:30 UTC',
            schedule.show(*schedule.upcoming('30 2 * * *', AT)),
        )

    def test_seconds_are_shown_where_a_pattern_has_them(self):
        self.assertEqual(
            '2030-01-01 10:00:20 UTC',
            schedule.show(*schedule.upcoming('* * * * * */20', AT, 1)),
        )

    def test_a_pattern_that_cannot_be_read_is_explained(self):
        for pattern in ('', '* * *', '61 * * * *', 'a b c d e', '@never'):
            error = self.assertRaises(
                schedule.ScheduleError, schedule.upcoming, pattern, AT
            )
            self.assertIn(f'"{pattern}" is invalid', str(error))
            self.assertIn('UTC', str(error))

    def test_a_pattern_that_no_time_fits(self):
        error = self.assertRaises(
            schedule.ScheduleError, schedule.upcoming, '0 0 30 2 *', AT
        )
        self.assertIn('no time matches', str(error))

    def test_a_first_time_comes_first_and_the_count_is_the_most(self):
        for pattern, first, count, minutes_after in (
            ('0 * * * *', 5, None, [5, 60, 120]),
            ('0 * * * *', 5, 2, [5, 60]),
            ('0 * * * *', None, 1, [60]),
            ('0 * * * *', None, 0, []),
            (None, 5, None, [5]),
        ):
            at = None if first is None else AT + minutes(first)
            self.assertEqual(
                [AT + minutes(one) for one in minutes_after],
                schedule.next_runs(pattern, at, count, AT),
            )


class FirstTimeTest(testtools.TestCase):
    def test_a_date_and_a_time(self):
        self.assertEqual(AT, schedule.first_time('2030-01-01 10:00'))

    def test_anything_else_is_explained(self):
        for text in ('', 'tomorrow', '2030-01-01', '2030-01-01T10:00:00Z'):
            error = self.assertRaises(
                schedule.ScheduleError, schedule.first_time, text
            )
            self.assertIn('UTC', str(error))


class RunOutTest(testtools.TestCase):
    def out(self, pattern, first, count, after):
        return schedule.has_expired(pattern, first, count, AT, AT + after)

    def test_without_a_count_it_never_runs_out(self):
        self.assertFalse(self.out('* * * * *', None, None, minutes(9999)))

    def test_after_its_last_run_it_has(self):
        self.assertFalse(self.out('* * * * *', None, 3, minutes(2)))
        self.assertTrue(self.out('* * * * *', None, 3, minutes(3)))

    def test_mistral_may_be_two_seconds_early(self):
        early = minutes(3) - datetime.timedelta(seconds=2)
        self.assertTrue(self.out('* * * * *', None, 3, early))

    def test_a_first_time_counts_as_a_run(self):
        first = AT + minutes(1)
        self.assertFalse(self.out('0 * * * *', first, 2, minutes(59)))
        self.assertTrue(self.out('0 * * * *', first, 2, minutes(60)))

    def test_a_first_time_alone_is_one_run(self):
        first = AT + minutes(5)
        self.assertFalse(self.out(None, first, None, minutes(4)))
        self.assertTrue(self.out(None, first, None, minutes(5)))

    def test_nothing_runs_before_its_first_time(self):
        first = AT + minutes(5)
        self.assertFalse(self.out('* * * * *', first, 1, minutes(4)))

    def test_too_many_times_to_count_are_not_counted(self):
        year = minutes(60 * 24 * 365)
        self.assertTrue(self.out('* * * * *', None, 500000, year))
