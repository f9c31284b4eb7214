# SPDX-License-Identifier: Apache-2.0
"""Results that are too large or too secret for Mistral, in the object store.

Mistral stores at most one mebibyte of a result, and shows all of it in its
lists. So a large result is stored with the plan, and Mistral gets a
reference::

    {'container': 'shop', 'object': '.heat-plugins/results/…', 'bytes': 923411}

Content without a plan lies in a container of its own, and expires after a day.
"""

from collections import abc
import contextlib
import functools
import hashlib
import json
from typing import Any, Final
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.content import storage
from heat_plugins.objectstore import stores

#: What the name of the container begins with where what belongs to no plan
#: lies, and for how many seconds: an execution may have to wait for Mistral's
#: executors.
UPLOADS: Final = 'heat-plugins-uploads'
LIFETIME: Final = 24 * 3600

#: The most bytes that a result may have by itself, as JSON.
LIMIT = 64 * 1024

_PREFIX = f'{storage.OWN}results/'

# The most bytes of what is sent: an executor reads it, which serves all
# projects.
_MOST_SENT = 32 * 1024 * 1024

# Levels of lists and maps: those of a text of a plan, and those around it.
_DEPTH = 128
_KEYS = {'container', 'object', 'bytes'}


def pack(
    store: stores.ObjectStore,
    container: str | None,
    value: Any,
    now: float,
) -> Any:
    """Return a result, or a reference to it.

    :param container: the plan's; None for a result without a plan.
    :param now: the time; it orders the references, and only the last few stay.
    """
    content = json.dumps(value).encode()
    if len(content) <= LIMIT:
        return value
    if container is None:
        return send(store, content)
    digest = hashlib.sha256(content).hexdigest()[:16]
    name = f'{_PREFIX}{int(now):012d}-{digest}.json'
    store.put_object(container, name, content)
    former = (entry.name for entry in store.list_objects(container, _PREFIX))
    for surplus in sorted(former)[:-5]:
        store.delete_object(container, surplus)
    return reference(container, name, content)


def send(store: stores.ObjectStore, content: bytes) -> dict[str, Any]:
    """Store content for a day, and return a reference to it."""
    name = str(uuid.uuid4())
    pool = pools.Pool()
    own = stores.OwnContainer(store, UPLOADS)
    container = pool.insist(lambda: own.name)
    pool.insist(store.put_container, container, {})
    pool.insist(
        functools.partial(store.put_object, lifetime=LIFETIME),
        container,
        name,
        content,
    )
    return reference(container, name, content)


def reference(container: str, name: str, content: bytes) -> dict[str, Any]:
    """Return a reference to an object."""
    return {'container': container, 'object': name, 'bytes': len(content)}


def received(store: stores.ObjectStore, value: Any) -> Any:
    """Unpack a value that a client has sent, by itself or as a reference.

    :raises errors.TooLarge: the object of a reference exceeds the limit.
    :raises errors.BadContent: it is not JSON.
    """
    if not isinstance(value, abc.Mapping) or value.keys() != _KEYS:
        return value
    container, name = str(value['container']), str(value['object'])
    content = store.get_object(container, name, _MOST_SENT)
    try:
        return bounds.read_json(content, depth=_DEPTH)
    except ValueError as exc:
        raise errors.BadContent(
            f'Object {container}/{name} is unreadable: '
            f'{foreign.line(exc, bounds.NAME)}'
        ) from exc


@contextlib.contextmanager
def opened(store: stores.ObjectStore, value: Any) -> abc.Iterator[Any]:
    """Unpack an upload, and delete its object at the end.

    The object is a secret, and the client that uploaded it may be dead. It
    stays until the end, since Mistral repeats an action whose executor has
    died.
    """
    content = received(store, value)
    try:
        yield content
    finally:
        forget(store, value)


def forget(store: stores.ObjectStore, value: Any) -> None:
    """Delete the object of an upload, if `value` is a reference to it."""
    if (
        isinstance(value, abc.Mapping)
        and value.keys() == _KEYS
        and str(value['container']).startswith(UPLOADS)
    ):
        # Else it goes after a day.
        with contextlib.suppress(errors.ServiceError):
            store.delete_object(value['container'], value['object'])
