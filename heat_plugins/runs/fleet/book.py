# SPDX-License-Identifier: Apache-2.0
"""The records of a project's operations, in a container of their own.

Who leads an operation writes its state below the epoch that it leads in, so
that a former leader, which does not know yet that it is none, writes where
nobody reads any more. A new leader copies the state; it writes the control
last, and until that is there the former epoch holds.
"""

from collections import abc
import dataclasses
import json
from typing import Any, TypeVar

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs.fleet import layout
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation as operations

# The most bytes of an object: 10,000 members, or the outputs of a shard.
_LIMIT = 64 * 1024 * 1024

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
        self._own = containers.Own(store, layout.CONTAINER)

    @property
    def container(self) -> str:
        """The container's name; it may not be there."""
        return self._own.name

    # Orders

    def ids(self, beginning: str = '') -> list[str]:
        """List the operations there are, the oldest first.

        :param beginning: how their ids begin.
        """
        names = cleaning.everything(
            self.store, self.container, layout.HEADS + beginning
        )
        found = [name.removeprefix(layout.HEADS) for name in names]
        return sorted(one for one in found if layout.is_operation_id(one))

    def find(self, operation_id: str) -> str:
        """Return the one operation whose id begins, or ends, like that.

        :raises errors.NotFound: there is none, or more than one.
        """
        found = self.ids(operation_id) if operation_id[:1].isdigit() else []
        if not found and operation_id:
            found = [one for one in self.ids() if one.endswith(operation_id)]
        if len(found) > 1:
            raise errors.NotFound(
                f'{operation_id} may be any of {bounds.listed(found[-5:])}; '
                'give more of it'
            )
        if not found:
            raise errors.NotFound(
                f'There is no operation {bounds.shortened(operation_id)}; '
                'name it by its ID, or the beginning or the end of that'
            )
        return found[0]

    def write_order(self, order: operations.Order) -> None:
        self._put(layout.order(order.id), order_values(order))

    def order(self, operation_id: str) -> operations.Order:
        """Return what was ordered.

        :raises errors.NotFound: there is no such operation.
        """
        try:
            values = self._get(layout.order(operation_id))
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'There is no operation {operation_id}'
            ) from exc
        return _read(operation_id, _order, values)

    # What a list shows

    def write_head(self, operation_id: str, head: dict[str, Any]) -> None:
        self._put(layout.head(operation_id), head)

    def heads(self, ids: abc.Sequence[str]) -> list[dict[str, Any] | None]:
        """Return what a list shows of operations; None for what is gone."""

        def read(operation_id: str) -> dict[str, Any] | None:
            try:
                found = self._get(layout.head(operation_id))
            except (errors.NoObject, ValueError):
                return None
            return found if isinstance(found, dict) else None

        return self.pool.each(read, ids)

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
                values = self._get(name)
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
                values = self._get(name)
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
            self._put(
                layout.shard(found.id, epoch, shard),
                [_attempt_values(one) for one in _shard(found, shard)],
            )

        empty = operations.Operation.new(found.order)
        shards = layout.shards(len(found.attempts))
        former = before or empty
        changed = [n for n in shards if _shard(found, n) != _shard(former, n)]
        self.pool.each(write, changed)
        if before is None or found.control != before.control:
            self._put(layout.control(found.id, epoch), _values(found.control))

    # Requests and results

    def request(self, operation_id: str, now: float, **wanted: str) -> None:
        """Ask who leads an operation for something."""
        self._put(layout.new_request(operation_id, now), wanted)

    def read_request(self, name: str) -> dict[str, Any] | None:
        """Return what somebody asks for; None if it is gone, or nothing."""
        try:
            found = self._get(name)
        except (errors.NoObject, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def discard(self, names: abc.Collection[str]) -> None:
        """Delete objects."""
        cleaning.delete(self.store, self.container, names)

    def delete(self, operation_id: str) -> None:
        """Delete all that is known of an operation."""
        for prefix in layout.prefixes(operation_id):
            found = cleaning.everything(self.store, self.container, prefix)
            self.discard(found)

    def _put(self, name: str, values: object) -> None:
        content = json.dumps(values, sort_keys=True).encode()
        self.store.put_object(self.container, name, content)

    def _get(self, name: str) -> Any:
        """Return what an object holds.

        :raises ValueError: it is not JSON.
        """
        try:
            content = self.store.get_object(self.container, name, _LIMIT)
        except errors.BadSignal as exc:
            raise ValueError(str(exc)) from exc
        return bounds.read_json(content)


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


def _attempt_values(found: operations.Attempt) -> dict[str, Any]:
    return _values(found)


def _known(kind: type[Any], values: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return what a value of a kind has; a later release may write more."""
    fields = {field.name: field for field in dataclasses.fields(kind)}
    found = {}
    for name, value in values.items():
        if name not in fields:
            continue
        number = name.endswith('_at') or name in ('number', 'round')
        if number and not (isinstance(value, int) and 0 <= value < 2**36):
            raise ValueError(f'{name} is out of range')
        found[name] = value
    return found


def order_values(found: operations.Order) -> dict[str, Any]:
    """Return an order in JSON's types, secrets included."""
    return {
        **_values(found),
        'limits': found.limits.shown(),
        'members': [_values(one) for one in found.members],
    }


def _order(values: abc.Mapping[str, Any]) -> operations.Order:
    found = _known(operations.Order, values)
    found['limits'] = limit_values.Limits.read(values['limits'])
    found['members'] = tuple(
        operations.Member(**_known(operations.Member, one))
        for one in values['members']
    )
    return operations.Order(**found)


def _control(values: abc.Mapping[str, Any]) -> operations.Control:
    found = _known(operations.Control, values)
    if 'phase' in found:
        found['phase'] = operations.Phase(found['phase'])
    if found.get('stopped') is not None:
        found['stopped'] = operations.Stop(found['stopped'])
    return operations.Control(**found)


def _attempts(
    values: abc.Sequence[abc.Mapping[str, Any]],
) -> list[operations.Attempt]:
    return [_attempt(one) for one in values]


def _attempt(values: abc.Mapping[str, Any]) -> operations.Attempt:
    found = _known(operations.Attempt, values)
    if found.get('state') is not None:
        found['state'] = operations.State(found['state'])
    return operations.Attempt(**found)
