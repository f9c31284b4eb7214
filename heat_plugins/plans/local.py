# SPDX-License-Identifier: Apache-2.0
"""A registry of names in the object store, where there is no Mistral."""

from collections import abc
import time
from typing import Final

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores
from heat_plugins.plans import plan_protocols

#: What the name of the container with an object of each name begins with.
CONTAINER: Final = 'heat-plugins-plan-names'

_LIMIT = 64 * 1024

# The most names of a project, each of which takes a request.
_NAMES = 2000


class Names:
    """Names in a container, as `plan_protocols.Registry` has them.

    It is a best effort: two who take a name at once may both be told that
    they have it where listings lag behind; see `objectstore.exclusive`.
    """

    def __init__(
        self,
        store: stores.ObjectStore,
        pool: pools.Pool | None = None,
        *,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._records = json_records.Records(
            store, stores.OwnContainer(store, CONTAINER), limit=_LIMIT
        )
        self._pool = pool or pools.Pool()
        self._sleep = sleep

    def create(self, record: plan_protocols.Record) -> bool:
        """See `plan_protocols.Registry.create`."""
        value = {
            'description': record.description,
            'values': dict(record.values),
        }
        return self._records.create(record.name, value, sleep=self._sleep)

    def get(self, name: str) -> plan_protocols.Record | None:
        """See `plan_protocols.Registry.get`."""
        try:
            value = self._records.fetch(name).value
            return plan_protocols.Record(
                name=name,
                description=str(value['description']),
                values=dict(value['values']),
            )
        except errors.NoObject:
            return None
        except (ValueError, KeyError, TypeError) as exc:
            raise errors.ServiceError(
                f'Object {name} of container {self._records.container} is '
                'not a record of a plan; delete it'
            ) from exc

    def find(self) -> list[plan_protocols.Record]:
        """See `plan_protocols.Registry.find`."""
        names = self._records.names(most=_NAMES)
        records = self._pool.each(self.get, names)
        return [record for record in records if record is not None]

    def delete(self, name: str) -> bool:
        """See `plan_protocols.Registry.delete`."""
        if self.get(name) is None:
            return False
        self._records.delete(name)
        return True
