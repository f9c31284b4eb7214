# SPDX-License-Identifier: Apache-2.0
"""What people are shown of a run."""

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
    def test_what_may_start_yet_is_pending_until_the_end(self):
        found = ran(test_deciding.record(6), 0, end=5, state=_State.FAILED)
        shown = overview.of(found, NOW)
        assert shown['counts'] == {'pending': 5, 'failed': 1}
        assert (shown['round'], shown['percent']) == (1, 16)
        # What a stopped run has not run is not done.
        found = found.changed(phase=_Phase.FAILED, ended_at=NOW + 5)
        shown = overview.of(found, NOW + 5)
        assert shown['counts'] == {'not-started': 5, 'failed': 1}
        assert shown['percent'] == 16
        assert overview.target(found, 1)['state'] == 'not-started'
        found = ran(found, *range(6), end=5)
        assert overview.of(found, NOW)['percent'] == 100

    def test_the_first_line_of_a_script_hides_inputs(self):
        found = test_deciding.record(1)
        order = dataclasses.replace(
            found.order,
            config={'config': '#!/bin/sh\nlogin hunter2-secret\nexit'},
            inputs={'password': 'hunter2-secret'},
        )
        found = dataclasses.replace(found, order=order)
        assert overview.head(found).script == 'login ******'

    def test_the_end_is_estimated_from_how_long_runs_take(self):
        found = test_deciding.record(7, max_concurrent=2)
        assert overview.estimated_end(found, NOW) is None
        found = ran(found, 0, end=10)
        found = ran(found, 1, start=10, state=_State.RUNNING)
        # One in progress, and five in three waves.
        assert overview.estimated_end(found, NOW + 12) == NOW + 20 + 30
        # Without a wait for approval, and with pauses between batches.
        found = test_deciding.record(7, max_concurrent=2, canary=1)
        found = ran(found, 0, end=10)
        waiting = found.changed(phase=_Phase.APPROVAL)
        assert overview.estimated_end(waiting, NOW + 3600) is None
        assert overview.estimated_end(found, NOW + 3600) == NOW + 3600 + 30
        found = test_deciding.record(5, max_concurrent=2, pause=60)
        found = ran(found, 0, end=10)
        assert overview.estimated_end(found, NOW + 10) == NOW + 10 + 140
        # One that takes longer than others is about to end.
        found = ran(test_deciding.record(2), 0, end=10)
        found = ran(found, 1, state=_State.RUNNING)
        assert overview.estimated_end(found, NOW + 99) == NOW + 99

    def test_what_a_server_is_busy_with_is_named_the_surest_first(self):
        def other(**attempt):
            run = test_deciding.record(1)
            values = {'state': _State.WAITING, 'started_at': NOW, **attempt}
            return run.attempted({0: values})

        waiting = other()
        assert overview.kept_busy(waiting, 0, [other()]) == ''
        first = other(started_at=NOW - 1)
        assert 'first' in overview.kept_busy(waiting, 0, [first])
        silent = other(state=_State.TIMED_OUT, reported_at=NOW)
        running = other(state=_State.RUNNING)
        for others, said in (
            ([first, silent], 'may be busy with'),
            ([first, silent, running], 'is busy with'),
        ):
            assert said in overview.kept_busy(waiting, 0, others)
