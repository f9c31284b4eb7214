# SPDX-License-Identifier: Apache-2.0
"""Everything that can be done with nodes, in terms of JSON.

Commands call this directly, or let Mistral's actions call it; so both ways
have one result. Each method takes and returns what JSON can say, and raises
`heat_plugins.errors.Error`.
"""

from collections import abc
import dataclasses
import time
from typing import Any

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.nodes import convoy as convoys
from heat_plugins.nodes import moves
from heat_plugins.nodes import node
from heat_plugins.nodes import node_protocols
from heat_plugins.nodes import node_reading
from heat_plugins.nodes import registering
from heat_plugins.objectstore import parcels
from heat_plugins.objectstore import stores


@dataclasses.dataclass(frozen=True, kw_only=True)
class Summary:
    """A machine.

    :ivar disks_gb: the sizes of its disks, in gibibytes.
    :ivar macs: the addresses of its network cards.
    """

    cpus: int | None = None
    architecture: str = ''
    memory_mb: int | None = None
    disks_gb: tuple[int, ...] = ()
    macs: tuple[str, ...] = ()
    product: str = ''


def summarized(inspected: abc.Mapping[str, Any]) -> Summary:
    """Return the summary of what Ironic has of an inspection.

    What is missing, or is not what Ironic's agent sends, is left out.
    """
    data = _map(inspected.get('inventory'))
    cpu, memory = _map(data.get('cpu')), _map(data.get('memory'))
    return Summary(
        cpus=_number(cpu.get('count')),
        architecture=str(cpu.get('architecture') or ''),
        memory_mb=_number(memory.get('physical_mb')),
        disks_gb=tuple(
            size >> 30
            for disk in _maps(data.get('disks'))
            if (size := _number(disk.get('size'))) is not None
        ),
        macs=tuple(
            str(card['mac_address'])
            for card in _maps(data.get('interfaces'))
            if card.get('mac_address')
        ),
        product=str(_map(data.get('system_vendor')).get('product_name') or ''),
    )


