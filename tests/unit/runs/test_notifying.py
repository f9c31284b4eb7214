# SPDX-License-Identifier: Apache-2.0
"""What a webhook is told, and when."""

import dataclasses
import hashlib
import hmac
import json
import math
import re
from unittest import mock

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


PHASES = {
    'F': Phase.FAILED,
    'T': Phase.TIMED_OUT,
    'C': Phase.COMPLETE,
    'X': Phase.CANCELLED,
}


@pytest.mark.parametrize(
    ('rules', 'story'),
    [
        ({}, '1F >failure1 2T >timeout2 3C >recovery3 4C > 5X >'),
        ({'after': 3}, '1F > 2F > 3F >failure3 4F >failure4 5C >recovery5'),
        # A failure that was not told is no trouble to recover from.
        ({'after': 3}, '1F 2C >'),
        ({'events': (Event.RECOVERY,)}, '1F 2C >'),
        ({}, '@3.5 >missed3'),
        ({}, '@1 @2 @3 >missed2'),
        # Its run could not be created.
        ({}, '@1 given-up >missed1'),
        ({'waits': 60}, '@1 > @1.1 >waiting1 created @1.2 > C >recovery1'),
        # Its end was not read, or a pause keeps it from being created.
        ({'waits': 60}, '@1 created C @2 >'),
        ({'waits': 60}, '@1 paused @1.1 >'),
        # What was tried stays, what was not gives way to a later one.
        ({}, '1F tried 2F 3F 4F >failure1,failure4'),
    ],
)
def test_what_is_told(rules, story):
    """Play a story.

    1F is how the tick of an hour has ended, @1.1 a time at which the schedule
    is decided; after ``>`` stands what is told then.
    """
    schedule = kept(**rules)
    for word in story.split():
        if word[0] == '>':
            expected = re.findall(r'([a-z]+)(\d+)', word)
            found, schedule = told(schedule)
            found = [(event, f'{hours}') for event, hours in found]
            assert found == expected, word
        elif word[0] == '@':
            schedule = at(schedule, float(word[1:]))
        elif word in PHASES:
            schedule = ended(schedule, PHASES[word])
        elif word[-1] in PHASES:
            schedule = ran(schedule, int(word[:-1]), PHASES[word[-1]])
        elif word == 'tried':
            _, schedule = schedule.tried(schedule.book.notices[0], ZERO)
        elif word == 'paused':
            schedule = schedule.with_record(paused='a release')
        elif word == 'created':
            schedule = created(schedule)
        else:
            schedule = schedule.given_up().noticed(schedule)


def test_a_missed_tick_is_named_and_not_the_one_that_starts_late():
    schedule = at(kept(), 3.1)
    assert schedule.record.running == ZERO + 3 * HOUR
    (notice,) = schedule.book.notices
    assert (notice.tick, notice.number) == (ZERO + 2 * HOUR, 2)
    # The late one is an event of its own, and both stay to be told.
    _, schedule = schedule.tried(notice, ZERO)
    schedule = schedule.given_up().noticed(schedule)
    assert told(schedule)[0] == [('missed', 2), ('missed', 3)]


def test_an_update_names_the_missed_tick_of_the_former_schedule():
    schedule = kept()
    other = dataclasses.replace(schedule.schedule, cron='17 * * * *')
    after = schedule.with_schedule(other, int(ZERO + 1.9 * HOUR))
    (notice,) = after.noticed(schedule).book.notices
    assert notice.tick == ZERO + HOUR


def test_of_a_very_long_outage_a_tick_is_named():
    often = schedules.Schedule(cron='* * * * *', start_within=120)
    schedule = dataclasses.replace(kept(), schedule=often)
    (notice,) = at(schedule, 100).book.notices
    # That is counted no further.
    assert notice.number == 1002
    assert ZERO + 99 * HOUR < notice.tick < ZERO + 100 * HOUR
    # Without rules nothing is told.
    assert told(at(dataclasses.replace(schedule, rules=None), 9))[0] == []


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


def test_an_update_of_the_schedule_keeps_what_was_not_delivered():
    schedule = ran(kept(waits=60), 1, Phase.FAILED)
    other = schedules.Schedule(cron='@daily', start_within=600)
    after = schedule.with_schedule(other, ZERO + HOUR + 60)
    assert after.schedule == other
    assert (after.rules, after.book) == (schedule.rules, schedule.book)
    # A clock that was wrong keeps no notice back.
    (notice,) = after.book.notices
    _, after = after.tried(notice, ZERO + 99 * HOUR)
    assert after.book.due(ZERO + HOUR) is not None


def test_another_receiver_is_told_what_the_former_one_was_not():
    schedule = ran(at(kept(), 1.5), 2, Phase.FAILED)
    tried, schedule = schedule.tried(schedule.book.notices[0], ZERO)
    assert tried.event is Event.MISSED
    book = dataclasses.replace(schedule.book, error='it was dead')
    both = notifying.NoticeRules(to='https://other')
    after = book.redirected(both)
    assert (after.error, after.is_troubled) == ('', True)
    left = [(each.event, each.tries) for each in after.notices]
    assert left == [(Event.MISSED, 0), (Event.FAILURE, 0)]
    failures = dataclasses.replace(both, events=(Event.FAILURE,))
    (left,) = book.redirected(failures).notices
    assert left.event is Event.FAILURE
    assert book.redirected(None).notices == ()


_ENDS = st.sampled_from([p for p in Phase if p.ended])


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
    now, is_troubled, seen = 0.0, False, set()
    for hours, phase, is_sent in story:
        now += hours
        schedule = at(schedule, now)
        if schedule.record.running is not None:
            schedule = ended(created(schedule), phase)
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
    few = notifying.body(notice(), {}, servers[:9])
    with mock.patch.object(notifying, 'MOST_BYTES', len(few)):
        assert notifying.body(notice(), {}, servers[:9]) == few


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
