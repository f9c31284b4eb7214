# SPDX-License-Identifier: Apache-2.0
"""Whether the work of a reader grows no faster than its input."""

from collections import abc
import gc
import time
from typing import Any

# Below this the clock and the interpreter's own work decide.
_MEASURABLE = 0.02

# Seconds after which a third doubling has been measured.
_ENOUGH = 5 * _MEASURABLE

# Linear work takes twice as long for twice the input; quadratic, four times.
_FACTOR = 3

# In so many doublings, one after another, it takes too long.
_DOUBLINGS = 2

# A machine that is busy spoils a measurement, but not several in a row.
_TRIES = 4


def check(
    read: abc.Callable[[Any], object],
    made: abc.Callable[[int], Any],
    *,
    start: int = 256,
    largest: int = 2**18,
) -> None:
    """Assert that reading twice the input takes at most three times as long.

    The size is doubled until reading takes long enough to be measured. A
    reader that never does, up to the largest size, has a limit of its own.

    :param read: the reader; a ValueError or the like is for it to catch.
    :param made: returns an input of a size; making it is not measured.
    :param start: the first size.
    :param largest: the last size, unless reading it took too long.
    """
    size = start
    before = seconds_of(read, made(size))
    grown = 0
    while size < largest or grown:
        size *= 2
        value = made(size)
        after = seconds_of(read, value)
        if before >= _MEASURABLE and after > _FACTOR * before:
            for _ in range(_TRIES):
                before = min(before, seconds_of(read, made(size // 2)))
                after = min(after, seconds_of(read, value))
            # What is faster than its input grows at each doubling; a cache
            # that is too small is met at one.
            grown = grown + 1 if after > _FACTOR * before else 0
            if grown == _DOUBLINGS:
                raise AssertionError(
                    f'reading {size // 2} took {before:.3f} s of CPU, and '
                    f'reading {size}, {after:.3f} s'
                )
        else:
            grown = 0
        if after >= _ENOUGH and not grown:
            return
        before = after


def seconds_of(read: abc.Callable[[Any], object], value: Any) -> float:
    """Return the CPU time of this thread alone."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        begun = time.thread_time()
        read(value)
        return time.thread_time() - begun
    finally:
        if enabled:
            gc.enable()
