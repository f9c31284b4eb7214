# SPDX-License-Identifier: Apache-2.0
"""What people are shown of an operation."""

import dataclasses

import testtools

from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from tests.unit.runs import test_deciding

NOW = test_deciding.NOW
_Phase = run_records.Phase
_State = run_records.State


def ran(found, *members, start=0, end=None, state=_State.COMPLETE):
    return found.attempted(
        {
            n: {
                'state': state,
                'started_at': NOW + start,
                'ended_at': None if end is None else NOW + end,
            }
            for n in members
        }
    )


class OverviewTest(testtools.TestCase):
    def stopped(self):
        """Return an operation that ended when one of six had failed."""
        found = ran(test_deciding.operation(6), 0, end=5, state=_State.FAILED)
        return found.changed(phase=_Phase.FAILED, ended_at=NOW + 5)

    def test_what_a_stopped_operation_has_not_run_is_not_done(self):
        shown = overview.of(self.stopped(), NOW + 5)
        self.assertEqual(16, shown['percent'])
        self.assertEqual({'not-started': 5, 'failed': 1}, shown['counts'])
        target = overview.target(self.stopped(), 1)
        self.assertEqual('not-started', target['state'])

    def test_what_may_start_yet_is_pending(self):
        found = ran(test_deciding.operation(6), 0, end=5)
        shown = overview.of(found, NOW)
        self.assertEqual({'pending': 5, 'complete': 1}, shown['counts'])
        self.assertEqual(16, shown['percent'])
        found = ran(found, *range(6), end=5)
        self.assertEqual(100, overview.of(found, NOW)['percent'])

    def test_the_first_line_of_a_script_hides_inputs(self):
        found = test_deciding.operation(1)
        order = dataclasses.replace(
            found.order,
            config={'config': '#!/bin/sh\nlogin hunter2-secret\nexit'},
            inputs={'password': 'hunter2-secret'},
        )
        found = dataclasses.replace(found, order=order)
        self.assertEqual('login ******', overview.head(found).script)

    def test_the_first_round_is_number_one(self):
        found = test_deciding.operation(6)
        self.assertEqual(1, overview.of(found, NOW)['round'])

    def test_the_end_is_estimated_from_how_long_runs_take(self):
        found = test_deciding.operation(7, max_concurrent=2)
        self.assertIsNone(overview.estimated_end(found, NOW))
        found = ran(found, 0, end=10)
        found = ran(found, 1, start=10, state=_State.RUNNING)
        # One in progress, and five in three waves.
        self.assertEqual(
            NOW + 20 + 30, overview.estimated_end(found, NOW + 12)
        )

    def test_a_wait_for_approval_is_not_in_the_estimate(self):
        found = test_deciding.operation(7, max_concurrent=2, canary=1)
        found = ran(found, 0, end=10)
        waiting = found.changed(phase=_Phase.APPROVAL)
        self.assertIsNone(overview.estimated_end(waiting, NOW + 3600))
        self.assertEqual(
            NOW + 3600 + 30, overview.estimated_end(found, NOW + 3600)
        )

    def test_pauses_between_batches_are_in_the_estimate(self):
        found = test_deciding.operation(5, max_concurrent=2, pause=60)
        found = ran(found, 0, end=10)
        self.assertEqual(
            NOW + 10 + 140, overview.estimated_end(found, NOW + 10)
        )

    def test_a_run_that_takes_longer_than_others_is_about_to_end(self):
        found = ran(test_deciding.operation(2), 0, end=10)
        found = ran(found, 1, state=_State.RUNNING)
        self.assertEqual(NOW + 99, overview.estimated_end(found, NOW + 99))
