# SPDX-License-Identifier: Apache-2.0
"""Long work in steps, and the loop of the commands."""

import dataclasses
import json

import testtools

from heat_plugins import errors
from heat_plugins import jobs


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count:
    steps: int = 0


class Counting:
    """Takes a number of steps; before the last one it calls something."""

    def __init__(self, steps):
        self.steps = steps
        self.failing = 0
        self.outcomes = []

    def step(self, state, outcome):
        if self.failing:
            self.failing -= 1
            raise errors.Unavailable('503')
        self.outcomes.append(outcome)
        state = Count(steps=state.steps + 1)
        if outcome is not None and not outcome.success:
            return jobs.JobStep(
                state=state, success=False, reason=outcome.reason
            )
        if state.steps == self.steps:
            return jobs.JobStep(state=state, success=True)
        if state.steps == self.steps - 1:
            call = jobs.Call(kind=jobs.CallKind.ACTION, name='last')
            return jobs.JobStep(state=state, call=call)
        return jobs.JobStep(state=state, next_look=state.steps)

    def output(self, state):
        return {'taken': state.steps}


class DriveTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.slept = []
        self.job = Counting(5)
        self.answer = jobs.CallOutcome(success=True)
        self.called = []

    def drive(self, **more):
        def run(call):
            self.called.append(call.name)
            return self.answer

        return jobs.drive(
            self.job, Count(), run=run, sleep=self.slept.append, **more
        )

    def test_it_takes_steps_to_the_end_and_runs_calls_between_them(self):
        shown = []
        end = self.drive(tell=lambda step: shown.append(step.state.steps))
        assert end.success
        assert shown == [1, 2, 3, 4, 5]
        assert self.slept == [1, 2, 3]
        assert self.called == ['last']
        assert self.job.outcomes == [None] * 4 + [self.answer]

    def test_a_call_that_fails_may_fail_the_job(self):
        self.answer = jobs.CallOutcome(success=False, reason='boom')
        end = self.drive()
        assert (end.success, end.reason) == (False, 'boom')

    def test_who_is_told_may_have_enough(self):
        end = self.drive(tell=lambda step: step.state.steps == 2)
        assert end.success is None
        assert end.state.steps == 2

    def test_an_outage_is_ridden_out_once_it_has_begun(self):
        def tell(step):
            if step.state.steps == 2 and self.job.failing == 0:
                self.job.failing = 3 if len(self.slept) < 3 else 0

        assert self.drive(tell=tell).success
        assert self.slept == [1, 2, 5, 5, 5, 3]

    def test_what_cannot_be_told_now_is_told_before_the_end(self):
        told = []

        def tell(step):
            told.append(step.state.steps)
            if len(told) == 5:
                raise errors.Unavailable('503')

        self.drive(tell=tell)
        assert told == [1, 2, 3, 4, 5, 5]

    def test_an_outage_for_good_is_an_error(self):
        self.patch(jobs, 'ATTEMPTS', 3)

        def tell(step):
            self.job.failing = 99

        self.assertRaises(errors.Unavailable, self.drive, tell=tell)


class AdvanceTest(testtools.TestCase):
    def test_a_driver_that_knows_json_comes_to_the_same_end(self):
        job, state, outcome = Counting(3), None, None
        while True:
            step = json.loads(
                json.dumps(jobs.advance(job, Count(), state, outcome))
            )
            if step['success'] is not None:
                break
            state = step['state']
            outcome = {'success': True} if step['call'] else None
        assert step['state'] == {'steps': 3}
        assert step['output'] == {'taken': 3}
        assert step['success']

    def test_what_is_no_state_is_refused(self):
        self.assertRaises(
            errors.Invalid,
            jobs.advance,
            Counting(3),
            Count(),
            {'steps': 'x'},
            None,
        )
