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

from collections import abc
import dataclasses
import time

from heat.common import context as heat_context
from heat.common import exception
from heat.common import service_utils
from heat.engine import check_resource
from heat.engine import environment
from heat.engine import resource
from heat.engine import stack as parser
from heat.engine import sync_point
from heat.objects import service as service_objects
from heat.rpc import worker_client
from oslo_config import cfg
from oslo_utils import timeutils as oslo_timeutils

from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins import registry
from heat_plugins import tokens
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.database import resources

LOG = foreign.logger(__name__)

# What can be replaced without harm to other resources: our deployments, and
# the configs that they wait for.
_TYPES = registry.DEPLOYMENT_TYPES | {
    'OS::Heat::SoftwareComponent',
    'OS::Heat::SoftwareConfig',
    'OS::Heat::StructuredConfig',
}

#: Seconds that Heat may take to check a resource on request.
CHECKING = 60

# Seconds after an action began for which its own worker may try to lock what a
# dead engine holds: Heat waits up to twice 2 s.
_LOCKING = 10

#: Seconds between two reports of an engine to the database. Heat and the scan
#: suspect an engine that has not reported for twice as long. By Heat's own
#: interval, 60 s, a deployment would wait for two minutes until it is resumed.
REPORTING = 10


class Rescuer:
    """Scans for resources of dead engines, and remembers when it saw each."""

    def __init__(self) -> None:
        # When each was seen first, by `time.monotonic`.
        self._since: dict[resources.Key, float] = {}
        # What is Heat's own; to find that out costs several statements.
        self._others: set[resources.Key] = set()

    def look(self) -> list[resources.Held]:
        """Scan once; return the resources that were resumed."""
        context = heat_context.get_admin_context()
        held = resources.held(context)
        now = time.monotonic()
        self._since = {
            each.key: self._since.get(each.key, now) for each in held
        }
        self._others &= self._since.keys()
        held = [each for each in held if each.key not in self._others]
        dead = dead_engines(context, {each.engine_id for each in held})
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

    def _try(self, held: resources.Held) -> bool:
        """Resume a resource, or leave it to the next scan.

        A failure in one stack does not affect the others.
        """
        try:
            stack, loaded, _scope = load(held)
            # Heat may replace what has failed, and we answer for our own.
            has_failed = stack.status == stack.FAILED
            if loaded.type() not in _TYPES or (
                has_failed and not hasattr(loaded, 'withdraw_delivered')
            ):
                self._others.add(held.key)
                return False
            # A worker may be checking it for an update or deletion. If another
            # one checked it now, the first would find it gone, and fail the
            # stack.
            now = oslo_timeutils.utcnow()
            begun = oslo_timeutils.normalize_time(
                stack.updated_time or now.min
            )
            # The clock of another engine may have been wrong.
            if 0 <= oslo_timeutils.delta_seconds(begun, now) < _LOCKING:
                return False
            resume = _resume if held.has_begun else _begin
            is_resumed = resume(held, stack, loaded)
            metrics.count(metrics.RESCUED, 'resource', is_resumed)
            return is_resumed
        except Exception as exc:
            LOG.warning(
                'Cannot resume resource %(resource)s of stack %(stack)s, '
                'whose engine has died; retrying: %(error)s',
                {
                    'resource': held.name,
                    'stack': held.stack_id,
                    'error': foreign.brief(exc),
                },
            )
            return False


def dead_engines(
    context: heat_types.Context, engine_ids: abc.Set[str | None]
) -> abc.Set[str | None]:
    """Return which of some engines neither report nor answer."""
    suspects = engine_ids - {None}
    if suspects:
        suspects -= reporting(context)
    return {
        engine_id
        for engine_id in suspects
        # It may fail to reach the database alone.
        if not service_utils.engine_alive(context, engine_id)
    }


def reporting(context: heat_types.Context) -> abc.Set[str]:
    """Return the engines that have reported to the database recently."""
    return {
        row.engine_id
        for row in service_objects.Service.get_all(context)
        if service_utils.format_service(row)[service_utils.SERVICE_STATUS]
        == 'up'
    }


def load(
    held: resources.Held,
) -> tuple[parser.Stack, resource.Resource, object]:
    """Return the stack of a resource, the resource, and its references.

    Its references are weak, so the caller must keep the last as long as it.
    """
    stack = resources.load_stack(held.stack_id)
    # By its own template: that of a stack in deletion is empty.
    loaded, *scope = resource.Resource.load(
        stack.context, held.id, stack.current_traversal, False, {}
    )
    return stack, loaded, scope


def _resume(
    held: resources.Held, stack: parser.Stack, loaded: resource.Resource
) -> bool:
    """Have a resource checked again, or fail it; False: no longer ours."""
    context = heat_context.get_admin_context()
    # Read it only now: to check whether engines live takes seconds.
    has_failed = stack.status == stack.FAILED
    node: int | None = None
    if not has_failed:
        # What was made in this traversal is not in it: it stands in for what
        # it replaces, which is then replaced once more.
        nodes = {
            each.rsrc_id for each in stack.convergence_dependencies.graph()
        }
        numbers = (loaded.id, loaded.replaces)
        node = next((int(each) for each in numbers if each in nodes), None)
    reason, status_reason = held.reason, tokens.ENGINE_DIED.after(held.reason)
    if has_failed:
        # The next scan must skip it: nothing more happens before its update.
        reason = status_reason = f'{reason}, and the stack has failed'
    if node != loaded.id and hasattr(loaded, 'withdraw_delivered'):
        # Still the dead engine's: after a failure here the next scan retries.
        if not resources.change(context, held):
            return False
        held = dataclasses.replace(held, version=(held.version or 0) + 1)
        loaded.withdraw_delivered()
    # Of several engines that try to take it away, one does. One that was taken
    # before gets another version: the others wait again.
    if not resources.change(
        context,
        held,
        engine_id=None,
        status='FAILED',
        status_reason=status_reason,
    ):
        return False
    LOG.warning(
        '%(reason)s while it worked on %(resource)s of stack %(stack)s, '
        '%(stack_id)s; %(then)s',
        {
            'reason': reason,
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
            f'Resource {loaded.action} failed: '
            f'resources.{loaded.name}: {reason}'
        )
    return True


def _begin(
    held: resources.Held, stack: parser.Stack, loaded: resource.Resource
) -> bool:
    """Start a replacement; return whether this process did so."""
    if loaded.has_hook(environment.HOOK_PRE_CREATE):
        # The hook's user says when.
        return False
    try:
        # Its input data were sent to the resource that it replaces.
        point = sync_point.get(
            stack.context, loaded.replaces, stack.current_traversal, True
        )
    except exception.EntityNotFound:
        # The traversal that created it has ended meanwhile.
        return False
    if not resources.change(heat_context.get_admin_context(), held):
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
        loaded.id,
        stack.current_traversal,
        point.input_data,
        True,
        None,
    )
    return True


def report_often() -> None:
    """Let Heat report often that this engine lives, from its start on.

    The first report says how often the next ones come.
    """
    options = cfg.CONF
    if options.heat_plugins.rescue_interval:
        options.set_override(
            'periodic_interval', min(options.periodic_interval, REPORTING)
        )


SCAN = process.Scan(
    name='heat-plugins-rescue',
    wanted='deployments of dead engines',
    begin=lambda: Rescuer().look,
)
