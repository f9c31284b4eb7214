# SPDX-License-Identifier: Apache-2.0
"""The endpoints of services, and Keystone's refusals."""

import dataclasses
from typing import Any

from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

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
