# SPDX-License-Identifier: Apache-2.0
"""How services are reached, and what Keystone's refusals look like."""

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
    """A user's way to the services of a cloud.

    :ivar interface: which of the catalogue's endpoints to use.
    :ivar region_name: the region; None for the only one.
    """

    session: ks_session.Session
    interface: str = 'public'
    region_name: str | None = None

    def filter(self, service_type: str) -> dict[str, Any]:
        """Return what tells a session, or an adapter, a service's endpoint."""
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
    """Return what the failure of a session means: no service has answered.

    :param absent: what it means that the catalogue does not have it.
    :param whom: what cannot be reached, unless it is the service.
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
