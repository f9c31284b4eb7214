# SPDX-License-Identifier: Apache-2.0
"""Records of JSON in a container: of runs, of operations, of plans.

Any user who may write into the container may change or delete a record.
"""

from collections import abc
import dataclasses
import functools
import gzip
import json
import time
from typing import Any, TypeVar

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins import stored
from heat_plugins.objectstore import claims
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import store as store_module

_Kind = TypeVar('_Kind')

# How gzip begins, and no JSON.
_GZIP = b'\x1f\x8b'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A record.

    :ivar age: see `store.Fetched`.
    """

    value: Any
    age: float


class Records:
    """The records in a container, which may not be there.

    :param own: the container, or its name.
    :param prefix: of the names of the records' objects.
    :param limit: the most bytes of a record, unpacked as well.
    :param depth: the most levels of lists and maps in a record.
    :param packed: whether to write gzip; both forms are read.
    :param pool: how to repeat requests; None repeats none.
    """

    def __init__(
        self,
        store: store_module.ObjectStore,
        own: str | containers.Own,
        *,
        prefix: str = '',
        limit: int = 64 * 1024 * 1024,
        depth: int = bounds.DEPTH,
        packed: bool = False,
        pool: pools.Pool | None = None,
    ) -> None:
        self._store = store
        self._own = own
        self._prefix = prefix
        self._limit = limit
        self._depth = depth
        self._packed = packed
        self._insist = (pool or pools.Pool(attempts=1)).insist

    @property
    def container(self) -> str:
        """The name of the container."""
        own = self._own
        return own if isinstance(own, str) else self._insist(lambda: own.name)

    def names(
        self, prefix: str = '', most: int = store_module.MOST
    ) -> list[str]:
        """List the records whose names begin with a prefix, in order.

        :raises errors.TooMany: there are more than `most`.
        """
        try:
            entries = self._insist(
                self._store.list_objects,
                self.container,
                f'{self._prefix}{prefix}',
                most,
            )
        except errors.NoObject:
            return []
        return sorted(
            entry.name.removeprefix(self._prefix)
            for entry in entries
            if not entry.name.startswith(claims.FOLDER)
        )

    def fetch(self, name: str) -> Found:
        """Return a record.

        :raises errors.NoObject: there is none.
        :raises ValueError: it is too large, nested too deeply or not JSON.
        """
        try:
            found = self._insist(
                self._store.fetch,
                self.container,
                f'{self._prefix}{name}',
                self._limit,
            )
        except errors.BadSignal as exc:
            raise ValueError(str(exc)) from exc
        content = found.content
        if content.startswith(_GZIP):
            content = bounds.gunzip(content, self._limit)
        value = bounds.read_json(content, depth=self._depth)
        return Found(value=value, age=found.age)

    def find(self, name: str) -> Any:
        """Return a record's value; None if there is none that is readable."""
        try:
            return self.fetch(name).value
        except (errors.NoObject, ValueError):
            return None

    def load(self, kind: type[_Kind], name: str) -> _Kind | None:
        """Return a record of a dataclass, or None; see `find`."""
        try:
            return stored.read(kind, self.find(name))
        except ValueError:
            return None

    def has(self, name: str) -> bool:
        """Say whether there is a record, readable or not."""
        return self._insist(
            self._store.has_object, self.container, f'{self._prefix}{name}'
        )

    def write(self, name: str, value: Any) -> None:
        """Write a record, over one that is there."""
        self._insist(
            self._store.put_object,
            self.container,
            f'{self._prefix}{name}',
            self._content(value),
        )

    def create(
        self,
        name: str,
        value: Any,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> bool:
        """Write a record unless there is one; make the container for it.

        :returns: whether it was written; see `claims.create`.
        """
        create = functools.partial(
            claims.create,
            self._store,
            self.container,
            f'{self._prefix}{name}',
            self._content(value),
            sleep=sleep,
        )
        try:
            return create()
        except errors.NoObject:
            self._insist(self._store.put_container, self.container, {})
            return create()

    def delete(self, *names: str) -> None:
        """Delete records, in this order; some may be gone."""
        for name in names:
            self._store.delete_object(self.container, f'{self._prefix}{name}')

    def _content(self, value: Any) -> bytes:
        content = json.dumps(value, separators=(',', ':')).encode()
        # The same value makes the same object.
        return gzip.compress(content, mtime=0) if self._packed else content
