# SPDX-License-Identifier: Apache-2.0
"""Ride out what may pass: a call is repeated, within a budget."""

from collections import abc
import time
from typing import Any, TypeVar

import tenacity

from heat_plugins import errors

_Result = TypeVar('_Result')


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

    :param on: errors that may pass.
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
