# SPDX-License-Identifier: Apache-2.0
"""Signals to a schedule, what it runs for times of the past, former ones."""

import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules

NOW = 1_800_000_000
DAY = 86400
Refused = errors.Refused


def kept(paused=False, **record):
    return schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@daily', paused=paused),
        record=schedule_deciding.ScheduleRecord(since=NOW, **record),
    )


def follow(known, now=NOW, **details):
    return schedule_signals.read(details).follow(known, now)


NONE = [None, [], 'pause', {}, {'do': 'stop'}, {'do': ['run']}]
NONE += [{'do': 'run', 'at': 3}, {'do': {'run': 1}, 'note': 'x'}]
LONG = 3, 'x' * 1001, ['x']


@pytest.mark.parametrize(
    ('details', 'said'),
    [
        *((details, r'\{"do": "pause", "note": "…"\}') for details in NONE),
        *(({'do': 'pause', 'note': note}, 'at most 1000') for note in LONG),
        ({'do': 'run', 'note': 'x'}, 'goes with "pause"'),
        ({'do': 'backfill', 'from': '2027-01-01'}, 'needs "from" and "to"'),
    ],
)
def test_a_bad_signal_is_refused_with_an_example(details, said):
    with pytest.raises(Refused, match=said):
        schedule_signals.read(details)


def test_it_is_paused_with_a_note_and_resumed():
    paused = follow(kept(), do='pause', note='x' * 1000)
    assert paused.why_paused == 'x' * 1000
    assert follow(kept(), do='pause').why_paused == 'a signal paused it'
    # What was due meanwhile neither starts nor was missed.
    after = follow(paused, NOW + 3 * DAY, do='resume').record
    assert (after.since, after.paused) == (NOW + 3 * DAY, '')
    assert (after.running, after.missed, after.signals) == (None, 0, 2)


def test_what_the_template_pauses_an_update_resumes():
    with pytest.raises(Refused, match='the template pauses'):
        follow(kept(paused=True), do='resume')
    assert follow(kept(paused=True), do='pause', note='b').why_paused == 'b'


def test_it_runs_now_also_while_it_is_paused():
    known = follow(kept(paused=True), do='run')
    assert (known.record.running, known.record.forced) == (NOW, True)
    with pytest.raises(Refused, match='has not ended'):
        follow(known, do='run')


@pytest.mark.parametrize(
    ('record', 'goes_on'),
    [
        # Runs of that release end without the schedule.
        ({'running': NOW, 'created': True}, None),
        ({'running': NOW, 'acted': NOW - 10}, None),
        # No engine has begun with it.
        ({'running': NOW}, NOW),
    ],
)
def test_a_schedule_of_a_former_release_goes_on_where_it_was(record, goes_on):
    given = {'last': NOW, 'outcome': 'complete', 'create_until': NOW + 9}
    known = kept(missed=3, **record, **given).with_record(paused='a release')
    former = json.loads(known.text())
    text = json.dumps({**former, 'version': 1})
    found = schedule_deciding.KeptSchedule.read(text).record
    assert (found.running, found.created) == (goes_on, False)
    assert (found.last, found.outcome) == (None, '')
    assert (found.paused, found.missed) == ('a release', 3)


@pytest.mark.parametrize('text', ['{}', '[]', 'x', '{"version": 3}'])
def test_an_unreadable_schedule_is_an_error(text):
    with pytest.raises(ValueError):  # noqa: PT011
        schedule_deciding.KeptSchedule.read(text)


# Times of the past

HOUR = 3600
# 2027-01-20T00:00:00Z; ticks are at each full hour.
ZERO = 1800403200
Phase = run_records.Phase


def hour(number):
    return ZERO + number * HOUR


def hourly(backfill=(), **more):
    return schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@hourly', **more),
        record=schedule_deciding.ScheduleRecord(
            since=hour(3), backfill=backfill
        ),
    )


def started(number):
    """Return a schedule whose first tick of the past runs."""
    known = hourly((hour(-2), hour(-1)))
    record = due(known, hour(3) + 9).record
    assert (record.running, record.create_until) == (hour(-2), hour(4) + 9)
    known = dataclasses.replace(known, record=record)
    return created(known) if number else known


def created(known):
    record = schedule_deciding.created(known.record)
    return dataclasses.replace(known, record=record)


def stopped(known):
    return follow(known, hour(3), do='stop-backfill').record


