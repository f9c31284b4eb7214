# SPDX-License-Identifier: Apache-2.0
"""A registry of names in the object store, where there is no Mistral."""

import json
from typing import Final

from heat_plugins.plans import errors
from heat_plugins.plans import pool as pools
from heat_plugins.plans import protocols
from heat_plugins.signals import errors as store_errors
from heat_plugins.signals import store as store_module

#: The container with an object of each name.
CONTAINER: Final = 'heat-plugins-plan-names'

_LIMIT = 64 * 1024


class Names:
    """Names in a container, as `protocols.Registry` has them.

    It is a best effort: two who take a name at once, at different proxies
    of a cluster that is out of order, may both be told that they have it.

    :param store: the project's object store.
    """

    atomic = False

    def __init__(
        self,
        store: store_module.ObjectStore,
        pool: pools.Pool | None = None,
    ) -> None:
        self._store = store
        self._pool = pool or pools.Pool()

    def create(self, record: protocols.Record) -> bool:
        """See `protocols.Registry.create`."""
        body = json.dumps(
            {'description': record.description, 'values': dict(record.values)}
        ).encode()
        try:
            return self._store.create_object(CONTAINER, record.name, body)
        except store_errors.NotFound:
            self._store.put_container(CONTAINER, {})
            return self._store.create_object(CONTAINER, record.name, body)

    def get(self, name: str) -> protocols.Record | None:
        """See `protocols.Registry.get`."""
        try:
            body = self._store.get_object(CONTAINER, name, _LIMIT)
            found = json.loads(body)
            return protocols.Record(
                name=name,
                description=str(found['description']),
                values=dict(found['values']),
            )
        except store_errors.NotFound:
            return None
        except (
            store_errors.BadSignal,
            ValueError,
            KeyError,
            TypeError,
        ) as exc:
            raise errors.ServiceError(
                f'Object {name} of container {CONTAINER} is no record of a '
                'plan; delete it'
            ) from exc

    def find(self) -> list[protocols.Record]:
        """See `protocols.Registry.find`."""
        try:
            entries = self._store.list_objects(CONTAINER, '')
        except store_errors.NotFound:
            return []
        found = self._pool.each(self.get, [entry.name for entry in entries])
        return [record for record in found if record is not None]

    def delete(self, name: str) -> bool:
        """See `protocols.Registry.delete`."""
        if self.get(name) is None:
            return False
        self._store.delete_object(CONTAINER, name)
        return True
