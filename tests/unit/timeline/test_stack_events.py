# SPDX-License-Identifier: Apache-2.0
"""Events of Heat as bars."""

import testtools

from heat_plugins import heat_values
from heat_plugins.timeline import chart
from heat_plugins.timeline import chart_reading

WAITING = chart.State.WAITING


def event(status, time, reason='', physical_id='p'):
    return heat_values.Event(
        id='e',
        resource='db',
        stack_id='s',
        physical_id=physical_id,
        status=status,
        reason=reason,
        time=time,
    )


def bars(*found):
    return [
        (bar.label, bar.state.value, bar.start, bar.end)
        for bar in chart_reading.bars([event(*one) for one in found], WAITING)
    ]


class BarsTest(testtools.TestCase):
    def test_an_action_lasts_from_its_beginning_to_its_end(self):
        found = bars(
            ('CREATE_IN_PROGRESS', 1),
            ('CREATE_COMPLETE', 5),
            ('UPDATE_IN_PROGRESS', 10),
            ('UPDATE_FAILED', 12),
        )
        self.assertEqual(
            [('CREATE', 'complete', 1, 5), ('UPDATE', 'failed', 10, 12)],
            found,
        )

    def test_the_reason_is_that_of_the_end(self):
        (bar,) = chart_reading.bars(
            [
                event('CREATE_IN_PROGRESS', 1, 'state changed'),
                event('CREATE_FAILED', 2, 'no space left'),
            ],
            WAITING,
        )
        self.assertEqual('no space left', bar.reason)

    def test_a_second_beginning_changes_nothing(self):
        found = bars(('DELETE_IN_PROGRESS', 1), ('DELETE_IN_PROGRESS', 3))
        self.assertEqual([('DELETE', 'waiting', 1, None)], found)

    def test_the_report_of_a_server_ends_the_waiting(self):
        for status, reason in (
            ('CREATE_IN_PROGRESS', 'Started: CREATE on server web'),
            ('SIGNAL_IN_PROGRESS', 'Signal: Started: CREATE on server web'),
        ):
            (bar,) = chart_reading.bars(
                [event('CREATE_IN_PROGRESS', 1), event(status, 3, reason)],
                WAITING,
            )
            self.assertEqual(chart.State.RUNNING, bar.state)
            self.assertEqual(
                (1, 3, None), (bar.start, bar.working_since, bar.end)
            )

    def test_an_end_whose_beginning_heat_forgot_is_a_moment(self):
        self.assertEqual(
            [('CREATE', 'complete', 7, 7)], bars(('CREATE_COMPLETE', 7))
        )

    def test_a_stack_fails_once_however_many_of_its_resources_do(self):
        found = bars(
            ('CREATE_IN_PROGRESS', 1),
            ('CREATE_FAILED', 5),
            ('CREATE_FAILED', 9),
        )
        self.assertEqual([('CREATE', 'failed', 1, 9)], found)

    def test_a_resource_may_be_marked_unhealthy_again(self):
        found = bars(('CHECK_FAILED', 5), ('CHECK_FAILED', 9))
        self.assertEqual(
            [('CHECK', 'failed', 5, 5), ('CHECK', 'failed', 9, 9)], found
        )

    def test_an_action_that_another_cut_off_is_cancelled(self):
        found = bars(
            ('CREATE_IN_PROGRESS', 1),
            ('DELETE_IN_PROGRESS', 4),
            ('DELETE_COMPLETE', 6),
        )
        self.assertEqual(
            [('CREATE', 'cancelled', 1, 4), ('DELETE', 'complete', 4, 6)],
            found,
        )

    def test_an_end_of_another_action_cuts_off_too(self):
        found = bars(('CREATE_IN_PROGRESS', 1), ('CHECK_FAILED', 4))
        self.assertEqual(
            [('CREATE', 'cancelled', 1, 4), ('CHECK', 'failed', 4, 4)], found
        )

    def test_a_signal_shows_only_if_it_came_to_nothing(self):
        found = bars(
            ('SIGNAL_COMPLETE', 1, 'Signal: deployment succeeded'),
            ('SIGNAL_FAILED', 2, 'Signal: deployment failed'),
            ('SIGNAL_FAILED', 3, 'Not triggered: no action BACKPU'),
        )
        self.assertEqual([('SIGNAL', 'failed', 3, 3)], found)

    def test_a_refused_signal_says_nothing_of_how_the_resource_stands(self):
        for kind in (
            heat_values.EventKind.NOT_TRIGGERED,
            heat_values.EventKind.RESULT_REFUSED,
            heat_values.EventKind.SIGNAL_FAILED,
        ):
            found = chart_reading.bars(
                [
                    event('CREATE_COMPLETE', 1),
                    event(
                        'SIGNAL_FAILED',
                        3,
                        heat_values.event_reason(kind, 'no'),
                    ),
                ],
                WAITING,
            )
            row = chart.ChartRow(
                kind=chart.RowKind.DEPLOYMENT, path='db', name='db', bars=found
            )
            self.assertEqual(2, len(found))
            self.assertEqual(chart.State.COMPLETE, row.last.state)
            whole = chart.Chart(stack='s', status='', now=9, rows=[row])
            self.assertEqual({chart.State.COMPLETE: 1}, whole.counts())

    def test_an_unknown_hook_is_a_hint_for_as_long_as_nothing_starts(self):
        hint = heat_values.event_reason(
            heat_values.EventKind.UNKNOWN_HOOK, '"scirpt" is none'
        )
        happened = [
            event('CREATE_IN_PROGRESS', 1),
            event('CREATE_IN_PROGRESS', 2, hint),
        ]
        (bar,) = chart_reading.bars(happened, WAITING)
        self.assertEqual('', bar.explanation(10))
        self.assertEqual(hint, bar.explanation(100))
        happened.append(event('CREATE_IN_PROGRESS', 3, 'Started: CREATE on x'))
        (bar,) = chart_reading.bars(happened, WAITING)
        self.assertEqual('', bar.explanation(100))


class KindsTest(testtools.TestCase):
    def test_each_kind_is_read_as_it_was_written(self):
        for kind in heat_values.EventKind:
            for reason in (
                heat_values.event_reason(kind, 'why'),
                heat_values.event_reason(kind, 'x' * 999),
                f'Signal: {heat_values.event_reason(kind, "why")}',
            ):
                self.assertIs(kind, heat_values.event_kind(reason))
                self.assertTrue(len(reason) <= heat_values.EVENT_LIMIT)

    def test_other_reasons_have_none(self):
        for reason in ('', 'state changed', 'Not triggered', 'x Started: y'):
            self.assertIsNone(heat_values.event_kind(reason))


class MomentTest(testtools.TestCase):
    def test_heats_and_mistrals_times_are_utc(self):
        self.assertEqual(
            1_800_000_000, heat_values.moment('2027-01-15T08:00:00Z')
        )
        self.assertEqual(
            1_800_000_000, heat_values.moment('2027-01-15 08:00:00')
        )

    def test_a_zone_counts(self):
        self.assertEqual(
            1_800_000_000, heat_values.moment('2027-01-15T09:00:00+01:00')
        )


class StackTest(testtools.TestCase):
    def test_an_event_of_a_stack_bears_its_id(self):
        self.assertTrue(event('CREATE_COMPLETE', 1, physical_id='s').of_stack)
        self.assertFalse(event('CREATE_COMPLETE', 1).of_stack)
