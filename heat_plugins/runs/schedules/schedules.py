# SPDX-License-Identifier: Apache-2.0
"""The times of a schedule: local ones, over both changes of the clock.

A pattern names local times of a time zone. Each is due once:

- A time that the clock skips is due at the next valid time: 02:30 at 03:00.
  Several that it skips are due once.
- A time that the clock shows twice is due the first time.

An instant is in whole seconds since the epoch. Everything here is pure.
"""

import bisect
from collections import abc
import contextlib
import dataclasses
import datetime
import enum
import functools
import hashlib
import itertools
import math
import re
from typing import Final
import uuid
import zoneinfo

from heat_plugins import bounds
from heat_plugins import cron_patterns
from heat_plugins import errors

#: The type of the resources of schedules.
TYPE: Final = 'OS::Heat::SoftwareSchedule'

#: Seconds of a jitter at most.
MOST_JITTER: Final = 3600

#: Seconds by which a tick may start late at most.
MOST_LATENESS: Final = 86400

#: Seconds within which a tick may start late, if a schedule says nothing.
START_WITHIN: Final = 3600

# Characters of a pattern, and entries of what is excluded.
_LONGEST, _MOST_EXCLUDED = 100, 100

# Excluded times in a row, after which none counts as left.
_TRIED = 1000

_KIN = (
    'hourly',
    'daily',
    'midnight',
    'weekly',
    'monthly',
    'yearly',
    'annually',
)
# What people write for each weekday, the name in patterns first.
_NAMES_OF_DAYS = (
    ('mon', 'monday'),
    ('tue', 'tues', 'tuesday'),
    ('wed', 'weds', 'wednesday'),
    ('thu', 'thur', 'thurs', 'thursday'),
    ('fri', 'friday'),
    ('sat', 'saturday'),
    ('sun', 'sunday'),
)
_DAYS = tuple(names[0] for names in _NAMES_OF_DAYS)
_WEEKDAYS = {
    name: number
    for number, names in enumerate(_NAMES_OF_DAYS)
    for name in names
}
_MONTHS = 'jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec'

# croniter also reads seconds, years, and random or hashed values.
_FIELD = rf'(?:[\d*,/#?-]|l|{_MONTHS}|{"|".join(_DAYS)})+'
_PATTERN = re.compile(
    rf'@(?:{"|".join(_KIN)})|{_FIELD}(?:[ \t]+{_FIELD}){{4}}',
    re.ASCII | re.IGNORECASE,
)

# The fields that say when it is due, and until when it may start.
_TIMES = (
    'cron',
    'at',
    'timezone',
    'exclude',
    'until',
    'jitter',
    'key',
    'start_within',
    'cut_off',
)

# The most steps of each field, from one of its values to the same one.
_STEPS = {
    'minute': 60,
    'hour': 24,
    'day of month': 31,
    'month': 12,
    'day of week': 7,
}

_END_OF_DAY = datetime.time(23, 59, 59)

# The namespace of the IDs of runs.
_RUNS = uuid.UUID('8f0c6a5e-9d1b-4f37-a2c4-5b7e3d916c08')

# The years of all times: in each zone they are instants that can be shown.
_YEARS = range(1970, 9001)

# Before all times that a schedule can have, and their end.
_LONG_AGO = datetime.datetime(_YEARS[0], 1, 1) - datetime.timedelta(days=1)
_LAST = datetime.datetime(_YEARS[-1], 12, 31, 23, 59, 59)


class ClockChange(enum.StrEnum):
    """The effect of a change of the clock on a local time."""

    NONE = ''
    SKIPPED = 'skipped'
    DOUBLED = 'doubled'


class Overlap(enum.StrEnum):
    """The rule for a tick while the run of a former one is in progress."""

    #: Nothing: the tick is skipped.
    SKIP = 'skip'
    #: It waits for the end of that run; one tick at most does.
    QUEUE = 'queue'
    #: It cancels that run, and waits for its end.
    CANCEL = 'cancel'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tick:
    """A time at which a schedule is due.

    :ivar local: the local time that the schedule names, without a zone; the
        clock may never show it.
    :ivar time: the instant at which the schedule is due.
    :ivar start: the instant of the start, later by the jitter.
    """

    local: datetime.datetime
    time: int
    start: int
    change: ClockChange


