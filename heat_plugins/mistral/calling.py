# SPDX-License-Identifier: Apache-2.0
"""How long the resources that call Mistral retry."""

from collections.abc import Callable
import time

from heat_plugins import errors

# Seconds to retry an error that is probably a defect.
_DEFECT_SECONDS = 15

_LONGEST_DELAY = 30


class RetryBudget:
    """How long one action retries while Mistral fails.

    Each kind of call has a time of its own: one call may fail repeatedly while
    an earlier one succeeds each time.

    :param seconds: for how long; 0 allows a single attempt.
    """

    def __init__(
        self,
        seconds: float,
        clock: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        # Since when each kind of call has failed.
        self._outages: dict[str, float] = {}

    def reset(self, what: str = '') -> None:
        """Note that Mistral has answered."""
        self._outages.pop(what, None)

    def is_retrying(self, what: str) -> bool:
        """Say whether a former attempt of a call has failed."""
        return what in self._outages

    def delay(self, error: errors.ServiceError, what: str = '') -> int | None:
        """Return the seconds until the next retry; None: do not retry."""
        if not isinstance(error, errors.Unavailable):
            return None
        now = self._clock()
        failing = now - self._outages.setdefault(what, now)
        is_defect = isinstance(error, errors.LikelyDefect)
        most = _DEFECT_SECONDS if is_defect else self._seconds
        return backoff(failing) if failing < min(most, self._seconds) else None


def backoff(waited: float) -> int:
    """Return the seconds until the next attempt.

    :param waited: seconds since the first.
    """
    return max(1, min(int(waited / 4), _LONGEST_DELAY))
