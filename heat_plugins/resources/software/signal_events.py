# SPDX-License-Identifier: Apache-2.0
"""The event of a signal that has failed.

Heat answers the sender of a signal before it handles the signal, and writes no
event when that fails.
"""

from heat.common import exception
from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins.engine import heat_types
from heat_plugins.resources import eventful
from heat_plugins.timeline import kinds

# Other errors may quote secrets.
_SHOWN = (errors.Error, exception.HeatException)


def ambiguous() -> errors.Refused:
    """Return the refusal of a signal that starts nothing and is no result."""
    return errors.Refused(
        _(
            'the signal must be exactly {"trigger": "<action>", '
            '"input_values": {…}} or {"operate": {…}}, and the config must '
            'not have an output of that name'
        )
    )


def not_triggered(
    resource: heat_types.Resource, exc: Exception, member: str | None = None
) -> exception.Error:
    """Write the event of a trigger; return the exception to raise.

    :param member: of the resource, if that is a group.
    """
    reason = str(exc) if isinstance(exc, _SHOWN) else type(exc).__name__
    return _write(resource, kinds.EventKind.NOT_TRIGGERED, reason, member)


def refused(resource: heat_types.Resource, why: str) -> exception.Error:
    """Write the event of a result; return the exception to raise."""
    return _write(resource, kinds.EventKind.RESULT_REFUSED, why)


def _write(
    resource: heat_types.Resource,
    kind: kinds.EventKind,
    text: str,
    member: str | None = None,
) -> exception.Error:
    reason = kinds.reason(kind, eventful.shown(text))
    resource._add_event(
        'SIGNAL',
        resource.FAILED,
        reason if member is None else f'{member}: {reason}',
    )
    return exception.Error(text)
