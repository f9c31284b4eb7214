# SPDX-License-Identifier: Apache-2.0
"""Mistral's environments as a registry of names, over a Keystone session."""

from collections import abc
import json
from typing import Any, Final
from urllib import parse

from heat_plugins import errors
from heat_plugins.clients import keystone
from heat_plugins.clients import rest
from heat_plugins.mistral.executions import outcome
from heat_plugins.plans import plan_protocols

#: So many rows come in one answer.
_ROWS: Final = 1000

_FIELDS: Final = 'id,name,description,project_id,variables'


class Registry:
    """A project's environments in Mistral; see `protocols.Registry`."""

    def __init__(self, cloud: keystone.Cloud) -> None:
        self._rest = rest.Rest(rest.MISTRAL, cloud)

    def create(self, record: plan_protocols.Record) -> bool:
        """See `protocols.Registry.create`."""
        body = {
            'name': record.name,
            'description': record.description,
            'variables': json.dumps(dict(record.values)),
        }
        answer = self._call('POST', '/environments', (409,), json=body)
        return answer is not None

    def get(self, name: str) -> plan_protocols.Record | None:
        """See `protocols.Registry.get`."""
        own = [row for row in self._named(name) if self._is_own(row)]
        return _record(own[0]) if own else None

    def find(self) -> list[plan_protocols.Record]:
        """See `protocols.Registry.find`."""
        return [
            _record(row)
            for row in self._rows({'sort_keys': 'name'})
            if self._is_own(row)
        ]

    def delete(self, name: str) -> bool:
        """See `protocols.Registry.delete`.

        :raises errors.ServiceError: another project has made an environment
            of that name public; Mistral would delete that one, too.
        """
        rows = list(self._named(name))
        if not all(self._is_own(row) for row in rows):
            raise errors.ServiceError(
                f'Another project has a public environment {name} in '
                'Mistral, which would go with ours; ask for it to be renamed'
            )
        if not rows:
            return False
        path = f'/environments/{parse.quote(name, safe="")}'
        return self._call('DELETE', path, (404,)) is not None

    def _named(self, name: str) -> abc.Iterator[dict[str, Any]]:
        return self._rows({'name': f'eq:{name}'})

    def _rows(
        self, query: abc.Mapping[str, str]
    ) -> abc.Iterator[dict[str, Any]]:
        query = {**query, 'fields': _FIELDS, 'limit': str(_ROWS)}
        while True:
            answer = self._call('GET', '/environments', params=query)
            rows = answer['environments']
            yield from rows
            if len(rows) < _ROWS:
                return
            query['marker'] = rows[-1]['id']

    def _is_own(self, row: abc.Mapping[str, Any]) -> bool:
        # A list has the public ones of others as well.
        return bool(row.get('project_id') == self._rest.project_id())

    def _call(
        self,
        method: str,
        path: str,
        expected: abc.Collection[int] = (),
        **more: Any,
    ) -> Any:
        """Send a request; return the JSON of the answer, or a map.

        :param expected: the statuses for which to return None.
        """
        try:
            found = self._rest.call(method, path, 'an environment', **more)
        except errors.ServiceError as exc:
            if exc.status in expected:
                return None
            raise
        return {} if found is None else found


def _record(row: abc.Mapping[str, Any]) -> plan_protocols.Record:
    return plan_protocols.Record(
        name=str(row['name']),
        description=str(row.get('description') or ''),
        values=outcome.mapping(row.get('variables')),
    )
