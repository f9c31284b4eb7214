# SPDX-License-Identifier: Apache-2.0
"""When a schedule is due."""

import datetime
import itertools
import zoneinfo

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs.schedules import schedules

# With changes of an hour and of half an hour, by day and at midnight, in
# both halves of the year; and some that have none.
ZONES = (
    *('UTC', 'Europe/Berlin', 'Europe/Dublin', 'America/New_York'),
    *('America/Santiago', 'America/Havana', 'Africa/Casablanca'),
    *('Asia/Beirut', 'Australia/Lord_Howe', 'Pacific/Apia'),
)
MINUTE, DAY = 60, 86400


def instant(year, *rest):
    return int(datetime.datetime(year, *rest, tzinfo=datetime.UTC).timestamp())


def changes(name):
    """Return the first instants after changes of a clock, 2000 to 2036."""
    zone = zoneinfo.ZoneInfo(name)
    hours = range(instant(2000, 1, 1), instant(2037, 1, 1), 3600)
    read = datetime.datetime.fromtimestamp
    known = [read(each, zone).utcoffset() for each in hours[::24]]
    return [
        hours[24 * number]
        for number, (one, other) in enumerate(itertools.pairwise(known))
        if one != other
    ]


CHANGES = {name: changes(name) or [instant(2026, 3, 1)] for name in ZONES}


@st.composite
def days(draw):
    """Return a zone, and an instant a day or two before a change of it."""
    name = draw(st.sampled_from(ZONES))
    change = draw(st.sampled_from(CHANGES[name]))
    return name, change - MINUTE * draw(st.integers(0, 2 * 24 * 60))


def clock(name, begin, end):
    """Return what the clock shows in each minute: (instant, local)."""
    zone = zoneinfo.ZoneInfo(name)
    read = datetime.datetime.fromtimestamp
    times = range(begin, end + 1, MINUTE)
    return [(each, read(each, zone).replace(tzinfo=None)) for each in times]


def expected(name, matches, begin, end):
    """Return when matching local times are due, found minute by minute.

    :param matches: says whether a local time is one of the pattern.
    """
    # What the clock has shown before must be known.
    shown = clock(name, begin - 3 * DAY, end)
    due, latest = [], shown[0][1]
    for time, local in shown[1:]:
        # Those that the clock shows, or skips, for the first time.
        new = range(1, int((local - latest).total_seconds()) // MINUTE + 1)
        if any(matches(latest + MINUTE * M1 * n) for n in new):
            due.append(time)
        latest = max(latest, local)
    return [time for time in due if begin < time]


M1 = datetime.timedelta(seconds=1)


def due(schedule, begin, end):
    return [tick.time for tick in schedule.ticks(begin, end)]


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
    days(),
    st.integers(0, 23) | st.just('*'),
    st.integers(0, 59) | st.sampled_from(['*/7', '*/30']),
)
def test_each_local_time_is_due_once_over_all_changes(day, hour, minute):
    name, begin = day
    schedule = schedules.Schedule(cron=f'{minute} {hour} * * *', timezone=name)
    end = begin + 3 * DAY

    def matches(local):
        of_minute = local.minute == minute
        if isinstance(minute, str):
            of_minute = local.minute % int(minute[2:]) == 0
        return of_minute and hour in ('*', local.hour)

    assert due(schedule, begin, end) == expected(name, matches, begin, end)


@hypothesis.settings(deadline=None, max_examples=30)
@hypothesis.given(days(), st.lists(st.integers(0, 3 * DAY), max_size=4))
def test_it_may_be_asked_piece_by_piece(day, cuts):
    name, begin = day
    schedule = schedules.Schedule(
        cron='*/20 1-4 * * *', timezone=name, jitter=300, key='s'
    )
    end = begin + 3 * DAY
    at = [begin, *(begin + cut for cut in sorted(cuts)), end]
    pieces = itertools.starmap(schedule.ticks, itertools.pairwise(at))
    whole = list(schedule.ticks(begin, end))
    assert list(itertools.chain.from_iterable(pieces)) == whole


@pytest.mark.parametrize(
    ('begin', 'local', 'utc', 'change'),
    [
        ('2027-03-28', '2027-03-28 02:30', (2027, 3, 28, 1, 0), 'skipped'),
        ('2027-10-31', '2027-10-31 02:30', (2027, 10, 31, 0, 30), 'doubled'),
        ('2027-11-01', '2027-11-01 02:30', (2027, 11, 1, 1, 30), ''),
    ],
)
def test_it_says_what_a_change_of_the_clock_does(begin, local, utc, change):
    schedule = schedules.Schedule(cron='30 2 * * *', timezone='Europe/Berlin')
    (tick,) = schedule.next(1, schedule.instant(begin))
    assert str(tick.local) == f'{local}:00'
    assert tick.time == tick.start == instant(*utc)
    assert tick.change == change


