# SPDX-License-Identifier: Apache-2.0
"""A Keystone session, and a service's REST API and errors over it.

The services' own clients do not fit: heatclient turns every answer into
objects of its own, and follows redirects by its own rules; with ``--debug``
ironicclient and openstacksdk log the bodies of requests, and with them the
passwords of BMCs.
"""

from collections import abc
import contextlib
import dataclasses
import json
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

from heat_plugins import bounds
from heat_plugins import errors

#: No token is available; that will not pass by itself.
REFUSALS = (
    exceptions.Unauthorized,
    exceptions.Forbidden,
    # What Keystone answers when a trust or an application credential has
    # been deleted.
    exceptions.NotFound,
    exceptions.AuthorizationFailure,
    exceptions.MissingAuthPlugin,
)


@dataclasses.dataclass(frozen=True)
class Cloud:
    """A user's session, and which endpoints it uses.

    :ivar interface: of the catalogue's endpoints.
    :ivar region_name: the region; None for the only one.
    """

    session: ks_session.Session
    interface: str = 'public'
    region_name: str | None = None

    def filter(self, service_type: str) -> dict[str, Any]:
        """Return the keywords that select a service's endpoint."""
        return {
            'service_type': service_type,
            'interface': self.interface,
            'region_name': self.region_name,
        }

    def has(self, service_type: str) -> bool:
        """Say whether the catalogue has a service.

        :raises exceptions.ClientException: the catalogue cannot be read.
        """
        try:
            return bool(self.session.get_endpoint(**self.filter(service_type)))
        except exceptions.EndpointNotFound:
            return False


def unanswered(
    exc: exceptions.ClientException,
    service: str,
    absent: errors.ServiceError,
    whom: str | None = None,
) -> errors.ServiceError:
    """Return the error for a session's failure without an answer.

    :param absent: the error if the catalogue lacks the service.
    :param whom: the name of what is unreachable, unless it is the service.
    """
    reason = type(exc).__name__
    if isinstance(exc, exceptions.EndpointNotFound):
        return absent
    if isinstance(exc, REFUSALS):
        return errors.Denied(
            f'Keystone refuses these credentials a token for {service}: '
            f'{reason}'
        )
    if isinstance(exc, exceptions.HttpError):
        # The service's own are answers, and no errors of the session.
        return errors.Unavailable(
            f'Keystone answered {exc.http_status} ({reason})'
        )
    return errors.Unavailable(f'Cannot reach {whom or service}: {reason}')


#: Seconds to wait for the first byte of a response.
TIMEOUT = 60.0

#: Levels of lists and maps in a response: the code that masks or prints it
#: recurses.
DEPTH = 200


def _of_ironic(answer: Any) -> tuple[Any, str]:
    """Return the message in an answer of Ironic."""
    error = answer['error_message']
    # It may be JSON within JSON.
    fault = json.loads(error) if isinstance(error, str) else error
    return fault['faultstring'], ''


@dataclasses.dataclass(frozen=True, kw_only=True)
class CatalogueService:
    """A service of the catalogue.

    :ivar words: returns the service's own message, and its name of the error,
        from the JSON of an answer that refuses a request.
    :ivar remedy: what to do if the catalogue lacks the service.
    """

    name: str
    type: str
    words: abc.Callable[[Any], tuple[Any, str]]
    remedy: str


_REGION = 'name the region that has it (--os-region-name)'

HEAT = CatalogueService(
    name='Heat',
    type='orchestration',
    words=lambda answer: (
        answer['error']['message'],
        str(answer['error'].get('type') or ''),
    ),
    remedy=f'Stacks need it; {_REGION}',
)
IRONIC = CatalogueService(
    name='Ironic',
    type='baremetal',
    words=_of_ironic,
    remedy=f'Nodes need it; {_REGION}',
)


class Rest:
    """A service's API.

    :param service: `HEAT` or `IRONIC`.
    :param more: as keystoneauth's `adapter.Adapter` takes them.
    """

    def __init__(
        self, service: CatalogueService, cloud: Cloud, **more: Any
    ) -> None:
        self._service = service
        self._adapter = adapter.Adapter(
            cloud.session, **cloud.filter(service.type), **more
        )

    def call(
        self,
        method: str,
        path: str,
        what: str,
        *,
        timeout: float = TIMEOUT,
        headers: abc.Mapping[str, str] | None = None,
        **more: Any,
    ) -> Any:
        """Send a request; return the JSON of the answer.

        :param what: the object of the request, for messages.
        :param more: as `requests` takes them.
        :returns: None if the answer is empty.
        :raises errors.ServiceError: it failed.
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
            raise self._unanswered(exc) from exc
        name = self._service.name
        status = int(answer.status_code)
        if status >= 300:
            words, kind = '', ''
            # Another program may have answered, such as a proxy.
            with contextlib.suppress(
                AttributeError, ValueError, KeyError, TypeError, RecursionError
            ):
                words, kind = self._service.words(answer.json())
            reason = ' '.join(bounds.cut(str(words)).split())
            message = f'{name} answered {status} to {method} of {what}'
            error = errors.of_status(status)(
                f'{message}: {reason}' if reason else message, status
            )
            error.kind = kind
            raise error
        if not answer.content:
            return None
        try:
            return bounds.read_json(answer.content, depth=DEPTH)
        except bounds.TooDeep as exc:
            raise errors.ServiceError(
                f'{name} answered {method} of {what}, and {exc}',
                status,
            ) from exc
        except ValueError as exc:
            raise errors.ServiceError(
                f'{name} answered {method} of {what}, but not in JSON',
                status,
            ) from exc

    def endpoint(self) -> str:
        """Return the service's address; '' if the catalogue has none.

        :raises errors.ServiceError: the catalogue cannot be read.
        """
        try:
            return str(self._adapter.get_endpoint() or '')
        except exceptions.EndpointNotFound:
            return ''
        except exceptions.ClientException as exc:
            raise self._unanswered(exc) from exc

    def _unanswered(
        self, exc: exceptions.ClientException
    ) -> errors.ServiceError:
        """Return the error for a service that gave no answer."""
        name, remedy = self._service.name, self._service.remedy
        absent = errors.ServiceError(
            f'The catalogue has no {name} (service type '
            f'"{self._service.type}") in this region. {remedy}'
        )
        return unanswered(exc, name, absent)
