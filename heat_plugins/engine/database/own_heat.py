# SPDX-License-Identifier: Apache-2.0
"""This engine's own Heat, as runs read it: from its database."""

from collections import abc
import contextlib

from heat.common import exception
from heat.objects import software_config as config_objects
from heat.objects import stack as stack_objects
from oslo_db import exception as db_exception
import oslo_messaging

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows


class OwnHeat:
    """Heat, as an engine uses it.

    :param context: with credentials for the project.
    """

    def __init__(self, context: heat_types.Context) -> None:
        self._context = context

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

    def config(self, config_id: str) -> heat_values.Config:
        with translated(f'read config {config_id}'):
            return rows.stored_config(
                config_objects.SoftwareConfig.get_by_id(
                    self._context, config_id
                )
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
