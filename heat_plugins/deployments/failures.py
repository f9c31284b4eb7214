# SPDX-License-Identifier: Apache-2.0
"""Why an action of a deployment fails, in the words that Heat shows.

Heat begins the reason of a resource with the name of the class.
"""

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.signals import beginning
from heat_plugins.signals import watcher


class Error(errors.Failed):
    """An action has failed; the message says why."""


class NoAnswer(Error):
    """No answer could come back from a server, so it is given nothing."""


class Unusable(errors.Failed):
    """A transport cannot be used here; the message says why."""


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
        f'{order.terms.delivery_timeout} s (property "delivery_timeout") that '
        f'it has begun {order.action}; it is off or unreachable, or its image '
        f'has no heat-config-supervisor{_about(unknown_hook)}'
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
        f'{order.action} could not be handed to server {order.server.name} '
        f'within {order.terms.timeout} s (property "timeout"): {error}'
    )


def in_trouble(
    order: deliveries.Order, trouble: watcher.Trouble, *, is_delivered: bool
) -> Error:
    """Return the failure of an action that trouble keeps from going on."""
    return (Error if is_delivered else NoAnswer)(
        f'{order.action} could not be handed over, or its signal not be '
        f'looked for, in the last {int(trouble.seconds)} s: {trouble.error}'
    )


def _about(unknown_hook: str | None) -> str:
    """Return what to add to the reason of an action that never started."""
    if unknown_hook is None:
        return ''
    return f'; heat-agents have no hook "{foreign.line(unknown_hook, 40)}"'
