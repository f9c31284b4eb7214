# SPDX-License-Identifier: Apache-2.0
"""The records of a project's operations, in a container of their own.

Who leads an operation writes its state below the epoch that it leads in, so
that a former leader, which does not know yet that it is none, writes where
no process reads. A new leader copies the state; it writes the control
last, and until that is there the former epoch holds.

States and requests are sealed, see `binding`: the caller that reads them says
what proves them.
"""

from collections import abc
import contextlib
import dataclasses
import hashlib
import itertools
import json
import threading
from typing import Any, TypeVar

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from heat_plugins.runs import run_objects
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import record_names

LOG = foreign.logger(__name__)

_T = TypeVar('_T')

# The most bytes of an order with `operations.MOST` targets, of another
# record, and the most brackets and braces in either.
_ORDER, _LIMIT, _PARTS = 16 * 1024 * 1024, 16 * 1024 * 1024, 100_000

# The most other objects that are listed among records.
_JUNK = 1000

# The most bytes of a request.
_REQUEST = 64 * 1024

# How many of the last epochs are read to see which has a control.
_COPIES = 20

# The most operations that others look at, and the characters of their
# deployments' IDs that are remembered.
_OTHERS, _REMEMBERED = 1000, 4_000_000

# Heads per read: most callers want few.
_TOGETHER = 100

# The most heads that a list reads.
_READ = 5000

# The most bytes of a head, which names up to `operations.MOST` stacks, and the
# most brackets and braces in it.
_HEAD, _HEAD_PARTS = 4 * 1024 * 1024, 10_000


class Heads:
    """The heads of one project.

    :param pool: for many requests at a time.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        own: stores.OwnContainer,
        pool: pools.Pool,
    ) -> None:
        self._pool = pool
        self._records = json_records.Records(
            store, own, limit=_HEAD, parts=_HEAD_PARTS
        )

    def ids(self, beginning: str = '') -> list[str]:
        """List the operations there are, the oldest first.

        :param beginning: how their ids begin.
        """
        ids = [
            name.removeprefix(layout.HEADS)
            for name in self._records.names(layout.HEADS + beginning)
        ]
        return [each for each in ids if layout.is_operation_id(each)]

    def write(self, head: operations.Head) -> None:
        state = head.state and head.state.value
        # The former release needs every field.
        values = {**dataclasses.asdict(head), 'state': state}
        self._records.write(
            layout.head(head.id), stored.versioned(operations.Head, values)
        )

    def read(self, operation_id: str) -> operations.Head | None:
        """Return a head, if only to say that it is unreadable.

        :returns: None if it is gone.
        """

        def read(values: Any) -> operations.Head:
            head = stored.read(operations.Head, values)
            if head.id != operation_id or head.state is None:
                raise ValueError('it is the record of no such operation')
            return head

        try:
            return self._records.record(read, layout.head(operation_id))
        except errors.NoObject:
            return None
        except errors.Unreadable as exc:
            return operations.Head(
                id=operation_id,
                reason=str(exc),
                created_at=record_names.started_at(operation_id),
            )

    def newest(self) -> abc.Iterator[operations.Head]:
        """Yield the last `_READ` heads, those of the newest first."""
        ids = self.ids()[::-1][:_READ]
        for start in range(0, len(ids), _TOGETHER):
            part = ids[start : start + _TOGETHER]
            yield from filter(None, self._pool.each(self.read, part))


class Reaches:
    """The deployments that operations have, as far as they are remembered.

    An operation may be deleted, and another one of its ID created. So each is
    remembered by the digest of its announcement, which has one of them. Safe
    for threads, and for the operations of all projects.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By project, operation and digest.
        self._known: dict[tuple[str | None, str, str], frozenset[str]] = {}
        self._size = 0

    def add(
        self,
        project_id: str | None,
        operation_id: str,
        digest: str,
        deployment_ids: frozenset[str],
    ) -> None:
        """Remember an operation, and forget those that were added first."""
        key = project_id, operation_id, digest
        with self._lock:
            if key not in self._known:
                self._size += _size(deployment_ids)
            self._known[key] = deployment_ids
            while self._size > _REMEMBERED:
                oldest = next(iter(self._known))
                self._size -= _size(self._known.pop(oldest))

    def of(
        self, project_id: str | None, operation_id: str, digest: str
    ) -> frozenset[str] | None:
        """Return the deployments of an operation; None if it is not known."""
        with self._lock:
            return self._known.get((project_id, operation_id, digest))


def _size(deployment_ids: frozenset[str]) -> int:
    """Return the characters of IDs, with something for each operation."""
    return 100 + sum(map(len, deployment_ids))


def _announcement(deployment_ids: frozenset[str]) -> bytes:
    """Return what announces an operation."""
    text = '\n'.join(sorted(deployment_ids))
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({'deployments': digest}).encode()


