# SPDX-License-Identifier: Apache-2.0
"""Heat's REST API over a Keystone session: one call, and how it fails.

heatclient would do as well, but it turns every answer into objects of its
own, and follows redirects by its own rules.
"""

from collections import abc
import enum
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

from heat_plugins.clients import keystone

SERVICE_TYPE = 'orchestration'

# Nobody waits longer than this for the first byte of an answer.
_TIMEOUT = 60.0


class Kind(enum.Enum):
    """What an answer, or the lack of one, means to whoever has asked."""

    #: There is no such thing, or not for this project.
    MISSING = 'missing'
    #: Who asked may not do this, or Keystone gives no token.
    DENIED = 'denied'
    #: It is there already, or is being changed.
    CONFLICT = 'conflict'
    #: It may pass.
    UNAVAILABLE = 'unavailable'
    REFUSED = 'refused'


_KINDS = {
    401: Kind.DENIED,
    403: Kind.DENIED,
    404: Kind.MISSING,
    408: Kind.UNAVAILABLE,
    409: Kind.CONFLICT,
    429: Kind.UNAVAILABLE,
}


class Failure(Exception):
    """A call did not succeed.

    :ivar status: the HTTP status; None where no answer came.
    :ivar said: Heat's own words, which may quote what it was given; ''
        where it said none.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        status: int | None = None,
        said: str = '',
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.said = said


class Rest:
    """Heat's API.

    :param session: a session with an auth plugin.
    :param interface: which of the catalogue's endpoints to use.
    :param region_name: the region; None for the only one.
    """

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

    def call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        timeout: float = _TIMEOUT,
        headers: abc.Mapping[str, str] | None = None,
        **more: Any,
    ) -> Any:
        """Send a request; return what the JSON of the answer says.

        :param what: what is asked for, for messages.
        :param more: as `requests` takes them.
        :raises Failure: it did not succeed.
        """
        try:
            answer = self._adapter.request(
                path,
                method,
                headers={'Accept': 'application/json', **(headers or {})},
                raise_exc=False,
                # The session would log the inputs, secrets and all.
                log=False,
                timeout=timeout,
                **more,
            )
        except exceptions.ClientException as exc:
            raise _unanswered(exc) from exc
        status = int(answer.status_code)
        if status >= 300:
            kind = _KINDS.get(status, Kind.REFUSED)
            raise Failure(
                Kind.UNAVAILABLE if status >= 500 else kind,
                f'Heat answered {status} to {method} of {what}'.rstrip(),
                status,
                _said(answer),
            )
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError as exc:
            raise Failure(
                Kind.REFUSED,
                f'Heat answered {method} of {what} with what is not JSON',
                status,
            ) from exc


def _said(answer: Any) -> str:
    try:
        return str(answer.json()['error']['message'])
    except (ValueError, KeyError, TypeError):
        return ''


def _unanswered(exc: exceptions.ClientException) -> Failure:
    """Say what a failure of the session means to us."""
    name = type(exc).__name__
    if isinstance(exc, exceptions.EndpointNotFound):
        return Failure(
            Kind.REFUSED,
            'The catalogue has no Heat (service type "orchestration") in '
            'this region',
        )
    if isinstance(exc, keystone.REFUSALS):
        return Failure(Kind.DENIED, f'Keystone gives no token for it: {name}')
    return Failure(Kind.UNAVAILABLE, f'Heat cannot be reached: {name}')
