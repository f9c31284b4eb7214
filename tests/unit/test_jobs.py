# SPDX-License-Identifier: Apache-2.0
"""Long work in steps, and the loop of the commands."""

import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins import jobs

DONE = jobs.CallOutcome(success=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count:
    steps: int = 0


class Counting:
    """Takes five steps; before the last one it calls something."""

    def __init__(self):
        self.failing = 0
        self.outcomes = []
        self.slept = []

    def step(self, state, outcome):
        if self.failing:
            self.failing -= 1
            raise errors.Unavailable('503')
        self.outcomes.append(outcome)
        state = Count(steps=state.steps + 1)
        if state.steps == 5:
            return jobs.JobStep(
                state=state, success=outcome.success, reason=outcome.reason
            )
        if state.steps == 4:
            call = jobs.Call(kind=jobs.CallKind.ACTION, name='last')
            return jobs.JobStep(state=state, call=call)
        return jobs.JobStep(state=state, next_look=state.steps)

    def output(self, state):
        return {'taken': state.steps}

    def drive(self, run=lambda call: DONE, **more):
        sleep = self.slept.append
        return jobs.drive(self, Count(), run=run, sleep=sleep, **more)


@pytest.fixture
def job():
    return Counting()


def test_it_takes_steps_to_the_end_and_runs_calls_between_them(job):
    called, told = [], []

    def run(call):
        called.append(call.name)
        return DONE

    def tell(step):
        told.append(step.state.steps)
        # What cannot be told now is told before the end.
        if len(told) == 5:
            raise errors.Unavailable('503')

    assert job.drive(run, tell=tell).success
    assert told == [1, 2, 3, 4, 5, 5]
    assert job.slept[:3] == [1, 2, 3]
    assert called == ['last']
    assert job.outcomes == [None] * 4 + [DONE]
    boom = jobs.CallOutcome(success=False, reason='boom')
    end = job.drive(lambda call: boom)
    assert (end.success, end.reason) == (False, 'boom')
    # Who is told may have enough.
    end = job.drive(tell=lambda step: step.state.steps == 2)
    assert (end.success, end.state.steps) == (None, 2)


def test_an_outage_is_ridden_out_once_it_has_begun(job, monkeypatch):
    def tell(step):
        if step.state.steps == 2 and job.failing == 0:
            job.failing = 3 if len(job.slept) < 3 else 0

    assert job.drive(tell=tell).success
    assert job.slept == [1, 2, 5, 5, 5, 3]
    monkeypatch.setattr(jobs, 'ATTEMPTS', 3)
    with pytest.raises(errors.Unavailable):
        job.drive(tell=lambda step: setattr(job, 'failing', 99))


def test_a_driver_that_knows_json_comes_to_the_same_end(job):
    state = outcome = None
    for _ in range(5):
        step = jobs.advance(job, Count(), state, outcome)
        step = json.loads(json.dumps(step))
        state = step['state']
        outcome = {'success': True} if step['call'] else None
    assert state == {'steps': 5}
    assert step['output'] == {'taken': 5}
    assert step['success']
    with pytest.raises(errors.Invalid):
        jobs.advance(job, Count(), {'steps': 'x'}, None)
