# SPDX-License-Identifier: Apache-2.0
"""The times of a cron trigger: patterns, first times, and next runs.

Every time here is UTC, as in Mistral, and has no zone attached.
"""

from collections.abc import Iterable
import datetime
import itertools
from typing import Final

from heat_plugins import bounds
from heat_plugins import cron_patterns

#: Mistral's format of a first time.
FIRST_TIME_FORMAT: Final = '%Y-%m-%d %H:%M'

#: Mistral takes no first time that is nearer than this.
NOTICE: Final = datetime.timedelta(seconds=60)

#: Mistral starts a run up to two seconds early; one more for the clocks.
EARLY: Final = datetime.timedelta(seconds=3)

# The most times of a pattern that are counted; more take too long.
_COUNTED: Final = 10000

# Characters of a pattern; Mistral's database holds no more.
_LONGEST: Final = 100


class ScheduleError(ValueError):
    """A pattern or a first time is invalid; the message says why."""


def now() -> datetime.datetime:
    """Return the present time."""
    return datetime.datetime.now(datetime.UTC).replace(tzinfo=None)


def upcoming(
    pattern: str, after: datetime.datetime, number: int = 3
) -> tuple[datetime.datetime, ...]:
    """Return the next times of a pattern.

    :raises ScheduleError: it is invalid, or no time ever matches.
    """
    return tuple(itertools.islice(_times(pattern, after), number))


def _times(
    pattern: str, after: datetime.datetime
) -> Iterable[datetime.datetime]:
    if len(pattern) > _LONGEST:
        raise ScheduleError(
            f'the pattern "{bounds.shortened(pattern, 40)}" has '
            f'{len(pattern)} characters, and Mistral allows {_LONGEST}; use '
            'several triggers.'
        )
    try:
        yield from cron_patterns.times(pattern, after)
    except cron_patterns.InvalidPattern as exc:
        raise ScheduleError(
            f'the pattern "{pattern}" is invalid ({exc}); it needs five '
            'fields, in UTC: minute, hour, day of month, month, day of week, '
            'as in "30 2 * * mon" for Mondays at 02:30 UTC; seconds and a '
            'year may follow.'
        ) from exc
    except cron_patterns.NeverMatches as exc:
        raise ScheduleError(
            f'no time matches the pattern "{pattern}", so it would never '
            'run; check its day and month.'
        ) from exc


def first_time(text: str) -> datetime.datetime:
    """Read a first time in the format of templates.

    :raises ScheduleError: it has another format.
    """
    try:
        return datetime.datetime.strptime(text.strip(), FIRST_TIME_FORMAT)
    except ValueError as exc:
        raise ScheduleError(
            f'the first time "{bounds.shortened(text)}" is invalid; it must '
            'be a date and a time in UTC, such as "2030-12-31 23:59".'
        ) from exc


def show(*times: datetime.datetime) -> str:
    """Write times for people, with their zone."""
    seconds = any(time.second for time in times)
    pattern = '%Y-%m-%d %H:%M:%S' if seconds else '%Y-%m-%d %H:%M'
    return ', '.join(time.strftime(pattern) for time in times) + ' UTC'


def next_runs(
    pattern: str | None,
    first: datetime.datetime | None,
    count: int | None,
    after: datetime.datetime,
) -> list[datetime.datetime]:
    """Return the times of the next runs of a trigger, at most three.

    :param first: its first time, if that is in the future.
    :param count: how many runs remain, if limited.
    """
    wanted = 3 if count is None else min(count, 3)
    times = [] if first is None else [first]
    if pattern and len(times) < wanted:
        times += upcoming(pattern, first or after, wanted - len(times))
    return times[:wanted]


def has_expired(
    pattern: str | None,
    first: datetime.datetime | None,
    count: int | None,
    made: datetime.datetime,
    at: datetime.datetime,
) -> bool:
    """Say whether a trigger may have had all of its runs by some time.

    Mistral deletes a trigger after its last run. This tells such a trigger
    from one that a user has deleted. If there are too many times to count, it
    may have expired.

    :param count: how many runs remained when it was created.
    :param made: when that was.
    """
    latest = at + EARLY
    if first is not None and first > latest:
        return False
    if not pattern:
        return first is not None
    if count is None:
        return False
    left = count if first is None else count - 1
    for time in itertools.islice(_times(pattern, first or made), _COUNTED):
        if left < 1:
            return True
        if time > latest:
            return False
        left -= 1
    return True
