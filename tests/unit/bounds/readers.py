# SPDX-License-Identifier: Apache-2.0
"""Calls a reader with what it may refuse."""

from collections import abc
import contextlib
from typing import Any

from heat_plugins.objectstore import errors as signal_errors
from heat_plugins.runs import errors as run_errors


def refusing(
    read: abc.Callable[[Any], object],
) -> abc.Callable[[Any], None]:
    """Return a reader that takes an error of its own for an answer."""

    def call(value: Any) -> None:
        with contextlib.suppress(
            ValueError, run_errors.Refused, signal_errors.BadSignal
        ):
            read(value)

    return call
