# SPDX-License-Identifier: Apache-2.0
"""Retry after temporary failures, within a limit of time.

`insist` repeats a call, and `follow` polls something until it has ended.
`OutageBudget` is for a caller that waits for something by different calls.
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
    clock: abc.Callable[[], float] = lambda: time.monotonic(),
    note: abc.Callable[[str], object] = lambda sentence: None,
) -> _Result:
    """Call a function until it returns, or the budget is used up.

    :param on: the errors after which it retries.
    :param seconds: the budget, in place of a number of attempts.
    :param wait: seconds before the second attempt; then twice as long each
        time, up to `most`.
    :param note: called with a sentence for people before the second attempt.
    """
    begun = clock()

    def is_over(state: tenacity.RetryCallState) -> bool:
        if seconds is None:
            return state.attempt_number >= attempts
        return clock() - begun >= seconds

    def tell(state: tenacity.RetryCallState) -> None:
        if state.attempt_number == 1 and state.outcome is not None:
            limit = '' if seconds is None else f' for {seconds:.0f} s'
            note(f'{state.outcome.exception()}. Retrying{limit}')

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(on),
        stop=is_over,
        wait=tenacity.wait_exponential(wait, max=most),
        sleep=sleep,
        before_sleep=tell,
        reraise=True,
    )(call, *args)


def follow(
    look: abc.Callable[[], _Result],
    has_ended: abc.Callable[[_Result], bool],
    *,
    interval: float,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> _Result:
    """Poll something until it has ended; return it as it was last.

    It continues even while the service that it polls is unavailable.

    :param interval: seconds between two polls.
    """
    return tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(errors.Unavailable)
        | tenacity.retry_if_not_result(has_ended),
        wait=tenacity.wait_fixed(interval),
        sleep=sleep,
    )(look)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outage:
    """The failures of a service since its last success.

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
    """

    def __init__(
        self,
        note: abc.Callable[[str], object] = lambda sentence: None,
        *,
        clock: abc.Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._note = note
        self._clock = clock
        self._outage: Outage | None = None

    @contextlib.contextmanager
    def ridden_out(self) -> abc.Iterator[None]:
        """Pass over a failure of a call within.

        :raises errors.Unavailable: it has failed for too long.
        """
        try:
            yield
        except errors.Unavailable as exc:
            is_new = self._outage is None
            self._outage = Outage.of(exc, self._outage, self._clock)
            if self._outage.seconds >= BUDGET:
                raise
            if is_new:
                self._note(f'{exc}. Retrying for {BUDGET:.0f} s')
        else:
            self._outage = None