@dataclasses.dataclass(frozen=True, kw_only=True)
class Schedule:
    """The times at which to run something; see `schedule_deciding`.

    All times are local ones of the time zone.

    :ivar cron: five fields as in crontab, or ``@daily`` and its kin.
    :ivar at: in place of `cron` the only time, in ISO 8601.
    :ivar timezone: its IANA name.
    :ivar exclude: dates (``2026-12-24``), ranges of them
        (``2026-12-24/2027-01-01``, with both ends) and weekdays (``sat``).
        They hold for the day that a pattern names, and for that on which it
        is due: a clock that skips a midnight makes two of them.
    :ivar until: the last day or time that may be named; empty for no end.
    :ivar jitter: seconds by which starts may be late, all of a schedule by
        the same; it spreads the schedules that are due together.
    :ivar key: distinguishes the schedules that have a jitter.
    :ivar start_within: seconds within which a tick starts late, such as after
        an outage; later it is missed.
    :ivar cut_off: seconds after which nothing of a tick starts; None for no
        limit.
    :ivar paused: whether no tick starts.
    :ivar note: why it is paused, for people.
    :ivar pause_after_failures: failures in a row after which no tick starts;
        0 for no limit.
    :raises errors.Invalid: a value is invalid, or no time is left.
    """

    cron: str = ''
    at: str = ''
    timezone: str = 'UTC'
    exclude: tuple[str, ...] = ()
    until: str = ''
    jitter: int = 0
    key: str = ''
    start_within: int = START_WITHIN
    cut_off: int | None = None
    overlap: Overlap = Overlap.SKIP
    paused: bool = False
    note: str = ''
    pause_after_failures: int = 0

    def __post_init__(self) -> None:
        if bool(self.cron) == bool(self.at):
            raise errors.Invalid(
                'A schedule needs either "cron" or "at": give one of them'
            )
        if not 0 <= self.jitter <= MOST_JITTER:
            raise errors.Invalid(
                f'The jitter {self.jitter} is invalid: give 0 to '
                f'{MOST_JITTER} seconds'
            )
        for name, least, most, span in (
            ('start_within', 0, MOST_LATENESS, f' from 0 to {MOST_LATENESS}'),
            ('pause_after_failures', 0, math.inf, ', at least 0'),
            ('cut_off', 1, math.inf, ', at least 1'),
        ):
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise errors.Invalid(
                    f'{name} is {value}, and must be a number{span}'
                )
        # Each reads its value, and refuses an invalid one.
        _ = self.zone, self._last, self._excluded
        if next(self._locals(_LONG_AGO), None) is None:
            raise errors.Invalid(
                f'The schedule excludes all days of "{self.cron or self.at}": '
                'leave one of them'
            )

    def ticks(self, after: float, before: float) -> abc.Iterator[Tick]:
        """Yield the ticks after an instant, until another, in order.

        The second instant belongs to them, the first one does not.
        """
        return itertools.takewhile(
            lambda tick: tick.time <= before, self._ticks(after)
        )

    def next(self, number: int, after: float) -> list[Tick]:
        """Return the next times after an instant, at most a number."""
        return list(itertools.islice(self._ticks(after), number))

    def start_of(self, time: int) -> int:
        """Return the instant of the start of a tick."""
        return time + self.delay

    def instant(self, text: str, *, is_end: bool = False) -> int:
        """Return the instant of a time in ISO 8601.

        :param text: a local time.
        :param is_end: whether a day is its end, and not its beginning.
        :raises errors.Invalid: it is something else.
        """
        of_day = _END_OF_DAY if is_end else datetime.time()
        return _instant(self._local(text, of_day), self.zone)[0]

    def span(
        self, first: datetime.date, last: datetime.date
    ) -> tuple[int, int]:
        """Return the instants at which local days begin and end."""
        begin, end = (
            _instant(datetime.datetime.combine(day, at), self.zone)[0]
            for day, at in ((first, datetime.time()), (last, _END_OF_DAY))
        )
        return begin, end

    def excludes(self, day: datetime.date) -> bool:
        """Say whether a local day is without times."""
        return self._excluded_until(day) is not None

    @property
    def times(self) -> dict[str, object]:
        """The fields that say when it is due, for `stored.read`, as JSON."""
        values = {name: getattr(self, name) for name in _TIMES}
        return {**values, 'exclude': [*self.exclude]}

    @property
    def lateness(self) -> int:
        """The most seconds from the start of a tick until it begins."""
        if self.cut_off is None:
            return self.start_within
        return min(self.start_within, self.cut_off - 1)

    @functools.cached_property
    def delay(self) -> int:
        """The seconds by which the jitter delays each start."""
        # One for all ticks: their starts stay in order if it is longer than
        # the time between two.
        digest = hashlib.sha256(
            self.key.encode(errors='surrogatepass')
        ).digest()
        return int.from_bytes(digest[:8]) % (self.jitter + 1)

    @functools.cached_property
    def zone(self) -> zoneinfo.ZoneInfo:
        """The time zone."""
        try:
            return zoneinfo.ZoneInfo(self.timezone)
        # The last one for a directory of zones, such as "Europe".
        except (KeyError, ValueError, OSError) as exc:
            known = sorted(zoneinfo.available_timezones())
            name = f'time zone "{bounds.shortened(self.timezone)}"'
            guess = bounds.did_you_mean(self.timezone, known) or '.'
            raise errors.Invalid(
                f'The {name} is unknown{guess} Give an IANA name, such as '
                '"Europe/Berlin" or "UTC"'
                if known
                else f'Cannot find the {name}: this machine has no time '
                'zones; install its package tzdata'
            ) from exc

    def _ticks(self, after: float) -> abc.Iterator[Tick]:
        """Yield the times at which a schedule is due."""
        latest = int(after // 1)
        now = datetime.datetime.fromtimestamp(latest, self.zone)
        for local in self._locals(now.replace(tzinfo=None)):
            if local > self._last:
                return
            time, change = _instant(local, self.zone)
            # The clock has shown it before, or skips it and others.
            day = datetime.datetime.fromtimestamp(time, self.zone).date()
            if time > latest and not self.excludes(day):
                latest = time
                yield Tick(
                    local=local,
                    time=time,
                    start=self.start_of(time),
                    change=change,
                )

    def _locals(
        self, after: datetime.datetime
    ) -> abc.Iterator[datetime.datetime]:
        """Yield the local times, without those of excluded days."""
        times, tried = self._named(after), 0
        while tried < _TRIED and (local := next(times, None)):
            last = self._excluded_until(local.date())
            if last is None:
                tried = 0
                yield local
            else:
                tried += 1
                times = self._named(
                    datetime.datetime.combine(last, _END_OF_DAY)
                )

    def _named(
        self, after: datetime.datetime
    ) -> abc.Iterator[datetime.datetime]:
        """Yield the local times that a schedule names."""
        if self.at:
            at = self._local(self.at, datetime.time())
            return iter([at] if at > after else [])
        return _matching(self.cron, after)

    @functools.cached_property
    def _last(self) -> datetime.datetime:
        """The last local time that may be due."""
        if not self.until:
            return _LAST
        return self._local(self.until, _END_OF_DAY)

    def _local(self, text: str, of_day: datetime.time) -> datetime.datetime:
        """Read a local time.

        :param of_day: the time of a day that stands alone.
        """
        read = None
        with contextlib.suppress(ValueError):
            read = datetime.datetime.fromisoformat(text)
        with contextlib.suppress(ValueError):
            day = datetime.date.fromisoformat(text)
            read = datetime.datetime.combine(day, of_day)
        if read is not None and read.tzinfo is None:
            if read.year in _YEARS:
                return read.replace(microsecond=0)
            raise errors.Invalid(
                f'The time "{bounds.shortened(text)}" is out of range: give a '
                f'year from {_YEARS[0]} to {_YEARS[-1]}'
            )
        raise errors.Invalid(
            f'The time "{bounds.shortened(text)}" is invalid: give a local '
            'time such as "2026-11-20T22:00", without an offset; "timezone" '
            'says where'
        )

    @functools.cached_property
    def _excluded(self) -> tuple[tuple[datetime.date, datetime.date], ...]:
        """The excluded ranges of days, without weekdays."""
        if len(self.exclude) > _MOST_EXCLUDED:
            raise errors.Invalid(
                f'A schedule can exclude {_MOST_EXCLUDED} entries, and has '
                f'{len(self.exclude)}: join days to ranges'
            )
        if len(self._weekdays) == len(_DAYS):
            raise errors.Invalid(
                'The schedule excludes all weekdays: leave one of them'
            )
        ranges = []
        for entry in self.exclude:
            if entry.lower() in _WEEKDAYS:
                continue
            begin, slash, end = entry.partition('/')
            try:
                first = datetime.date.fromisoformat(begin)
                last = datetime.date.fromisoformat(end if slash else begin)
            except ValueError:
                first, last = datetime.date.max, datetime.date.min
            if first > last:
                raise errors.Invalid(
                    f'Cannot exclude "{bounds.shortened(entry)}": give a date '
                    '("2026-12-24"), a range ("2026-12-24/2027-01-01") or a '
                    'weekday ("sat")'
                )
            ranges.append((first, last))
        return tuple(ranges)

    @functools.cached_property
    def _weekdays(self) -> frozenset[int]:
        """The weekdays that are excluded."""
        names = {entry.lower() for entry in self.exclude}
        return frozenset(_WEEKDAYS[name] for name in names & _WEEKDAYS.keys())

    def _excluded_until(self, day: datetime.date) -> datetime.date | None:
        """Return the last excluded day in a row; None if the day is not."""
        if day.weekday() in self._weekdays:
            return day
        ends = (end for begin, end in self._excluded if begin <= day <= end)
        return max(ends, default=None)


def run_id(schedule_id: str, time: int) -> str:
    """Return the ID of the run of a schedule for an instant.

    Each process finds the same, so that two of them start one run.
    """
    return str(uuid.uuid5(_RUNS, f'{schedule_id}/{time}'))


def _matching(
    pattern: str, after: datetime.datetime
) -> abc.Iterator[datetime.datetime]:
    """Yield the local times of a cron pattern."""
    if len(pattern) > _LONGEST or not _PATTERN.fullmatch(pattern.strip()):
        raise errors.Invalid(_invalid_pattern(pattern))
    fields = [*pattern.split(), *'*****'][:5]
    for text, (name, most) in zip(fields, _STEPS.items(), strict=True):
        # croniter would only keep the first value of such a step.
        for step in re.findall('/([0-9]+)', text):
            if int(step) > most:
                why = f' (a step of {step} in the {name} is over {most})'
                raise errors.Invalid(_invalid_pattern(pattern, why))
    _, _, day, _, weekday = fields
    if day != '*' and re.search('[#lL]', weekday):
        # croniter would forget about the day of month.
        why = ' (with "#" or "L" as day of week, the day of month must be *)'
        raise errors.Invalid(_invalid_pattern(pattern, why))
    try:
        yield from cron_patterns.times(pattern.strip(), after)
    except cron_patterns.InvalidPattern as exc:
        raise errors.Invalid(_invalid_pattern(pattern, f' ({exc})')) from exc
    except cron_patterns.NeverMatches as exc:
        raise errors.Invalid(
            f'No time matches the pattern "{pattern}": check its day and month'
        ) from exc


def _invalid_pattern(pattern: str, why: str = '') -> str:
    """Return the error about a cron pattern."""
    return (
        f'The pattern "{bounds.shortened(pattern)}" is invalid{why}: give '
        'five fields (minute, hour, day of month, month, day of week), such '
        f'as "30 2 * * mon" for Mondays at 02:30, or one of @'
        f'{", @".join(_KIN)}'
    )


def _instant(
    local: datetime.datetime, zone: zoneinfo.ZoneInfo
) -> tuple[int, ClockChange]:
    """Return the instant at which a local time is due."""
    first = int(local.replace(tzinfo=zone, fold=0).timestamp())
    second = int(local.replace(tzinfo=zone, fold=1).timestamp())
    if first == second:
        return first, ClockChange.NONE
    if first < second:
        return first, ClockChange.DOUBLED
    # The clock is changed between them; see PEP 495.
    before = _offset(second, zone)
    changed = bisect.bisect_left(
        range(second, first),
        True,
        key=lambda time: _offset(time, zone) != before,
    )
    return second + changed, ClockChange.SKIPPED


def _offset(time: int, zone: zoneinfo.ZoneInfo) -> datetime.timedelta | None:
    """Return a time zone's distance from UTC at a time."""
    return datetime.datetime.fromtimestamp(time, zone).utcoffset()
