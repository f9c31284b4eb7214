# SPDX-License-Identifier: Apache-2.0
"""Calls a reader with what it may refuse."""

from collections import abc
import contextlib
from typing import Any

from heat_plugins import errors


def refusing(
    read: abc.Callable[[Any], object],
) -> abc.Callable[[Any], None]:
    """Return a reader that takes an error of its own for an answer."""

    def call(value: Any) -> None:
        with contextlib.suppress(
            ValueError, errors.Refused, errors.BadContent
        ):
            read(value)

    return call
