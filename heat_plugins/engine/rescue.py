# SPDX-License-Identifier: Apache-2.0
"""Resume the deployments of heat-engines that have died.

Heat notices that an engine has died only when a user updates or deletes the
stack that it was working on; until then the stack stays in progress. So each
process with an engine scans, seldom, for deployments that a dead engine holds.
As Heat does after an update, it takes them away from that engine, fails their
action, and has the resource checked again in the current traversal of its
stack: a live engine then repeats the action, and withdraws from the server the
one that no engine waits for.

To request the check alone would work, too, as Heat then finds that the engine
is dead and takes the resource away itself. But each engine that gets such a
request does so without a condition, so two requests at a time may create two
replacements. So one process takes the resource away, in one statement. If that
process dies, or the broker fails, before the request, the row says so, and the
next scan sends it.

A replacement is in no traversal. If its engine dies, too, the request names
the resource that it replaces, and Heat replaces that once more. If the engine
that created the replacement died before it announced it, the scan announces
it.

In a failed stack no action is repeated before the next update. What an engine
held there when it died fails, and is withdrawn from its server.
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
from heat_plugins.engine.database import locks
from heat_plugins.engine.runs import fleet_watching

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# What can be replaced without harm to other resources: our deployments, and
# the configs that they wait for.
_TYPES = registry.DEPLOYMENT_TYPES | {
    'OS::Heat::SoftwareComponent',
    'OS::Heat::SoftwareConfig',
    'OS::Heat::StructuredConfig',
}

#: Seconds that Heat may take to check a resource on request.
CHECKING = 60

# What is on a wrapped method, so that it is wrapped once.
_MARK = 'heat_plugins_rescue'

_lock = threading.Lock()
# The process that scans; after a fork the child must start its own scans.
_process: int | None = None


@runtime_checkable
class Deployment(Protocol):
    """A resource that has delivered something to a server."""

    def take_back(self) -> None:
        """Withdraw from the server what no engine waits for."""

    def give_way(self) -> None:
        """Leave the server to the resource that replaces this one."""


def watch() -> None:
    """Start the scans of this process, unless it scans already."""
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
                'heat-engine cannot scan for deployments of dead engines, '
                'and will not resume them: %s',
                _told(exc),
            )

    setattr(start_and_watch, _MARK, True)
    service.EngineService.start = start_and_watch


def _look_on() -> None:
    interval = cfg.CONF.heat_plugins.rescue_interval
    rescuer = Rescuer()
    # Processes that start together scan at different times.
    # Not a secret.
    time.sleep(random.uniform(0, interval))  # noqa: S311 # nosec B311
    while True:
        try:
            rescuer.look()
        except Exception as exc:
            LOG.warning(
                'Cannot scan for deployments of dead engines; retrying: %s',
                _told(exc),
            )
        try:
            fleet_watching.look()
        except Exception as exc:
            LOG.warning(
                'Cannot scan for operations that no process advances; '
                'retrying: %s',
                _told(exc),
            )
        time.sleep(interval)


class Rescuer:
    """Scans for resources of dead engines, and remembers what it saw."""

    def __init__(self) -> None:
        # When each was seen first, by `time.monotonic`.
        self._since: dict[locks.Key, float] = {}
        # What is Heat's own; to find that out costs several statements.
        self._others: set[locks.Key] = set()

    def look(self) -> list[locks.Held]:
        """Scan once; return the resources that were resumed."""
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
        """Resume a resource, or leave it to the next scan.

        A failure in one stack does not affect the others.
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
                'Cannot resume resource %(resource)s of stack %(stack)s, '
                'whose engine has died; retrying: %(error)s',
                {
                    'resource': held.name,
                    'stack': held.stack_id,
                    'error': _told(exc),
                },
            )
            return False


def _told(exc: Exception) -> str:
    """Return the first line of an error: the rest quotes the statement."""
    cause = str(exc).partition('\n')[0]
    return f'{type(exc).__name__}: {cause}'


def _go_on(
    held: locks.Held, stack: parser.Stack, found: resource.Resource
) -> bool:
    """Have a resource checked again, or fail it; False: no longer ours."""
    context = heat_context.get_admin_context()
    # Read it only now: to check whether engines live takes seconds.
    has_failed = stack.status == stack.FAILED
    node = None if has_failed else _node(stack, found)
    if has_failed:
        # The next scan must skip it: nothing more happens before its update.
        held = dataclasses.replace(
            held, reason=f'{held.reason}, and the stack has failed'
        )
    if node != found.id and isinstance(found, Deployment):
        # Still the dead engine's: after a failure here the next scan retries.
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
            'then': 'it has failed' if node is None else 'resuming it',
        },
    )
    if node is not None:
        # Ask any engine to check it in the current traversal.
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
    """Start a replacement; return whether this process did so."""
    if found.has_hook(environment.HOOK_PRE_CREATE):
        # The hook's user says when.
        return False
    try:
        # Its input data were sent to the resource that it replaces.
        told = sync_point.get(
            stack.context, found.replaces, stack.current_traversal, True
        )
    except exception.EntityNotFound:
        # The traversal that created it has ended meanwhile.
        return False
    if not locks.change(heat_context.get_admin_context(), held):
        return False
    LOG.warning(
        'No engine has started %(resource)s of stack %(stack)s, '
        '%(stack_id)s, a replacement whose engine has died; starting it',
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
