# SPDX-License-Identifier: Apache-2.0
"""Requests to Mistral through mistralclient, and its gaps.

mistralclient cannot set the ID of an execution, the description of an action's
execution, or change an event trigger. The session would log requests, secrets
and all. mistralclient raises an error of its own for each status that is not a
success, and lets keystoneauth's pass where there was no answer; `judge`
converts these.
"""

from collections import abc
from typing import Any, Final, TypeAlias, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from mistralclient.api import base
from mistralclient.api import httpclient
from mistralclient.api.v2 import action_executions
from mistralclient.api.v2 import actions
from mistralclient.api.v2 import cron_triggers
from mistralclient.api.v2 import environments
from mistralclient.api.v2 import event_triggers
from mistralclient.api.v2 import executions
from mistralclient.api.v2 import tasks
from mistralclient.api.v2 import workbooks
from mistralclient.api.v2 import workflows

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.clients import rest

SERVICE_TYPE = 'workflowv2'

# Rows per page of a listing.
_ROWS: Final = 1000

_Result = TypeVar('_Result')

#: A row of Mistral, as its client reads it; mistralclient ships no types.
Row: TypeAlias = base.Resource
#: One kind of rows of its API, such as `client.workflows`.
Manager: TypeAlias = base.ResourceManager


class _Session(adapter.Adapter):
    """A session for mistralclient, which handles statuses itself.

    :ivar tls: ``verify`` and ``cert`` as `requests` takes them, where Mistral
        needs others than Keystone.
    """

    tls: abc.Mapping[str, Any] = {}

    def request(self, url: str, method: str, **more: Any) -> Any:
        """Send a request; tell Keystone's failures from Mistral's."""
        more = {'log': False, 'timeout': rest.TIMEOUT, **self.tls, **more}
        try:
            return super().request(url, method, raise_exc=False, **more)
        except exceptions.ClientException as exc:
            # mistralclient would take Keystone's answer for Mistral's.
            raise unanswered(exc) from exc


class ExecutionManager(executions.ExecutionManager):  # type: ignore[misc]
    """Executions of workflows."""

    def begin(self, body: abc.Mapping[str, Any]) -> Any:
        """Start an execution with a given ID."""
        return self._create('/executions', dict(body))


class ActionExecutionManager(action_executions.ActionExecutionManager):  # type: ignore[misc]
    """Executions of actions."""

    def begin(self, body: abc.Mapping[str, Any]) -> Any:
        """Start an action execution with a description."""
        return self._create('/action_executions', dict(body))


class EventTriggerManager(event_triggers.EventTriggerManager):  # type: ignore[misc]
    """Event triggers."""

    def update(self, trigger_id: str, values: abc.Mapping[str, Any]) -> Any:
        """Change an event trigger."""
        return self._update(f'/event_triggers/{trigger_id}', dict(values))


class MistralClient:
    """mistralclient's calls over a session, which knows the address."""

    def __init__(self, http: httpclient.HTTPClient) -> None:
        self.action_executions = ActionExecutionManager(http)
        self.actions = actions.ActionManager(http)
        self.cron_triggers = cron_triggers.CronTriggerManager(http)
        self.environments = environments.EnvironmentManager(http)
        self.event_triggers = EventTriggerManager(http)
        self.executions = ExecutionManager(http)
        self.tasks = tasks.TaskManager(http)
        self.workbooks = workbooks.WorkbookManager(http)
        self.workflows = workflows.WorkflowManager(http)


def connect(
    cloud: rest.Cloud, tls: abc.Mapping[str, Any] | None = None
) -> MistralClient:
    """Return a client.

    :param tls: see `_Session`.
    """
    session = _Session(
        cloud.session, **cloud.filter(SERVICE_TYPE), connect_retries=0
    )
    session.tls = tls or {}
    return MistralClient(
        httpclient.HTTPClient(
            '', session=session, region_name=cloud.region_name
        )
    )


def is_there(cloud: rest.Cloud) -> bool:
    """Say whether the catalogue has a Mistral.

    :raises errors.ServiceError: the catalogue cannot be read.
    """
    try:
        return cloud.has(SERVICE_TYPE)
    except exceptions.ClientException as exc:
        raise unanswered(exc) from exc


def ask(
    function: abc.Callable[..., _Result], *args: Any, **kwargs: Any
) -> _Result:
    """Call a method of mistralclient.

    :raises errors.ServiceError: it failed.
    """
    try:
        return function(*args, **kwargs)
    except Exception as error:
        judged = judge(error)
        if judged is None or judged is error:
            raise
        raise judged from error


def each(
    listing: abc.Callable[..., abc.Sequence[Any]], **query: Any
) -> abc.Iterator[Any]:
    """Yield the rows that a method of mistralclient lists, page by page.

    :raises errors.ServiceError: a page could not be read.
    """
    marker = ''
    while True:
        rows = ask(listing, marker=marker, limit=_ROWS, **query)
        yield from rows
        if len(rows) < _ROWS:
            return
        marker = rows[-1].id


def judge(error: Exception) -> errors.ServiceError | None:
    """Return the error that an exception means; None if it is not Mistral's.

    Its text is one line.
    """
    if isinstance(error, base.APIException):
        return answered(error.error_code, error.error_message)
    if isinstance(error, errors.ServiceError):
        return error
    # Sockets raise their own where a connection is interrupted in the middle.
    if isinstance(error, exceptions.ClientException | OSError):
        return unanswered(error)
    return None


def unanswered(
    error: exceptions.ClientException | OSError,
) -> errors.ServiceError:
    """Return the error for a session's failure."""
    reason = ' '.join(bounds.cut(str(error)).split())
    if isinstance(error, exceptions.SSLError):
        return errors.ServiceError(
            'The certificate of Mistral is not trusted. Give its CA to the '
            'command (--os-cacert), or by ca_file in [clients_mistral] of '
            f'heat.conf: {reason}'
        )
    if isinstance(error, exceptions.ConnectionError | OSError):
        return errors.Unavailable(f'Mistral does not answer: {reason}')
    absent = errors.ServiceError(wording.no_service(SERVICE_TYPE))
    return rest.unanswered(error, 'Mistral', absent)


def answered(status: Any, message: Any) -> errors.ServiceError:
    """Return the error for an answer that is not a success."""
    if isinstance(message, bytes):
        message = message[: 4 * bounds.TEXT].decode(errors='replace')
    text = ' '.join(bounds.cut(str(message or '')).split())
    # A proxy in front of Mistral answers with a page.
    if not text or text.startswith('<'):
        text = 'no reason given'
    status = int(status or 500)
    kind = errors.LikelyDefect if status == 500 else errors.of_status(status)
    return kind(f'Mistral answers {status}: {text}', status)
