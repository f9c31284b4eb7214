# SPDX-License-Identifier: Apache-2.0
"""What a schedule does at each tick."""

import dataclasses
import uuid

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules

HOUR = 3600
# A midnight; ticks are at each full hour after it.
ZERO = 1800057600
Needed = schedule_deciding.Needed
Passed = schedule_deciding.Passed
Phase = run_records.Phase


def hourly(**more):
    return schedules.Schedule(cron='@hourly', **more)


def record(**more):
    return schedule_deciding.ScheduleRecord(since=ZERO, **more)


def due(schedule, known, hours):
    return schedule_deciding.due(schedule, known, ZERO + hours * HOUR)


def hour(number):
    return ZERO + number * HOUR


RUNS = {'since': 1, 'running': 1, 'created': True, 'last': 1}
HELD = {'since': 2, 'running': 1, 'created': True, 'waiting': 2}
FULL, NEXT = {**RUNS, 'waiting': 1}, {'since': 2, 'waiting': 2}
QUEUE, CANCEL = (
    {'overlap': schedules.Overlap[n]} for n in ('QUEUE', 'CANCEL')
)
HALT = {**FULL, 'paused': 'a'}
WITHIN, CUT_OFF = {'start_within': 600}, {'cut_off': 300}
YEAR = 24 * 365


def in_hours(values):
    """Return values with times in seconds for those in hours."""
    times = ('since', 'running', 'waiting', 'last', 'create_until')
    times += 'next', 'cancel'
    return {
        name: hour(value) if name in times and value is not None else value
        for name, value in values.items()
    }


@pytest.mark.parametrize(
    ('given', 'before', 'hours', 'expected'),
    [
        ({}, {}, 0.9, 'running=None since=0 next=1'),
        ({}, {}, 1, 'running=1 since=1 create_until=2 next=2'),
        # A tick starts late, within the time, and names what was missed.
        (WITHIN, {}, 4.1, 'running=4 MISSED=1,2,3 missed=3'),
        (WITHIN, {'missed': 2}, 1.2, 'running=None since=1 MISSED=1 missed=3'),
        (CUT_OFF, {}, 1 + 299 / HOUR, 'running=1'),
        (CUT_OFF, {}, 1 + 300 / HOUR, 'running=None MISSED=1'),
        # An overlap is skipped, waits, or cancels; and what waited, too.
        ({}, RUNS, 2, 'running=1 since=2 RUNNING=2 skipped=1 missed=0'),
        ({}, HELD, 2.1, 'running=1 RUNNING=2'),
        (QUEUE, RUNS, 2, 'running=1 waiting=2'),
        (QUEUE, HELD, 3, 'waiting=2 WAITING=3'),
        (QUEUE, {'since': 3, 'waiting': 2}, 3.5, 'running=2 waiting=None'),
        (QUEUE, NEXT, 3, 'running=2 waiting=3'),
        ({**QUEUE, 'cut_off': 1800}, HELD, 2.5, 'waiting=None CUT_OFF=2'),
        (CANCEL, RUNS, 2, 'running=1 waiting=2 cancel=1'),
        # The engine that decided that may have died.
        (CANCEL, HELD, 2.1, 'running=1 waiting=2 cancel=1'),
        (CANCEL, HELD, 3, 'running=1 waiting=3 cancel=1 REPLACED=2'),
        (CANCEL, {'since': 3, 'waiting': 3}, 3.1, 'running=3'),
        (CANCEL, NEXT, 3, 'running=3 REPLACED=2'),
        # While it is paused, nothing starts, then or later.
        ({'paused': True}, FULL, 2, 'running=1 waiting=None PAUSED=1,2'),
        ({}, HALT, 2, 'running=1 since=2 missed=0 PAUSED=1,2'),
        # A clock that was wrong stops it for a day at most.
        ({}, {'since': YEAR}, 1, 'since=1 next=2'),
        ({}, {'since': 23}, 1, 'since=23'),
    ],
)
def test_what_is_due(given, before, hours, expected):
    known = dataclasses.replace(record(), **in_hours(before))
    decision = due(hourly(**given), known, hours)
    expected = dict(each.split('=') for each in expected.split())
    passed = [
        (hour(int(tick)), Passed[why])
        for why in Passed.__members__
        for tick in expected.pop(why, '').split(',')
        if tick
    ]
    assert sorted(decision.passed) == sorted(passed)
    shown = {
        **vars(decision.record),
        'next': decision.next_time,
        'cancel': decision.cancel,
    }
    for name, text in {'cancel': 'None', **expected}.items():
        value = None if text == 'None' else int(text)
        assert shown[name] == in_hours({name: value})[name], name


