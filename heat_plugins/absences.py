# SPDX-License-Identifier: Apache-2.0
"""What a cloud may lack: for each part one text, the reason and the remedy.

Commands, events of stacks and ``heat-plugins-status`` all say it so. A text
has no full stop at its end.
"""

from collections import abc
import dataclasses
from typing import Final


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Service:
    """A service that the catalogue may lack.

    :ivar remedy: who needs it, and how they find it or do without.
    """

    name: str
    remedy: str


_REGISTER: Final = 'ask the operator to register its endpoint in Keystone'

_SERVICES: Final[abc.Mapping[str, _Service]] = {
    'object-store': _Service(
        name='object store',
        remedy='Runs, plans and TEMP_URL_POLL need Swift, or Ceph RGW with '
        f'its Swift API: name the region that has one, or {_REGISTER}',
    ),
    'workflowv2': _Service(
        name='Mistral',
        remedy='OS::Mistral::* and workflows need it: name the region that '
        f'has it (--os-region-name), or {_REGISTER}. Add --local to commands '
        'of plans to work without it',
    ),
    'cloudformation': _Service(
        name='heat-api-cfn',
        remedy='CFN_SIGNAL, POLL_SERVER_CFN and trigger_url need it: '
        f'{_REGISTER}',
    ),
    'messaging': _Service(
        name='Zaqar',
        remedy=f'ZAQAR_SIGNAL and ZAQAR_MESSAGE need it: {_REGISTER}',
    ),
    'orchestration': _Service(
        name='Heat',
        remedy=f'HEAT_SIGNAL and POLL_SERVER_HEAT need it: {_REGISTER}',
    ),
}


def service(service_type: str) -> str:
    """Return the text for a service that is not in the catalogue."""
    lacking = _SERVICES[service_type]
    return (
        f'The catalogue has no {lacking.name} (service type '
        f'"{service_type}") in this region. {lacking.remedy}'
    )


def account(url: str) -> str:
    """Return the text for a storage URL that names no account."""
    return (
        f'The storage URL {url} names no account. With "rgw keystone implicit '
        'tenants = true" Ceph RGW then refuses all TempURLs, and without it '
        'all projects share one namespace of containers: set "rgw swift '
        'account in url = true", and let the endpoint in Keystone end in '
        'AUTH_%(project_id)s'
    )


def periodic_process(name: str, due: object) -> str:
    """Return the text for cron triggers that nothing fires.

    An event of Heat holds 255 characters, and it fits.

    :param name: of a trigger that is long overdue.
    :param due: when it was due, in UTC.
    """
    return (
        f'No cron trigger fires: "{name}" was due at {due} UTC. The operator '
        'must run "mistral-server --server periodic" (in older releases, '
        'run_in_api = true in [cron_trigger] serves), and end maintenance mode'
    )
