# SPDX-License-Identifier: Apache-2.0
"""Long work in steps, and the loop of the commands."""

import dataclasses
import json
from unittest import mock

import pytest

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
            failed = {'success': False, 'reason': outcome.reason}
            return jobs.JobStep(state=state, **failed)
        if state.steps == self.steps:
            return jobs.JobStep(state=state, success=True)
        if state.steps == self.steps - 1:
            call = jobs.Call(kind=jobs.CallKind.ACTION, name='last')
            return jobs.JobStep(state=state, call=call)
        return jobs.JobStep(state=state, next_look=state.steps)

    def output(self, state):
        return {'taken': state.steps}


class Driver:
    """The loop, with a clock that only notes for how long it slept."""

    def __init__(self):
        self.slept = []
        self.job = Counting(5)
        self.run = mock.Mock(return_value=jobs.CallOutcome(success=True))

    def drive(self, tell=lambda step: None):
        way = {'run': self.run, 'sleep': self.slept.append, 'tell': tell}
        return jobs.drive(self.job, Count(), **way)


@pytest.fixture
def driver():
    return Driver()


def test_it_takes_steps_to_the_end_and_runs_calls_between_them(driver):
    shown = []
    end = driver.drive(lambda step: shown.append(step.state.steps))
    assert end.success
    assert shown == [1, 2, 3, 4, 5]
    assert driver.slept == [1, 2, 3]
    ((call,), _) = driver.run.call_args
    assert call.name == 'last'
    assert driver.job.outcomes == [None] * 4 + [driver.run.return_value]


def test_a_call_may_fail_the_job_and_who_is_told_may_have_enough(driver):
    end = driver.drive(lambda step: step.state.steps == 2)
    assert (end.success, end.state.steps) == (None, 2)
    failed = jobs.CallOutcome(success=False, reason='boom')
    driver.run.return_value = failed
    end = driver.drive()
    assert (end.success, end.reason) == (False, 'boom')


def test_an_outage_is_ridden_out_once_it_has_begun(driver):
    def tell(step):
        if step.state.steps == 2 and driver.job.failing == 0:
            driver.job.failing = 3 if len(driver.slept) < 3 else 0

    assert driver.drive(tell).success
    assert driver.slept == [1, 2, 5, 5, 5, 3]


def test_what_cannot_be_told_now_is_told_before_the_end(driver):
    tell = mock.Mock(side_effect=[None] * 4 + [errors.Unavailable(''), None])
    driver.drive(tell)
    told = [called.args[0].state.steps for called in tell.mock_calls]
    assert told == [1, 2, 3, 4, 5, 5]


def test_an_outage_for_good_is_an_error(driver, monkeypatch):
    monkeypatch.setattr(jobs, 'ATTEMPTS', 3)
    with pytest.raises(errors.Unavailable):
        driver.drive(lambda step: setattr(driver.job, 'failing', 99))


def test_a_driver_that_knows_json_comes_to_the_same_end():
    job, state, outcome = Counting(3), None, None
    while True:
        advanced = jobs.advance(job, Count(), state, outcome)
        step = json.loads(json.dumps(advanced))
        if step['success'] is not None:
            break
        state = step['state']
        outcome = {'success': True} if step['call'] else None
    assert (step['state'], step['output']) == ({'steps': 3}, {'taken': 3})
    assert step['success']
    with pytest.raises(errors.Invalid):
        jobs.advance(job, Count(), {'steps': 'x'}, None)
