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
import re
from typing import Any

from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs.fleet.records import layout

# Heads per read, and how many new heads make a reader write a new digest.
_TOGETHER, _MORE = 100, 10

# Swift's and Ceph's ETag of an object that was sent in one piece.
_ETAG = re.compile('[0-9a-f]{32}')

_Head = dict[str, Any]


class Heads:
    """The heads of one project.

    :param pool: for many requests at a time.
    """

    def __init__(
        self,
        store: store_module.ObjectStore,
        own: containers.Own,
        pool: pools.Pool,
    ) -> None:
        self._store = store
        self._pool = pool
        self._records = json_records.Records(store, own)
        self._packed = json_records.Records(store, own, packed=True)

    def entries(self, beginning: str = '') -> list[store_module.Entry]:
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

    def write(self, operation_id: str, head: _Head) -> None:
        self._records.write(layout.head(operation_id), head)

    def read(self, operation_id: str) -> _Head | None:
        """Return a head; None if it is gone, or unreadable."""
        found = self._records.find(layout.head(operation_id))
        return found if isinstance(found, dict) else None

    def newest(self) -> abc.Iterator[_Head]:
        """Yield the heads, those of the newest operations first."""
        entries = self.entries()[::-1]
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
        self, values: object = None, entries: abc.Iterable[Any] = ()
    ) -> None:
        there = {_id(one): one.etag for one in entries}
        self.values: dict[str, tuple[str, _Head]] = {}
        if not isinstance(values, dict):
            return
        for name, value in values.items():
            match value:
                case [str(etag), dict(head)] if there.get(name) == etag:
                    self.values[name] = (etag, head)

    def get(self, entry: store_module.Entry) -> _Head | None:
        etag, head = self.values.get(_id(entry), ('', None))
        return head if etag == entry.etag else None

    def add(self, entry: store_module.Entry, head: _Head | None) -> bool:
        """Add a head that no longer changes; say whether it was."""
        if (
            head is None
            or head.get('ended_at') is None
            or not _ETAG.fullmatch(entry.etag)
        ):
            return False
        self.values[_id(entry)] = (entry.etag, head)
        return True


def _id(entry: store_module.Entry) -> str:
    return entry.name.removeprefix(layout.HEADS)