# America/Nuuk skips a Saturday from 23:00 on, Pacific/Apia a whole Friday.
# In Tokyo it is Sunday while it is Saturday in UTC.
TOKYO = ('Asia/Tokyo', '2026-12-26')
NUUK = ('America/Nuuk', '2027-03-26')
APIA = ('Pacific/Apia', '2011-12-29')
LATE, MIDNIGHT, SIX = '30 23 * * *', '0 0 * * *', '0 6 * * *'


@pytest.mark.parametrize(
    ('place', 'cron', 'given', 'shown'),
    [
        (NUUK, LATE, {}, '26T23:30 28T00:00 28T23:30'),
        (NUUK, LATE, {'until': '2027-03-27T23:29'}, '26T23:30'),
        (NUUK, LATE, {'exclude': ('sat',)}, '26T23:30 28T23:30 29T23:30'),
        # It would start on Sunday.
        (NUUK, LATE, {'exclude': ('sun',)}, '26T23:30 29T23:30 30T23:30'),
        (NUUK, MIDNIGHT, {'exclude': ('sat',)}, '26T00:00 28T00:00 29T00:00'),
        (APIA, LATE, {'exclude': ('fri',)}, '29T23:30 31T23:30 01T23:30'),
        (APIA, LATE, {'exclude': ('sat',)}, '29T23:30 01T23:30 02T23:30'),
        (APIA, MIDNIGHT, {'exclude': ('fri',)}, '29T00:00 31T00:00 01T00:00'),
        (APIA, '0 12 30 12 *', {}, '31T00:00 30T12:00 30T12:00'),
        (TOKYO, SIX, {'exclude': ('sun',)}, '26T06:00 28T06:00 29T06:00'),
    ],
)
def test_days_are_local_whatever_the_clock_skips(place, cron, given, shown):
    zone, begin = place
    schedule = schedules.Schedule(cron=cron, timezone=zone, **given)
    starts = [
        datetime.datetime.fromtimestamp(tick.time, schedule.zone)
        for tick in schedule.next(3, schedule.instant(begin) - 1)
    ]
    assert ' '.join(f'{each:%dT%H:%M}' for each in starts) == shown


def test_a_jitter_spreads_schedules_and_keeps_the_order_of_ticks():
    delays = [
        {
            tick.start - tick.time
            for tick in schedules.Schedule(
                cron='*/5 * * * *', jitter=3600, key=f'schedule {number}'
            ).next(30, 0)
        }
        for number in range(100)
    ]
    assert {len(each) for each in delays} == {1}
    assert len(set.union(*delays)) > 90


CHRISTMAS = {'cron': '0 2 25 * Sun'}
LONG = 'thursday', '2026-12-25/2026-12-26', 'Tue'


@pytest.mark.parametrize(
    ('given', 'left'),
    [
        ({'exclude': ('2026-12-23',)}, '12-22 12-24 12-25 12-26'),
        ({'exclude': ('2026-12-23/2026-12-30',)}, '12-22 12-31 01-01 01-02'),
        ({'exclude': LONG}, '12-23 12-27 12-28 12-30'),
        ({'until': '2026-12-23'}, '12-22 12-23'),
        ({'until': '2026-12-23T01:59'}, '12-22'),
        ({'until': '2026-12-23T02:00'}, '12-22 12-23'),
        ({'exclude': ('2026-01-01/9999-12-31',)}, ''),
        ({'cron': '', 'at': '2026-12-24T03:00'}, '12-24'),
        ({'cron': '', 'at': '2026-12-21T03:00'}, ''),
        ({'cron': '', 'at': '1970-01-01'}, ''),
        ({'exclude': ('tues', 'Thurs')}, '12-23 12-25 12-26 12-27'),
        ({**CHRISTMAS, 'exclude': ('sun',)}, '12-25 01-25 02-25 03-25'),
        # Either day counts, also where a field begins with a star.
        ({'cron': '0 2 */10 * mon'}, '12-28 12-31 01-01 01-04'),
        ({'cron': '*/60 */24 */31 */12 *'}, '01-01 01-01 01-01 01-01'),
        ({'cron': '@weekly'}, '12-27 01-03 01-10 01-17'),
        ({'cron': '0 2 1,l * *'}, '12-31 01-01 01-31 02-01'),
        ({'cron': '0 2 * * sun#1'}, '01-03 02-07 03-07 04-04'),
        (CHRISTMAS, '12-25 12-27 01-03 01-10'),
    ],
)
def test_days_and_ends(given, left):
    schedule = schedules.Schedule(**{'cron': '0 2 * * *', **given})
    ticks = schedule.next(4, instant(2026, 12, 22))
    assert ' '.join(f'{each.local:%m-%d}' for each in ticks) == left


