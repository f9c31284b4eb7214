# SPDX-License-Identifier: Apache-2.0
"""Requests to Mistral through mistralclient, and its gaps.

mistralclient ignores the session's CA, reads answers of any depth, waits for
them without end, and cannot set the ID of an execution or the description of
an action's. The session would log requests, secrets and all, and repeat those
that may have been carried out. mistralclient raises an error of its own for
each status that is not a success, and lets keystoneauth's pass where there was
no answer; `judge` converts these.
"""

from collections import abc
import re
from typing import Any, Final, TypeAlias, TypeVar

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from mistralclient.api import base
from mistralclient.api import client as mistral_client
from mistralclient.api.v2 import action_executions
from mistralclient.api.v2 import executions
import requests

from heat_plugins import absences
from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.clients import rest

SERVICE_TYPE = 'workflowv2'

# Rows per page of a listing.
_ROWS = 1000

_Result = TypeVar('_Result')

#: A row of Mistral, as its client reads it; mistralclient ships no types.
Row: TypeAlias = base.Resource
#: One kind of rows of its API, such as `client.workflows`.
Manager: TypeAlias = base.ResourceManager


class _Session(adapter.Adapter):
    """A session for mistralclient, which handles statuses itself."""

    def request(self, url: str, method: str, **more: Any) -> Any:
        more = {'log': False, 'timeout': rest.TIMEOUT, **more}
        try:
            answer = super().request(url, method, raise_exc=False, **more)
        except exceptions.ClientException as exc:
            # mistralclient would take Keystone's answer for Mistral's.
            raise unanswered(exc) from exc
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


def connect(
    cloud: rest.Cloud, tls: abc.Mapping[str, Any] | None = None
) -> Any:
    """Return mistralclient's client.

    :param tls: ``verify`` and ``cert`` as `requests` takes them, where Mistral
        needs others than Keystone.
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
    client.executions = ExecutionManager(http)
    client.action_executions = ActionExecutionManager(http)
    return client


def is_there(cloud: rest.Cloud) -> bool:
    """Say whether the catalogue has a Mistral.

    :raises errors.ServiceError: the catalogue cannot be read.
    """

    def asked() -> bool:
        try:
            endpoint = cloud.session.get_endpoint(**cloud.filter(SERVICE_TYPE))
            return bool(endpoint)
        except exceptions.EndpointNotFound:
            return False

    return ask(asked)


def check(answer: requests.Response) -> None:
    """Raise the error of an answer that is not a success.

    :raises errors.ServiceError: it is not a success.
    """
    if answer.status_code >= 300:
        raise answered(answer.status_code, answer.content)


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


# What another service has told Mistral arrives as a 500 with this in it.
_INNER: Final = re.compile(r'\(HTTP (\d{3})\)')

_NOISE: Final = re.compile(r' ?\(Request-ID: [^)]{0,100}\)')


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
    reason = _line(error)
    if isinstance(error, exceptions.SSLError):
        return errors.ServiceError(
            'The certificate of Mistral is not trusted. Give its CA to the '
            'command (--os-cacert), or by ca_file in [clients_mistral] of '
            f'heat.conf: {reason}'
        )
    if isinstance(error, exceptions.ConnectionError | OSError):
        return errors.Unavailable(f'Mistral does not answer: {reason}')
    absent = errors.ServiceError(absences.service(SERVICE_TYPE))
    return rest.unanswered(error, 'Mistral', absent)


def answered(status: Any, message: Any) -> errors.ServiceError:
    """Return the error for an answer that is not a success."""
    if isinstance(message, bytes):
        message = message[: 4 * bounds.TEXT].decode(errors='replace')
    text = _line(message or '')
    # A proxy in front of Mistral answers with a page.
    if not text or text.startswith('<'):
        text = 'no reason given'
    status = int(status or 500)
    inner = _INNER.search(text) if status == 500 else None
    meant = int(inner[1]) if inner else status
    kind = errors.LikelyDefect if meant == 500 else errors.of_status(meant)
    if inner and kind is errors.NotFound:
        # It is the other service that lacks something.
        kind = errors.ServiceError
    return kind(f'Mistral answers {status}: {text}', status)


def _line(text: object) -> str:
    return _NOISE.sub('', ' '.join(bounds.cut(str(text)).split()))


def trust_refused(error: Exception, trust_id: str | None) -> str | None:
    """Explain why Mistral got no trust from Keystone; None if it did.

    For a trigger, Mistral asks Keystone for a trust in the name of the user
    who creates the trigger. Keystone says little about why it refuses, so this
    names the possible causes.

    :param trust_id: of the trust of the request, if any.
    """
    if not isinstance(error, base.APIException) or error.error_code != 500:
        return None
    text = _line(error.error_message)
    inner = _INNER.search(text)
    if not inner or inner[1] not in ('400', '401', '403', '404'):
        return None
    return explain_trust(inner[1], text, trust_id)


def explain_trust(status: str, text: str, trust_id: str | None) -> str:
    """Explain a trust that Keystone has refused.

    :param trust_id: of the trust of the request, if any.
    """
    advice = _trust_advice(text, status, trust_id)
    return f'{advice} (Keystone: {_line(text)})'


def _trust_advice(text: str, status: str, trust_id: str | None) -> str:
    if 'elegated tokens' in text:
        return (
            'A cron trigger needs a trust, and Keystone refuses trusts to '
            'users with an application credential. Log in with a password, '
            'or ask the operator to set [security_compliance] '
            'allow_insecure_application_credential_trust_escalation in '
            'keystone.conf, which permits unrestricted application '
            'credentials'
        )
    if status == '401':
        return (
            'Mistral could not log in to Keystone to get a trust for the '
            'cron trigger. The token of this action has expired, or the '
            'operator must correct [keystone_authtoken] in mistral.conf'
        )
    if trust_id:
        return (
            'Heat acts on this stack through a trust, and Keystone refused '
            'Mistral another one from it for the cron trigger. In heat.conf, '
            'the operator sets [DEFAULT] allow_trusts_redelegation, which '
            'serves later trusts, and lets [DEFAULT] trusts_delegated_roles '
            'name every role of the user or none. In keystone.conf, [trust] '
            'allow_redelegation stays on, with a max_redelegation_count of '
            'at least 1. Until then, the user must update the stack directly'
        )
    if status == '404':
        return (
            "Keystone lacks one of this user's roles, or has no trusts. The "
            'operator must assign roles in this project to the user directly'
        )
    return (
        'Keystone refused Mistral a trust from this user for the cron '
        'trigger. The user needs a role of its own in this project, and '
        "Keystone's policy must permit identity:create_trust"
    )