def _map(value: Any) -> abc.Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _maps(value: Any) -> list[abc.Mapping[str, Any]]:
    entries = value if isinstance(value, list) else []
    return [entry for entry in entries if isinstance(entry, dict)]


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


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

    :param baremetal: the way to Ironic.
    :param store: the project's object store.
    :ivar escort: moves nodes.
    """

    def __init__(
        self,
        baremetal: node_protocols.Baremetal,
        store: stores.ObjectStore,
        *,
        pool: pools.Pool | None = None,
        clock: abc.Callable[[], float] = time.time,
    ) -> None:
        self._baremetal = baremetal
        self._store = store
        self._pool = pool or pools.Pool()
        self._registrar = registering.Registrar(baremetal, pool=self._pool)
        self.escort = convoys.Escort(baremetal, clock=clock)

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
        """Let Ironic have the nodes of a file.

        :param nodes: what the file holds; or a reference to it, as Mistral
            keeps the input and shows it, passwords and all.
        :param remove: whether to delete the unused nodes that it does not
            name.
        :param dry_run: whether only to say what would be done.
        :returns: a map: nodes, each with what was done; success; and the uuids
            of those that are enrolled, or manageable, now.
        """
        try:
            return self.registered(nodes, remove=remove, dry_run=dry_run)
        finally:
            self.forget(nodes)

    def registered(
        self, nodes: Any, *, remove: bool = False, dry_run: bool = False
    ) -> Report:
        """Do the same, and leave the reference for a repetition."""
        given = parcels.received(self._store, nodes)
        results = self._registrar.register(
            node_reading.read(given), remove=remove, dry_run=dry_run
        )
        return {
            'nodes': [
                dataclasses.asdict(result) | {'success': result.success}
                for result in results
            ],
            'success': all(result.success for result in results),
            'enrolled': _in(results, {'', *moves.MANAGE.ready}, moves.MANAGE),
            'manageable': _in(results, moves.PROVIDE.ready, moves.PROVIDE),
        }

    def forget(self, nodes: Any) -> None:
        """Delete what a reference leads to."""
        parcels.forget(self._store, nodes)

    def begin(
        self,
        verb: str,
        nodes: abc.Collection[str] | None = None,
        concurrency: int = convoys.CONCURRENCY,
        attempts: int = convoys.ATTEMPTS,
        timeout: float = convoys.TIMEOUT,
    ) -> Report:
        """Gather nodes for a way, and send none yet.

        :param verb: manage, inspect or provide.
        :param nodes: a list of uuids or names; null for all that can be sent.
        :param concurrency: the most nodes on their way at a time.
        :param attempts: how often a node is sent, if it fails.
        :param timeout: seconds that a node may take, all in all.
        :returns: as nodes.step.
        """
        options = {
            'concurrency': concurrency,
            'attempts': attempts,
            'timeout': timeout,
        }
        return self._report(self.gather(verb, nodes, options))

    def gather(
        self,
        verb: str,
        nodes: abc.Collection[str] | None,
        options: abc.Mapping[str, Any],
    ) -> convoys.Convoy:
        """Return the nodes of a move, none of which was sent."""
        if verb not in moves.BY_VERB:
            raise errors.Invalid(
                f'{verb} must be one of {", ".join(moves.BY_VERB)}'
            )
        for name, value in options.items():
            if value < 1:
                raise errors.Invalid(f'{name} must be 1 or more')
        return convoys.Convoy(
            verb=verb,
            members=tuple(
                convoys.NodeMember(uuid=each.uuid, name=each.name)
                for each in self._chosen(moves.BY_VERB[verb], nodes)
            ),
            **options,
        )

    def step(self, convoy: abc.Mapping[str, Any]) -> Report:
        """Judge the nodes that are on their way, and send others.

        :param convoy: what nodes.begin or the last nodes.step has returned.
        :returns: a map: convoy; done, the uuids of those that have arrived;
            next_look, in seconds, 0 at the end; success, null before that; and
            the reason.
        """
        return self._report(
            self.escort.step(stored.read(convoys.Convoy, convoy))
        )

    def abort(self, nodes: abc.Collection[str] | None = None) -> Report:
        """Abort inspections, those of other callers as well.

        :param nodes: a list of uuids or names; null for all.
        :returns: a map: nodes, the uuids of those that were asked to stop; and
            moving, of those that cannot be stopped just now.
        """
        stopped, moving = [], []
        for each in self._named(nodes):
            if each.state in moves.INSPECT.stoppable:
                self._baremetal.set_state(each.uuid, 'abort')
                stopped.append(each.uuid)
            elif each.state in moves.INSPECT.moving:
                moving.append(each.uuid)
        return {'nodes': stopped, 'moving': moving}

    def summaries(self, nodes: abc.Collection[str]) -> Reports:
        """Show what the last inspections of nodes have found, in few numbers.

        :param nodes: a list of uuids or names.
        """
        return self._pool.each(self._summary, self._named(nodes))

    def inventory(self, node: str) -> Report:
        """Return all that the last inspection of a node has found."""
        (named,) = self._named([node])
        return dict(self._baremetal.inventory(named.uuid))

    def _summary(self, named: node.Node) -> Report:
        try:
            data = self._baremetal.inventory(named.uuid)
        except errors.NotFound:
            data = {}
        return {
            'uuid': named.uuid,
            'name': named.name,
            **dataclasses.asdict(summarized(data)),
        }

    def _report(self, convoy: convoys.Convoy) -> Report:
        return {
            'convoy': dataclasses.asdict(convoy),
            'next_look': self.escort.next_look(convoy),
            'done': [*convoy.done],
            'success': not convoy.reason if convoy.ended else None,
            'reason': convoy.reason,
        }

    def _chosen(
        self, move: moves.Move, names: abc.Collection[str] | None
    ) -> abc.Sequence[node.Node]:
        if names is not None:
            return self._named(names)
        return [
            each
            for each in self._baremetal.states()
            if each.state in move.ready | move.moving
        ]

    def _named(
        self, names: abc.Collection[str] | None
    ) -> abc.Sequence[node.Node]:
        nodes = self._baremetal.states()
        if names is None:
            return nodes
        by_name = {each.name: each for each in nodes if each.name}
        by_name |= {each.uuid: each for each in nodes}
        lacking = [name for name in names if name not in by_name]
        if lacking:
            raise errors.NotFound(f'There is no node {", ".join(lacking)}')
        chosen = {by_name[name].uuid: by_name[name] for name in names}
        return [*chosen.values()]


def _in(
    results: abc.Iterable[registering.Result],
    ready: abc.Set[str],
    move: moves.Move,
) -> abc.Sequence[str]:
    """Return the uuids of registered nodes that can go, or do already."""
    return [
        result.uuid
        for result in results
        if result.registered and result.state in ready | move.moving
    ]
