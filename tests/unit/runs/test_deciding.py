# SPDX-License-Identifier: Apache-2.0
"""What a run does next, and what people are shown of it."""

import dataclasses
import re

import pytest
import testtools

from heat_plugins import errors
from heat_plugins.runs import deciding
from heat_plugins.runs import overview
from heat_plugins.runs import run_records
from tests.unit.runs import store_contract

NOW = store_contract.NOW
_Phase = run_records.Phase
_State = run_records.State


def record(members=6, **limits):
    limits = run_records.RunLimits.asked(limits)
    return store_contract.run(targets=members, limits=limits)


def ended(found, *members, state=_State.COMPLETE, at=NOW):
    return found.attempted(
        {n: {'state': state, 'ended_at': at} for n in members}
    )


def followed(run, what, at=NOW, **more):
    wanted = run_records.Request(do=what, who='bob', request='x', **more)
    return deciding.follow(run, wanted, at)


#: What becomes of targets.
ENDS = {
    '=': {'state': _State.COMPLETE, 'ended_at': NOW},
    'x': {'state': _State.FAILED, 'ended_at': NOW},
    't': {'state': _State.TIMED_OUT, 'ended_at': NOW},
    'c': {'state': _State.CANCELLED, 'ended_at': NOW},
    'g': {'state': _State.CANCELLED, 'gone': True, 'ended_at': NOW},
    'w': {'state': _State.WAITING},
    'n': {'state': None, 'number': 0},
    'q': {'state': None, 'number': 0, 'wait_until': NOW + 7},
    'r': {'reported_at': NOW + 3},
}


def play(run, story):
    """Return the run after a story, and the last reason that it checks.

    :param story: words. ``>01`` decides, and starts these; ``-01`` decides,
        and withdraws these; ``~0`` says which expire; ``^9`` when to decide
        again; ``@9`` is a time; ``!FAILED`` is the phase; a letter or a sign
        is what becomes of targets, see `ENDS`; others are requests, of one
        target if they end with its number.
    """
    at, reason = NOW, ''
    for word in story.split():
        sign, rest = word[0], word[1:]
        numbers = tuple(map(int, rest)) if rest.isdigit() else ()
        step = deciding.advance(run, at)
        if sign in '>-':
            wanted = (numbers, ()) if sign == '>' else ((), numbers)
            assert (step.start, step.withdraw) == wanted, word
            run = step.run
        elif sign == '^':
            assert deciding.next_time(run) == NOW + int(rest), word
        elif sign == '~':
            assert step.expire == numbers, word
        elif sign == '@':
            at = NOW + int(rest)
        elif sign == '!':
            assert run.control.phase is _Phase[rest]
            reason = run.control.reason
        elif sign in ENDS and (numbers or not rest):
            values = dict(ENDS[sign])
            if 'ended_at' in values:
                values['ended_at'] = at
            run = run.attempted(dict.fromkeys(numbers, values))
        elif word[-1].isdigit():
            only = run.run_id(int(word[-1]))
            run = followed(run, word[:-1], at, only=only)
        else:
            run = followed(run, word, at)
    return run, reason


