# SPDX-License-Identifier: Apache-2.0
"""Whether Mistral will get the trust that a new cron trigger needs.

Mistral asks Keystone for it only when it creates the trigger; in an update,
that is after the deletion of the old one. So this asks Keystone for the same,
and deletes it at once.
"""

import datetime
from typing import Any

from keystoneauth1 import exceptions

from heat_plugins import foreign
from heat_plugins.clients import mistral_errors
from heat_plugins.engine import heat_types
from heat_plugins.mistral.triggers import schedule

LOG = foreign.logger(__name__)

# Should its deletion fail, it expires soon.
_LIFETIME = datetime.timedelta(minutes=2)


def refusal(resource: heat_types.Resource) -> str | None:
    """Return why Keystone gives no trust; None if it does.

    Where that cannot be found out it counts as given: making the trigger
    will tell.
    """
    try:
        _probe(resource)
    except exceptions.HttpError as exc:
        if exc.http_status not in (400, 401, 403, 404):
            _tell(resource, exc)
            return None
        return mistral_errors.explain_trust(
            str(exc.http_status), str(exc), resource.context.trust_id
        )
    except Exception as exc:
        _tell(resource, exc)
    return None


def _tell(resource: heat_types.Resource, error: Exception) -> None:
    LOG.warning(
        '%(resource)s: cannot check that Keystone gives a trust for it: '
        '%(error)s',
        {'resource': resource, 'error': error},
    )


def _probe(resource: heat_types.Resource) -> None:
    context = resource.context
    session = context.keystone_session
    access = context.auth_plugin.get_access(session)
    trusts = _trusts(resource)
    trust = trusts.create(
        trustor_user=access.user_id,
        # Whom it is for makes no difference to Keystone.
        trustee_user=access.user_id,
        project=access.project_id,
        role_names=access.role_names,
        impersonation=True,
        expires_at=schedule.now() + _LIFETIME,
    )
    trusts.delete(trust.id)


def _trusts(resource: heat_types.Resource) -> Any:
    return resource.client('keystone').client.trusts
