# SPDX-License-Identifier: Apache-2.0
"""Delete objects and containers, with few requests."""

from collections import abc
import threading
import time

from heat_plugins import errors
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import stores

_DROP_ATTEMPTS = 3

# Objects that one attempt deletes.
DROPPED = 10000

# Attempts at the objects below a prefix.
_PASSES = 100

# How many objects to collect before their deletion, for how many seconds after
# the last one that follows others, and for how many at most.
_BATCH = 500
_SECONDS = 2
_SECONDS_MAX = 30


def everything(
    store: stores.ObjectStore, container: str, prefix: str = ''
) -> abc.Collection[str]:
    """List all objects of a container; none if there is no container.

    :raises errors.TooManyObjects: they exceed what a listing collects.
    """
    try:
        return [each.name for each in store.list_objects(container, prefix)]
    except errors.NoObject:
        return ()


def delete(
    store: stores.ObjectStore,
    container: str,
    objects: abc.Collection[str],
) -> None:
    """Delete objects, many with one request where the store can.

    :raises errors.ServiceError: some of them remain.
    """
    remaining = list(objects)
    known = keys.KeyKeeper.known(store.cluster_url)
    if known is not None and known.bulk and len(remaining) > 1:
        names, remaining = remaining, []
        for start in range(0, len(names), known.bulk):
            chunk = names[start : start + known.bulk]
            try:
                remaining += store.delete_at_once(container, chunk)
            except errors.ServiceError:
                # Single requests will show the cause.
                remaining += chunk
    for name in remaining:
        store.delete_object(container, name)


def delete_below(
    store: stores.ObjectStore, container: str, prefix: str
) -> None:
    """Delete all objects below a prefix, however many a server has put there.

    :raises errors.TooManyObjects: there are more than `_PASSES` times
        `DROPPED` objects; it can be called again.
    """
    for _ in range(_PASSES):
        names = store.first_names(container, prefix, DROPPED)
        delete(store, container, names)
        if len(names) < DROPPED:
            return
    raise errors.TooManyObjects(
        f'Container {container} holds more than {_PASSES * DROPPED} objects '
        f'below {prefix}, or objects keep arriving. Repeat the deletion'
    )


def drop(store: stores.ObjectStore, container: str) -> None:
    """Delete a container and the objects in it.

    An object that arrives meanwhile fills it again. Hence the attempts, and
    an end to all URLs if the first fails.

    :raises errors.Conflict: something kept arriving, or there is more than
        `_DROP_ATTEMPTS` times `DROPPED` objects; it can be called again.
    """
    for attempt in range(_DROP_ATTEMPTS):
        try:
            if attempt:
                keys.withdraw(store, container)
            delete(store, container, store.first_names(container, '', DROPPED))
            store.delete_container(container)
        except errors.NoObject:
            return
        except errors.Conflict:
            if attempt + 1 == _DROP_ATTEMPTS:
                raise
        else:
            return


class Bin:
    """Objects to delete soon, and together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._names: list[str] = []
        # When the first and the last of them were put in.
        self._first_at = self._last_at = 0.0

    def add(self, name: str) -> None:
        """Put an object in."""
        with self._lock:
            self._last_at = time.monotonic()
            if not self._names:
                self._first_at = self._last_at
            self._names.append(name)

    def take(self, *, is_last: bool) -> list[str]:
        """Take all out if it is time to; the caller deletes them.

        :param is_last: whether no later call is certain.
        """
        with self._lock:
            now = time.monotonic()
            is_due = (
                is_last
                or len(self._names) >= _BATCH
                or now - self._last_at >= _SECONDS
                or now - self._first_at >= _SECONDS_MAX
            )
            if not is_due:
                return []
            taken, self._names = self._names, []
            return taken
