# SPDX-License-Identifier: Apache-2.0
"""Why an action of a deployment fails, in the words that Heat shows.

Heat begins the reason of a resource with the name of the class.
"""

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.deployments import deliveries
from heat_plugins.signals import beginning


class Error(errors.Failed):
    """An action has failed; the message says why."""


class NoAnswer(Error):
    """No answer could come back from a server, so it is given nothing."""


class Unusable(errors.Failed):
    """A transport cannot be used here; the message says why.

    :param why: a message, or the error of a service.
    """

    def __init__(self, why: str | errors.ServiceError) -> None:
        super().__init__(str(why))
        self._is_outage = isinstance(why, errors.Unavailable)

    @property
    def may_pass(self) -> bool:
        return self._is_outage


def cancelled(order: deliveries.Order) -> Error:
    """Return the failure of an action that the stack has cancelled."""
    return Error(
        f'{order.action} was cancelled before server {order.server.name} '
        'answered'
    )


def not_reported(order: deliveries.Order, unknown_hook: str | None) -> Error:
    """Return the failure of an action whose server has not begun it."""
    return Error(
        f'Server {order.server.name} has not reported within '
        f'{order.terms.delivery_timeout} s (property "delivery_timeout") '
        f'that it has started {order.action}. It is off or unreachable, or '
        f'its image has no heat-config-supervisor{_about(unknown_hook)}'
    )


def not_signalled(
    order: deliveries.Order,
    config_id: str,
    unknown_hook: str | None,
    *,
    has_begun: bool,
) -> Error:
    """Return the failure of an action whose time is up."""
    return Error(
        f'Server {order.server.name} has not signalled {order.action} within '
        f'{order.terms.timeout} s (property "timeout"){_about(unknown_hook)}. '
        + beginning.explained(config_id, started=has_begun)
    )


def not_delivered(
    order: deliveries.Order, error: errors.ServiceError | None
) -> NoAnswer:
    """Return the failure of an action that could not be delivered in time."""
    return NoAnswer(
        f'heat-engine could not deliver {order.action} to server '
        f'{order.server.name} within {order.terms.timeout} s (property '
        f'"timeout"): {error}'
    )


def in_trouble(
    order: deliveries.Order, trouble: retrying.Trouble, *, is_delivered: bool
) -> Error:
    """Return the failure of an action that a failing service has blocked."""
    return (Error if is_delivered else NoAnswer)(
        f'heat-engine could not deliver {order.action} or poll its signal '
        f'for {int(trouble.seconds)} s: {trouble.error}'
    )


def key_changed(work: deliveries.Work, servers: str, *, repeats: bool) -> str:
    """Return what is told once signed URLs no longer work.

    :param servers: those that have them.
    :param repeats: whether they are given others.
    """
    then = (
        'heat-engine delivers the action again, with new URLs'
        if repeats
        else 'Set the former key as X-Account-Meta-Temp-URL-Key-2, or cancel '
        'the action and repeat it'
    )
    return (
        f"The account's TempURL key was changed; {servers} can no longer "
        f'send the result of {work.action}. {then}'
    )


def _about(unknown_hook: str | None) -> str:
    """Return what to add to the reason of an action that never started."""
    if unknown_hook is None:
        return ''
    return f'; heat-agents have no hook "{foreign.line(unknown_hook, 40)}"'
