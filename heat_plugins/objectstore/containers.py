# SPDX-License-Identifier: Apache-2.0
"""Containers of a project, with names that no other project has.

Ceph's gateway without ``rgw keystone implicit tenants`` has one namespace of
containers for all projects. So the project's ID is part of the name. Earlier
releases left it out; a project that has a container of that name keeps it.
"""

import functools

from heat_plugins.objectstore import stores


class Own:
    """The project's container for one purpose.

    :param stem: its purpose, and its name in earlier releases.
    """

    def __init__(self, store: stores.ObjectStore, stem: str) -> None:
        self._store = store
        self._stem = stem

    @functools.cached_property
    def name(self) -> str:
        """The container's name; the container may not be there.

        :raises heat_plugins.errors.ServiceError: the object store
            does not tell which containers the project has.
        """
        project_id = self._store.project_id
        if project_id is None:
            return self._stem
        name = f'{self._stem}-{project_id}'
        owned = self._store.owned_containers(self._stem)
        # Once there is one of the new name, it holds the records.
        is_former = self._stem in owned and name not in owned
        return self._stem if is_former else name
