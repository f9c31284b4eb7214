# SPDX-License-Identifier: Apache-2.0
"""Continue the traversals of stacks that an engine left when it died.

When a resource is complete, its engine releases it, and then tells the nodes
after it, or the stack, that it is done. An engine that dies between these two
leaves a stack in progress for good: every resource is complete, and no engine
holds a lock, so nothing looks dead. The same happens where an engine has taken
the message that a node is due, and dies before it locks the resource; where
every node has told the stack, and it is not yet called complete; and where an
engine has stored that a stack must be deleted, and not yet in which order.

A scan finds the stacks in progress that have stood still. It tells the nodes
after those that are done, as their engine would have; to be told twice counts
once. It sends a node that no engine has started again. One process does so
for a stack, and waits again before the next attempt. A deletion that no
engine has started starts in a new traversal.
"""

from collections import abc
import time
from typing import Any, TypeAlias

from heat.common import context as heat_context
from heat.engine import check_resource
from heat.engine import node_data
from heat.engine import resource
from heat.engine import stack as parser
from heat.engine import sync_point
from heat.rpc import worker_client
from oslo_config import cfg
from oslo_utils import uuidutils

from heat_plugins import foreign
from heat_plugins import metrics
from heat_plugins.engine import process
from heat_plugins.engine.database import resources

LOG = foreign.logger(__name__)

#: Intervals between two scans for which a stack must have stood still.
STILL = 2

#: The same, until a node that no engine has started is sent again: its
#: message may wait in the queue of a busy cloud. A traversal that its engine
#: has not begun may be that of a slow engine.
UNSTARTED = 10

# Deletions that this process begins at a time.
_PLACES = process.Places(16, 4)

cfg.CONF.import_opt('enable_stack_abandon', 'heat.common.config')

# An engine's messages say of an adoption what to adopt, and of other actions
# what the database does not say either.
_ACTIONS = ('CREATE', 'UPDATE', 'ROLLBACK', 'RESTORE')

_Node: TypeAlias = parser.ConvergenceNode


class Traversals:
    """Scans for stacks that stand still, and remembers since when."""

    def __init__(self) -> None:
        self._since: dict[resources.Idle, float] = {}

    def look(self) -> list[str]:
        """Scan once; return the IDs of the stacks that were continued."""
        now, interval = time.monotonic(), cfg.CONF.heat_plugins.rescue_interval
        idle = resources.idle(heat_context.get_admin_context(), actions())
        self._since = {each: self._since.get(each, now) for each in idle}
        return [
            each.stack_id
            for each, since in self._since.items()
            if now - since > STILL * interval
            and self._try(each, has_waited=now - since > UNSTARTED * interval)
        ]

    @staticmethod
    def _try(stalled: resources.Idle, *, has_waited: bool) -> bool:
        """Continue a stack, or leave it to the next scan."""
        try:
            return continue_stack(stalled, has_waited=has_waited)
        except Exception as exc:
            LOG.warning(
                'Cannot continue stack %(stack)s, which an engine that died '
                'left in progress; retrying: %(error)s',
                {
                    'stack': stalled.stack_id,
                    'error': foreign.brief(exc),
                },
            )
            return False


def actions() -> tuple[str, ...]:
    """Return the actions of stacks that a scan may continue."""
    # Where stacks may be abandoned, the message of a DELETE says whether the
    # resources of a stack must stay.
    may_abandon = cfg.CONF.enable_stack_abandon
    return _ACTIONS if may_abandon else (*_ACTIONS, 'DELETE')


def lost(
    graph: abc.Mapping[_Node, abc.Iterable[_Node]],
    done: abc.Mapping[resources.PointKey, abc.Set[_Node]],
    stack_id: str,
) -> list[_Node]:
    """Return the nodes that are due or done, and that others wait for.

    :param graph: for each node, the nodes before it.
    :param done: for each sync point, the nodes before it that have told it.
    """
    after: dict[_Node, set[resources.PointKey]] = {}
    for node, before in graph.items():
        for each in before:
            after.setdefault(each, set()).add(_key(node))
    return [
        node
        for node, before in graph.items()
        # Those of snapshots are not for resources.
        if getattr(node, 'node_type', 'resource') == 'resource'
        and set(before) <= done.get(_key(node), set())
        and any(
            node not in done[key]
            for key in after.get(node, {(stack_id, True)})
            if key in done
        )
    ]


def _key(node: _Node) -> resources.PointKey:
    """Return what identifies a node of Heat's graph in its table."""
    return str(node.rsrc_id), node.is_update


def _told(data: Any) -> set[_Node]:
    """Return the nodes before a sync point that are done."""
    return {_Node(*each) for each in sync_point.deserialize_input_data(data)}


