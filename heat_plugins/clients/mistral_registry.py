# SPDX-License-Identifier: Apache-2.0
"""Mistral's environments as a registry of plans' names."""

from collections import abc
import json
from typing import Any, Final
from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.clients import rest
from heat_plugins.mistral.executions import outcome
from heat_plugins.plans import plan_names

_FIELDS: Final = ('id', 'name', 'description', 'project_id', 'variables')


class Registry:
    """A project's environments in Mistral; see `plan_names.Registry`."""

    def __init__(self, cloud: rest.Cloud) -> None:
        self._session = cloud.session
        self._environments = mistral_api.connect(cloud).environments

    def create(self, record: plan_names.Record) -> bool:
        """See `plan_names.Registry.create`."""
        try:
            mistral_api.ask(
                self._environments.create,
                name=record.name,
                description=record.description,
                variables=json.dumps(dict(record.values)),
            )
        except errors.Conflict:
            return False
        return True

    def get(self, name: str) -> plan_names.Record | None:
        """See `plan_names.Registry.get`."""
        own = [row for row in self._named(name) if self._is_own(row)]
        return _record(own[0]) if own else None

    def find(self) -> list[plan_names.Record]:
        """See `plan_names.Registry.find`."""
        return [
            _record(row)
            for row in self._rows(sort_keys='name')
            if self._is_own(row)
        ]

    def delete(self, name: str) -> bool:
        """See `plan_names.Registry.delete`.

        :raises errors.ServiceError: another project has made an environment
            of that name public; Mistral would delete that one, too.
        """
        rows = list(self._named(name))
        if not all(self._is_own(row) for row in rows):
            raise errors.ServiceError(
                f'Another project has a public environment {name} in '
                'Mistral, which Mistral would delete with ours; ask that '
                'project to rename it'
            )
        if not rows:
            return False
        try:
            mistral_api.ask(
                self._environments.delete, parse.quote(name, safe='')
            )
        except errors.NotFound:
            return False
        return True

    def _named(self, name: str) -> abc.Iterator[dict[str, Any]]:
        return self._rows(name=f'eq:{name}')

    def _rows(self, **query: str) -> abc.Iterator[dict[str, Any]]:
        rows = mistral_api.each(
            self._environments.list, fields=_FIELDS, **query
        )
        return (row.to_dict() for row in rows)

    def _is_own(self, row: abc.Mapping[str, Any]) -> bool:
        # A list has the public ones of others as well.
        project = mistral_api.ask(self._session.get_project_id)
        return bool(row.get('project_id') == project)


def _record(row: abc.Mapping[str, Any]) -> plan_names.Record:
    return plan_names.Record(
        name=str(row['name']),
        description=str(row.get('description') or ''),
        values=outcome.mapping(row.get('variables')),
    )
