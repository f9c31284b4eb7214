# SPDX-License-Identifier: Apache-2.0
"""Deployments that are complete go into Heat's core one after another.

A resource that is complete is written into the row of each resource that
needs it, and of its stack: the *sync points*. Each writer reads the row,
adds itself, and starts over if another one was faster, after a random pause
which grows with the number of those that are still missing, up to a minute.
Servers that answer together so keep their stack waiting for the unluckiest
of them. Those of one stack here take turns, so that none has to start over.

Reading such a row also evaluates a literal for each resource that was
complete before: a part of the work that grows with the square of their
number. And where threads are native (Heat 25 and later), Python 3.11, and
3.12 before 3.12.2, may fail at random when two of them parse at the same time
(``SystemError: AST constructor recursion depth mismatch``, CPython's
gh-106905), and the stack with it. What was evaluated once is remembered here,
and the rest is evaluated by one thread at a time.

Heat has no place for that, so `engine.patches` wraps two functions of it.
"""

from collections import abc
import functools
import threading
from typing import Any

from heat_plugins import registry
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.shared import turns

# A turn takes about 20 ms of CPU, and more on a busy engine. Who takes longer
# than that has met another process in a sync point, and pauses.
_LEASE = 0.5

# Literals to remember; there is one for each resource of a stack.
_LITERALS = 16384

# Stacks of which no thread wants a turn now.
_IDLE = 64

# By the ID of the stack.
_turns: process.Shared[str, turns.Turns] = process.Shared(
    lambda stack_id: turns.Turns(_LEASE), lambda each: each.is_idle, _IDLE
)


def in_turn(propagate: abc.Callable[..., Any]) -> abc.Callable[..., Any]:
    """Return what lets our deployments propagate one after another."""

    def propagate_in_turn(
        checker: Any,
        context: heat_types.Context,
        resource_id: int,
        traversal: str,
        is_update: bool,
        resource: Any,
        stack: heat_types.Stack,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        go_on = functools.partial(
            propagate,
            checker,
            context,
            resource_id,
            traversal,
            is_update,
            resource,
            stack,
            *args,
            **kwargs,
        )
        if resource.type() not in registry.DEPLOYMENT_TYPES:
            return go_on()
        with _turns.get(stack.id).turn():
            return go_on()

    return propagate_in_turn


def remembering(
    evaluate: abc.Callable[[str], tuple[Any, ...]],
) -> abc.Callable[[str], tuple[Any, ...]]:
    """Return what evaluates a literal once, and only one at a time."""
    lock = threading.Lock()

    @functools.lru_cache(_LITERALS)
    def remembered(text: str) -> tuple[Any, ...]:
        with lock:
            return evaluate(text)

    return remembered
