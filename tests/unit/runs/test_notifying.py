# SPDX-License-Identifier: Apache-2.0
"""What a webhook is told, and when."""

import dataclasses
import hashlib
import hmac
import json
import math

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules

HOUR = 3600
# A midnight; ticks are at each full hour after it.
ZERO = 1800057600
Event = notifying.NoticeEvent
Phase = run_records.Phase


def kept(**rules):
    return schedule_deciding.KeptSchedule(
        schedule=schedules.Schedule(cron='@hourly', start_within=600),
        record=schedule_deciding.ScheduleRecord(since=ZERO),
        rules=notifying.NoticeRules(to='https://h', **rules),
    )


def at(schedule, hours):
    """Let a schedule be decided at a number of hours after midnight."""
    now = ZERO + hours * HOUR
    decision = schedule_deciding.due(schedule.schedule, schedule.record, now)
    after = dataclasses.replace(schedule, record=decision.record)
    return after.with_notices(schedule, now)


def with_record(schedule, record):
    after = dataclasses.replace(schedule, record=record)
    return after.noticed(schedule)


def created(schedule):
    return with_record(schedule, schedule_deciding.created(schedule.record))


def ended(schedule, phase):
    return with_record(
        schedule,
        schedule_deciding.ended(schedule.schedule, schedule.record, phase),
    )


def ran(schedule, hours, phase):
    return ended(created(at(schedule, hours)), phase)


