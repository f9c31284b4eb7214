# SPDX-License-Identifier: Apache-2.0
"""Whether the work of a reader grows no faster than its input."""

import gc
import time

# Below this the clock and the interpreter's own work decide.
_MEASURABLE = 0.02

# Linear work takes twice as long for twice the input; quadratic, four times.
_FACTOR = 3

# In so many doublings, one after another, it takes too long.
_DOUBLINGS = 2

# A machine that is busy spoils a measurement, but not several in a row.
_TRIES = 4


def check(read, made, *, start=256, largest=2**18):
    """Assert that reading twice the input takes at most three times as long.

    The size is doubled until reading takes long enough to be measured. A
    reader that never does, up to the largest size, has a limit of its own.

    :param read: the reader; a ValueError or the like is for it to catch.
    :param made: returns an input of a size; making it is not measured.
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
        # What is faster than its input grows at each doubling; a cache that
        # is too small is met at one.
        is_fast = before >= _MEASURABLE and after > _FACTOR * before
        grown = grown + 1 if is_fast else 0
        assert grown < _DOUBLINGS, f'{size}: {after:.3f} s of CPU'
        if after >= 5 * _MEASURABLE and not grown:
            return
        before = after


def seconds_of(read, value):
    """Return the CPU time of this thread alone."""
    gc.disable()
    try:
        begun = time.thread_time()
        read(value)
        return time.thread_time() - begun
    finally:
        gc.enable()
