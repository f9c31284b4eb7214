# SPDX-License-Identifier: Apache-2.0
"""What Heat's API does with configs and deployments, done in this process.

Heat's own classes ask for it by RPC, though it is an engine that asks, and
any engine that answers. For hundreds of deployments at once that is a
message, a thread and a context for each question, and the threads are those
that wait for signals.

And whenever a deployment changes Heat writes all configs of its server to
the server's metadata. Of deployments of one server that are made side by
side each does so, each time with one config more, and they get in each
other's way. Here those that change while it is written share the next time.
"""

from collections import abc
import functools
import threading
import time
from typing import Any
import uuid

from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.engine import service_software_config
from oslo_config import cfg

from heat_plugins.engine import heat_types
from heat_plugins.engine import rows
from heat_plugins.objectstore import sharing

# The agent takes an object for what it has seen if it was changed in the same
# second, by its Last-Modified.
_SWIFT_GAP = 1.0

# For how long to believe how many there are, in seconds.
_COUNTING = 1

# For how long to remember the servers that were written to.
_MEMORY = 60


class _Server:
    """How the metadata of one server is written."""

    def __init__(self) -> None:
        self.rounds: sharing.Rounds[None] = sharing.Rounds()
        self.wanted_at = 0.0
        self.written_at = float('-inf')


class Service(service_software_config.SoftwareConfigService):
    """Heat's service, which writes a server's metadata less often."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._servers: dict[tuple[str | None, ...], _Server] = {}
        # How many a project has of something, and when that was counted.
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}

    # The limits are the engine's that answers RPC.

    def check_room_for_config(self, cnxt: heat_types.Context) -> None:
        """Hold that a project may have one more config.

        :raises exception.RequestLimitExceeded: it may not.
        """
        self._check_room(
            cnxt, 'max_software_configs_per_tenant', self.count_software_config
        )

    def create_software_deployment(
        self, cnxt: heat_types.Context, **values: Any
    ) -> dict[str, Any]:
        """Make a deployment, and tell its server.

        Heat's own method reads the config first, and the deployment after.

        :returns: its id alone.
        :raises exception.RequestLimitExceeded: the project has too many.
        """
        self._check_room(
            cnxt,
            'max_software_deployments_per_tenant',
            self.count_software_deployment,
        )
        deployment_id = values.pop('deployment_id', None) or str(uuid.uuid4())
        reading_project = values['stack_user_project_id']
        rows.create(cnxt, id=deployment_id, tenant=cnxt.project_id, **values)
        self._push_metadata_software_deployments(
            cnxt, values['server_id'], reading_project
        )
        return {'id': deployment_id}

    def _check_room(
        self,
        cnxt: heat_types.Context,
        option: str,
        count: abc.Callable[[heat_types.Context], int],
    ) -> None:
        """Hold that a project may have one more of something.

        It is counted once a second: to count takes the longer the more there
        are, and many are made together. Who seems to have too many by that
        is counted anew.
        """
        limit = cfg.CONF[option]
        if cnxt.is_admin or limit < 0:
            return
        key, now = (cnxt.project_id, option), time.monotonic()
        with self._lock:
            counted_at, found = self._counts.get(key, (float('-inf'), 0))
            # Those made since count, too.
            self._counts[key] = counted_at, found + 1
        if now - counted_at > _COUNTING or found >= limit:
            found = count(cnxt)
            with self._lock:
                self._counts[key] = now, found + 1
        if found >= limit:
            raise _full(option, limit)

    def _push_metadata_software_deployments(
        self,
        cnxt: heat_types.Context,
        server_id: str,
        stack_user_project_id: str | None,
    ) -> None:
        write = functools.partial(
            super()._push_metadata_software_deployments,
            cnxt,
            server_id,
            stack_user_project_id,
        )
        # What is written depends on who may see it.
        server = self._server(
            (cnxt.project_id, server_id, stack_user_project_id)
        )

        def take_turn() -> None:
            early = server.written_at + _SWIFT_GAP - time.monotonic()
            if early > 0 and _is_in_swift(cnxt, server_id):
                time.sleep(early)
            write()
            server.written_at = time.monotonic()

        server.rounds.share(take_turn)

    def _server(self, key: tuple[str | None, ...]) -> _Server:
        now = time.monotonic()
        with self._lock:
            server = self._servers.setdefault(key, _Server())
            server.wanted_at = now
            for each, known in list(self._servers.items()):
                if now - known.wanted_at > _MEMORY:
                    del self._servers[each]
        return server


def _full(option: str, limit: int) -> exception.RequestLimitExceeded:
    return exception.RequestLimitExceeded(
        message=_(
            'The project has as many as it may, %(limit)d (%(option)s). '
            'Delete some, or ask the operator for more.'
        )
        % {'limit': limit, 'option': option}
    )


def _is_in_swift(cnxt: heat_types.Context, server_id: str) -> bool:
    """Say whether a server reads its metadata from the object store."""
    server = db_api.resource_get_by_physical_resource_id(cnxt, server_id)
    return server is not None and any(
        item.key == 'metadata_put_url' for item in server.data
    )


_service = Service()


def tell(
    context: heat_types.Context, server_id: str, reading_project: str | None
) -> None:
    """Write to a server's metadata the configs of its deployments."""
    _service._push_metadata_software_deployments(
        context, server_id, reading_project
    )