def told(schedule):
    """Return what must be told, and the schedule after that."""
    found = []
    while notice := schedule.book.due(math.inf):
        found.append((notice.event.value, (notice.tick - ZERO) // HOUR))
        schedule = schedule.told(notice, '', 0)
    return found, schedule


def test_a_failure_is_told_and_so_is_the_recovery():
    notices, schedule = told(ran(kept(), 1, Phase.FAILED))
    assert notices == [('failure', 1)]
    notices, schedule = told(ran(schedule, 2, Phase.TIMED_OUT))
    assert notices == [('timeout', 2)]
    notices, schedule = told(ran(schedule, 3, Phase.COMPLETE))
    assert notices == [('recovery', 3)]
    assert told(ran(schedule, 4, Phase.COMPLETE))[0] == []


def test_what_a_user_has_cancelled_is_no_failure():
    assert told(ran(kept(), 1, Phase.CANCELLED))[0] == []


def test_failures_are_told_from_a_number_in_a_row_on():
    schedule = kept(after=3)
    for hours, notices in ((1, []), (2, []), (3, [('failure', 3)])):
        said, schedule = told(ran(schedule, hours, Phase.FAILED))
        assert said == notices
    said, schedule = told(ran(schedule, 4, Phase.FAILED))
    assert said == [('failure', 4)]
    # A failure that was not told is no trouble to recover from.
    schedule = ran(ran(kept(after=3), 1, Phase.FAILED), 2, Phase.COMPLETE)
    assert told(schedule)[0] == []


def test_a_missed_tick_is_told():
    schedule = at(kept(), 3.5)
    (notice,) = schedule.book.notices
    assert (notice.event, notice.number) == (Event.MISSED, 3)
    # So is one whose operation could not be created.
    schedule = at(kept(), 1)
    schedule = schedule.given_up().noticed(schedule)
    assert told(schedule)[0] == [('missed', 1)]


def test_a_missed_tick_is_named_and_not_the_one_that_starts_late():
    schedule = at(kept(), 3.1)
    assert schedule.record.running == ZERO + 3 * HOUR
    (notice,) = schedule.book.notices
    assert (notice.tick, notice.number) == (ZERO + 2 * HOUR, 2)
    # The late one is an event of its own, and both stay to be told.
    _, schedule = schedule.tried(notice, ZERO)
    schedule = schedule.given_up().noticed(schedule)
    assert told(schedule)[0] == [('missed', 2), ('missed', 3)]


def test_a_missed_tick_that_waited_is_named():
    schedule = at(at(kept(), 1), 2)
    assert schedule.record.waiting == ZERO + 2 * HOUR
    schedule = at(schedule, 3)
    (notice,) = schedule.book.notices
    assert notice.tick == ZERO + 2 * HOUR


def test_an_update_names_the_missed_tick_of_the_former_schedule():
    schedule = kept()
    other = dataclasses.replace(schedule.schedule, cron='17 * * * *')
    after = schedule.with_schedule(other, int(ZERO + 1.9 * HOUR))
    (notice,) = after.noticed(schedule).book.notices
    assert notice.tick == ZERO + HOUR


def test_of_a_very_long_outage_a_tick_is_named():
    schedule = dataclasses.replace(
        kept(), schedule=schedules.Schedule(cron='* * * * *', start_within=120)
    )
    (notice,) = at(schedule, 100).book.notices
    # That is counted no further.
    assert notice.number == 1002
    assert ZERO + 99 * HOUR < notice.tick < ZERO + 100 * HOUR


def test_what_waits_too_long_is_told_once():
    schedule = at(kept(waits=60), 1)
    assert schedule.notice_time == ZERO + HOUR + 60
    assert told(schedule)[0] == []
    said, schedule = told(at(schedule, 1.1))
    assert said == [('waiting', 1)]
    assert told(at(created(schedule), 1.2))[0] == []
    assert schedule.notice_time == math.inf
    assert told(ended(created(schedule), Phase.COMPLETE))[0] == [
        ('recovery', 1)
    ]


def test_what_has_ended_does_not_wait_although_its_end_was_not_read():
    schedule = created(at(kept(waits=60), 1))
    after = ended(schedule, Phase.COMPLETE)
    after = after.with_notices(schedule, ZERO + 2 * HOUR)
    assert told(after)[0] == []
    assert after.notice_time == math.inf


def test_a_tick_of_the_past_waits_from_its_start_on():
    schedule = kept(waits=600).with_record(since=ZERO + 9 * HOUR)
    schedule = schedule.with_record(backfill=(ZERO + HOUR,))
    now = ZERO + 9 * HOUR + 60
    decision = schedule_deciding.due(schedule.schedule, schedule.record, now)
    schedule = with_record(schedule, decision.record)
    assert schedule.record.running == ZERO + HOUR
    assert schedule.notice_time == now + 600


def test_it_waits_from_its_start_on_and_not_from_its_time():
    schedule = kept(waits=600)
    now = ZERO + 30 * 60
    record = schedule_deciding.run_now(schedule.schedule, schedule.record, now)
    schedule = with_record(schedule, record)
    assert schedule.notice_time == now + 600
    # A tick that waits for the end of another one does not count yet.
    queue = schedules.Schedule(cron='@hourly', overlap=schedules.Overlap.QUEUE)
    schedule = dataclasses.replace(kept(waits=HOUR * 2), schedule=queue)
    schedule = at(created(at(schedule, 1)), 2)
    assert schedule.notice_time == ZERO + 3 * HOUR
    schedule = at(ended(schedule, Phase.COMPLETE), 2.5)
    assert schedule.notice_time == ZERO + 4.5 * HOUR


def test_what_a_pause_keeps_from_being_created_does_not_wait():
    schedule = at(kept(waits=60), 1).with_record(paused='a release')
    assert told(at(schedule, 1.1))[0] == []


def test_only_what_is_wanted_is_told():
    schedule = ran(kept(events=(Event.RECOVERY,)), 1, Phase.FAILED)
    schedule = ran(schedule, 2, Phase.COMPLETE)
    assert told(schedule)[0] == []
    schedule = dataclasses.replace(kept(), rules=None)
    assert told(at(schedule, 9))[0] == []


def test_it_is_retried_less_often_for_an_hour_and_then_given_up():
    schedule, now, pauses = ran(kept(), 1, Phase.FAILED), ZERO + HOUR, []
    while (notice := schedule.book.due(now)) is not None:
        begun, tried = now, schedule.tried(notice, now)
        notice, schedule = tried
        assert schedule.book.due(now + 1) is None
        schedule = schedule.told(notice, 'the receiver answers 500', now + 9)
        now = schedule.notice_time
        pauses.append(now - begun)
    assert pauses == [30, 60, 120, 240, 480, *[600] * 5, math.inf]
    assert schedule.book.notices == ()
    assert schedule.book.error == 'the receiver answers 500'
    # The next one that is sent says that all is well.
    schedule = ran(schedule, 2, Phase.FAILED)
    assert told(schedule)[1].book.error == ''


def test_what_is_told_late_blames_no_later_state():
    schedule = ran(kept(), 1, Phase.FAILED)
    first, schedule = schedule.tried(schedule.book.notices[0], ZERO)
    second, later = schedule.tried(first, ZERO + 30)
    # Another engine has it, or has delivered it.
    assert later.told(first, 'dead', ZERO + 2 * HOUR) == later
    assert later.told(second, 'dead', ZERO + 2 * HOUR).book.notices == ()
    done = later.told(first, '', ZERO + 31)
    assert done.book.notices == ()
    assert done.told(second, 'dead', ZERO + 2 * HOUR) == done


def test_what_was_not_tried_gives_way_to_a_later_one_of_its_kind():
    schedule = ran(kept(), 1, Phase.FAILED)
    _, schedule = schedule.tried(schedule.book.notices[0], ZERO)
    for hours in range(2, 30):
        schedule = ran(schedule, hours, Phase.FAILED)
    assert told(schedule)[0] == [('failure', 1), ('failure', 29)]


def test_a_clock_that_was_wrong_keeps_no_notice_back():
    schedule = ran(kept(), 1, Phase.FAILED)
    (notice,) = schedule.book.notices
    _, schedule = schedule.tried(notice, ZERO + 99 * HOUR)
    assert schedule.book.due(ZERO + HOUR) is not None


def test_an_update_of_the_schedule_keeps_what_was_not_delivered():
    schedule = ran(kept(waits=60), 1, Phase.FAILED)
    other = schedules.Schedule(cron='@daily', start_within=600)
    after = schedule.with_schedule(other, ZERO + HOUR + 60)
    assert after.schedule == other
    assert (after.rules, after.book) == (schedule.rules, schedule.book)


def test_another_receiver_is_told_what_the_former_one_was_not():
    schedule = ran(at(kept(), 1.5), 2, Phase.FAILED)
    tried, schedule = schedule.tried(schedule.book.notices[0], ZERO)
    assert tried.event is Event.MISSED
    book = dataclasses.replace(schedule.book, error='it was dead')
    both = notifying.NoticeRules(to='https://other')
    after = book.redirected(both)
    assert (after.error, after.is_troubled) == ('', True)
    assert [(n.event, n.tries) for n in after.notices] == [
        (Event.MISSED, 0),
        (Event.FAILURE, 0),
    ]
    failures = dataclasses.replace(both, events=(Event.FAILURE,))
    (left,) = book.redirected(failures).notices
    assert left.event is Event.FAILURE
    assert book.redirected(None).notices == ()


_ENDS = st.sampled_from(
    [Phase.COMPLETE, Phase.FAILED, Phase.TIMED_OUT, Phase.CANCELLED]
)


@hypothesis.settings(deadline=None)
@hypothesis.given(
    st.integers(1, 3),
    st.integers(0, 2) | st.just(3 * HOUR),
    st.sets(st.sampled_from(Event)),
    st.lists(
        st.tuples(st.sampled_from([0.5, 1, 1.3, 4]), _ENDS, st.booleans())
    ),
)
def test_each_trouble_is_told_once_and_ends_with_one_recovery(
    after, waits, wanted, story
):
    schedule = kept(after=after, waits=waits, events=tuple(wanted))
    now, failures, is_troubled, seen = 0.0, 0, False, set()
    for hours, phase, is_sent in story:
        now += hours
        schedule = at(schedule, now)
        if schedule.record.running is not None:
            schedule = created(schedule)
            schedule = ended(schedule, phase)
            failures = schedule.record.failures
        # It can be stored.
        schedule = schedule_deciding.KeptSchedule.read(schedule.text())
        assert len(schedule.book.notices) <= len(Event)
        if not is_sent:
            continue
        for notice in schedule.book.notices:
            assert notice.event in wanted
            assert (notice.event, notice.tick) not in seen
            seen.add((notice.event, notice.tick))
            if notice.event is Event.RECOVERY:
                assert is_troubled or len(schedule.book.notices) > 1
            if notice.event in (Event.FAILURE, Event.TIMEOUT):
                assert notice.number >= after
            is_troubled = notice.event is not Event.RECOVERY
        if failures >= after and phase is Phase.FAILED and hours == 1:
            assert schedule.book.is_troubled or Event.FAILURE not in wanted
        _, schedule = told(schedule)


def notice(event=Event.FAILURE):
    return notifying.Notice(event=event, tick=ZERO, number=2)


def test_the_body_says_where_and_which_servers():
    where = {'project': 'p1', 'stack': {'id': 's1', 'name': 'shop\x1b'}}
    servers = [{'server': 'db\n0', 'state': 'failed'}]
    said = json.loads(notifying.body(notice(), where, servers))
    assert said == {
        'version': 1,
        'event': 'failure',
        'why': 'The run has failed.',
        'project': 'p1',
        'stack': {'id': 's1', 'name': r'shop\x1b'},
        'failures': 2,
        'servers': [{'server': r'db\n0', 'state': 'failed'}],
        'more_servers': 0,
    }
    said = json.loads(notifying.body(notice(Event.MISSED), {}, None))
    assert (said['missed'], said['servers']) == (2, None)


def test_the_body_is_bounded():
    servers = [{'server': f'{n}', 'state': 'failed'} for n in range(10_000)]
    said = json.loads(notifying.body(notice(), {}, servers))
    assert (len(said['servers']), said['more_servers']) == (100, 9900)
    servers = [dict.fromkeys('abcd', '\U0001f600' * 999)] * 500
    packed = notifying.body(notice(), {'stack': 'x' * 10**6}, servers)
    assert len(packed) <= notifying.MOST_BYTES
    said = json.loads(packed)
    assert len(said['servers']) + said['more_servers'] == 500


def test_the_signature_is_of_the_time_and_the_body():
    headers = notifying.headers(b'{}', 's3cret', ZERO + 0.5)
    mac = hmac.new(b's3cret', f'{ZERO}.{{}}'.encode(), hashlib.sha256)
    assert headers == {
        'Content-Type': 'application/json',
        'Heat-Plugins-Timestamp': str(ZERO),
        'Heat-Plugins-Signature': f'sha256={mac.hexdigest()}',
    }


@pytest.mark.parametrize(
    ('values', 'said'),
    [
        ({'secret': 's3cret'}, '16 to'),
        ({'secret': None}, 'needs the texts'),
        ({'events': ['failur']}, 'list of failure'),
        ({'waits': -1}, 'number of seconds'),
        ({'secrets': 's3cret'}, 'did you mean "secret"'),
    ],
)
def test_a_bad_order_of_notices_is_refused_and_not_quoted(values, said):
    good = {'url': 'https://h/s3cret', 'secret': 's3cret' * 3}
    with pytest.raises(errors.Refused, match=said) as caught:
        notifying.NoticeOrder.asked({**good, **values}, 'https://h')
    assert 's3cret' not in str(caught.value)
