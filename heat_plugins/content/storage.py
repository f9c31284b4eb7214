# SPDX-License-Identifier: Apache-2.0
"""Files in a container of the object store, by their paths."""

from collections import abc
import hashlib
from typing import Final

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import stores

#: The prefix of records about a plan, which are not its content.
OWN: Final = '.heat-plugins/'

#: The most bytes of one file. Heat's requests are smaller by far.
FILE_LIMIT: Final = 16 * 1024 * 1024

# Attempts to empty a container: the object store's listing lags behind.
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

    def entries(self) -> dict[str, stores.ListedObject]:
        """List the files by their paths.

        :raises errors.NotFound: there is no such container.
        """
        try:
            listed = self._pool.insist(
                self._store.list_objects, self._name, ''
            )
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'Container {self._name} does not exist'
            ) from exc
        return {
            entry.name: entry
            for entry in listed
            if not entry.name.startswith(OWN) and not entry.name.endswith('/')
        }

    def read(self, path: str) -> bytes:
        """Return a file's content.

        :raises errors.NotFound: the plan has no such file.
        :raises errors.Invalid: it is larger than `FILE_LIMIT`.
        """
        content = self._pool.insist(self._read, path)
        if content is None:
            raise errors.NotFound(f'Plan {self._name} has no file {path}')
        return content

    def fetch(self, paths: abc.Collection[str]) -> dict[str, bytes]:
        """Return the contents of those paths that exist."""
        contents = self._pool.each(self._read, paths)
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
        """Delete files."""
        self._pool.each(
            lambda path: self._store.delete_object(self._name, path),
            list(paths),
            progress,
        )

    def remove(self, progress: pools.Progress | None = None) -> None:
        """Delete the container with all its objects, if it exists."""
        for sweep in range(_SWEEPS):
            try:
                some = self._pool.insist(
                    self._store.first_names, self._name, '', stores.MOST
                )
                self.delete(some, progress)
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

    def _read(self, path: str) -> bytes | None:
        """Read a file of the container; None if it has gone."""
        try:
            return self._store.get_object(self._name, path, FILE_LIMIT)
        except errors.NoObject:
            return None
        except errors.TooLarge as exc:
            raise errors.Invalid(
                f'File {path} of {self._name} is larger than {FILE_LIMIT} '
                'bytes'
            ) from exc


def entry(path: str, content: bytes) -> stores.ListedObject:
    """Return the entry of a file with a content in a listing."""
    etag = hashlib.md5(content, usedforsecurity=False).hexdigest()
    return stores.ListedObject(name=path, size=len(content), etag=etag)


def changed(
    files: abc.Mapping[str, bytes],
    entries: abc.Mapping[str, stores.ListedObject],
) -> dict[str, bytes]:
    """Return the files that differ from a container's entries."""
    return {
        path: content
        for path, content in files.items()
        if entries.get(path) != entry(path, content)
    }
