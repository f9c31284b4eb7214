# SPDX-License-Identifier: Apache-2.0
"""Retry after temporary failures, within a limit of time.

`insist` repeats a call, and `follow` polls something until it has ended.
`OutageBudget` is for a caller that waits for something by several calls.
`Outage` is for a caller that does something else until its next attempt.
"""

from collections import abc
import contextlib
import dataclasses
import time
from typing import Any, TypeVar

import tenacity

from heat_plugins import errors

_Result = TypeVar('_Result')

#: Seconds for which a service may be unavailable while a caller waits for
#: what it tells of.
BUDGET = 300.0


def insist(
    call: abc.Callable[..., _Result],
    *args: Any,
    on: tuple[type[Exception], ...] = (errors.Unavailable,),
    attempts: int = 4,
    seconds: float | None = None,
    wait: float = 0.5,
    most: float = 60.0,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> _Result:
    """Call a function until it returns, or the budget is used up.

    :param on: the errors after which it retries.
    :param seconds: the budget, in place of a number of attempts.
    :param wait: seconds before the second attempt; then twice as long each
        time, up to `most`.
    """
    stop: tenacity.stop.stop_base = tenacity.stop_after_attempt(attempts)
    if seconds is not None:
        stop = tenacity.stop_after_delay(seconds)
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(on),
        stop=stop,
        wait=tenacity.wait_exponential(wait, max=most),
        sleep=sleep,
        reraise=True,
    )(call, *args)


def follow(
    look: abc.Callable[[], _Result],
    has_ended: abc.Callable[[_Result], bool],
    *,
    interval: float,
    growth: float = 1.0,
    most: float = 60.0,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> _Result:
    """Look at something until it has ended; return it as it was last.

    It continues even while the service that it polls is unavailable.

    :param interval: seconds between two looks, which grows up to `most`.
    """
    while True:
        with contextlib.suppress(errors.Unavailable):
            observed = look()
            if has_ended(observed):
                return observed
        sleep(interval)
        interval = min(interval * growth, most)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outage:
    """What has failed since its last success.

    :ivar since: when it first failed, by `clock`.
    :ivar error: the last error.
    """

    since: float
    error: errors.ServiceError
    clock: abc.Callable[[], float] = dataclasses.field(
        default=lambda: time.monotonic(), repr=False, compare=False
    )

    @classmethod
    def of(
        cls,
        error: errors.ServiceError,
        before: 'Outage | None',
        clock: abc.Callable[[], float] = lambda: time.monotonic(),
    ) -> 'Outage':
        """Return the outage that an error begins or continues."""
        since = before.since if before else clock()
        return cls(since=since, error=error, clock=clock)

    @property
    def seconds(self) -> float:
        """For how long it has lasted."""
        return self.clock() - self.since


class OutageBudget:
    """Whether a service that a waiting caller asks is unavailable.

    :param note: called with a sentence for people when an outage begins.
    :param seconds: how long it may last; `BUDGET` at most.
    """

    def __init__(
        self,
        note: abc.Callable[[str], object] = lambda sentence: None,
        *,
        seconds: float | None = None,
        clock: abc.Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._note = note
        self._seconds = BUDGET if seconds is None else min(seconds, BUDGET)
        self._clock = clock
        self._outage: Outage | None = None

    @property
    def lasts(self) -> bool:
        """Whether the last call has failed."""
        return self._outage is not None

    def insist(
        self,
        call: abc.Callable[..., _Result],
        *args: Any,
        pause: float,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> _Result:
        """Call a function until it returns.

        :param pause: seconds between two attempts.
        :raises errors.Unavailable: it has failed for too long.
        """
        while True:
            with self.ridden_out():
                return call(*args)
            sleep(pause)

    @contextlib.contextmanager
    def ridden_out(self) -> abc.Iterator[None]:
        """Pass over a failure of what is called within.

        :raises errors.Unavailable: it has failed for too long.
        """
        try:
            yield
        except errors.Unavailable as exc:
            is_new = self._outage is None
            self._outage = Outage.of(exc, self._outage, self._clock)
            if self._outage.seconds >= self._seconds:
                raise
            if is_new:
                self._note(f'{exc}. Retrying for {self._seconds:.0f} s')
        else:
            self._outage = None
