# SPDX-License-Identifier: Apache-2.0
"""Going on with deployments whose heat-engine has died.

Heat notices that an engine has died only when somebody updates or deletes the
stack that it was working on; until then the stack is in progress, for good.
So each process with an engine looks, seldom, for deployments that are held by
an engine that has gone. As Heat does after an update, it takes them away from
that engine, lets what was being done fail, and has the resource checked again
in the current traversal of its stack: an engine that lives repeats it, and
takes back from the server what nobody waits for any more.

To have it checked alone would do too, as Heat then asks whether the engine
lives and takes the resource away itself. But it does so in each engine that
is told to check, without a condition: two that are told at a time may make
two replacements. So one process takes the resource away, in one statement. If
that process goes, or the broker fails, before Heat is told, the row says so,
and somebody tells Heat later.

What has been made anew is in no traversal. If its engine dies, too, Heat is
told of what it replaces, and replaces that once more. If nobody has begun
with it, as the engine that made it died before it told Heat, Heat is told now.

In a stack that has failed nothing is repeated before its next update. What an
engine held there when it died fails with it, and is taken back from its
server, whose answer nobody would hear.
"""

import dataclasses
import functools
import os
import random
import sys
import threading
import time
from typing import Any, Protocol, runtime_checkable

from heat.common import context as heat_context
from heat.common import exception
from heat.engine import check_resource
from heat.engine import environment
from heat.engine import resource
from heat.engine import stack as parser
from heat.engine import sync_point
from heat.rpc import worker_client
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import foreign
from heat_plugins import registry
from heat_plugins.engine import fleet_watching
from heat_plugins.engine import locks

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# What may be made anew without harm to anything but itself: our deployments,
# and the configs that they wait for.
_TYPES = registry.DEPLOYMENT_TYPES | {
    'OS::Heat::SoftwareComponent',
    'OS::Heat::SoftwareConfig',
    'OS::Heat::StructuredConfig',
}

#: How long Heat may take to check what it was told to, in seconds.
CHECKING = 60

# What is on a wrapped method, so that it is wrapped once.
_MARK = 'heat_plugins_rescue'

_lock = threading.Lock()
# The process that looks; after a fork the child has to begin for itself.
_process: int | None = None


@runtime_checkable
class Deployment(Protocol):
    """A resource that has handed something to a server."""

    def take_back(self) -> None:
        """Take from the server what nobody waits for."""

    def give_way(self) -> None:
        """Leave the server to another one, that is made in its place."""


def watch() -> None:
    """Let this process look from now on, unless it does so already."""
    global _process
    if not cfg.CONF.heat_plugins.rescue_interval:
        return
    with _lock:
        if _process == os.getpid():
            return
        _process = os.getpid()
    threading.Thread(
        target=_look_on, name='heat-plugins-rescue', daemon=True
    ).start()


def begin_with_engines() -> None:
    """Let each process look from when its engine starts.

    Heat tells plugins nothing of that, and those who never start an engine
    load plugins, too: the parent of forked workers, and tools. So this wraps
    what starts one.
    """
    service = sys.modules.get('heat.engine.service')
    if service is None or hasattr(service.EngineService.start, _MARK):
        return
    start = service.EngineService.start

    @functools.wraps(start)
    def start_and_watch(engine: Any) -> None:
        start(engine)
        try:
            watch()
        except Exception as exc:
            LOG.warning(
                'heat-engine runs, and resumes no deployments of dead '
                'engines: %s',
                _told(exc),
            )

    setattr(start_and_watch, _MARK, True)
    service.EngineService.start = start_and_watch


def _look_on() -> None:
    interval = cfg.CONF.heat_plugins.rescue_interval
    rescuer = Rescuer()
    # Those that were started together need not look at the same time.
    # Not a secret.
    time.sleep(random.uniform(0, interval))  # noqa: S311 # nosec B311
    while True:
        try:
            rescuer.look()
        except Exception as exc:
            LOG.warning(
                'Deployments of engines that have died were not looked for, '
                'which is tried again: %s',
                _told(exc),
            )
        try:
            fleet_watching.look()
        except Exception as exc:
            LOG.warning(
                'Cannot look for operations that nobody advances; retrying: '
                '%s',
                _told(exc),
            )
        time.sleep(interval)


