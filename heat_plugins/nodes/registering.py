# SPDX-License-Identifier: Apache-2.0
"""Registering: Ironic gets the nodes of a file.

Each node is worked on by itself, and what goes wrong with one is told of
that one. All of it can be done again, and finishes what was interrupted.
"""

from collections import abc
import dataclasses
import enum
import functools

from heat_plugins import errors
from heat_plugins import masking
from heat_plugins import pools
from heat_plugins import retrying
from heat_plugins.nodes import matching
from heat_plugins.nodes import moves
from heat_plugins.nodes import node
from heat_plugins.nodes import node_protocols

_ATTEMPTS = 6


class NodeAction(enum.StrEnum):
    """What was done with a node, or would be."""

    CREATED = 'created'
    UPDATED = 'updated'
    UNCHANGED = 'unchanged'
    REMOVED = 'removed'
    #: It is not in the file, and has to stay.
    KEPT = 'kept'
    FAILED = 'failed'


#: Those that change something in Ironic.
CHANGES = frozenset(
    {NodeAction.CREATED, NodeAction.UPDATED, NodeAction.REMOVED}
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Result:
    """What has become of one node.

    :ivar uuid: '' where the entry's meaning is unknown.
    :ivar state: its provision state, before; '' if there was no node.
    :ivar changes: what differs, a line each; passwords are hidden.
    :ivar reason: why it has failed, or is kept.
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

    @property
    def registered(self) -> bool:
        return self.action in (
            NodeAction.CREATED,
            NodeAction.UPDATED,
            NodeAction.UNCHANGED,
        )


class Registrar:
    """Registers nodes.

    :param wait: seconds before the second attempt; then twice as long.
    """

    def __init__(
        self,
        baremetal: node_protocols.Baremetal,
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
        """Let Ironic have these nodes; return what has become of each.

        :param remove: whether to delete the unused nodes that are not
            among them. None goes while an entry is wrong: it may mean one.
        :param dry_run: whether only to say what would be done; an entry has
            a warning where the enabled drivers are not known.
        """
        nodes = self._insist(self._baremetal.nodes)
        ports = self._insist(self._baremetal.ports)
        work = _Work(matching.Matcher(nodes, ports), nodes, self._drivers())
        for entry in entries:
            work.add(entry)

        def register_entry(task: _Task) -> Result:
            return work.tried(task) if dry_run else self._do(task)

        results = self._pool.each(register_entry, work.tasks)
        if remove:
            unlisted = [each for each in nodes if each.uuid not in work.means]
            broken = any(not result.success for result in results)
            results += self._pool.each(
                lambda unlisted_node: self._remove(
                    unlisted_node, broken, dry_run
                ),
                unlisted,
            )
        return results

    def _drivers(self) -> frozenset[str] | None:
        """Return the enabled drivers; None where policy forbids to list them.

        Ironic itself refuses a driver that is not enabled.
        """
        try:
            return self._insist(self._baremetal.drivers)
        except errors.Denied:
            return None

    def _do(self, task: '_Task') -> Result:
        if task.change is None:
            return task.result
        try:
            self._apply(task.change)
        except errors.Error as exc:
            # Ironic quotes what it refuses.
            reason = masking.Mask(task.wanted.secrets).text(str(exc))
            return dataclasses.replace(
                task.result, action=NodeAction.FAILED, reason=reason
            )
        return task.result

    def _apply(self, change: matching.NodeChange) -> None:
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

    def _create(self, fields: abc.Mapping[str, object]) -> None:
        try:
            self._insist(lambda: self._baremetal.create_node(fields))
        except errors.Conflict:
            # It may have come through, and its answer not.
            states = self._insist(self._baremetal.states)
            if fields['uuid'] not in {each.uuid for each in states}:
                raise

    def _create_port(
        self, uuid: str, fields: abc.Mapping[str, object]
    ) -> None:
        try:
            self._insist(lambda: self._baremetal.create_port(uuid, fields))
        except errors.Conflict:
            ports = self._insist(self._baremetal.ports)
            mine = node.Port(node=uuid, address=str(fields['address']))
            if mine not in ports:
                raise

    def _remove(
        self, present: node.Node, broken: bool, dry_run: bool
    ) -> Result:
        result = Result(
            uuid=present.uuid,
            name=present.name,
            action=NodeAction.REMOVED,
            state=present.state,
        )
        reason = _in_use(present)
        if broken:
            reason = reason or 'an invalid entry may mean this node'
        if reason:
            return dataclasses.replace(
                result, action=NodeAction.KEPT, reason=reason
            )
        if dry_run:
            return result
        try:
            self._insist(lambda: self._baremetal.delete_node(present.uuid))
        except errors.NotFound:
            return result
        except errors.Error as exc:
            return dataclasses.replace(
                result, action=NodeAction.FAILED, reason=str(exc)
            )
        return result


def _in_use(present: node.Node) -> str:
    """Say why a node must not be deleted; '' if it may."""
    if instance := present.text('instance_uuid'):
        return f'instance {instance} is on it'
    if present.state not in moves.IDLE:
        return f'it is {present.state}'
    return ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Task:
    """An entry of the file, and the changes for it."""

    wanted: node.Wanted
    result: Result
    change: matching.NodeChange | None = None


class _Work:
    """The changes of all entries.

    It refuses what Ironic would refuse, so that a dry run tells, too.

    :param drivers: the enabled drivers; None if they are not known.
    :ivar means: the nodes of Ironic's that entries mean.
    """

    def __init__(
        self,
        matcher: matching.Matcher,
        nodes: abc.Iterable[node.Node],
        drivers: frozenset[str] | None,
    ) -> None:
        self._matcher = matcher
        self._names = {each.name: each.uuid for each in nodes if each.name}
        self._drivers = drivers
        self.tasks: list[_Task] = []
        self.means: dict[str, str] = {}

    def add(self, entry: node.Wanted | node.Flaw) -> None:
        if isinstance(entry, node.Flaw):
            wanted = node.Wanted(label=entry.label, driver='')
            self._refuse(wanted, entry.reason)
            return
        try:
            match = self._matcher.match(entry)
        except errors.Refused as exc:
            self._refuse(entry, str(exc))
            return
        if match.uuid in self.means:
            first = self.means[match.uuid]
            self._refuse(entry, f'It matches the same node as {first}')
            return
        self.means[match.uuid] = entry.label
        reason = self._refusal(entry, match)
        if reason:
            self._refuse(entry, reason)
            return
        change = matching.changes(entry, match)
        action = NodeAction.UPDATED if change.shown else NodeAction.UNCHANGED
        if match.present is None:
            action = NodeAction.CREATED
        self.tasks.append(
            _Task(
                wanted=entry,
                change=change,
                result=Result(
                    uuid=match.uuid,
                    name=entry.name or (match.present or _NOBODY).name,
                    action=action,
                    state=(match.present or _NOBODY).state,
                    changes=change.shown,
                    warnings=entry.warnings,
                ),
            )
        )

    def tried(self, task: _Task) -> Result:
        """Return what a dry run says of an entry."""
        change = task.change
        if change is None or self._drivers is not None:
            return task.result
        if change.create is None and not change.new_driver:
            return task.result
        warning = (
            f'Cannot check whether Ironic has enabled {task.wanted.driver}: '
            'only a token with system scope may list drivers'
        )
        return dataclasses.replace(
            task.result, warnings=(*task.result.warnings, warning)
        )

    def _refusal(self, entry: node.Wanted, match: matching.Match) -> str:
        """Return why Ironic would refuse an entry; '' if it would not."""
        owner = self._names.get(entry.name or '', match.uuid)
        if owner != match.uuid:
            return (
                f'Node {owner} already has the name {entry.name}; give this '
                'entry another name'
            )
        present = match.present.text('driver') if match.present else None
        if self._drivers is None or entry.driver in self._drivers | {present}:
            return ''
        enabled = ', '.join(sorted(self._drivers)) or 'no driver'
        return (
            f'Ironic has not enabled the driver {entry.driver}, but {enabled}'
        )

    def _refuse(self, wanted: node.Wanted, reason: str) -> None:
        self.tasks.append(
            _Task(
                wanted=wanted,
                result=Result(
                    uuid='',
                    name=wanted.label,
                    action=NodeAction.FAILED,
                    reason=reason,
                    warnings=wanted.warnings,
                ),
            )
        )


_NOBODY = node.Node(uuid='')
