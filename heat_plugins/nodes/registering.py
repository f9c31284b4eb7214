# SPDX-License-Identifier: Apache-2.0
"""Registering the nodes of a file with Ironic.

Each node is registered by itself, and a failure is reported for its node, in
Ironic's words. A repeated registration finishes an interrupted one.
"""

from collections import abc
import dataclasses
import enum
import functools
from typing import Any

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.nodes import matching
from heat_plugins.nodes import moves
from heat_plugins.nodes import node

_ATTEMPTS = 6


class NodeAction(enum.StrEnum):
    """The action on a node, done or planned."""

    CREATED = 'created'
    UPDATED = 'updated'
    UNCHANGED = 'unchanged'
    REMOVED = 'removed'
    #: It is not in the file, but in use.
    KEPT = 'kept'
    FAILED = 'failed'


#: The actions that change something in Ironic.
CHANGES = frozenset(
    {NodeAction.CREATED, NodeAction.UPDATED, NodeAction.REMOVED}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """The result for one node.

    :ivar uuid: '' where the entry identifies no node.
    :ivar state: its former provision state; '' if there was no node.
    :ivar changes: a line each; passwords are hidden.
    :ivar reason: of a failure, or for keeping the node.
    """

    uuid: str
    name: str
    action: NodeAction
    state: str = ''
    changes: tuple[str, ...] = ()
    reason: str = ''
    warnings: tuple[str, ...] = ()

    @property
    def success(self) -> bool:
        return self.action is not NodeAction.FAILED


# The result for an entry of the file, and its change; None where it fails.
_Task = tuple[Result, matching.NodeChange | None]


class Registrar:
    """Registers nodes.

    :param wait: seconds before the second attempt; then twice as long.
    """

    def __init__(
        self,
        baremetal: node.Baremetal,
        *,
        pool: pools.Pool | None = None,
        wait: float = 0.5,
    ) -> None:
        self._baremetal = baremetal
        self._pool = pool or pools.Pool()
        # A node may be locked, or Ironic out of order.
        self._insist = functools.partial(
            retrying.insist,
            on=(errors.NodeLocked, errors.Unavailable),
            attempts=_ATTEMPTS,
            wait=wait,
        )

    def register(
        self,
        entries: abc.Sequence[node.Wanted | node.Flaw],
        *,
        remove: bool = False,
        dry_run: bool = False,
    ) -> list[Result]:
        """Register nodes with Ironic; return the result for each.

        :param remove: whether to delete the unused nodes that are not
            among them. None is deleted while an entry is invalid: it may mean
            that node.
        :param dry_run: whether to return the changes without making them.
        """
        nodes = self._insist(self._baremetal.nodes)
        matcher = matching.Matcher(nodes, self._insist(self._baremetal.ports))
        owners: dict[tuple[str, object], node.Wanted] = {}
        tasks = [_task(entry, matcher, owners) for entry in entries]
        results = [result for result, _ in tasks]
        if not dry_run:
            results = self._pool.each(self._do, tasks)
        if remove:
            broken = any(not result.success for result in results)
            named = {result.uuid for result, _ in tasks}
            results += self._pool.each(
                lambda spare: self._remove(spare, broken, dry_run),
                [each for each in nodes if each.uuid not in named],
            )
        return results

    def _do(self, task: _Task) -> Result:
        """Make the change for an entry in Ironic."""
        result, change = task
        if change is None:
            return result
        try:
            if change.create is not None:
                self._create(change.create)
            if change.patch:
                self._insist(
                    lambda: self._baremetal.update_node(
                        change.uuid,
                        change.patch,
                        reset_interfaces=change.new_driver,
                    )
                )
            for port in change.ports:
                self._create_port(change.uuid, port)
        except errors.Error as exc:
            # Ironic quotes the values that it refuses.
            reason = masking.Mask(change.secrets).text(str(exc))
            return dataclasses.replace(
                result, action=NodeAction.FAILED, reason=reason
            )
        return result

    def _create(self, fields: abc.Mapping[str, Any]) -> None:
        """Create a node in Ironic, also if the answer gets lost."""
        try:
            self._insist(lambda: self._baremetal.create_node(fields))
        except errors.Conflict:
            # A former attempt may have succeeded, and its answer got lost.
            states = self._insist(self._baremetal.states)
            if fields['uuid'] not in {each.uuid for each in states}:
                raise

    def _create_port(self, uuid: str, fields: abc.Mapping[str, Any]) -> None:
        """Create a port of a node, also if the answer gets lost."""
        try:
            self._insist(lambda: self._baremetal.create_port(uuid, fields))
        except errors.Conflict:
            ports = self._insist(self._baremetal.ports)
            if ports.get(fields['address']) != uuid:
                raise

    def _remove(
        self, present: node.Node, broken: bool, dry_run: bool
    ) -> Result:
        """Delete a node that the file does not name, unless it is in use."""
        result = Result(
            uuid=present.uuid,
            name=present.name,
            action=NodeAction.REMOVED,
            state=present.state,
        )
        reason = 'an invalid entry may mean this node' if broken else ''
        if present.state not in moves.IDLE:
            reason = f'it is {present.state}'
        if instance := present.text('instance_uuid'):
            reason = f'instance {instance} is on it'
        if reason:
            return dataclasses.replace(
                result, action=NodeAction.KEPT, reason=reason
            )
        try:
            if not dry_run:
                self._insist(lambda: self._baremetal.delete_node(present.uuid))
        except errors.NotFound:
            return result
        except errors.Error as exc:
            return dataclasses.replace(
                result, action=NodeAction.FAILED, reason=str(exc)
            )
        return result


def _task(
    entry: node.Wanted | node.Flaw,
    matcher: matching.Matcher,
    owners: dict[tuple[str, object], node.Wanted],
) -> _Task:
    """Return the result that is planned for an entry, and its change.

    :param owners: former entries, by their MAC addresses, names and BMCs.
    """
    failed = Result(uuid='', name=entry.label, action=NodeAction.FAILED)
    if isinstance(entry, node.Flaw):
        return dataclasses.replace(failed, reason=entry.reason), None
    failed = dataclasses.replace(failed, warnings=entry.warnings)
    try:
        change = matcher.change(entry)
    except errors.Refused as exc:
        return dataclasses.replace(failed, reason=str(exc)), None
    marks: list[tuple[str, object]] = [
        *(('MAC address', mac) for mac in entry.macs),
        ('name', entry.name),
        ('BMC', entry.place),
        ('node in Ironic', change.uuid),
    ]
    for mark in marks:
        first = owners.setdefault(mark, entry) if mark[1] else entry
        if first is not entry:
            reason = f'Its {mark[0]} is that of {first.label}'
            return dataclasses.replace(failed, reason=reason), None
    present = change.present or node.Node(uuid=change.uuid)
    action = NodeAction.UPDATED if change.shown else NodeAction.UNCHANGED
    result = Result(
        uuid=change.uuid,
        name=entry.name or present.name,
        action=action if change.present else NodeAction.CREATED,
        state=present.state,
        changes=change.shown,
        warnings=entry.warnings,
    )
    return result, change
