# SPDX-License-Identifier: Apache-2.0
"""The records of a project's operations, in a container of their own.

Who leads an operation writes its state below the epoch that it leads in, so
that a former leader, which does not know yet that it is none, writes where
no process reads. A new leader copies the state; it writes the control
last, and until that is there the former epoch holds.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any, TypeVar

from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins import stored
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet.records import heads
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import record_names

_T = TypeVar('_T')


class Book:
    """The records of one project.

    :param pool: for many requests at a time.
    """

    def __init__(
        self, store: store_module.ObjectStore, pool: pools.Pool | None = None
    ) -> None:
        self.store = store
        self.pool = pool or pools.Pool()
        own = containers.Own(store, layout.CONTAINER)
        self._records = json_records.Records(store, own)
        self.heads = heads.Heads(store, own, self.pool)

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

    def write_order(self, order: operations.Order) -> None:
        self._records.write(layout.order(order.id), order_values(order))

    def order(self, operation_id: str) -> operations.Order:
        """Return what was ordered.

        :raises errors.NotFound: there is no such operation.
        """
        try:
            values = self._records.fetch(layout.order(operation_id)).value
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'There is no operation {operation_id}'
            ) from exc
        return _read(operation_id, _order, values)

    # States

    def epoch(self, operation_id: str) -> int:
        """Return the last epoch of an operation; 0 if it has none.

        The listing may lag behind, so the next one is asked for itself.
        """
        prefix = layout.leads(operation_id)
        names = cleaning.everything(self.store, self.container, prefix)
        numbers = [name.removeprefix(prefix) for name in names]
        last = max((int(one) for one in numbers if one.isdecimal()), default=0)
        while self.store.has_object(
            self.container, layout.lead(operation_id, last + 1)
        ):
            last += 1
        return last

    def show(self, operation_id: str) -> operations.Operation:
        """Return an operation as it is recorded.

        :raises errors.NotFound: there is none of that id.
        """
        order = self.order(operation_id)
        return self.operation(order, self.epoch(order.id))[0]

    def operation(
        self, order: operations.Order, epoch: int
    ) -> tuple[operations.Operation, int]:
        """Return an operation as it stands, and the epoch of that.

        :param epoch: the last one. Where its leader has not finished the
            copy, the one before holds.
        :raises errors.NotFound: it has been deleted.
        """
        for number in range(epoch, 0, -1):
            name = layout.control(order.id, number)
            try:
                values = self._records.fetch(name).value
            except errors.NoObject:
                continue
            control = _read(order.id, _control, values)
            return self._with_attempts(order, control, number), number
        raise errors.NotFound(f'There is no operation {order.id}')

    def _with_attempts(
        self, order: operations.Order, control: operations.Control, epoch: int
    ) -> operations.Operation:
        def read(shard: int) -> list[operations.Attempt]:
            size = min(layout.SHARD, len(order.members) - shard * layout.SHARD)
            try:
                name = layout.shard(order.id, epoch, shard)
                values = self._records.fetch(name).value
            except errors.NoObject:
                return [operations.Attempt()] * size
            found = _read(order.id, _attempts, values)
            if len(found) != size:
                raise _unreadable(order.id, 'attempts are missing')
            return found

        shards = layout.shards(len(order.members))
        parts = self.pool.each(read, list(shards))
        return operations.Operation(
            order=order,
            control=control,
            attempts=tuple(one for part in parts for one in part),
        )

    def write(
        self,
        found: operations.Operation,
        epoch: int,
        before: operations.Operation | None,
    ) -> None:
        """Write what has changed of an operation.

        :param before: as it was written last in this epoch; None to write
            all of it.
        """

        def write(shard: int) -> None:
            self._records.write(
                layout.shard(found.id, epoch, shard),
                [_values(one) for one in _shard(found, shard)],
            )

        empty = operations.Operation.new(found.order)
        shards = layout.shards(len(found.attempts))
        former = before or empty
        changed = [n for n in shards if _shard(found, n) != _shard(former, n)]
        self.pool.each(write, changed)
        if before is None or found.control != before.control:
            self._records.write(
                layout.control(found.id, epoch), _values(found.control)
            )

    # Requests and results

    def request(self, operation_id: str, now: float, **wanted: str) -> None:
        """Ask who leads an operation for something."""
        self._records.write(layout.new_request(operation_id, now), wanted)

    def read_request(self, name: str) -> dict[str, Any] | None:
        """Return a user's request; None if it is gone, or invalid."""
        found = self._records.find(name)
        return found if isinstance(found, dict) else None

    def discard(self, names: abc.Collection[str]) -> None:
        """Delete objects."""
        cleaning.delete(self.store, self.container, names)

    def delete(self, operation_id: str) -> None:
        """Delete all that is known of an operation."""
        for prefix in layout.prefixes(operation_id):
            cleaning.delete_below(self.store, self.container, prefix)
        # They go with the last of them.
        self.heads.forget()
        with contextlib.suppress(errors.NoObject, errors.Conflict):
            self.store.delete_container(self.container)


def _shard(
    found: operations.Operation, shard: int
) -> tuple[operations.Attempt, ...]:
    start = shard * layout.SHARD
    return found.attempts[start : start + layout.SHARD]


def _unreadable(operation_id: str, why: object) -> errors.Error:
    return errors.Error(
        f'Operation {operation_id} has an unreadable record: {why}. '
        '"openstack software deployment operation delete --force" forgets it'
    )


def _read(
    operation_id: str, read: abc.Callable[[Any], _T], values: object
) -> _T:
    try:
        return read(values)
    except (AttributeError, KeyError, TypeError, ValueError) as exc:
        raise _unreadable(operation_id, exc) from exc


def _values(found: Any) -> dict[str, Any]:
    """Return what differs from the defaults, in JSON's types."""
    values = {}
    for field in dataclasses.fields(found):
        value = getattr(found, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value != default:
            values[field.name] = getattr(value, 'value', value)
    return values


def order_values(found: operations.Order) -> dict[str, Any]:
    """Return an order in JSON's types, secrets included."""
    return {
        **_values(found),
        'limits': found.limits.shown(),
        'members': [_values(one) for one in found.members],
    }


def _order(values: abc.Mapping[str, Any]) -> operations.Order:
    limits = limit_values.Limits.read(values['limits'])
    return stored.read(
        operations.Order, {**values, 'limits': dataclasses.asdict(limits)}
    )


def _control(values: object) -> operations.Control:
    return stored.read(operations.Control, values)


def _attempts(values: abc.Iterable[object]) -> list[operations.Attempt]:
    return [stored.read(operations.Attempt, one) for one in values]