def _digest(deployment_ids: frozenset[str]) -> str:
    """Return the digest of an announcement, as a listing has it."""
    content = _announcement(deployment_ids)
    # That of object stores, and no secret.
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


class OperationRecords:
    """The records of one project.

    :param pool: for many requests at a time.
    :param own: their container, if that is known.
    :param reaches: what a process remembers of the operations there are.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        pool: pools.Pool | None = None,
        own: stores.OwnContainer | None = None,
        reaches: Reaches | None = None,
    ) -> None:
        self.store = store
        self.pool = pool or pools.Pool()
        self._reaches = reaches or Reaches()
        self._own = own or stores.OwnContainer(store, layout.CONTAINER)
        self._records = json_records.Records(
            store, self._own, limit=_LIMIT, parts=_PARTS
        )
        self.heads = Heads(store, self._own, self.pool)

    def within(self, budget: wire.Budget) -> 'OperationRecords':
        """Return the same records for requests within a budget."""
        return OperationRecords(
            self.store.within(budget), self.pool, self._own, self._reaches
        )

    @property
    def container(self) -> str:
        """The container's name; it may not be there."""
        return self._records.container

    # Orders

    def find(self, operation_id: str) -> str:
        """Return the one operation whose id begins, or ends, like that.

        :raises errors.NotFound: there is none, or more than one.
        """
        return record_names.find(operation_id, 'operation', self.heads.ids)

    def bind(self, order: operations.OperationOrder) -> binding.Binding:
        """Return the seal of a new operation."""
        content = self._records.content(_order_values(order))
        return binding.Binding.new(order.id, content)

    def write_order(self, order: operations.OperationOrder) -> None:
        """Write an order.

        :raises errors.Refused: it is too large to be read again.
        """
        values = _order_values(order)
        size = len(json.dumps(values))
        if len(order.members) > operations.MOST or size > _ORDER:
            raise errors.Refused(
                f'An operation with {len(order.members)} targets and '
                f'{size} bytes is too large; at most {operations.MOST} '
                f'targets and {_ORDER} bytes are allowed'
            )
        self._records.write(layout.order(order.id), values)

    def order(self, seal: binding.Seal) -> operations.OperationOrder:
        """Return what was ordered.

        :raises errors.NotFound: there is no such operation.
        :raises errors.Unreadable: the record is invalid, or was changed.
        """
        name = layout.order(seal.operation_id)

        def read(values: Any) -> operations.OperationOrder:
            order = _order(values)
            if order.id != seal.operation_id:
                raise ValueError('it is the record of another operation')
            return order

        try:
            return self._record(
                seal,
                lambda: self._records.record(
                    read,
                    name,
                    check=lambda content: seal.check_order(name, content),
                ),
            )
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'There is no operation {seal.operation_id}'
            ) from exc

    # States

    def epoch(self, operation_id: str, *, certain: bool = True) -> int:
        """Return the last epoch of an operation; see `lease.last`.

        :raises errors.Unreadable: there are too many.
        """
        try:
            return lease.last(
                self.store,
                self.container,
                layout.leads(operation_id),
                certain=certain,
            )
        except errors.Unreadable as exc:
            raise _unreadable(operation_id, exc) from exc

    def show(self, seal: binding.Seal) -> operations.Operation:
        """Return an operation as it is recorded.

        :raises errors.NotFound: there is none of that id.
        :raises errors.Unreadable: a record of it is invalid, or was changed.
        """
        order = self.order(seal)
        return self.operation(order, self.epoch(order.id), seal)[0]

    def outline(self, seal: binding.Seal) -> operations.Operation:
        """Return an operation without its attempts; see `show`."""
        order = self.order(seal)
        control, _ = self.control(order, self.epoch(order.id), seal)
        return operations.Operation(order=order, control=control, attempts=())

    def operation(
        self, order: operations.OperationOrder, epoch: int, seal: binding.Seal
    ) -> tuple[operations.Operation, int]:
        """Return an operation as it stands, and the epoch of that.

        :param epoch: the last one. Where its leader has not finished the
            copy, the one before holds.
        :raises errors.NotFound: it has been deleted.
        :raises errors.Unreadable: a record of it is invalid.
        """
        control, number = self.control(order, epoch, seal)
        operation = dataclasses.replace(
            operations.Operation.new(order), control=control
        )
        return self.reread(operation, number, seal), number

    def states(
        self, order: operations.OperationOrder, epoch: int
    ) -> dict[str, str]:
        """Return the digests of what is recorded of an epoch, by name."""
        names = {
            layout.control(order.id, epoch),
            *(
                layout.shard(order.id, epoch, shard)
                for shard in layout.shards(len(order.members))
            ),
        }
        listed = self.store.iterate(
            self.container, layout.states(order.id, epoch)
        )
        some = itertools.islice(listed, 2 * len(names) + _JUNK)
        with contextlib.suppress(errors.NoObject):
            return {e.name: e.etag for e in some if e.name in names}
        return {}

    def control(
        self, order: operations.OperationOrder, epoch: int, seal: binding.Seal
    ) -> tuple[operations.Control, int]:
        """Return what holds for all of an operation; see `operation`."""
        for number in range(epoch, max(0, epoch - _COPIES), -1):
            with contextlib.suppress(errors.NoObject):
                name = layout.control(order.id, number)
                return self._read(seal, _control, name), number
        if epoch > _COPIES:
            raise _unreadable(
                order.id,
                errors.Unreadable(
                    f'the last {_COPIES} processes that led it wrote nothing'
                ),
            )
        raise errors.NotFound(f'There is no operation {order.id}')

    def reread(
        self,
        operation: operations.Operation,
        epoch: int,
        seal: binding.Seal,
        changed: abc.Container[str] | None = None,
    ) -> operations.Operation:
        """Return an operation with its attempts as they are recorded now.

        :param changed: the names of the objects to read; None for all.
        """

        def read(shard: int) -> abc.Sequence[operations.Attempt]:
            before = _shard(operation, shard)
            name = layout.shard(operation.id, epoch, shard)
            if changed is not None and name not in changed:
                return before

            def attempts(values: Any) -> list[operations.Attempt]:
                if not isinstance(values, list) or len(values) != len(before):
                    raise ValueError(
                        f'it must be a list of {len(before)} attempts'
                    )
                return [_attempt(each) for each in values]

            try:
                return self._read(seal, attempts, name)
            except errors.NoObject:
                return before

        shards = layout.shards(len(operation.attempts))
        parts = self.pool.each(read, list(shards))
        return dataclasses.replace(
            operation, attempts=tuple(each for part in parts for each in part)
        )

    def write(
        self,
        operation: operations.Operation,
        epoch: int,
        before: operations.Operation | None,
        seal: binding.Seal,
    ) -> None:
        """Write what has changed of an operation.

        :param before: as it was written last in this epoch; None to write
            all of it.
        """

        def write(shard: int) -> None:
            self._write(
                seal,
                layout.shard(operation.id, epoch, shard),
                # A list has no version: that of the control holds.
                [stored.dump(each) for each in _shard(operation, shard)],
            )

        empty = operations.Operation.new(operation.order)
        shards = layout.shards(len(operation.attempts))
        former = before or empty
        changed = [
            n for n in shards if _shard(operation, n) != _shard(former, n)
        ]
        self.pool.each(write, changed)
        if before is None or operation.control != before.control:
            self._write(
                seal,
                layout.control(operation.id, epoch),
                stored.versioned(
                    operations.Control, stored.dump(operation.control)
                ),
            )

    def _write(self, seal: binding.Seal, name: str, value: Any) -> None:
        self._records.write(name, seal.seal(name, value))

    # Other operations; see `exclusions`

    def announce(self, order: operations.OperationOrder) -> None:
        """Let others know that an operation may start runs."""
        ids = _deployments(order)
        name = layout.live(order.action) + order.id
        self.store.put_object(self.container, name, _announcement(ids))
        self._remember(order.id, _digest(ids), ids)

    def announced(self, action: str) -> dict[str, str]:
        """Return the operations that may start runs of an action.

        One that has ended is among them if its leader died at the end.

        :returns: the digests of their announcements, by ID.
        """
        prefix = layout.live(action)
        listed: list[stores.Entry] = []
        with contextlib.suppress(errors.NoObject):
            entries = self.store.iterate(self.container, prefix)
            listed = list(itertools.islice(entries, _OTHERS + 1))
        if len(listed) > _OTHERS:
            LOG.warning(
                'More than %(number)s operations with %(action)s may be in '
                'progress; heat-plugins looks at the oldest',
                {'number': _OTHERS, 'action': action},
            )
        digests = {e.name.removeprefix(prefix): e.etag for e in listed}
        return {
            each: digest
            for each, digest in [*digests.items()][:_OTHERS]
            if layout.is_operation_id(each)
        }

    def known_deployments(
        self, operation_id: str, digest: str
    ) -> frozenset[str] | None:
        """Return the deployments of an operation, if they are remembered.

        :param digest: of its announcement.
        """
        return self._reaches.of(self.store.project_id, operation_id, digest)

    def deployments(self, operation_id: str, digest: str) -> frozenset[str]:
        """Read which deployments an operation has.

        :param digest: of its announcement: they are remembered if it has them.
        :raises errors.NotFound: there is no such operation.
        :raises errors.Unreadable: its order is invalid.
        """
        # Who may run on them is checked before that counts.
        seal = binding.Unchecked(operation_id=operation_id)
        ids = _deployments(self.order(seal))
        if digest == _digest(ids):
            self._remember(operation_id, digest, ids)
        return ids

    def _remember(
        self, operation_id: str, digest: str, ids: frozenset[str]
    ) -> None:
        project_id = self.store.project_id
        self._reaches.add(project_id, operation_id, digest, ids)

    # Requests and results

    def request(self, seal: binding.Seal, now: float, **wanted: str) -> str:
        """Ask who leads an operation for something; return the object."""
        name = layout.new_request(seal.operation_id, now)
        self._write(seal, name, stored.versioned(operations.Request, wanted))
        return name

    def read_request(
        self, seal: binding.Seal, name: str
    ) -> operations.Request | None:
        """Return a user's request; None if it is gone.

        :raises errors.Unreadable: it is invalid, or no user with a role in
            Heat has written it.
        """
        with contextlib.suppress(errors.NoObject):
            return self._read(
                seal,
                lambda values: stored.read(operations.Request, values),
                name,
                _REQUEST,
            )
        return None

    def _read(
        self,
        seal: binding.Seal,
        read: abc.Callable[[Any], _T],
        name: str,
        limit: int | None = None,
    ) -> _T:
        """Return a sealed record of an operation.

        :raises errors.NoObject: there is none.
        :raises errors.Unreadable: it is invalid, or was changed.
        """
        return self._record(
            seal,
            lambda: self._records.record(
                lambda values: read(seal.open(name, values)), name, limit
            ),
        )

    @staticmethod
    def _record(seal: binding.Seal, read: abc.Callable[[], _T]) -> _T:
        try:
            return read()
        except errors.Tampered:
            # It names the operation.
            raise
        except errors.Unreadable as exc:
            raise _unreadable(seal.operation_id, exc) from exc

    def objects(
        self, operation_id: str, member: int, attempt: int
    ) -> run_objects.RunObjects:
        """Return the objects of an attempt."""
        place = operation_id, member, attempt
        return run_objects.RunObjects(
            self.store,
            self.container,
            result=layout.result(*place),
            log=layout.log_folder(*place),
            outputs=layout.outputs(*place),
        )

    def discard(self, names: abc.Collection[str]) -> None:
        """Delete objects."""
        cleaning.delete(self.store, self.container, names)

    def delete(self, operation_id: str) -> None:
        """Delete all that is known of an operation."""
        head = self.heads.read(operation_id)
        if head is not None:
            # Its leader may have died at the end.
            self.discard([layout.live(head.action) + operation_id])
        for prefix in layout.prefixes(operation_id):
            cleaning.delete_below(self.store, self.container, prefix)
        with contextlib.suppress(errors.NoObject, errors.Conflict):
            self.store.delete_container(self.container)


