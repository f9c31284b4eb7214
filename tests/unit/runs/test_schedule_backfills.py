# SPDX-License-Identifier: Apache-2.0
"""What a schedule runs for times of the past."""

import dataclasses

import pytest

from heat_plugins import errors
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules

HOUR = 3600
# 2027-01-20T00:00:00Z; ticks are at each full hour.
ZERO = 1800403200
Phase = run_records.Phase


def hour(number):
    return ZERO + number * HOUR


def kept(backfill=(), **more):
    return schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@hourly', **more),
        record=schedule_deciding.ScheduleRecord(
            since=hour(3), backfill=backfill
        ),
    )


def started(number):
    """Return a schedule whose first tick of the past runs."""
    known = kept((hour(-2), hour(-1)))
    decision = schedule_deciding.due(known.schedule, known.record, hour(3) + 9)
    assert decision.record.running == hour(-2)
    made = dataclasses.replace(known, record=decision.record)
    assert made.record.create_until == hour(4) + 9
    if number:
        record = schedule_deciding.created(made.record)
        made = dataclasses.replace(made, record=record)
    return made


def stopped(known):
    stop = schedule_signals.read({'do': 'stop-backfill'})
    return stop.follow(known, hour(3)).record


def due(known, at):
    return schedule_deciding.due(known.schedule, known.record, at)


def test_a_range_has_both_its_ends_and_ends_before_what_is_due():
    known = schedule_signals.with_backfill(
        kept(), '2027-01-19T23:00', '2027-01-20'
    )
    assert known.record.backfill == tuple(map(hour, range(-1, 4)))
    # To ask twice changes nothing.
    again = schedule_signals.with_backfill(
        known, '2027-01-20T01:00', '2027-01-20T02:00'
    )
    assert again == known
    # Its times are local ones.
    made = schedule_signals.with_backfill(
        kept(timezone='Asia/Tokyo'), '2027-01-20', '2027-01-20T01:00'
    )
    assert made.record.backfill == (hour(-9), hour(-8))


def test_a_time_that_runs_or_waits_is_no_time_of_the_past():
    schedule = schedules.Schedule(
        cron='@hourly', overlap=schedules.Overlap.CANCEL
    )
    record = schedule_deciding.ScheduleRecord(
        since=hour(3), running=hour(2), waiting=hour(3), backfill=(hour(0),)
    )
    known = dataclasses.replace(kept(), schedule=schedule, record=record)
    known = schedule_signals.with_backfill(known, '2027-01-20', '2027-01-20')
    assert known.record.backfill == (hour(0), hour(1))
    record = stopped(known)
    assert (record.running, record.waiting) == (hour(2), hour(3))
    assert known.given_up().record.missed == 1
    assert due(known.with_record(created=True), hour(4)).cancel == hour(2)


def test_a_range_without_times_and_too_many_are_refused():
    with pytest.raises(errors.Refused, match='no time from 2027-02-01 to'):
        schedule_signals.with_backfill(kept(), '2027-02-01', '2027-02-02')
    with pytest.raises(errors.Refused, match='more than 50 times of the'):
        schedule_signals.with_backfill(kept(), '2027-01-01', '2027-01-05')
    known = schedule_signals.with_backfill(kept(), '2027-01-01', '2027-01-02')
    with pytest.raises(errors.Refused, match='that have not ended yet'):
        schedule_signals.with_backfill(known, '2027-01-03', '2027-01-04')
    with pytest.raises(errors.Invalid, match='The time "x" is invalid'):
        schedule_signals.with_backfill(kept(), 'x', '2027-01-04')


@pytest.mark.parametrize('overlap', schedules.Overlap)
def test_a_time_that_is_due_meanwhile_waits_and_comes_first(overlap):
    known = started(1)
    schedule = dataclasses.replace(known.schedule, overlap=overlap)
    decision = schedule_deciding.due(schedule, known.record, hour(4))
    assert decision.cancel is None
    assert decision.record.waiting == hour(4)
    record = schedule_deciding.ended(schedule, decision.record, Phase.COMPLETE)
    decision = schedule_deciding.due(schedule, record, hour(4) + 60)
    assert decision.record.running == hour(4)
    assert decision.record.backfill == (hour(-1),)


def test_one_starts_after_the_other_has_ended():
    known = started(1)
    assert schedule_deciding.KeptSchedule.read(known.text()) == known
    assert due(known, hour(3) + 99).record == known.record
    record = schedule_deciding.ended(
        known.schedule, known.record, Phase.COMPLETE
    )
    assert record.backfill == (hour(-1),)
    decision = schedule_deciding.due(known.schedule, record, hour(3) + 99)
    assert decision.record.running == hour(-1)


def test_what_cannot_be_created_was_missed_before_and_a_pause_keeps_it():
    record = started(0).given_up().record
    assert (record.missed, record.backfill) == (0, (hour(-1),))
    assert record.reason == schedule_deciding.LATE
    # Asked to stop, it ends before the next one.
    assert stopped(started(1)).backfill == (hour(-2),)
    record = stopped(started(0))
    assert (record.backfill, record.running) == ((), None)
    assert stopped(kept((hour(-1),))).backfill == ()
    paused = started(0).with_record(paused='a release')
    assert paused.given_up().record.backfill == (hour(-2), hour(-1))
    free = paused.with_record(running=None)
    assert due(free, hour(3) + 9).record.running is None


def test_what_another_engine_has_created_is_not_given_up():
    head = run_records.Head(id='x', created_at=1, state=Phase.RUNNING)
    assert started(1).settled(head, hour(99)) == started(1)


@pytest.mark.parametrize('phase', [Phase.COMPLETE, Phase.FAILED])
def test_it_says_nothing_of_the_last_time_and_of_the_next(phase):
    known = started(0).with_record(last=hour(3), outcome='failed', failures=2)
    schedule = dataclasses.replace(known.schedule, pause_after_failures=3)
    record = schedule_deciding.created(known.record)
    record = schedule_deciding.ended(schedule, record, phase)
    assert (record.last, record.outcome) == (hour(3), 'failed')
    assert (record.failures, record.paused) == (2, '')
    assert known.given_up().record.outcome == 'failed'
    # What makes up for the last time is the last one.
    known = started(0).with_record(last=hour(-3), outcome='missed')
    record = schedule_deciding.created(known.record)
    record = schedule_deciding.ended(known.schedule, record, phase)
    assert (record.last, record.outcome) == (hour(-2), phase.value)


@pytest.mark.parametrize(
    ('phase', 'events'),
    [
        (Phase.COMPLETE, []),
        (Phase.FAILED, ['failure']),
        (Phase.TIMED_OUT, ['timeout']),
    ],
)
def test_its_failures_are_told_each_and_it_is_no_recovery(phase, events):
    known = dataclasses.replace(
        started(1).with_record(last=hour(3), outcome='failed'),
        rules=notifying.NoticeRules(to='https://hooks.example.com', after=3),
        book=notifying.NoticeBook(is_troubled=True),
    )
    record = schedule_deciding.ended(known.schedule, known.record, phase)
    after = dataclasses.replace(known, record=record)
    made = after.noticed(known).book
    assert [each.event for each in made.notices] == events
    assert made.is_troubled
