# SPDX-License-Identifier: Apache-2.0
"""The times of a cron pattern, as croniter reads it.

Mistral reads patterns with croniter, too. The times here have no zone:
croniter knows nothing of the changes of a clock, and its callers do.
"""

from collections import abc
import datetime

import croniter


class InvalidPattern(ValueError):
    """The pattern cannot be read; the message says why."""


class NeverMatches(ValueError):
    """No time matches the pattern."""


def times(
    pattern: str, after: datetime.datetime
) -> abc.Iterator[datetime.datetime]:
    """Yield the times that match a pattern, until the year 9999.

    :param after: a time without a zone; the first one is later.
    :raises InvalidPattern: croniter cannot read it.
    :raises NeverMatches: no time matches, such as on February 30.
    """
    try:
        matching = croniter.croniter(pattern, after)
    # What it raises differs between its releases.
    except (ValueError, KeyError, AttributeError, TypeError) as exc:
        raise InvalidPattern(str(exc)) from exc
    try:
        while True:
            yield matching.get_next(datetime.datetime)
    except croniter.CroniterBadDateError as exc:
        raise NeverMatches(str(exc)) from exc
    except (OverflowError, ValueError):
        # The last year is 9999.
        return
