# SPDX-License-Identifier: Apache-2.0
"""This engine's own Heat, as runs need it.

What is read comes from the database. What is made and deleted goes the way
of Heat's API, which tells the servers of it.
"""

from collections import abc
import contextlib
import datetime
from typing import Any

from heat.common import exception
from heat.objects import software_config as config_objects
from heat.objects import software_deployment as deployment_objects
from heat.objects import stack as stack_objects
from heat.rpc import api as rpc_api
from oslo_db import exception as db_exception
import oslo_messaging

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine import heat_types

# Of how many new configs, which are read whole, the names are compared.
_RECENT = 200


class OwnHeat:
    """Heat, as `orchestration.Deploying` has it.

    :param rpc: an `in_process.Client`.
    :param context: with credentials for the project.
    :param reading_project: the project whose stack users may read what a
        server is given, if any.
    """

    def __init__(
        self,
        rpc: Any,
        context: heat_types.Context,
        reading_project: str | None = None,
    ) -> None:
        self._rpc = rpc
        self._context = context
        self._reading_project = reading_project

    def stack(self, name_or_id: str) -> heat_values.Stack:
        with translated(f'read stack {name_or_id}'):
            stack = stack_objects.Stack.get_by_id(self._context, name_or_id)
        if stack is None:
            raise errors.NotFound(f'Heat has no stack {name_or_id}')
        return heat_values.Stack(
            id=stack.id,
            name=stack.name,
            status=f'{stack.action}_{stack.status}',
            parent=stack.owner_id,
        )

    def deployment(self, deployment_id: str) -> heat_values.Deployment:
        with translated(f'read deployment {deployment_id}'):
            return _deployment(
                deployment_objects.SoftwareDeployment.get_by_id(
                    self._context, deployment_id
                )
            )

    def deployments(self, server_id: str) -> list[heat_values.Deployment]:
        with translated(f'list the deployments of server {server_id}'):
            rows = deployment_objects.SoftwareDeployment.get_all(
                self._context, server_id
            )
            return [_deployment(row) for row in rows]

    def create_config(self, draft: heat_values.DerivedConfig) -> str:
        with translated(f'create config {draft.name}'):
            made = self._rpc.create_software_config(
                self._context,
                group=draft.group,
                name=draft.name,
                config=draft.config,
                inputs=list(draft.inputs),
                outputs=list(draft.outputs),
                options=dict(draft.options),
            )
        return str(made['id'])

    def create_deployment(
        self, *, config_id: str, server_id: str, action: str, reason: str
    ) -> str:
        with translated(f'deliver {action} to server {server_id}'):
            made = self._rpc.create_software_deployment(
                self._context,
                server_id=server_id,
                config_id=config_id,
                action=action,
                status='IN_PROGRESS',
                status_reason=reason,
                stack_user_project_id=self._reading_project,
            )
        return str(made['id'])

    def tell(self, deployment: heat_values.Deployment) -> None:
        with translated(f'tell server {deployment.server_id}'):
            self._rpc.update_software_deployment(
                self._context, deployment.id, config_id=deployment.config_id
            )

    def set_status(self, deployment_id: str, status: str) -> str | None:
        with translated(f'change deployment {deployment_id}'):
            shown = self._rpc.update_software_deployment(
                self._context, deployment_id, status=status
            )
        reason: str | None = shown['status_reason']
        return reason

    def server_configs(self, server_id: str) -> list[heat_values.Config]:
        with translated(f'list the configs of server {server_id}'):
            rows = deployment_objects.SoftwareDeployment.get_all(
                self._context, server_id
            )
            return [config(row.config) for row in rows if row.config]

    def delete_deployment(
        self, deployment_id: str, server_id: str | None = None
    ) -> None:
        with translated(f'delete deployment {deployment_id}'):
            try:
                self._rpc.delete_software_deployment(
                    self._context, deployment_id
                )
            except exception.NotFound:
                if server_id is not None:
                    self._rpc.tell_server(
                        self._context, server_id, self._reading_project
                    )

    def config(self, config_id: str) -> heat_values.Config:
        with translated(f'read config {config_id}'):
            return config(
                config_objects.SoftwareConfig.get_by_id(
                    self._context, config_id
                )
            )

    def recent_configs(self, suffix: str, since: float) -> list[str]:
        with translated('list the newest configs'):
            rows = config_objects.SoftwareConfig.get_all(
                self._context, limit=_RECENT
            )
        return [
            row.id
            for row in rows
            if (row.name or '').endswith(suffix)
            and row.created_at.replace(tzinfo=datetime.UTC).timestamp()
            >= since
        ]

    def delete_config(self, config_id: str) -> None:
        with (
            translated(f'delete config {config_id}'),
            self._rpc.ignore_error_by_name('NotFound'),
        ):
            self._rpc.delete_software_config(self._context, config_id)


def config(row: config_objects.SoftwareConfig) -> heat_values.Config:
    """Return a config that Heat has stored."""
    return heat_values.Config(
        id=row.id,
        name=row.name,
        group=row.group,
        config=row.config[rpc_api.SOFTWARE_CONFIG_CONFIG],
        inputs=row.config[rpc_api.SOFTWARE_CONFIG_INPUTS] or [],
        outputs=row.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS] or [],
        options=row.config[rpc_api.SOFTWARE_CONFIG_OPTIONS] or {},
    )


def _deployment(
    row: deployment_objects.SoftwareDeployment,
) -> heat_values.Deployment:
    return heat_values.Deployment(
        id=row.id,
        server_id=row.server_id,
        config_id=row.config_id,
        action=row.action,
        status=row.status,
        reason=row.status_reason,
    )


@contextlib.contextmanager
def translated(what: str) -> abc.Iterator[None]:
    """Say what a failure of Heat means to runs.

    :param what: Heat is asked to do.
    """
    try:
        yield
    except exception.NotFound as exc:
        raise errors.NotFound(str(exc)) from exc
    except (db_exception.DBError, oslo_messaging.MessagingException) as exc:
        # Their messages may quote the values to store.
        raise errors.Unavailable(
            f'Heat cannot {what} now: {type(exc).__name__}'
        ) from exc
    except exception.RequestLimitExceeded as exc:
        # That is ours, and says what to do.
        raise errors.ServiceError(str(exc)) from exc
    except exception.HeatException as exc:
        raise errors.ServiceError(
            f'Heat cannot {what}: {type(exc).__name__}'
        ) from exc