def filled(begin, end, known=None):
    return schedule_signals.with_backfill(known or hourly(), begin, end)


def due(known, at):
    return schedule_deciding.due(known.schedule, known.record, at)


def ended(known, phase=Phase.COMPLETE):
    return schedule_deciding.ended(known.schedule, known.record, phase)


def test_a_range_has_both_its_ends_and_ends_before_what_is_due():
    known = filled('2027-01-19T23:00', '2027-01-20')
    assert known.record.backfill == tuple(map(hour, range(-1, 4)))
    # To ask twice changes nothing.
    assert filled('2027-01-20T01:00', '2027-01-20T02:00', known) == known
    # Its times are local ones.
    tokyo = hourly(timezone='Asia/Tokyo')
    made = filled('2027-01-20', '2027-01-20T01:00', tokyo)
    assert made.record.backfill == (hour(-9), hour(-8))


def test_a_time_that_runs_or_waits_is_no_time_of_the_past():
    schedule = schedules.Schedule(
        cron='@hourly', overlap=schedules.Overlap.CANCEL
    )
    record = schedule_deciding.ScheduleRecord(
        since=hour(3), running=hour(2), waiting=hour(3), backfill=(hour(0),)
    )
    known = dataclasses.replace(hourly(), schedule=schedule, record=record)
    known = filled('2027-01-20', '2027-01-20', known)
    assert known.record.backfill == (hour(0), hour(1))
    record = stopped(known)
    assert (record.running, record.waiting) == (hour(2), hour(3))
    assert known.given_up().record.missed == 1
    assert due(known.with_record(created=True), hour(4)).cancel == hour(2)


def test_a_range_without_times_and_too_many_are_refused():
    known = filled('2027-01-01', '2027-01-02')
    for begin, end, before, error, said in (
        ('2027-02-01', '2027-02-02', None, Refused, 'no time from 2027-02-01'),
        ('2027-01-01', '2027-01-05', None, Refused, 'more than 50 times of'),
        ('2027-01-03', '2027-01-04', known, Refused, 'have not ended yet'),
        ('x', '2027-01-04', None, errors.Invalid, 'The time "x" is invalid'),
    ):
        with pytest.raises(error, match=said):
            filled(begin, end, before)


@pytest.mark.parametrize('overlap', schedules.Overlap)
def test_a_time_that_is_due_meanwhile_waits_and_comes_first(overlap):
    known = started(1)
    schedule = dataclasses.replace(known.schedule, overlap=overlap)
    known = dataclasses.replace(known, schedule=schedule)
    decision = due(known, hour(4))
    assert (decision.cancel, decision.record.waiting) == (None, hour(4))
    known = dataclasses.replace(known, record=decision.record)
    known = dataclasses.replace(known, record=ended(known))
    record = due(known, hour(4) + 60).record
    assert (record.running, record.backfill) == (hour(4), (hour(-1),))


def test_one_starts_after_the_other_has_ended():
    known = started(1)
    assert schedule_deciding.KeptSchedule.read(known.text()) == known
    assert due(known, hour(3) + 99).record == known.record
    known = dataclasses.replace(known, record=ended(known))
    assert known.record.backfill == (hour(-1),)
    assert due(known, hour(3) + 99).record.running == hour(-1)


def test_what_cannot_be_created_was_missed_before_and_a_pause_keeps_it():
    record = started(0).given_up().record
    assert (record.missed, record.backfill) == (0, (hour(-1),))
    assert record.reason == schedule_deciding.LATE
    # Asked to stop, it ends before the next one.
    assert stopped(started(1)).backfill == (hour(-2),)
    record = stopped(started(0))
    assert (record.backfill, record.running) == ((), None)
    assert stopped(hourly((hour(-1),))).backfill == ()
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
    made = dataclasses.replace(created(known), schedule=schedule)
    record = ended(made, phase)
    assert (record.last, record.outcome) == (hour(3), 'failed')
    assert (record.failures, record.paused) == (2, '')
    assert known.given_up().record.outcome == 'failed'
    # What makes up for the last time is the last one.
    known = started(0).with_record(last=hour(-3), outcome='missed')
    record = ended(created(known), phase)
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
    after = dataclasses.replace(known, record=ended(known, phase))
    made = after.noticed(known).book
    assert [each.event for each in made.notices] == events
    assert made.is_troubled
