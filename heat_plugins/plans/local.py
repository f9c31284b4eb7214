# SPDX-License-Identifier: Apache-2.0
"""A registry of names in the object store, where there is no Mistral."""

from collections import abc
import json
import time
from typing import Final

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins.objectstore import claims
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import store as store_module
from heat_plugins.plans import plan_protocols

#: What the name of the container with an object of each name begins with.
CONTAINER: Final = 'heat-plugins-plan-names'

_LIMIT = 64 * 1024

# The most names of a project, each of which takes a request.
_NAMES = 2000


class Names:
    """Names in a container, as `protocols.Registry` has them.

    It is a best effort: two who take a name at once may both be told that
    they have it where listings lag behind; see `objectstore.claims`.

    :param store: the project's object store.
    """

    def __init__(
        self,
        store: store_module.ObjectStore,
        pool: pools.Pool | None = None,
        *,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._pool = pool or pools.Pool()
        self._sleep = sleep
        self._container = containers.Own(store, CONTAINER)

    def create(self, record: plan_protocols.Record) -> bool:
        """See `protocols.Registry.create`."""
        body = json.dumps(
            {'description': record.description, 'values': dict(record.values)}
        ).encode()
        container = self._container.name
        try:
            return self._create(container, record.name, body)
        except errors.NoObject:
            self._store.put_container(container, {})
            return self._create(container, record.name, body)

    def _create(self, container: str, name: str, body: bytes) -> bool:
        return claims.create(
            self._store, container, name, body, sleep=self._sleep
        )

    def get(self, name: str) -> plan_protocols.Record | None:
        """See `protocols.Registry.get`."""
        try:
            body = self._store.get_object(self._container.name, name, _LIMIT)
            found = bounds.read_json(body)
            return plan_protocols.Record(
                name=name,
                description=str(found['description']),
                values=dict(found['values']),
            )
        except errors.NoObject:
            return None
        except (
            errors.BadSignal,
            ValueError,
            KeyError,
            TypeError,
        ) as exc:
            raise errors.ServiceError(
                f'Object {name} of container {self._container.name} is no '
                'record of a plan; delete it'
            ) from exc

    def find(self) -> list[plan_protocols.Record]:
        """See `protocols.Registry.find`."""
        try:
            entries = self._store.list_objects(
                self._container.name, '', _NAMES
            )
        except errors.NoObject:
            return []
        names = [
            entry.name
            for entry in entries
            if not entry.name.startswith(claims.FOLDER)
        ]
        found = self._pool.each(self.get, names)
        return [record for record in found if record is not None]

    def delete(self, name: str) -> bool:
        """See `protocols.Registry.delete`."""
        if self.get(name) is None:
            return False
        self._store.delete_object(self._container.name, name)
        return True