def check_room(context: heat_types.Context, number: int) -> None:
    """Hold that a project may have so many more configs and deployments.

    :raises exception.RequestLimitExceeded: it may not.
    """
    if context.is_admin:
        return
    for option, count in (
        (
            'max_software_configs_per_tenant',
            _service.count_software_config,
        ),
        (
            'max_software_deployments_per_tenant',
            _service.count_software_deployment,
        ),
    ):
        limit = cfg.CONF[option]
        if 0 <= limit < count(context) + number:
            raise _full(option, limit)


class Client:
    """Heat's RPC client, of which this process answers a part by itself.

    :param remote: returns an `EngineClient`, for all else.
    """

    def __init__(self, remote: abc.Callable[[], Any]) -> None:
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote(), name)

    def show_software_config(
        self, cnxt: heat_types.Context, config_id: str
    ) -> Any:
        """See `EngineClient`, as for the others."""
        return _service.show_software_config(cnxt, config_id)

    def check_room_for_config(self, cnxt: heat_types.Context) -> None:
        """Hold that a project may have one more config; see `Service`."""
        _service.check_room_for_config(cnxt)

    def delete_software_config(
        self, cnxt: heat_types.Context, config_id: str
    ) -> None:
        """Delete a config that no deployment has."""
        _service.delete_software_config(cnxt, config_id)

    def show_software_deployment(
        self, cnxt: heat_types.Context, deployment_id: str
    ) -> Any:
        """Return a deployment; look for its signal first, under Zaqar."""
        return _service.show_software_deployment(cnxt, deployment_id)

    def create_software_deployment(
        self,
        cnxt: heat_types.Context,
        server_id: str,
        config_id: str | None = None,
        input_values: dict[str, Any] | None = None,
        action: str = 'INIT',
        status: str = 'COMPLETE',
        status_reason: str = '',
        stack_user_project_id: str | None = None,
        deployment_id: str | None = None,
    ) -> dict[str, Any]:
        """Make a deployment, and tell its server."""
        return _service.create_software_deployment(
            cnxt,
            server_id=server_id,
            config_id=config_id,
            input_values=input_values or {},
            action=action,
            status=status,
            status_reason=status_reason,
            stack_user_project_id=stack_user_project_id,
            deployment_id=deployment_id,
        )

    def update_software_deployment(
        self,
        cnxt: heat_types.Context,
        deployment_id: str,
        config_id: str | None = None,
        input_values: dict[str, Any] | None = None,
        output_values: dict[str, Any] | None = None,
        action: str | None = None,
        status: str | None = None,
        status_reason: str | None = None,
        updated_at: str | None = None,
    ) -> Any:
        """Change a deployment; tell its server if it has another config."""
        return _service.update_software_deployment(
            cnxt,
            deployment_id=deployment_id,
            config_id=config_id,
            input_values=input_values,
            output_values=output_values,
            action=action,
            status=status,
            status_reason=status_reason,
            updated_at=updated_at,
        )

    def delete_software_deployment(
        self, cnxt: heat_types.Context, deployment_id: str
    ) -> None:
        """Delete a deployment, and tell its server."""
        _service.delete_software_deployment(cnxt, deployment_id)
