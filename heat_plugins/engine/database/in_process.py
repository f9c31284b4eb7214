# SPDX-License-Identifier: Apache-2.0
"""What Heat's API does with configs and deployments, done in this process.

Heat's own classes use RPC, from one engine to any engine. Each request costs a
message, a thread and a context. With hundreds of deployments at once, the
threads of all engines may be taken by deployments that wait for signals.

Servers are told by `server_metadata`, many at a time. What threads delete at
the same time is deleted together.
"""

from collections import abc
import contextlib
import functools
import threading
import time
from typing import Any, TypeAlias
import uuid

from heat.common import exception
from heat.common.i18n import _
from heat.engine import api
from heat.engine import service_software_config
from heat.objects import software_deployment as deployment_objects
from heatclient import exc
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.objectstore import sharing

# For how long to believe how many there are, in seconds.
_COUNTING = 1


class Service(service_software_config.SoftwareConfigService):
    """Heat's service, with our way to tell servers."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        # How many a project has of something, and when that was counted.
        self._counts: dict[tuple[str, str], tuple[float, int]] = {}

    # The limits are the engine's that answers RPC.

    def check_room(self, cnxt: heat_types.Context, number: int) -> None:
        """Check the room for more configs and deployments of a project.

        :raises exception.RequestLimitExceeded: it may not.
        """
        for option, count in (
            ('max_software_configs_per_tenant', self.count_software_config),
            (
                'max_software_deployments_per_tenant',
                self.count_software_deployment,
            ),
        ):
            self._check_room(cnxt, option, count, number)

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
            1,
        )
        deployment_id = values.pop('deployment_id', None) or str(uuid.uuid4())
        reading_project = values['stack_user_project_id']
        rows.create(cnxt, id=deployment_id, tenant=cnxt.project_id, **values)
        self._push_metadata_software_deployments(
            cnxt, values['server_id'], reading_project
        )
        return {'id': deployment_id}

    def delete_software_deployment(
        self, cnxt: heat_types.Context, deployment_id: str
    ) -> None:
        """Delete a deployment, and tell its server.

        :raises exception.NotFound: the project has none of that ID.
        """
        if not _delete_deployment(cnxt, deployment_id):
            raise exception.NotFound(
                _('Deployment with id %s not found') % deployment_id
            )

    def delete_software_config(
        self, cnxt: heat_types.Context, config_id: str
    ) -> None:
        """Delete a config that no deployment has.

        :raises exception.NotFound: the project has none of that ID.
        :raises exception.InvalidRestrictedAction: a deployment has it.
        """
        if not _delete_config(cnxt, config_id):
            # Heat says why.
            super().delete_software_config(cnxt, config_id)

    def _check_room(
        self,
        cnxt: heat_types.Context,
        option: str,
        count: abc.Callable[[heat_types.Context], int],
        number: int,
    ) -> None:
        """Check that a project may have more of something.

        It is counted once a second: to count takes the longer the more there
        are, and many are created together. A project that seems to have too
        many is counted again.
        """
        limit = cfg.CONF[option]
        if cnxt.is_admin or limit < 0 or not number:
            return
        key, now = (cnxt.project_id, option), time.monotonic()
        with self._lock:
            counted_at, counted = self._counts.get(key, (float('-inf'), 0))
            # Those made since count, too.
            self._counts[key] = counted_at, counted + number
        if now - counted_at > _COUNTING or counted + number > limit:
            counted = count(cnxt)
            with self._lock:
                self._counts[key] = now, counted + number
        if counted + number > limit:
            raise _full(option, limit)

    def _push_metadata_software_deployments(
        self,
        cnxt: heat_types.Context,
        server_id: str,
        stack_user_project_id: str | None,
    ) -> None:
        server_metadata.tell(cnxt, [server_id], stack_user_project_id)


def _full(option: str, limit: int) -> exception.RequestLimitExceeded:
    return exception.RequestLimitExceeded(
        message=_(
            'The project has reached its limit of %(limit)d (%(option)s in '
            'heat.conf). Delete some, or ask the operator for more.'
        )
        % {'limit': limit, 'option': option}
    )


# What waits for its turn, by ID, with the context of the caller. A server that
# cannot be told delays no other project.
_Batches: TypeAlias = sharing.Batches[str, heat_types.Context]


def _deleting(
    delete: abc.Callable[
        [heat_types.Context, abc.Collection[str]], abc.Collection[str]
    ],
) -> abc.Callable[[heat_types.Context, str], bool]:
    """Return what deletes something by ID; threads of a project share that.

    :param delete: deletes several; returns those that are deleted.
    """

    @functools.lru_cache(1024)
    def batches(project_id: str, is_admin: bool) -> _Batches:
        return sharing.Batches(
            lambda named: delete(next(iter(named.values())), named),
            # A failure is of the database.
            lambda exc: False,
        )

    def delete_one(context: heat_types.Context, thing_id: str) -> bool:
        shared = batches(context.project_id, context.is_admin)
        return bool(shared.share({thing_id: context}))

    return delete_one


def delete_deployments(
    context: heat_types.Context, ids: abc.Collection[str]
) -> abc.Set[str]:
    """Delete deployments, and tell their servers; return what there was.

    :raises oslo_db.exception.DBError: the database did not answer. The rows
        may be gone, and some servers not told.
    """
    deleted = rows.delete(context, ids)
    servers: dict[str | None, set[str]] = {}
    for each in deleted:
        servers.setdefault(each.reading_project, set()).add(each.server_id)
    failures = []
    for reading_project, server_ids in servers.items():
        try:
            server_metadata.tell(context, server_ids, reading_project)
        except db_exception.DBError as exc:
            failures.append(exc)
    if failures:
        raise failures[0]
    return {each.id for each in deleted}


_delete_deployment = _deleting(delete_deployments)
_delete_config = _deleting(rows.delete_configs)

_service = Service()


def check_room(context: heat_types.Context, number: int) -> None:
    """Check the project's limits for more configs and deployments.

    :param number: of each, to create.

    :raises exception.RequestLimitExceeded: it may not.
    """
    _service.check_room(context, number)


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
    shown: dict[str, Any] = api.format_software_deployment(row)
    return shown


def show_config(context: heat_types.Context, config_id: str) -> dict[str, Any]:
    """Return a config as the API shows it.

    :raises exc.HTTPNotFound: it is gone.
    """
    with _as_by_api():
        shown: dict[str, Any] = _service.show_software_config(
            context, config_id
        )
    return shown


@contextlib.contextmanager
def _as_by_api() -> abc.Iterator[None]:
    """Raise the error of Heat's client for what is gone.

    Heat's resources know that one alone: an update with ``--converge``
    creates again what is gone.
    """
    try:
        yield
    except exception.NotFound as gone:
        raise exc.HTTPNotFound(str(gone)) from gone


class Client:
    """Heat's RPC client, of which this process answers a part by itself.

    :param remote: returns an ``EngineClient``, for all else.
    """

    def __init__(self, remote: abc.Callable[[], Any]) -> None:
        self._remote = remote

    def __getattr__(self, name: str) -> Any:
        return getattr(self._remote(), name)

    def show_software_config(
        self, cnxt: heat_types.Context, config_id: str
    ) -> Any:
        """See ``EngineClient``, as for the others."""
        return _service.show_software_config(cnxt, config_id)

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
        """Change a deployment; tell its server if it is given a config."""
        return _service.update_software_deployment(
            cnxt,
            deployment_id,
            config_id,
            input_values,
            output_values,
            action,
            status,
            status_reason,
            updated_at,
        )

    def delete_software_deployment(
        self, cnxt: heat_types.Context, deployment_id: str
    ) -> None:
        """Delete a deployment, and tell its server."""
        _service.delete_software_deployment(cnxt, deployment_id)

    def tell_server(
        self,
        cnxt: heat_types.Context,
        server_id: str,
        reading_project: str | None,
    ) -> None:
        """Tell a server what it must run, as the rows say."""
        server_metadata.tell(cnxt, [server_id], reading_project)
