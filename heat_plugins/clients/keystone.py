# SPDX-License-Identifier: Apache-2.0
"""How services are reached, and what Keystone's refusals look like."""

import dataclasses

from keystoneauth1 import exceptions
from keystoneauth1 import session as ks_session

#: No token can be had; that will not pass by itself.
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

    :ivar session: a session with an auth plugin.
    :ivar interface: which of the catalogue's endpoints to use.
    :ivar region_name: the region; None for the only one.
    """

    session: ks_session.Session
    interface: str = 'public'
    region_name: str | None = None
