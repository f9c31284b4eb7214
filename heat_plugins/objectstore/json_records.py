# SPDX-License-Identifier: Apache-2.0
"""Records of JSON in a container: of plans and of validations.

Any user who may write into the container may change or delete a record.
"""

from collections import abc
import dataclasses
import gzip
import json
import time
from typing import Any, TypeVar

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import stores

_Kind = TypeVar('_Kind')

# How gzip begins, and no JSON.
_GZIP = b'\x1f\x8b'


@dataclasses.dataclass(frozen=True, kw_only=True)
class FetchedRecord:
    """A record and its age.

    :ivar age: see `stores.Fetched`.
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
        store: stores.ObjectStore,
        own: str | stores.OwnContainer,
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

    def names(self, prefix: str = '', most: int = stores.MOST) -> list[str]:
        """List the records below a prefix, in order.

        :raises errors.TooManyObjects: there are more than `most`.
        """
        try:
            entries = self._insist(
                self._store.list_objects,
                self.container,
                self._name(prefix),
                most,
            )
            return sorted(
                entry.name.removeprefix(self._prefix)
                for entry in entries
                if not entry.name.startswith(exclusive.FOLDER)
            )
        except errors.NoObject:
            return []

    def fetch(self, name: str) -> FetchedRecord:
        """Return a record.

        :raises errors.NoObject: there is none.
        :raises ValueError: it is too large, nested too deeply or not JSON.
        """
        try:
            fetched = self._insist(
                self._store.fetch,
                self.container,
                self._name(name),
                self._limit,
            )
        except errors.TooLarge as exc:
            raise ValueError(str(exc)) from exc
        content = fetched.content
        if content.startswith(_GZIP):
            content = bounds.gunzip(content, self._limit)
        return FetchedRecord(
            value=bounds.read_json(content, depth=self._depth), age=fetched.age
        )

    def read(self, kind: type[_Kind], name: str) -> _Kind:
        """Return a record as a dataclass.

        :raises errors.NoObject: there is none.
        :raises errors.Unreadable: it is invalid.
        """
        try:
            return stored.read(kind, self.fetch(name).value)
        except ValueError as exc:
            raise self.unreadable(name, exc) from exc

    def unreadable(self, name: str, why: Exception) -> errors.Unreadable:
        """Return the error of an invalid record."""
        # It may quote the record, in any length.
        reason = foreign.line(masking.signatures(str(why)), 200)
        return errors.Unreadable(
            f'Object {self.container}/{self._name(name)}: {reason}'
        )

    def load(self, kind: type[_Kind], name: str) -> _Kind | None:
        """Return a record as a dataclass; None if absent or unreadable."""
        try:
            return stored.read(kind, self.fetch(name).value)
        except (errors.NoObject, ValueError):
            return None

    def has(self, name: str) -> bool:
        """Say whether there is a record, readable or not."""
        return self._insist(
            self._store.has_object, self.container, self._name(name)
        )

    def write(self, name: str, value: Any) -> None:
        """Write a record, also over an existing one."""
        self._insist(
            self._store.put_object,
            self.container,
            self._name(name),
            self.content(value),
        )

    def create(
        self,
        name: str,
        value: Any,
        *,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> bool:
        """Create a record, and its container if needed.

        :returns: whether it was written; see `exclusive.create`.
        """
        place = (self._store, self.container, self._name(name))
        content = self.content(value)
        try:
            return exclusive.create(*place, content, sleep=sleep)
        except errors.NoObject:
            self._insist(self._store.put_container, self.container, {})
            return exclusive.create(*place, content, sleep=sleep)

    def _name(self, name: str) -> str:
        return f'{self._prefix}{name}'

    def delete(self, *names: str) -> None:
        """Delete records, in this order; some may be gone."""
        for name in names:
            self._store.delete_object(self.container, self._name(name))

    def content(self, value: Any) -> bytes:
        """Return the content of a record's object."""
        content = json.dumps(value, separators=(',', ':')).encode()
        # The same value makes the same object.
        return gzip.compress(content, mtime=0) if self._packed else content
