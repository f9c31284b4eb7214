# SPDX-License-Identifier: Apache-2.0
"""Objects next to the files of a plan, in the same container.

It is no part of the plan: no file of a plan has such a path, no export has
it, and the hash of the content does not cover it.
"""

import gzip
import json
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import storage
from heat_plugins.objectstore import store as store_module

# Of what is unpacked, too.
_LIMIT = 64 * 1024 * 1024

# Levels of lists and maps: those of a text of a plan, and those around it.
_DEPTH = 128


class Annex:
    """The objects next to a plan's files; their values are JSON, packed.

    :param store: the project's object store.
    :param container: the plan's.
    """

    def __init__(
        self, store: store_module.ObjectStore, container: str
    ) -> None:
        self._store = store
        self._container = container

    def read(self, name: str) -> Any:
        """Return a value; None if there is none, or none that can be read."""
        try:
            packed = self._store.get_object(
                self._container, f'{storage.OWN}{name}', _LIMIT
            )
            return bounds.read_json(
                bounds.gunzip(packed, _LIMIT), depth=_DEPTH
            )
        except errors.NoObject:
            return None
        except (errors.BadSignal, ValueError):
            return None

    def write(self, name: str, value: Any) -> None:
        text = json.dumps(value, separators=(',', ':'))
        self._store.put_object(
            self._container,
            f'{storage.OWN}{name}',
            # The same value makes the same object.
            gzip.compress(text.encode(), mtime=0),
        )

    def names(self, prefix: str) -> list[str]:
        """Return the names that begin with a prefix, in order."""
        found = self._store.list_objects(
            self._container, f'{storage.OWN}{prefix}'
        )
        return sorted(one.name.removeprefix(storage.OWN) for one in found)

    def delete(self, name: str) -> None:
        self._store.delete_object(self._container, f'{storage.OWN}{name}')
