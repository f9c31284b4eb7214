# SPDX-License-Identifier: Apache-2.0
"""Results of operations for colleagues who may only read.

The records of operations lie in a container that needs an operator role:
they have inputs, scripts and what signs the servers' URLs, and the object
store cannot open a part of a container. So what is shared is a copy, without
these, in a container of its own, which all users with a role in the project
may read. The store deletes the copy after some days.
"""

from collections import abc
import contextlib
import dataclasses
import json

from heat_plugins import errors
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import stores
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview

#: The beginning of the container's name.
CONTAINER = 'heat-plugins-results'

_SUFFIXES = ('html', 'json')
_DAY = 86400


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    """A copy that colleagues can read."""

    container: str
    objects: tuple[str, ...]
    expires_at: int


class SharedResults:
    """The copies of one project."""

    def __init__(self, store: stores.ObjectStore) -> None:
        self._store = store
        self._own = containers.Own(store, CONTAINER)

    def share(
        self, found: operations.Operation, page: str, days: int, now: float
    ) -> Shared:
        """Copy the results of an operation; replace an earlier copy.

        :param page: a page of HTML, without inputs.
        :raises errors.Refused: the project is not known.
        """
        project = self._store.project_id
        if project is None:
            raise errors.Refused(
                'The object store does not say which project this is, so '
                'nothing can be shared with its users'
            )
        # Any role will do; listing the container, too, is reading.
        readers = {'X-Container-Read': f'{project}:*'}
        self._store.put_container(self._own.name, readers)
        contents = page, json.dumps(results(found, now), indent=2)
        for name, text in zip(_names(found.id), contents, strict=True):
            self._store.put_object(
                self._own.name, name, text.encode(), lifetime=days * _DAY
            )
        return Shared(
            container=self._own.name,
            objects=_names(found.id),
            expires_at=int(now) + days * _DAY,
        )

    def withdraw(self, operation_id: str) -> None:
        """Delete the copy of an operation, if there is one."""
        for name in _names(operation_id):
            self._store.delete_object(self._own.name, name)
        with contextlib.suppress(errors.NoObject, errors.Conflict):
            self._store.delete_container(self._own.name)


def results(
    found: operations.Operation, now: float
) -> abc.Mapping[str, object]:
    """Return an operation and its targets in JSON's types, without inputs."""
    shown = overview.of(found, now)
    del shown['inputs'], shown['script']
    members = range(len(found.attempts))
    return {
        **shown,
        'results': [overview.target(found, member) for member in members],
    }


def _names(operation_id: str) -> tuple[str, ...]:
    return tuple(f'{operation_id}.{suffix}' for suffix in _SUFFIXES)
