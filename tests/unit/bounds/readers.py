# SPDX-License-Identifier: Apache-2.0
"""Calls a reader with what it may refuse."""

import contextlib

from heat_plugins import errors


def refusing(read):
    """Return a reader that takes an error of its own for an answer."""

    def call(value):
        with contextlib.suppress(
            ValueError, errors.Refused, errors.BadContent
        ):
            read(value)

    return call
