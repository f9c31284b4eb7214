# SPDX-License-Identifier: Apache-2.0
"""The resources that call Mistral step by step, and how long they retry."""

from collections.abc import Callable, Mapping
import datetime
import time
from typing import Any, NoReturn, Protocol

from heat_plugins import errors
from heat_plugins import retrying

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
        self, seconds: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._outages: dict[str, retrying.Outage] = {}

    def reset(self, what: str = '') -> None:
        """Note that Mistral has answered."""
        self._outages.pop(what, None)

    def delay(self, error: errors.ServiceError, what: str = '') -> int | None:
        """Return the seconds until the next retry; None: do not retry."""
        if not isinstance(error, errors.Unavailable):
            return None
        outage = self._outages[what] = retrying.Outage.of(
            error, self._outages.get(what), self._clock
        )
        limit = self._seconds
        if isinstance(error, errors.LikelyDefect):
            limit = min(limit, _DEFECT_SECONDS)
        failing = outage.seconds
        return backoff(failing) if failing < limit else None


def backoff(waited: float) -> int:
    """Return the seconds until the next attempt.

    :param waited: seconds since the first.
    """
    return max(1, min(int(waited / 4), _LONGEST_DELAY))


class Caller(Protocol):
    """The part of a resource that its calls to Mistral use.

    :ivar resource_id: the physical one; None before it is known.
    :ivar stack: Heat's.
    """

    action: str
    created_time: datetime.datetime | None
    name: str
    stack: Any
    updated_time: datetime.datetime | None

    @property
    def resource_id(self) -> str | None: ...

    @property
    def project_id(self) -> str: ...

    def client(self) -> Any:
        """Return python-mistralclient's client."""

    def ask(
        self,
        budget: RetryBudget,
        what: str,
        call: Callable[..., Any],
        *arguments: Any,
        **named: Any,
    ) -> Any:
        """Call Mistral; after a temporary failure, a later step retries.

        :raises errors.ServiceError: any other failure.
        """

    def find(
        self,
        budget: RetryBudget,
        what: str,
        call: Callable[..., Any],
        *arguments: Any,
        **named: Any,
    ) -> Any:
        """Call Mistral like `ask`; None if Mistral has no such object."""

    def data(self) -> Mapping[str, str]: ...

    def data_delete(self, key: str) -> object: ...

    def data_set(
        self, key: str, value: str, redact: bool = False
    ) -> object: ...

    def is_cancelled(self, since: float) -> bool:
        """Say whether its stack's action was cancelled or is rolled back.

        :param since: when that began, by `time.monotonic`.
        """

    def retry_budget(self) -> RetryBudget:
        """Return how long an action retries."""

    def pause(self, seconds: int) -> NoReturn:
        """End this step; Heat calls the next one after some seconds."""

    def resource_id_set(self, resource_id: str | None) -> None: ...

    def tell(self, text: str) -> None:
        """Write an event."""

    def trust_refusal(self) -> str | None:
        """Return why Keystone gives no trust; None if it does."""
