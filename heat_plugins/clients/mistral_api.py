# SPDX-License-Identifier: Apache-2.0
"""Mistral by way of mistralclient, and what that cannot do by itself.

It forgets a CA that the session knows, reads answers of any depth, waits for
them without end, and has no words for the id of an execution or for the
description of an action's. The session would log what is sent, secrets and
all, and send again what may have been carried out.
"""

from collections import abc
from typing import Any, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from mistralclient.api import client as mistral_client
from mistralclient.api.v2 import action_executions
from mistralclient.api.v2 import executions
import requests

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.clients import keystone
from heat_plugins.clients import mistral_errors
from heat_plugins.clients import rest

SERVICE_TYPE = 'workflowv2'

# Rows per page of a listing.
_ROWS = 1000

_Result = TypeVar('_Result')


class _Session(adapter.Adapter):
    """A session for mistralclient, which tells statuses apart itself."""

    def request(self, url: str, method: str, **more: Any) -> Any:
        more = {'log': False, 'timeout': rest.TIMEOUT, **more}
        try:
            answer = super().request(url, method, raise_exc=False, **more)
        except exceptions.ClientException as exc:
            # mistralclient would take what Keystone says for Mistral's word.
            raise mistral_errors.unanswered(exc) from exc
        if answer.status_code < 300:
            # mistralclient reads it by that.
            vars(answer)['json'] = lambda: _read(answer)
        return answer


def _read(answer: requests.Response) -> Any:
    try:
        return bounds.read_json(answer.content, depth=rest.DEPTH)
    except ValueError as exc:
        raise errors.ServiceError(
            f'The response of Mistral is not JSON: {exc}', answer.status_code
        ) from exc


class Executions(executions.ExecutionManager):  # type: ignore[misc]
    """Executions of workflows."""

    def begin(self, body: abc.Mapping[str, Any]) -> Any:
        """Begin one, with an id of its own."""
        return self._create('/executions', dict(body))


class ActionExecutions(action_executions.ActionExecutionManager):  # type: ignore[misc]
    """Executions of actions."""

    def begin(self, body: abc.Mapping[str, Any]) -> Any:
        """Begin one, with a description."""
        return self._create('/action_executions', dict(body))


def connect(
    cloud: keystone.Cloud, tls: abc.Mapping[str, Any] | None = None
) -> Any:
    """Return a client of mistralclient's.

    :param tls: ``verify`` and ``cert`` as `requests` takes them, where
        Mistral needs others than Keystone.
    """
    client = mistral_client.client(
        session=_Session(
            cloud.session, **cloud.filter(SERVICE_TYPE), connect_retries=0
        ),
        region_name=cloud.region_name,
    )
    # All its managers share it. The session knows the address.
    http = client.workflows.http_client
    http.base_url, http.ssl_options = '', dict(tls or {})
    client.executions = Executions(http)
    client.action_executions = ActionExecutions(http)
    return client


def is_there(cloud: keystone.Cloud) -> bool:
    """Say whether the catalogue has a Mistral.

    :raises errors.ServiceError: there is no catalogue to be had.
    """

    def asked() -> bool:
        try:
            found = cloud.session.get_endpoint(**cloud.filter(SERVICE_TYPE))
            return bool(found)
        except exceptions.EndpointNotFound:
            return False

    return ask(asked)


def check(answer: requests.Response) -> None:
    """Raise what an answer means that is no success.

    :raises errors.ServiceError: so it is.
    """
    if answer.status_code >= 300:
        raise mistral_errors.answered(answer.status_code, answer.content)


def ask(
    function: abc.Callable[..., _Result], *args: Any, **kwargs: Any
) -> _Result:
    """Call a method of mistralclient.

    :raises errors.ServiceError: it did not succeed.
    """
    try:
        return function(*args, **kwargs)
    except Exception as error:
        judged = mistral_errors.judge(error)
        if judged is None or judged is error:
            raise
        raise judged from error


def each(
    listing: abc.Callable[..., abc.Sequence[Any]], **query: Any
) -> abc.Iterator[Any]:
    """Yield what a method of mistralclient lists, page by page.

    :raises errors.ServiceError: a page could not be read.
    """
    marker = ''
    while True:
        rows = ask(listing, marker=marker, limit=_ROWS, **query)
        yield from rows
        if len(rows) < _ROWS:
            return
        marker = rows[-1].id
