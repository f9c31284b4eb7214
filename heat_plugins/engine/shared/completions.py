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

Heat has no place for that, so this wraps two functions of it.
"""

from collections import abc
import functools
import threading
from typing import Any
import weakref

from heat.engine import check_resource
from heat.engine import sync_point

from heat_plugins import foreign
from heat_plugins import registry
from heat_plugins.engine import heat_types
from heat_plugins.engine.shared import turns

LOG = foreign.logger(__name__)

# A turn takes about 20 ms of CPU, and more on a busy engine. Who takes longer
# than that has met another process in a sync point, and pauses.
_LEASE = 0.5

# Literals to remember; there is one for each resource of a stack.
_LITERALS = 16384

# What is on a wrapped function, so that it is wrapped once.
_MARK = 'heat_plugins_completions'

_lock = threading.Lock()
# By the ID of the stack, for as long as a thread has or wants a turn.
_turns: weakref.WeakValueDictionary[str, turns.Turns] = (
    weakref.WeakValueDictionary()
)


def take_turns() -> None:
    """Let completions in this process take turns from now on."""
    checker = check_resource.CheckResource
    _wrap(checker, '_initiate_propagate_resource', _in_turn)
    _wrap(sync_point, '_str_unpack_tuple', _remembering)


def guards_literals() -> bool:
    """Say whether this Heat has the function that is guarded here."""
    return hasattr(sync_point, '_str_unpack_tuple')


def _wrap(
    owner: Any,
    name: str,
    wrapper: abc.Callable[[abc.Callable[..., Any]], abc.Callable[..., Any]],
) -> None:
    heats = getattr(owner, name)
    if not hasattr(heats, _MARK):
        wrapped = wrapper(heats)
        setattr(wrapped, _MARK, True)
        setattr(owner, name, wrapped)


def _in_turn(propagate: abc.Callable[..., Any]) -> abc.Callable[..., Any]:
    """Return what lets our deployments propagate one after another."""

    @functools.wraps(propagate)
    def in_turn(
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
        with _turns_of(stack.id).turn():
            return go_on()

    return in_turn


def _turns_of(stack_id: str) -> turns.Turns:
    with _lock:
        found = _turns.get(stack_id)
        if found is None:
            found = _turns[stack_id] = turns.Turns(_LEASE)
        return found


def _remembering(
    evaluate: abc.Callable[[str], tuple[Any, ...]],
) -> abc.Callable[[str], tuple[Any, ...]]:
    """Return what evaluates a literal once, and only one at a time."""
    lock = threading.Lock()

    @functools.lru_cache(_LITERALS)
    @functools.wraps(evaluate)
    def remembered(text: str) -> tuple[Any, ...]:
        with lock:
            return evaluate(text)

    return remembered
