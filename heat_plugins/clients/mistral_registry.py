# SPDX-License-Identifier: Apache-2.0
"""Mistral's environments as a registry of names, over a Keystone session.

It speaks Mistral's REST API itself: mistralclient forgets the certificates
that the session knows.
"""

from collections import abc
import json
from typing import Any, Final
from urllib import parse

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

from heat_plugins.clients import keystone
from heat_plugins.plans import errors
from heat_plugins.plans import protocols

SERVICE_TYPE: Final = 'workflowv2'

#: So many rows come in one answer.
_ROWS: Final = 1000

_FIELDS: Final = 'id,name,description,project_id,variables'

# Nobody waits longer than this for the first byte of an answer.
_TIMEOUT: Final = 60.0

_PASSING: Final = frozenset({408, 429})


class Registry:
    """A project's environments in Mistral; see `protocols.Registry`.

    :param session: a session with an auth plugin.
    :param interface: which of the catalogue's endpoints to use.
    :param region_name: the region; None for the only one.
    """

    atomic = True

    def __init__(
        self,
        session: ks_session.Session,
        *,
        interface: str = 'public',
        region_name: str | None = None,
    ) -> None:
        self._adapter = adapter.Adapter(
            session,
            service_type=SERVICE_TYPE,
            interface=interface,
            region_name=region_name,
        )

    def create(self, record: protocols.Record) -> bool:
        """See `protocols.Registry.create`."""
        body = {
            'name': record.name,
            'description': record.description,
            'variables': json.dumps(dict(record.values)),
        }
        answer = self._call('POST', '/environments', (409,), json=body)
        return answer is not None

    def get(self, name: str) -> protocols.Record | None:
        """See `protocols.Registry.get`."""
        own = [row for row in self._named(name) if self._is_own(row)]
        return _record(own[0]) if own else None

    def find(self) -> list[protocols.Record]:
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
        return bool(row.get('project_id') == self._project())

    def _project(self) -> str | None:
        try:
            return self._adapter.get_project_id()
        except exceptions.ClientException as exc:
            raise _unanswered(exc) from exc

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
            answer = self._adapter.request(
                path,
                method,
                headers={'Accept': 'application/json'},
                raise_exc=False,
                timeout=_TIMEOUT,
                **more,
            )
        except exceptions.ClientException as exc:
            raise _unanswered(exc) from exc
        status = int(answer.status_code)
        if status in expected:
            return None
        if status >= 300:
            raise _refused(method, answer)
        return answer.json() if answer.content else {}


def _record(row: abc.Mapping[str, Any]) -> protocols.Record:
    values = row.get('variables') or {}
    if isinstance(values, str):
        values = json.loads(values)
    return protocols.Record(
        name=str(row['name']),
        description=str(row.get('description') or ''),
        values=values if isinstance(values, dict) else {},
    )


def _refused(method: str, answer: Any) -> errors.ServiceError:
    status = int(answer.status_code)
    kind = errors.ServiceError
    if status in (401, 403):
        kind = errors.Denied
    elif status in _PASSING or status >= 500:
        kind = errors.Unavailable
    try:
        said = f': {answer.json()["faultstring"]}'
    except (ValueError, KeyError, TypeError):
        said = ''
    return kind(
        f'Mistral answered {status} to {method} of an environment{said}',
        status,
    )


def _unanswered(exc: exceptions.ClientException) -> errors.ServiceError:
    """Say what a failure of the session means to us."""
    name = type(exc).__name__
    if isinstance(exc, exceptions.EndpointNotFound):
        return errors.ServiceError(
            f'The catalogue has no Mistral (service type "{SERVICE_TYPE}") '
            'in this region'
        )
    if isinstance(exc, keystone.REFUSALS):
        return errors.Denied(f'Keystone gives no token for it: {name}')
    return errors.Unavailable(f'Mistral cannot be reached: {name}')
