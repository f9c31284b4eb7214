# SPDX-License-Identifier: Apache-2.0
"""What a list shows of operations, many of them in one object.

A head is an object of its own: who leads an operation writes it without
regard to others. Heads of operations that have ended are copied into a
digest, each with the ETag that the container's listing has for it. So a list
reads the digest, and the heads that have changed since. The digest is a
cache: readers write it, nothing is lost with it, and a listing that lags
makes a list as old as itself.
"""

from collections import abc
import contextlib
import dataclasses
import re
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

# Heads per read, and how many new heads make a reader write a new digest.
_TOGETHER, _MORE = 100, 10

# The most heads that a list reads.
_READ = 5000

# Swift's and Ceph's ETag of an object that was sent in one piece.
_ETAG = re.compile('[0-9a-f]{32}')

# The most bytes of a head, which names up to `operations.MOST` stacks, and the
# most brackets and braces in it.
_LIMIT, _PARTS = 4 * 1024 * 1024, 10_000

# The same for the digest, unpacked: `_READ` heads have some 3 MB, and five
# brackets and braces each. Heads are added until it has fewer bytes than that.
_DIGEST, _DIGEST_PARTS = 8 * 1024 * 1024, 100_000
_FULL = _DIGEST - 1024 * 1024

# What a digest has of a head in addition to it: its ID, and its ETag.
_ADDED = 100

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
        self._store = store
        self._pool = pool
        self._records = json_records.Records(
            store, own, limit=_LIMIT, parts=_PARTS
        )
        self._packed = json_records.Records(
            store, own, limit=_DIGEST, parts=_DIGEST_PARTS, packed=True
        )

    def entries(self, beginning: str = '') -> list[stores.Entry]:
        """List the heads there are, the oldest first.

        :param beginning: how the ids of their operations begin.
        """
        try:
            found = self._store.list_objects(
                self._records.container, layout.HEADS + beginning
            )
        except errors.NoObject:
            return []
        return sorted(
            (one for one in found if layout.is_operation_id(_id(one))),
            key=_id,
        )

    def ids(self, beginning: str = '') -> list[str]:
        """List the operations there are, the oldest first."""
        return [_id(one) for one in self.entries(beginning)]

    def write(self, head: _Head) -> None:
        self._records.write(layout.head(head.id), _values(head))

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
        entries = self.entries()[::-1][:_READ]
        digest = _Digest()
        if len(entries) > _MORE:
            digest = _Digest(self._packed.find(layout.DIGEST), entries)
        # A part at a time: most callers want few.
        for start in range(0, len(entries), _TOGETHER):
            part = entries[start : start + _TOGETHER]
            absent = [one for one in part if digest.get(one) is None]
            read = dict(
                zip(
                    map(_id, absent),
                    self._pool.each(self.read, [_id(one) for one in absent]),
                    strict=True,
                )
            )
            added = [digest.add(one, read[_id(one)]) for one in absent]
            if sum(added) >= _MORE:
                # Who may only read reads the heads each time.
                with contextlib.suppress(errors.Error):
                    self._packed.write(layout.DIGEST, digest.values)
            found = (digest.get(one) or read.get(_id(one)) for one in part)
            yield from filter(None, found)

    def forget(self) -> None:
        """Delete the digest if no operation is left."""
        if not self.entries():
            self._records.delete(layout.DIGEST)


class _Digest:
    """The heads of operations that have ended.

    :param values: as they were written; a user who may write can change them.
    :param entries: the heads there are.
    :ivar values: by the id of the operation: the ETag of its head, and that.
    """

    def __init__(
        self,
        values: object = None,
        entries: abc.Sequence[stores.Entry] = (),
    ) -> None:
        there = {_id(one): one.etag for one in entries}
        self.values: dict[str, tuple[str, dict[str, Any]]] = {}
        self._heads: dict[str, _Head] = {}
        self._size = 0
        sizes = {_id(one): one.size for one in entries}
        if not isinstance(values, dict):
            return
        for name, value in values.items():
            match value:
                case [str(etag), dict(head)] if there.get(name) == etag:
                    self._keep(name, etag, head)
        self._size = sum(sizes[name] + _ADDED for name in self.values)

    def _keep(self, name: str, etag: str, values: dict[str, Any]) -> None:
        with contextlib.suppress(ValueError):
            head = stored.read(_Head, values)
            if head.id == name and head.state is not None:
                self.values[name] = etag, values
                self._heads[name] = head

    def get(self, entry: stores.Entry) -> _Head | None:
        etag, _ = self.values.get(_id(entry), ('', None))
        return self._heads[_id(entry)] if etag == entry.etag else None

    def add(self, entry: stores.Entry, head: _Head | None) -> bool:
        """Add a head that no longer changes; say whether it was."""
        if (
            head is None
            or head.ended_at is None
            or not _ETAG.fullmatch(entry.etag)
            or self._size + entry.size > _FULL
        ):
            return False
        self._size += entry.size + _ADDED
        self.values[_id(entry)] = entry.etag, _values(head)
        self._heads[_id(entry)] = head
        return True


def _values(head: _Head) -> dict[str, Any]:
    """Return a head in JSON's types; earlier releases need every field."""
    state = head.state and head.state.value
    return stored.versioned(
        _Head, {**dataclasses.asdict(head), 'state': state}
    )


def _id(entry: stores.Entry) -> str:
    return entry.name.removeprefix(layout.HEADS)
