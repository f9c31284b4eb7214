# SPDX-License-Identifier: Apache-2.0
"""Files in a container of the object store, by their paths."""

from collections import abc
import contextlib
import hashlib
import itertools
from typing import Final

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import cleaning
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores

#: The prefix of records about a plan, which are not its content.
OWN: Final = '.heat-plugins/'

#: The most bytes of one file. Heat's requests are smaller by far.
FILE_LIMIT: Final = 16 * 1024 * 1024

# Who else may read and write a container.
_LISTS = ('x-container-read', 'x-container-write')

_BULK = 1000
# The object store's listing, by which it tells whether a container is empty,
# comes after its objects.
_SWEEPS = 5


class Container:
    """A container with files."""

    def __init__(
        self, store: stores.ObjectStore, name: str, pool: pools.Pool
    ) -> None:
        self._store = store
        self._name = name
        self._pool = pool

    def exists(self) -> bool:
        return self._headers() is not None

    def check_unshared(self) -> None:
        """Refuse a container that others may read or write.

        :raises errors.Refused: it has an access control list.
        """
        if is_shared(self._headers() or {}):
            raise errors.Refused(
                f'Container {self._name} is shared: its access control lists '
                "let others read or write the plan's templates and "
                'passwords. Remove the lists (swift post --read-acl "" '
                f'--write-acl "" {self._name}), or choose another name'
            )

    def entries(self) -> dict[str, stores.Entry]:
        """List the files by their paths.

        :raises errors.NotFound: there is no such container.
        """
        return {
            entry.name: entry
            for entry in self._listed()
            if not entry.name.startswith(OWN) and not entry.name.endswith('/')
        }

    def own(self, prefix: str) -> list[str]:
        """List the records about the files, below `OWN`."""
        if not prefix.startswith(OWN):
            raise ValueError(f'{prefix} is not below {OWN}')
        return [entry.name for entry in self._listed(prefix)]

    def read(self, path: str) -> bytes:
        """Return a file's content.

        :raises errors.NotFound: the plan has no such file.
        :raises errors.Invalid: it is larger than `FILE_LIMIT`.
        """
        content = self._pool.insist(self._read, path)
        if content is None:
            raise errors.NotFound(f'Plan {self._name} has no file {path}')
        return content

    def fetch(
        self,
        paths: abc.Collection[str],
        progress: pools.Progress | None = None,
    ) -> dict[str, bytes]:
        """Return the contents of those paths that exist."""
        contents = self._pool.each(self._read, paths, progress)
        return {
            path: content
            for path, content in zip(paths, contents, strict=True)
            if content is not None
        }

    def write(
        self,
        files: abc.Mapping[str, bytes],
        progress: pools.Progress | None = None,
    ) -> None:
        """Write files."""
        self._pool.each(
            lambda path: self._store.put_object(self._name, path, files[path]),
            list(files),
            progress,
        )

    def delete(
        self,
        paths: abc.Collection[str],
        progress: pools.Progress | None = None,
    ) -> None:
        """Delete files, many at once where the object store can."""
        rest = list(paths)
        size = self._bulk_size() if len(rest) > 1 else 0
        if size:
            rest = cleaning.delete_together(
                self._store,
                self._name,
                rest,
                size,
                progress or (lambda done, total: None),
            )
        self._pool.each(
            lambda path: self._store.delete_object(self._name, path),
            rest,
            None if size else progress,
        )

    def remove(self, progress: pools.Progress | None = None) -> None:
        """Delete the container with all its objects, if it exists."""
        for sweep in range(_SWEEPS):
            with contextlib.suppress(errors.NoObject):
                self.delete(self._some(), progress)
            try:
                self._pool.insist(self._store.delete_container, self._name)
            except errors.NoObject:
                return
            except errors.Conflict:
                if sweep == _SWEEPS - 1:
                    raise
                self._pool.pause()
            else:
                return

    def _headers(self) -> abc.Mapping[str, str] | None:
        try:
            return self._pool.insist(self._store.head_container, self._name)
        except errors.NoObject:
            return None
        except errors.Denied as exc:
            if exc.status != 403:
                raise
            raise errors.Denied(
                f'{exc}. Another project may own container {self._name}, '
                'because all projects share one namespace on Ceph RGW '
                'without implicit tenants. Choose another name',
                exc.status,
            ) from exc

    def _some(self) -> list[str]:
        """List objects, as many as a listing collects."""
        return self._pool.insist(
            lambda name: [
                entry.name
                for entry in itertools.islice(
                    self._store.iterate(name, ''), stores.MOST
                )
            ],
            self._name,
        )

    def _listed(self, prefix: str = '') -> list[stores.Entry]:
        try:
            return self._pool.insist(
                self._store.list_objects, self._name, prefix
            )
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'Container {self._name} does not exist'
            ) from exc

    def _read(self, path: str) -> bytes | None:
        try:
            return self._store.get_object(self._name, path, FILE_LIMIT)
        except errors.NoObject:
            return None
        except errors.TooLarge as exc:
            raise errors.Invalid(
                f'File {path} of {self._name} is larger than {FILE_LIMIT} '
                'bytes'
            ) from exc

    def _bulk_size(self) -> int:
        """Return how many objects one request may delete; 0 for one each."""
        try:
            return min(_BULK, keys.most_deletes(self._store.info()))
        except errors.Unavailable:
            return 0


def is_shared(headers: abc.Mapping[str, str]) -> bool:
    """Say whether an access control list lets others read or write."""
    return any(headers.get(name) for name in _LISTS)


def entry(path: str, content: bytes) -> stores.Entry:
    """Return the entry of a file with a content in a listing."""
    etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return stores.Entry(name=path, size=len(content), etag=etag)


def changed(
    files: abc.Mapping[str, bytes],
    entries: abc.Mapping[str, stores.Entry],
) -> dict[str, bytes]:
    """Return the files that differ from a container's entries."""
    return {
        path: content
        for path, content in files.items()
        if entries.get(path) != entry(path, content)
    }
