# SPDX-License-Identifier: Apache-2.0
"""Configs and deployments as Heat's API shows them, read in this process.

Heat's own classes use RPC, from one engine to any engine. Each request costs a
message, a thread and a context. With hundreds of deployments at once, the
threads of all engines may be taken by deployments that wait for signals.
"""

from collections import abc
import contextlib
from typing import Any

from heat.common import exception
from heat.common.i18n import _
from heat.engine import api
from heat.engine import service_software_config
from heat.objects import software_deployment as deployment_objects
from heatclient import exc
from oslo_config import cfg

from heat_plugins.engine import heat_types

_service = service_software_config.SoftwareConfigService()

# By the option that limits it, what counts how many a project has.
_COUNTS: abc.Mapping[str, abc.Callable[[heat_types.Context], int]] = {
    'max_software_configs_per_tenant': _service.count_software_config,
    'max_software_deployments_per_tenant': _service.count_software_deployment,
}


def _rooms(context: heat_types.Context) -> abc.Iterator[tuple[str, int]]:
    """Yield how many more a project may have, by each option that limits."""
    for option, count in _COUNTS.items():
        if cfg.CONF[option] >= 0:
            yield option, cfg.CONF[option] - count(context)


def room(context: heat_types.Context) -> float:
    """Return how many configs and deployments a project may add."""
    rooms = [max(0, left) for _option, left in _rooms(context)]
    return min(rooms, default=float('inf'))


def check_room(context: heat_types.Context, number: int) -> None:
    """Check the project's limits for more configs and deployments.

    :param number: of each, to create.

    :raises exception.RequestLimitExceeded: it may not.
    """
    if context.is_admin or not number:
        return
    for option, left in _rooms(context):
        if number > left:
            raise exception.RequestLimitExceeded(
                message=_(
                    'The project has reached its limit of %(limit)d '
                    '(%(option)s in heat.conf). Delete some, or ask the '
                    'operator for more.'
                )
                % {'limit': cfg.CONF[option], 'option': option}
            )


def show_deployment(
    context: heat_types.Context, deployment_id: str
) -> dict[str, Any]:
    """Return a deployment as the API shows it; look for no signal.

    :raises exc.HTTPNotFound: it is gone.
    """
    with _as_by_api():
        row = deployment_objects.SoftwareDeployment.get_by_id(
            context, deployment_id
        )
    return dict(api.format_software_deployment(row))


def show_config(context: heat_types.Context, config_id: str) -> dict[str, Any]:
    """Return a config as the API shows it.

    :raises exc.HTTPNotFound: it is gone.
    """
    with _as_by_api():
        return dict(_service.show_software_config(context, config_id))


@contextlib.contextmanager
def _as_by_api() -> abc.Iterator[None]:
    """Raise the error of Heat's client for a row that is gone.

    Heat's resources know that one alone: an update with ``--converge``
    creates again what is gone.
    """
    try:
        yield
    except exception.NotFound as gone:
        raise exc.HTTPNotFound(str(gone)) from gone


def take_queued(context: heat_types.Context, deployment_id: str) -> None:
    """Let Heat settle a deployment by the messages in its Zaqar queue."""
    _service.show_software_deployment(context, deployment_id)
