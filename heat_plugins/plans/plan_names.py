# SPDX-License-Identifier: Apache-2.0
"""Who has the name of a plan: a registry, as a protocol.

Each method may raise `errors.Denied`, `errors.Unavailable` or another
`errors.ServiceError`. The strict fake is in ``tests/unit/plans/fakes.py``.
"""

from collections import abc
import dataclasses
import time
from typing import Any, Final, Protocol

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores

#: What the name of the container with an object of each name begins with.
CONTAINER: Final = 'heat-plugins-plan-names'

_LIMIT = 64 * 1024

# The most names of a project, each of which takes a request.
_NAMES = 2000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Record:
    """What stands under a name in a registry.

    :ivar values: JSON's kinds only; who reads them judges them.
    """

    name: str
    description: str
    values: abc.Mapping[str, Any]


class Registry(Protocol):
    """Names, each of which one at most can take.

    They are Mistral's environments (`heat_plugins.clients`), or objects where
    there is no Mistral (`Names`).
    """

    def create(self, record: Record) -> bool:
        """Take a name; False where it is taken."""

    def get(self, name: str) -> Record | None:
        """Return the record of a name in this project, if there is one."""

    def find(self) -> list[Record]:
        """Return all records of this project, by name."""

    def delete(self, name: str) -> bool:
        """Release a name; False where it was not taken."""


class Names:
    """A registry in the object store, where there is no Mistral.

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

    def create(self, record: Record) -> bool:
        """See `Registry.create`."""
        value = {
            'description': record.description,
            'values': dict(record.values),
        }
        return self._records.create(record.name, value, sleep=self._sleep)

    def get(self, name: str) -> Record | None:
        """See `Registry.get`."""
        try:
            value = self._records.fetch(name).value
            return Record(
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

    def find(self) -> list[Record]:
        """See `Registry.find`."""
        names = self._records.names(most=_NAMES)
        records = self._pool.each(self.get, names)
        return [record for record in records if record is not None]

    def delete(self, name: str) -> bool:
        """See `Registry.delete`."""
        if self.get(name) is None:
            return False
        self._records.delete(name)
        return True