def test_a_week_with_an_hour_is_no_day():
    schedule = schedules.Schedule(at='2026W47T22')
    (tick,) = schedule.next(1, 0)
    assert tick.local == datetime.datetime(2026, 11, 16, 22)


@pytest.mark.parametrize('zone', ['Asia/Tokyo', 'America/Los_Angeles'])
def test_the_first_and_the_last_year_are_whole(zone):
    schedule = schedules.Schedule(cron='0 0,23 * * *', timezone=zone)
    (first,) = schedule.next(1, schedule.instant('1970-01-01') - 1)
    assert first.local == datetime.datetime(1970, 1, 1)
    *_, last = schedule.next(9, schedule.instant('9000-12-30'))
    assert last.local == datetime.datetime(9000, 12, 31, 23)
    for bad in ('0001-01-01', '1969-12-31T23:59', '9001-01-01', '9999-12-31'):
        with pytest.raises(errors.Invalid, match='from 1970 to 9000'):
            schedule.instant(bad)


WEEK = 'mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'


@pytest.mark.parametrize(
    ('given', 'said'),
    [
        ({}, 'either "cron" or "at": give one'),
        ({'cron': '61 * * * *'}, '"61 * * * *" is invalid ('),
        ({'cron': '0 0 * * * *'}, '"0 0 * * * *" is invalid: give five'),
        ({'cron': '0 2 1 * sun#1'}, '"0 2 1 * sun#1" is invalid (with "#"'),
        ({'cron': '*' * 999 + ' * * * *'}, '…" is invalid: give five'),
        ({'cron': '0 0 30 2 *'}, 'No time matches the pattern "0 0 30 2 *"'),
        ({'cron': '*/90 * * * *'}, '(a step of 90 in the minute is over 60)'),
        ({'cron': '5,0-59/61 * * * *'}, 'a step of 61 in the minute'),
        ({'cron': '0 2 * * 6', 'exclude': ('sat',)}, 'all days of "0 2 * * 6'),
        ({'cron': '', 'at': '2026-12-24', 'exclude': ('thu',)}, 'all days of'),
        ({'timezone': 'Europe/Berln'}, 'did you mean "Europe/Berlin"?'),
        ({'timezone': '../etc/passwd'}, '"../etc/passwd" is unknown. Give'),
        ({'exclude': ('satsat',)}, 'Cannot exclude "satsat": give a date'),
        ({'exclude': ('someday',)}, 'exclude "someday": give a date ("2026'),
        ({'exclude': ('2027-01-01/2026-12-24',)}, 'a range ("2026-12-24/'),
        ({'exclude': ('sat',) * 101}, '100 entries, and has 101: join'),
        ({'exclude': WEEK}, 'excludes all weekdays: leave one'),
        ({'until': 'tomorrow'}, 'The time "tomorrow" is invalid: give a lo'),
        ({'cron': '', 'at': '2026-01-01T00:00+01:00'}, 'without an offset'),
        ({'until': '1969-12-31'}, '"1969-12-31" is out of range: give a year'),
        ({'jitter': -1}, 'The jitter -1 is invalid: give 0 to 3600'),
        ({'start_within': 86401}, 'a number from 0 to 86400'),
        ({'cut_off': 0}, 'cut_off is 0'),
    ],
)
def test_a_bad_value_is_named_with_the_remedy(given, said):
    if given and 'at' not in given:
        given = {'cron': '@daily', **given}
    with pytest.raises(errors.Invalid) as raised:
        schedules.Schedule(**given)
    assert said in str(raised.value)


def test_a_machine_without_time_zones_says_what_to_install(monkeypatch):
    monkeypatch.setattr(zoneinfo, 'available_timezones', set)
    with pytest.raises(errors.Invalid, match='install its package tzdata'):
        schedules.Schedule(cron='@daily', timezone='Mars/Olympus')