class Rescuer:
    """One that looks again and again, and remembers what it has seen."""

    def __init__(self) -> None:
        # When each was seen first, by `time.monotonic`.
        self._since: dict[locks.Key, float] = {}
        # What is Heat's own; to find that out costs several statements.
        self._others: set[locks.Key] = set()

    def look(self) -> list[locks.Held]:
        """Look once; what is gone on with."""
        context = heat_context.get_admin_context()
        held = locks.held(context)
        now = time.monotonic()
        self._since = {
            each.key: self._since.get(each.key, now) for each in held
        }
        self._others &= self._since.keys()
        held = [each for each in held if each.key not in self._others]
        dead = locks.dead_engines(context, {each.engine_id for each in held})
        return [
            each
            for each in held
            if (
                each.engine_id in dead
                if each.engine_id
                else now - self._since[each.key] > CHECKING
            )
            and self._try(each)
        ]

    def _try(self, held: locks.Held) -> bool:
        """Go on with a resource, or let the next look try it again.

        What is wrong with one stack is nothing to the others.
        """
        try:
            stack, found, _scope = locks.load(held)
            # Heat may replace what has failed, and we answer for our own.
            has_failed = stack.status == stack.FAILED
            if found.type() not in _TYPES or (
                has_failed and not isinstance(found, Deployment)
            ):
                self._others.add(held.key)
                return False
            if not held.has_begun:
                return _begin(held, stack, found)
            return _go_on(held, stack, found)
        except Exception as exc:
            LOG.warning(
                'Resource %(resource)s of stack %(stack)s, whose engine has '
                'died, was not gone on with, which is tried again: %(error)s',
                {
                    'resource': held.name,
                    'stack': held.stack_id,
                    'error': _told(exc),
                },
            )
            return False


def _told(exc: Exception) -> str:
    """Return an error in one line; the database's has a statement in more."""
    cause = str(exc).partition('\n')[0]
    return f'{type(exc).__name__}: {cause}'


def _go_on(
    held: locks.Held, stack: parser.Stack, found: resource.Resource
) -> bool:
    """Have a resource checked again, or fail; whether that was ours to do."""
    context = heat_context.get_admin_context()
    # By now; to ask whether engines live takes seconds.
    has_failed = stack.status == stack.FAILED
    node = None if has_failed else _node(stack, found)
    if has_failed:
        # Not to be come back to: there is nothing more to do before its next
        # update.
        held = dataclasses.replace(
            held, reason=f'{held.reason}, and the stack has failed'
        )
    if node != found.id and isinstance(found, Deployment):
        # Still the dead engine's: who fails here tries it all again.
        if not locks.change(context, held):
            return False
        held = dataclasses.replace(held, version=(held.version or 0) + 1)
        if node is None:
            found.take_back()
        else:
            found.give_way()
    if not locks.take_away(context, held):
        return False
    LOG.warning(
        '%(reason)s while it worked on %(resource)s of stack %(stack)s, '
        '%(stack_id)s; %(then)s',
        {
            'reason': held.reason,
            'resource': held.name,
            'stack': stack.name,
            'stack_id': stack.id,
            'then': 'it has failed' if node is None else 'going on with it',
        },
    )
    if node is not None:
        # Cast what has an engine check it in the current traversal.
        check_resource.CheckResource(
            None, worker_client.WorkerClient(), None, None, {}
        ).retrigger_check_resource(stack.context, node, stack)
    elif not has_failed:
        stack.mark_failed(
            f'Resource {found.action} failed: resources.{found.name}: '
            f'{held.reason}'
        )
    return True


def _begin(
    held: locks.Held, stack: parser.Stack, found: resource.Resource
) -> bool:
    """Have a replacement begun with; whether that was ours to do."""
    if found.has_hook(environment.HOOK_PRE_CREATE):
        # A user is to say when.
        return False
    try:
        # What it needs to know was told to what it replaces.
        told = sync_point.get(
            stack.context, found.replaces, stack.current_traversal, True
        )
    except exception.EntityNotFound:
        # The traversal that made it has ended meanwhile.
        return False
    if not locks.change(heat_context.get_admin_context(), held):
        return False
    LOG.warning(
        'Nobody has begun with %(resource)s of stack %(stack)s, %(stack_id)s, '
        'which was made in the place of another; having that begun with',
        {
            'resource': held.name,
            'stack': stack.name,
            'stack_id': stack.id,
        },
    )
    worker_client.WorkerClient().check_resource(
        stack.context,
        found.id,
        stack.current_traversal,
        told.input_data,
        True,
        None,
    )
    return True


def _node(stack: parser.Stack, found: resource.Resource) -> int | None:
    """Return what to check again in a stack's traversal for a resource.

    One that was made in this traversal is not in it; it stands in for what it
    replaces, which is then replaced once more.
    """
    graph = stack.convergence_dependencies.graph()
    nodes = {node.rsrc_id for node in graph}
    for number in (found.id, found.replaces):
        if number in nodes:
            return int(number)
    return None