def test_the_last_tick_is_followed_by_none():
    once = schedules.Schedule(at='2027-01-16T01:00')
    decision = due(once, record(), 1)
    assert (decision.record.running, decision.next_time) == (hour(1), None)


def test_a_jitter_delays_the_start_and_keeps_the_tick():
    schedule = hourly(jitter=HOUR, key='shop')
    assert hourly(jitter=60, key='\ud800').start_of(0) <= 60
    start = schedule.start_of(hour(1))
    assert hour(1) < start
    early = schedule_deciding.due(schedule, record(), start - 1)
    assert (early.record.running, early.next_time) == (None, start)
    assert early.record == record()
    decision = schedule_deciding.due(schedule, record(), start)
    assert decision.record.running == hour(1)


def kept(schedule, known):
    return schedule_deciding.KeptSchedule(schedule=schedule, record=known)


def test_an_update_of_the_jitter_loses_no_tick():
    former = hourly(jitter=HOUR, key='shop')
    now = former.start_of(hour(1)) - 1
    known = kept(former, record())
    updated = known.with_schedule(hourly(key='shop'), now)
    decision = schedule_deciding.due(updated.schedule, updated.record, now)
    assert decision.record.running == hour(1)
    other = known.with_schedule(hourly(exclude=('sun',)), now)
    assert other.record.since == now


def test_a_long_outage_is_counted_up_to_a_limit_and_costs_little():
    each = schedules.Schedule(cron='* * * * *', start_within=60)
    decision = due(each, record(), 24 * 365)
    assert decision.record.running == hour(24 * 365)
    assert 1000 < decision.record.missed < 1010
    # The others are as if they had never been.
    assert len(decision.passed) < 10


@pytest.mark.parametrize('overlap', schedules.Overlap)
def test_a_tick_waits_while_the_one_before_could_not_be_created(overlap):
    schedule = hourly(overlap=overlap, start_within=2 * HOUR)
    known = due(schedule, record(), 1).record
    second = due(schedule, known, 2)
    assert (second.passed, second.record.waiting) == ((), hour(2))
    assert second.cancel is None
    third = due(schedule, second.record, 3)
    assert third.record.waiting == hour(3)
    after = kept(schedule, third.record).given_up().record
    fourth = due(schedule, after, 3.1)
    assert fourth.record.running == hour(3)
    assert fourth.record.missed + fourth.record.skipped == 2


def test_what_waited_for_a_creation_does_not_start_too_late():
    schedule = hourly()
    known = due(schedule, due(schedule, record(), 1).record, 2).record
    after = kept(schedule, known).given_up().record
    decision = due(schedule, after, 3.01)
    # All engines were away.
    assert decision.passed == ((hour(2), Passed.MISSED),)
    assert decision.record.running == hour(3)
    assert decision.record.missed == 2


def test_an_outage_is_not_missed_for_an_older_reason():
    schedule = hourly(start_within=60)
    for known in record(outcome='complete'), record(reason='a target is gone'):
        after = due(schedule, known, 1.5).record
        assert after.outcome == schedule_deciding.MISSED
        assert after.reason == schedule_deciding.LATE
    # The next one was to start in place of one that could not be created.
    known = dataclasses.replace(due(schedule, record(), 1).record, reason='no')
    assert due(schedule, known, 2.5).record.reason == 'no'