YES = {'yes': True}
CASES = """
# One starts as another ends; a percentage is one run at least.
6 max_concurrent=2: >01 =1 >2
6 max_concurrent=10%: >0
20 max_concurrent=10%: >01
6 max_concurrent=2 max_errors=1: >01 x0 >2 t1 > !STOPPING =2 > !TIMED_OUT
  More failures than max-errors allows (1); 2 of 6 failed; 3 not started
# Canaries come first, all must succeed, and a user approves.
6 max_concurrent=4 canary=2 max_errors=5: >01 =0 > =1 >2345
6 canary=2 max_errors=5: >01 =0 x1 > !FAILED
  A canary has failed; 1 of 6 failed; 4 not started
6 canary=1 approve_after_canary=yes: >0 =0 > !APPROVAL resume >12345 !RUNNING
# A pause is between two batches.
6 max_concurrent=2 pause=30: >01 @5 =0 > @10 =1 ^40 @39 > @40 >23
# What runs goes on while a user holds the run.
6 max_concurrent=2: >01 pause =0 > !PAUSED
  Paused by bob. To continue: openstack software deployment run resume {id}
6 max_concurrent=2: >01 pause =0 > resume >2 !RUNNING
6 max_concurrent=2: >01 cancel -01 c01 @90 > !CANCELLED
  Cancelled by bob; 4 not started
# Of a target that is cancelled, a result that has come counts.
3 max_concurrent=2: >01 cancel-run1 =01 >2 =2 > !COMPLETE
  All 3 succeeded
3 max_concurrent=2: >01 cancel-run1 -1 c1 >2 cancel-run1 =02 > !CANCELLED
  1 cancelled
# The deadline is for the whole, and comes after other stops.
6 max_concurrent=1 deadline=60: >0 ^60 @59 - @60 -0 c0 @61 > !TIMED_OUT
3 max_concurrent=2 deadline=120 cut_off=60: >01 @60 - {late} -01 c01 {ended}
  No run starts after the cut-off of 60 s; {end}; 1 not started
3 max_concurrent=2 deadline=120: >01 x1 @60 - {late} -0 c0 {ended}
  More failures than max-errors allows (0); {end}; 1 of 3 failed; 1 not started
3 canary=2 max_errors=5 deadline=120: >01 x1 @60 - {late} -0 c0 {ended}
  A canary has failed; {end}; 1 of 3 failed; 1 not started
# What has ended before is not late.
2 max_concurrent=1 deadline=60: >0 @30 x0 > !FAILED
2 max_concurrent=2 deadline=60: >01 x0 > x1 @61 > !FAILED
# After the cut-off nothing starts; what runs continues, and a retry has time.
3 max_concurrent=1 cut_off=60: >0 ^60 =0 @59 >1 @60 - !STOPPING =1 > !TIMED_OUT
  No run starts after the cut-off of 60 s; 1 not started
3 max_concurrent=1 cut_off=60: >0 =0 >1 @60 - =1 @90 > !TIMED_OUT retry >2
1 cut_off=60: >0 w0 @70 > !RUNNING =0 > !COMPLETE
  It succeeded
# What was recorded as starting may not have been given to servers.
3 cut_off=60: >012 w0 @60 - !STOPPING =012 > !COMPLETE
  All 3 succeeded
3 cut_off=60: >012 w0 @60 - n12 =0 > !TIMED_OUT
  No run starts after the cut-off of 60 s; 2 not started
2 max_concurrent=1 cut_off=60: >0 @60 - =0 g1 @90 > !COMPLETE
  It succeeded
# Each target has its time to start, and its time.
1 timeout=60 delivery_timeout=20: >0 ^20 @19 ~ @20 ~0
1 timeout=60 delivery_timeout=20: >0 r0 ^60 @20 ~ @59 ~ @60 ~0
# Another run on its server is waited for.
2: >01 q1 ^7
# A retry runs what did not succeed; what is gone does not count.
3 max_concurrent=2: >01 =0 x1 > !FAILED retry >12 =12 > !COMPLETE
  All 3 succeeded
2: >01 =1 g0 > !COMPLETE
  It succeeded
2: >01 g01 > !CANCELLED
  Its stacks or deployments were deleted
"""


@pytest.mark.parametrize(
    'case', re.findall(r'^\d.*(?:\n  .*)?', CASES, re.MULTILINE)
)
def test_what_a_run_does_next(case):
    given, story, reason = re.fullmatch(
        r'(.*?): (.*)(?:\n  (.*))?', case
    ).groups()
    members, *limits = given.split()
    asked = dict(each.split('=') for each in limits)
    for name, value in asked.items():
        asked[name] = int(value) if value.isdigit() else YES.get(value, value)
    run = record(int(members), **asked)
    story = story.replace('{late}', '@119 - @120')
    story = story.replace('{ended}', '@121 > !TIMED_OUT retry')
    after, found = play(run, story)
    if reason:
        end = 'it has not ended within 120 s'
        assert found == reason.format(id=run.id, end=end)
    if story.endswith('retry'):
        assert after.control.stopped_before is None


def test_a_request_that_makes_no_sense_changes_nothing():
    run, _ = play(record(2), '>01')
    for what in ('resume', 'retry'):
        assert followed(run, what) == run
    complete, _ = play(run, '=01 > !COMPLETE')
    assert followed(complete, 'retry') == complete
    cancelled, _ = play(run, 'cancel-run1 -1 c1')
    assert followed(cancelled, 'cancel-run', only=run.run_id(1)) == cancelled
    cancelled, _ = play(cancelled, '=0 > !CANCELLED')
    assert deciding.retriable(cancelled) == [1]


class RetryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        ends = enumerate((_State.COMPLETE, _State.FAILED, _State.TIMED_OUT))
        values = {'number': 1, 'reason': 'exit 1', 'ended_at': NOW}
        self.found = (
            record(5)
            .attempted({n: {**values, 'state': state} for n, state in ends})
            .attempted({4: {'round': -1}})
            .changed(phase=_Phase.FAILED, ended_at=NOW)
        )

    def retried(self, only=None):
        return deciding.retry(self.found, NOW, 'bob', only)

    def test_the_failure_is_kept(self):
        again = ended(deciding.advance(self.retried(), NOW).run, 1)
        first, second = overview.target(again, 1)['attempts']
        assert (first['attempt'], first['state']) == (1, 'failed')
        assert (second['attempt'], second['state']) == (2, 'complete')
        assert len(overview.target(again, 0)['attempts']) == 1

    def test_it_runs_what_is_named(self):
        for only, members in (
            (None, [1, 2, 3, 4]),
            ('failed', [1]),
            ('timed-out', [2]),
            ('not-started', [3, 4]),
            ('group.2.db', [2]),
            ('server-3', [3]),
            ('shop group.3.db', [3]),
        ):
            assert members == self.retried(only).pending, only
        counts = {'complete': 1, 'pending': 1, 'timed-out': 1}
        counts['not-started'] = 2
        assert overview.counts(self.retried('failed')) == counts
        for only in ('complete', 'group.0.db', 'no-such', ''):
            assert 'no target without success' in deciding.refusal(
                self.found, deciding.RETRY, only=only
            )

    def test_the_last_attempts_are_kept(self):
        for _ in range(8):
            self.found = deciding.advance(self.retried('group.1.db'), NOW).run
            self.found = ended(self.found, 1, state=_State.FAILED)
        numbers = [each.number for each in self.found.attempts[1].every]
        assert numbers == [4, 5, 6, 7, 8, 9]

    def test_long_outputs_of_former_attempts_are_cut(self):
        outputs = {f'o{n}': 'x' * 4096 for n in range(6)}
        long = {'outputs': outputs, 'cut': {'o0': 5000}}
        self.found = self.found.attempted({1: long})
        former = self.retried().attempts[1].every[0]
        assert [*former.outputs][:3] == ['o0', 'o1', 'o2']
        assert sum(map(len, former.outputs.values())) < 16 * 1024
        assert former.cut == {'o0': 5000, 'o3': 4096, 'o4': 4096, 'o5': 4096}

    def test_it_is_kept_who_cancelled_an_attempt(self):
        self.found = self.found.changed(stopped_by='ann')
        cancelled = {1: {'state': _State.CANCELLED}}
        self.found = self.found.attempted(cancelled)
        assert self.retried().attempts[1].every[0].cancelled_by == 'ann'


def test_the_limits_that_were_written_can_be_read():
    share = run_records.Share.parse('20%')
    limits = run_records.RunLimits(max_concurrent=share, canary=2)
    assert limits == run_records.RunLimits.asked(limits.shown())


@pytest.mark.parametrize(
    ('name', 'value'),
    [
        *(('max_concurrent', 'many'), ('max_concurrent', '0%')),
        *(('max_errors', '101%'), ('approve_after_canary', 'yes')),
        *(('canary', -1), ('timeout', 0), ('cut_off', '9' * 5000)),
    ],
)
def test_what_is_no_limit_is_refused(name, value):
    with pytest.raises(errors.Refused):
        run_records.RunLimits.asked({name: value})


def ran(found, *members, start=0, end=None, state=_State.COMPLETE):
    ended_at = None if end is None else NOW + end
    made = {'state': state, 'started_at': NOW + start, 'ended_at': ended_at}
    return found.attempted(dict.fromkeys(members, made))


class OverviewTest(testtools.TestCase):
    def test_what_may_start_yet_is_pending_until_the_end(self):
        found = ran(record(6), 0, end=5, state=_State.FAILED)
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
        found = record(1)
        order = dataclasses.replace(
            found.order,
            config={'config': '#!/bin/sh\nlogin hunter2-secret\nexit'},
            inputs={'password': 'hunter2-secret'},
        )
        found = dataclasses.replace(found, order=order)
        assert overview.head(found).script == 'login ******'

    def test_the_end_is_estimated_from_how_long_runs_take(self):
        found = record(7, max_concurrent=2)
        assert overview.estimated_end(found, NOW) is None
        found = ran(found, 0, end=10)
        found = ran(found, 1, start=10, state=_State.RUNNING)
        # One in progress, and five in three waves.
        assert overview.estimated_end(found, NOW + 12) == NOW + 20 + 30
        # Without a wait for approval, and with pauses between batches.
        found = record(7, max_concurrent=2, canary=1)
        found = ran(found, 0, end=10)
        waiting = found.changed(phase=_Phase.APPROVAL)
        assert overview.estimated_end(waiting, NOW + 3600) is None
        assert overview.estimated_end(found, NOW + 3600) == NOW + 3600 + 30
        found = record(5, max_concurrent=2, pause=60)
        found = ran(found, 0, end=10)
        assert overview.estimated_end(found, NOW + 10) == NOW + 10 + 140
        # One that takes longer than others is about to end.
        found = ran(record(2), 0, end=10)
        found = ran(found, 1, state=_State.RUNNING)
        assert overview.estimated_end(found, NOW + 99) == NOW + 99

    def test_what_a_server_is_busy_with_is_named_the_surest_first(self):
        def other(**attempt):
            run = record(1)
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