def _deployments(order: operations.OperationOrder) -> frozenset[str]:
    return frozenset(each.deployment_id for each in order.members)


def _shard(
    operation: operations.Operation, shard: int
) -> tuple[operations.Attempt, ...]:
    start = shard * layout.SHARD
    return operation.attempts[start : start + layout.SHARD]


def _unreadable(
    operation_id: str, why: errors.Unreadable
) -> errors.Unreadable:
    """Return an error that names the operation and the remedy, too."""
    remedy = (
        ''
        if isinstance(why, errors.LaterRelease)
        else '. "openstack software deployment operation delete --force" '
        'deletes it'
    )
    return type(why)(
        f'Operation {operation_id} has an unreadable record: {why}{remedy}'
    )


def _order_values(order: operations.OperationOrder) -> dict[str, Any]:
    """Return the record of an order in JSON's types, secrets included."""
    values = {
        **stored.dump(order),
        'limits': order.limits.shown(),
        'members': [stored.dump(member) for member in order.members],
    }
    return stored.versioned(operations.OperationOrder, values)


def _order(values: object) -> operations.OperationOrder:
    if not isinstance(values, abc.Mapping):
        raise ValueError('it is not a map for an Order')
    members, limits = values.get('members'), values.get('limits')
    if not isinstance(limits, abc.Mapping):
        raise ValueError('it has no limits')
    # Before each is read.
    if not isinstance(members, list) or not (
        0 < len(members) <= operations.MOST
    ):
        raise ValueError(f'it has not 1 to {operations.MOST} members')
    read = operations.OperationLimits.read(limits)
    if values.get('config') is not None:
        stored.read(heat_values.Config, values['config'])
    return stored.read(
        operations.OperationOrder,
        {**values, 'limits': dataclasses.asdict(read)},
    )


def _control(values: object) -> operations.Control:
    control = stored.read(operations.Control, values)
    _ = control.requests
    return control


def _attempt(values: object) -> operations.Attempt:
    attempt = stored.read(operations.Attempt, values)
    _ = attempt.every
    return attempt
