# SPDX-License-Identifier: Apache-2.0
"""What a list shows of operations.

A head is an object of its own: who leads an operation writes it without
regard to others. A list reads the heads, many at a time.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import record_names

# Heads per read: most callers want few.
_TOGETHER = 100

# The most heads that a list reads.
_READ = 5000

# The most bytes of a head, which names up to `operations.MOST` stacks, and the
# most brackets and braces in it.
_LIMIT, _PARTS = 4 * 1024 * 1024, 10_000

_Head = operations.Head


class Heads:
    """The heads of one project.

    :param pool: for many requests at a time.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        own: containers.Own,
        pool: pools.Pool,
    ) -> None:
        self._pool = pool
        self._records = json_records.Records(
            store, own, limit=_LIMIT, parts=_PARTS
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

    def write(self, head: _Head) -> None:
        state = head.state and head.state.value
        # The former release needs every field.
        values = {**dataclasses.asdict(head), 'state': state}
        self._records.write(
            layout.head(head.id), stored.versioned(_Head, values)
        )

    def read(self, operation_id: str) -> _Head | None:
        """Return a head, if only to say that it is unreadable.

        :returns: None if it is gone.
        """

        def read(values: Any) -> _Head:
            head = stored.read(_Head, values)
            if head.id != operation_id or head.state is None:
                raise ValueError('it is the record of no such operation')
            return head

        try:
            return self._records.record(read, layout.head(operation_id))
        except errors.NoObject:
            return None
        except errors.Unreadable as exc:
            return _Head(
                id=operation_id,
                reason=str(exc),
                created_at=record_names.started_at(operation_id),
            )

    def newest(self) -> abc.Iterator[_Head]:
        """Yield the last `_READ` heads, those of the newest first."""
        ids = self.ids()[::-1][:_READ]
        for start in range(0, len(ids), _TOGETHER):
            part = ids[start : start + _TOGETHER]
            yield from filter(None, self._pool.each(self.read, part))

    def forget(self) -> None:
        """Delete what the former release leaves once no head is left."""
        if not self.ids():
            self._records.delete(layout.FORMER_DIGEST)