def continue_stack(stalled: resources.Idle, *, has_waited: bool) -> bool:
    """Continue a stack; False if there is nothing to do, or others do it."""
    context = heat_context.get_admin_context()
    stack = resources.load_stack(stalled.stack_id)
    if stack.current_traversal != stalled.traversal_id:
        return False
    if not stalled.has_begun:
        return has_waited and begin_deletion(stack)
    points = resources.points(context, stalled)
    rows = resources.nodes(context, stack.id)
    nodes = lost(
        stack.convergence_dependencies.graph(),
        {key: _told(data) for key, data in points.items()},
        stack.id,
    )
    done: list[tuple[_Node, int]] = []
    due: list[tuple[_Node, int]] = []
    for node in nodes:
        # Its resource, or the one that replaces it.
        number = next(
            (
                int(row.id)
                for row in rows.values()
                if node.is_update
                and row.replaces == node.rsrc_id
                and row.template_id == stack.t.id
                and row.action != 'DELETE'
            ),
            int(node.rsrc_id),
        )
        row = rows.get(number)
        is_done = (
            # To clean up was to delete it. Heat removes the row with the last.
            not node.is_update
            if row is None
            or (row.action, row.status) == ('DELETE', 'COMPLETE')
            else row.status == 'COMPLETE'
            and row.action != 'INIT'
            and row.template_id == stack.t.id
        )
        (done if is_done else due).append((node, number))
    own = points.get((stack.id, True))
    roots = set(stack.convergence_dependencies.roots())
    is_complete = own is not None and roots <= _told(own)
    can_go_on = is_complete or done or (due and has_waited)
    if not can_go_on or not resources.claim(context, stalled):
        return False
    _note(stack)
    if is_complete:
        stack.mark_complete()
    for node, number in done:
        _propagate(stack, node, number if number in rows else None, points)
    for node, number in due if has_waited else ():
        worker_client.WorkerClient().check_resource(
            stack.context,
            number,
            stalled.traversal_id,
            points[_key(node)],
            node.is_update,
            None,
            converge=stack.converge,
        )
    return True


def begin_deletion(stack: parser.Stack) -> bool:
    """Begin a deletion that an engine has stored; False: others do.

    In another traversal, so that one process does, and an engine that was only
    slow does nothing more. A creation or an update that a user cancels looks
    the same for a moment. Up to Heat 26 an engine deletes all snapshots before
    it begins, for as long as Cinder needs.
    """
    if (
        stack.action != 'DELETE'
        or resources.has_snapshots(stack.context, stack.id)
        or not _PLACES.take(stack.id, stack.context.project_id)
    ):
        return False
    former = stack.current_traversal
    stack.current_traversal = uuidutils.generate_uuid()
    if stack.store(exp_trvsl=former) is None:
        _PLACES.leave(stack.id)
        return False
    _note(stack)
    sync_point.delete_all(stack.context, stack.id, former)
    # Heat may pause between the resources.
    _PLACES.run(
        stack.id, f'{SCAN.name}-begin', stack._converge_create_or_update
    )
    return True


def _note(stack: parser.Stack) -> None:
    """Warn that a stack is continued, and count it."""
    LOG.warning(
        'Stack %(name)s, %(id)s, stands still in %(action)s, and no engine '
        'works on it; continuing it',
        {'name': stack.name, 'id': stack.id, 'action': stack.action},
    )
    metrics.count(metrics.RESCUED, 'stack')


def _propagate(
    stack: parser.Stack,
    node: _Node,
    number: int | None,
    points: abc.Mapping[resources.PointKey, Any],
) -> None:
    """Tell the nodes that wait for a node that it is done.

    :param number: its resource; None if that is deleted.
    """
    traversal = stack.current_traversal
    client = worker_client.WorkerClient()
    if number is not None:
        data = sync_point.deserialize_input_data(points[_key(node)])
        # Its references are weak: what it refers to must be kept.
        checked, *scope = resource.Resource.load(
            stack.context,
            number,
            traversal,
            node.is_update,
            node_data.load_resources_data(data if node.is_update else {}),
        )
        check_resource.CheckResource(
            None, client, None, None, data
        )._initiate_propagate_resource(
            stack.context,
            number,
            traversal,
            node.is_update,
            checked,
            scope[-1],
        )
        return
    dependencies = stack.convergence_dependencies
    graph = dependencies.graph()
    for waiting in dependencies.required_by(node):
        check_resource.propagate_check_resource(
            stack.context,
            client,
            waiting.rsrc_id,
            traversal,
            set(graph[waiting]),
            node,
            None if waiting.rsrc_id == node.rsrc_id else node.rsrc_id,
            waiting.is_update,
            None,
        )
    check_resource.check_stack_complete(
        stack.context,
        stack,
        traversal,
        node.rsrc_id,
        dependencies,
        node.is_update,
    )


#: Starts with each engine.
SCAN = process.Scan(
    name='heat-plugins-traversals',
    wanted='stacks that stand still',
    begin=lambda: Traversals().look,
)