@pytest.mark.parametrize(
    'change',
    [
        lambda known, now: known.with_schedule(known.schedule, now),
        lambda known, now: known.resumed_stack(now),
        lambda known, now: schedule_signals.read({'do': 'resume'}).follow(
            known.with_record(paused='a release'), now
        ),
    ],
    ids=['update', 'suspension', 'resume'],
)
def test_a_tick_in_its_jitter_is_not_lost(change):
    schedule = hourly(jitter=HOUR // 2, key='shop')
    now = schedule.start_of(hour(1)) - 1
    assert now > hour(1)
    after = change(kept(schedule, record()), now)
    decision = schedule_deciding.due(schedule, after.record, now + 1)
    assert decision.record.running == hour(1)
    # Nor does one start twice.
    again = after.with_schedule(schedule, now + 1)
    again = again.with_schedule(schedule, now + 2)
    assert again.record.running == hour(1)
    ended = schedule_deciding.ended(schedule, again.record, Phase.COMPLETE)
    later = schedule_deciding.due(schedule, ended, now + 3)
    assert later.record.running is None


def test_a_pause_holds_what_is_not_created_and_a_user_has_not_asked_for():
    schedule = hourly()
    decided = kept(schedule, due(schedule, record(), 1).record)
    assert not decided.is_held
    paused = decided.with_record(paused='a release')
    assert paused.is_held
    left = paused.given_up().record
    assert (left.running, left.missed, left.outcome) == (None, 0, '')
    known = record(paused='a release')
    asked = schedule_deciding.run_now(schedule, known, hour(1))
    assert not dataclasses.replace(paused, record=asked).is_held


@pytest.mark.parametrize('overlap', schedules.Overlap)
def test_a_run_in_the_second_of_a_tick_is_that_tick(overlap):
    schedule = hourly(overlap=overlap)
    asked = schedule_deciding.run_now(schedule, record(), hour(1))
    decision = due(schedule, schedule_deciding.created(asked), 1)
    assert (decision.passed, decision.record.waiting) == ((), None)
    assert decision.record.running == decision.record.since == hour(1)


@pytest.mark.parametrize(
    'state', [{'running': 1}, {'waiting': 1}, {'last': 2}], ids=str
)
def test_nothing_is_run_at_once_beside_another_time(state):
    known = dataclasses.replace(record(), **state)
    with pytest.raises(errors.Refused, match='again'):
        schedule_deciding.run_now(hourly(), known, 2)


def test_a_suspension_forgets_what_is_not_created():
    schedule = hourly()
    known = due(schedule, due(schedule, record(), 1).record, 2).record
    known = kept(schedule, known)
    after = known.resumed_stack(hour(9)).record
    assert (after.running, after.waiting) == (None, None)
    made = known.with_record(created=True).resumed_stack(hour(9)).record
    assert (made.running, made.waiting) == (hour(1), None)


def test_it_pauses_after_failures_in_a_row():
    schedule = hourly(pause_after_failures=2)
    known = record()
    for phase, failures in (
        (Phase.FAILED, 1),
        (Phase.COMPLETE, 0),
        (Phase.TIMED_OUT, 1),
        (Phase.CANCELLED, 1),
        (Phase.FAILED, 2),
    ):
        assert not known.paused
        known = schedule_deciding.ended(schedule, known, phase)
        assert known.failures == failures
        assert known.outcome == phase.value
    assert known.paused == '2 failures in a row'
    assert due(schedule, known, 1).record.running is None
    resume = schedule_signals.read({'do': 'resume'})
    known = resume.follow(kept(schedule, known), ZERO).record
    assert known.failures == 0
    assert due(schedule, known, 1).record.running == hour(1)
    # Without a limit they pause nothing.
    assert schedule_deciding.ended(
        hourly(), dataclasses.replace(record(), failures=9), Phase.FAILED
    ) == dataclasses.replace(record(), failures=10, outcome='failed')


def test_the_run_of_a_tick_has_one_id():
    first, other = (schedules.run_id(each, hour(1)) for each in 'ab')
    assert first == schedules.run_id('a', hour(1))
    assert len({first, other, schedules.run_id('a', hour(2))}) == 3
    assert str(uuid.UUID(first)) == first


def running(**more):
    """Return a schedule whose tick has started, or is about to."""
    known = due(hourly(), record(), 1).record
    return kept(hourly(), dataclasses.replace(known, **more))


def head(phase, **more):
    return run_records.Head(id='x', created_at=ZERO, state=phase, **more)


@pytest.mark.parametrize(
    ('found', 'outcome', 'reason', 'failures'),
    [
        (head(Phase.COMPLETE), 'complete', '', 0),
        (head(Phase.TIMED_OUT), 'timed-out', '', 1),
        (head(None, reason='unreadable'), 'failed', 'unreadable', 1),
        (None, 'cancelled', 'Its run was deleted before its end was', 0),
    ],
)
def test_the_end_of_a_run_is_recorded(found, outcome, reason, failures):
    after = running(created=True).settled(found, hour(2)).record
    assert (after.running, after.created) == (None, False)
    assert (after.outcome, after.failures) == (outcome, failures)
    assert after.reason.startswith(reason)
    # One in progress settles nothing.
    for phase in Phase:
        if not phase.ended:
            known = running(created=True)
            assert known.settled(head(phase), hour(9)) == known


def test_what_cannot_start_is_given_up_when_it_is_too_late():
    known = running()
    assert known.settled(None, hour(2)) == known
    assert known.settled(None, hour(2) + 1) == known.given_up()
    paused = running(paused='a release')
    assert paused.settled(None, hour(1)).record.running is None
    assert running(running=None).settled(None, hour(9)).record.missed == 0


DAY = 24 * HOUR
STARTS = {'running': 0, 'create_until': HOUR}
LOST, LONG = {'outcome': 'missed'}, {'acted': 1 - hour(9)}


@pytest.mark.parametrize(
    ('since_nine', 'step', 'until'),
    [
        # Whether it can run is checked once a day, and hourly if it cannot.
        ({'checked': -DAY}, Needed.CHECK, 60),
        ({'checked': 99 - DAY}, None, 99),
        ({'checked': 9 - DAY}, None, 60),
        ({'checked': -HOUR, 'reason': 'no target'}, Needed.CHECK, 60),
        ({'checked': 99 - HOUR, 'reason': 'no target'}, None, 99),
        ({'checked': -HOUR, 'reason': 'late', **LOST}, None, DAY - HOUR),
        ({'paused': 'a release'}, None, 60),
        # The clock that decided before was wrong.
        ({'checked': 990 * HOUR}, Needed.CHECK, 60),
        # A start is retried, later each time.
        (STARTS, Needed.START, 15),
        ({**STARTS, 'acted': -14}, None, 1),
        ({'running': -HOUR, 'create_until': -40, **LONG}, Needed.START, 60),
        ({**STARTS, 'acted': 90 * HOUR}, Needed.START, 15),
        ({**STARTS, 'acted': 61}, Needed.START, 15),
        ({**STARTS, 'acted': 60}, None, 90),
        ({'running': -HOUR, 'created': True}, None, 20),
    ],
)
def test_what_a_schedule_needs_now_and_when_it_may_need_more(
    since_nine, step, until
):
    known = record(
        **{
            name: hour(9) + value if type(value) is int else value
            for name, value in since_nine.items()
        }
    )
    yearly = kept(schedules.Schedule(cron='@yearly'), known)
    decision = schedule_deciding.Decision(record=known)

    def needed(decision):
        return schedule_deciding.needed(yearly, decision, hour(9), 20)

    found = needed(decision)
    assert found == (step, pytest.approx(hour(9) + until, abs=1))
    # A run is cancelled again until it has ended.
    if known.created:
        cancel = dataclasses.replace(decision, cancel=hour(8))
        assert needed(cancel) == (Needed.CANCEL, hour(9) + 15)
        soon = dataclasses.replace(cancel, next_time=hour(9) + 5)
        assert needed(soon)[1] == hour(9) + 5


class Keeper:
    """Engines that keep a schedule, and die at any point.

    :ivar created: the ticks whose runs were created, in that order.
    :ivar passed: the others that are decided.
    """

    def __init__(self, schedule):
        self.schedule, self.record, self.now = schedule, record(), ZERO
        self.created, self.passed, self.live = [], [], set()

    def step(self, dies):
        """Decide and act, or die before that is recorded or done."""
        if self.record.running is not None:
            # Another engine may have died before it did that.
            self.create(self.record.running)
            if self.record.running not in self.live:
                self.record = schedule_deciding.ended(
                    self.schedule, self.record, Phase.COMPLETE
                )
        decision = schedule_deciding.due(self.schedule, self.record, self.now)
        if dies == 'before':
            return
        self.record = decision.record
        self.passed += [tick for tick, _ in decision.passed]
        if dies == 'after':
            return
        if decision.cancel:
            self.live.discard(decision.cancel)
        if self.record.running is not None and not self.record.created:
            self.create(self.record.running)

    def create(self, tick):
        if tick not in self.created:
            self.created.append(tick)
            self.live.add(tick)
        self.record = schedule_deciding.created(self.record)


@hypothesis.settings(deadline=None)
@hypothesis.given(
    st.builds(
        schedules.Schedule,
        cron=st.just('*/20 * * * *'),
        overlap=st.sampled_from(schedules.Overlap),
        start_within=st.sampled_from([0, 600, 2 * HOUR]),
        cut_off=st.sampled_from([None, 1800]),
        # An hour is longer than the interval.
        jitter=st.sampled_from([0, 900, HOUR]),
        key=st.just('s'),
    ),
    st.lists(
        st.tuples(
            st.booleans(),
            st.integers(0, 6 * HOUR) | st.integers(1, 60),
            st.sampled_from(['', 'before', 'after']),
        ),
        max_size=30,
    ),
)
def test_no_tick_is_lost_or_doubled_wherever_an_engine_dies(schedule, events):
    keeper = Keeper(schedule)
    for has_ended, seconds, dies in events:
        keeper.now += seconds
        if has_ended:
            keeper.live.clear()
        keeper.step(dies)
        assert len(keeper.live) <= 1
    # No engine dies any more.
    keeper.step('')
    waiting = keeper.record.waiting
    decided = keeper.created + keeper.passed + [waiting] * bool(waiting)
    ticks = keeper.schedule.ticks(ZERO, keeper.now)
    assert sorted(decided) == [t.time for t in ticks if t.start <= keeper.now]
    assert keeper.created == sorted(keeper.created)
