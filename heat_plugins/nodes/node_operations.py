# SPDX-License-Identifier: Apache-2.0
"""The operations on nodes, in terms of JSON.

Commands and Mistral's actions call them, so both have one result. Each method
takes and returns values of JSON, and raises `heat_plugins.errors.Error`.

A `NodeJob` does what takes long: a row of verbs of Ironic, one after another,
for all nodes that can take the next one. A node that fails does not hold up
the others.
"""

from collections import abc
import dataclasses
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.nodes import moves
from heat_plugins.nodes import moving
from heat_plugins.nodes import node
from heat_plugins.nodes import node_reading
from heat_plugins.nodes import registering
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores

Report = dict[str, Any]
Reports = list[Report]

_LISTED = (
    'driver',
    'provision_state',
    'power_state',
    'maintenance',
    'instance_uuid',
    'resource_class',
    'last_error',
)


class NodeOperations:
    """The operations on the nodes that a project may see.

    :param baremetal: the client for Ironic.
    :param store: the project's object store.
    """

    def __init__(
        self,
        baremetal: node.Baremetal,
        store: stores.ObjectStore,
        *,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._baremetal = baremetal
        self._store = store
        self._pool = pools.Pool()
        self._registrar = registering.Registrar(baremetal, pool=self._pool)
        self._clock = clock

    def list(self) -> Reports:
        """List the nodes that the project may see."""
        return [
            {
                'uuid': each.uuid,
                'name': each.name,
                **{field: each.fields.get(field) for field in _LISTED},
            }
            for each in sorted(
                self._baremetal.nodes(),
                key=lambda each: (each.name, each.uuid),
            )
        ]

    def register(
        self, nodes: Any, remove: bool = False, dry_run: bool = False
    ) -> Report:
        """Register the nodes of a file with Ironic.

        :param nodes: the content of the file; or a reference to it, as Mistral
            keeps and shows its input, passwords included.
        :param remove: whether to delete the unused nodes that it does not
            name.
        :param dry_run: whether to show the changes without making them.
        :returns: a map: nodes, each with its action; success; and the uuids
            of those that are enrolled, or manageable, now.
        """
        try:
            return self.registered(nodes, remove=remove, dry_run=dry_run)
        finally:
            self.forget(nodes)

    def registered(
        self, nodes: Any, *, remove: bool = False, dry_run: bool = False
    ) -> Report:
        """Register nodes, and keep the reference for a repetition."""
        given = parcels.received(self._store, nodes)
        results = self._registrar.register(
            node_reading.read(given), remove=remove, dry_run=dry_run
        )
        known = (
            registering.NodeAction.CREATED,
            registering.NodeAction.UPDATED,
            registering.NodeAction.UNCHANGED,
        )
        states = {
            result.uuid: result.state
            for result in results
            if result.action in known
        }
        manage, provide = moves.MANAGE, moves.PROVIDE
        return {
            'nodes': [
                dataclasses.asdict(result) | {'success': result.success}
                for result in results
            ],
            'success': all(result.success for result in results),
            # A new node is enrolled.
            'enrolled': [
                uuid
                for uuid, state in states.items()
                if state in {'', *manage.ready, *manage.moving}
            ],
            'manageable': [
                uuid
                for uuid, state in states.items()
                if state in provide.ready | provide.moving
            ],
        }

    def forget(self, nodes: Any) -> None:
        """Delete the object of a reference."""
        parcels.forget(self._store, nodes)

    def begin(
        self,
        verb: str,
        nodes: abc.Collection[str] | None = None,
        concurrency: int = moving.CONCURRENCY,
        attempts: int = moving.ATTEMPTS,
        timeout: float = moving.TIMEOUT,
    ) -> Report:
        """Select the nodes for a transition, and send none yet.

        :param verb: manage, inspect or provide.
        :param nodes: a list of uuids or names; null for all that can be sent.
        :param concurrency: the most nodes in transition at a time.
        :param attempts: how often a node is sent, if it fails.
        :param timeout: seconds that a node may take, all in all.
        :returns: as nodes.step.
        """
        options = {
            'concurrency': concurrency,
            'attempts': attempts,
            'timeout': timeout,
        }
        return moving.report(self.gather(verb, nodes, options))

    def gather(
        self,
        verb: str,
        nodes: abc.Collection[str] | None,
        options: abc.Mapping[str, Any],
    ) -> moving.NodeMove:
        """Return a move of nodes, none of which was sent."""
        if verb not in moves.BY_VERB:
            raise errors.Invalid(
                f'{verb} must be one of {", ".join(moves.BY_VERB)}'
            )
        for name, value in options.items():
            if value < 1:
                raise errors.Invalid(f'{name} must be 1 or more')
        wanted = moves.BY_VERB[verb].ready | moves.BY_VERB[verb].moving
        members = tuple(
            moving.NodeMember(uuid=each.uuid, name=each.name)
            for each in self._named(nodes)
            if nodes is not None or each.state in wanted
        )
        return moving.NodeMove(verb=verb, members=members, **options)

    def advance(self, move: moving.NodeMove) -> moving.NodeMove:
        """Take a step of a move."""
        return moving.advance(self._baremetal, move, self._clock())

    def step(self, convoy: abc.Mapping[str, Any]) -> Report:
        """Judge the nodes in transition, and send the next ones.

        :param convoy: as nodes.begin or the last nodes.step has returned it.
        :returns: a map: convoy; done, the uuids of those that have arrived;
            next_look, in seconds, 0 at the end; success, null before that; and
            the reason.
        """
        return moving.report(
            self.advance(stored.read(moving.NodeMove, convoy))
        )

    def abort(self, nodes: abc.Collection[str] | None = None) -> Report:
        """Abort inspections, those of other callers as well.

        :param nodes: a list of uuids or names; null for all.
        :returns: a map: nodes, the uuids of those that were asked to stop; and
            moving, of those that cannot be stopped just now.
        """
        stopped, moved = [], []
        for each in self._named(nodes):
            if each.state in moves.INSPECT.stoppable:
                self._baremetal.set_state(each.uuid, 'abort')
                stopped.append(each.uuid)
            elif each.state in moves.INSPECT.moving:
                moved.append(each.uuid)
        return {'nodes': stopped, 'moving': moved}

    def summaries(self, nodes: abc.Collection[str]) -> Reports:
        """Summarize the last inspections of nodes.

        :param nodes: a list of uuids or names.
        """
        return self._pool.each(self._summarize, self._named(nodes))

    def inventory(self, node: str) -> Report:
        """Return the whole inventory of the last inspection of a node."""
        (named,) = self._named([node])
        return dict(self._baremetal.inventory(named.uuid))

    def work(
        self,
        kind: str,
        given: abc.Mapping[str, Any],
        state: abc.Mapping[str, Any] | None = None,
        outcome: abc.Mapping[str, Any] | None = None,
    ) -> Report:
        """Take a step of the work of a workflow on nodes.

        :param kind: register, introspect or move, as the workflows.
        :param given: the input of the workflow.
        :param state: as the last step has returned it; null for the first.
        :param outcome: null.
        :returns: a map: state; next_look, the seconds to wait; success, null
            until the end; and the reason.
        """
        job, begun = begin(self, kind, given)
        return jobs.advance(job, begun, state, outcome)

    def _summarize(self, named: node.Node) -> Report:
        """Return what introspection has found out about a node."""
        try:
            inspected = self._baremetal.inventory(named.uuid)
        except errors.NotFound:
            inspected = {}
        data = inspected.get('inventory') or {}
        cpu, vendor = data.get('cpu') or {}, data.get('system_vendor') or {}
        memory = data.get('memory') or {}
        return {
            'uuid': named.uuid,
            'name': named.name,
            'cpus': cpu.get('count'),
            'architecture': cpu.get('architecture') or '',
            'memory_mb': memory.get('physical_mb'),
            'disks_gb': [
                disk['size'] >> 30
                for disk in data.get('disks') or ()
                if disk.get('size')
            ],
            'macs': [
                card['mac_address']
                for card in data.get('interfaces') or ()
                if card.get('mac_address')
            ],
            'product': vendor.get('product_name') or '',
        }

    def _named(
        self, names: abc.Collection[str] | None
    ) -> abc.Sequence[node.Node]:
        """Return nodes by names or IDs; all if none are named."""
        nodes = self._baremetal.states()
        if names is None:
            return nodes
        known = {each.name: each for each in nodes if each.name}
        known |= {each.uuid: each for each in nodes}
        lacking = [name for name in names if name not in known]
        if lacking:
            raise errors.NotFound(f'There is no node {", ".join(lacking)}')
        chosen = {known[name].uuid: known[name] for name in names}
        return [*chosen.values()]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeWork:
    """The state of work on nodes.

    :ivar verbs: of the moves, in their order.
    :ivar moves: those that have started.
    :ivar chosen: uuids or names for the first move; None for all nodes that
        can take it.
    :ivar options: of each move; see `NodeOperations.begin`.
    :ivar ready: uuids that skip the first move, and take the second one.
    :ivar nodes: the result of each entry of a file.
    :ivar inspected: the summaries of inspections.
    :ivar reason: of failed registrations.
    """

    verbs: tuple[str, ...] = ()
    moves: tuple[moving.NodeMove, ...] = ()
    chosen: tuple[str, ...] | None = None
    options: abc.Mapping[str, float] = dataclasses.field(default_factory=dict)
    ready: tuple[str, ...] = ()
    nodes: tuple[abc.Mapping[str, Any], ...] = ()
    inspected: tuple[abc.Mapping[str, Any], ...] = ()
    reason: str = ''


Step = jobs.JobStep[NodeWork]


class NodeJob:
    """Work on nodes; a `jobs.Job`.

    :param file: see `NodeOperations.register`; None to register nothing.
    """

    def __init__(
        self,
        core: NodeOperations,
        file: Any = None,
        *,
        remove: bool = False,
        dry_run: bool = False,
    ) -> None:
        self._core = core
        self._file = file
        self._remove, self._dry_run = remove, dry_run

    def step(self, state: NodeWork, outcome: jobs.CallOutcome | None) -> Step:
        """Take a step; see `jobs.Job`."""
        if self._file is not None and not state.nodes:
            try:
                report = self._core.registered(
                    self._file, remove=self._remove, dry_run=self._dry_run
                )
            except errors.Unavailable:
                raise
            except errors.Error:
                self._core.forget(self._file)
                raise
            registered = report['success']
            state = dataclasses.replace(
                state,
                nodes=tuple(report['nodes']),
                chosen=tuple(report['enrolled']),
                ready=tuple(report['manageable']),
                reason='' if registered else 'Some nodes are not registered',
            )
            return jobs.JobStep(state=state)
        if not state.moves or state.moves[-1].ended:
            return self._begin_next(state)
        last = self._core.advance(state.moves[-1])
        return jobs.JobStep(
            state=dataclasses.replace(state, moves=(*state.moves[:-1], last)),
            next_look=0 if last.ended else moving.INTERVAL,
        )

    def output(self, state: NodeWork) -> Report:
        """Return the nodes of the file or of the first move, and all moves."""
        members = [dataclasses.asdict(move)['members'] for move in state.moves]
        return {
            'nodes': [*state.nodes] or next(iter(members), []),
            'moved': [member for moved in members for member in moved],
            'found': [*state.inspected],
            'done': [*state.moves[-1].done] if state.moves else [],
        }

    def _begin_next(self, state: NodeWork) -> Step:
        """Select the nodes of the next move; without one, end the work."""
        # The file has passwords. No step reads it again.
        self._core.forget(self._file)
        chosen = state.chosen
        if state.moves:
            last = state.moves[-1]
            chosen = last.done
            if len(state.moves) == 1:
                chosen += state.ready
            if last.verb == 'inspect':
                summaries = tuple(self._core.summaries(last.done))
                state = dataclasses.replace(state, inspected=summaries)
        if len(state.moves) < len(state.verbs):
            verb = state.verbs[len(state.moves)]
            move = self._core.gather(verb, chosen, state.options)
            return jobs.JobStep(
                state=dataclasses.replace(state, moves=(*state.moves, move))
            )
        reasons = [state.reason, *(move.reason for move in state.moves)]
        reason = '; '.join(filter(None, reasons))
        return jobs.JobStep(state=state, success=not reason, reason=reason)


def begin(
    core: NodeOperations,
    kind: str,
    given: abc.Mapping[str, Any],
) -> tuple[NodeJob, NodeWork]:
    """Return the job of a workflow on nodes, and its first state.

    :param kind: register, introspect or move, as the workflows.
    :param given: the input of the workflow.
    """
    given = dict(given)
    provide = ('provide',) if given.pop('provide', False) else ()
    nodes = given.pop('nodes', None)
    if kind == 'register':
        remove = given.pop('remove', False)
        dry_run = given.pop('dry_run', False)
        manage = given.pop('manage', True) and not dry_run
        verbs = ('manage', *provide) if manage else ()
        job = NodeJob(core, nodes or [], remove=remove, dry_run=dry_run)
        return job, NodeWork(verbs=verbs, options=given)
    introspects = kind == 'introspect'
    return NodeJob(core), NodeWork(
        verbs=('inspect', *provide) if introspects else (given.pop('verb'),),
        chosen=None if nodes is None else tuple(nodes),
        options=given,
    )
