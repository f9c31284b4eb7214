# SPDX-License-Identifier: Apache-2.0
"""The event of a signal that has failed.

Heat answers the sender of a signal before it handles the signal, and writes no
event when that fails.
"""

from heat.common import exception

from heat_plugins import errors
from heat_plugins.engine import heat_types
from heat_plugins.resources import eventful
from heat_plugins.timeline import kinds

# Other errors may quote secrets.
_TOLD = (errors.Error, exception.HeatException)


def not_triggered(
    resource: heat_types.Resource, exc: Exception
) -> exception.Error:
    """Write the event of a trigger; return the exception to raise."""
    said = str(exc) if isinstance(exc, _TOLD) else type(exc).__name__
    return _write(resource, kinds.Kind.NOT_TRIGGERED, said)


def refused(resource: heat_types.Resource, why: str) -> exception.Error:
    """Write the event of a result; return the exception to raise."""
    return _write(resource, kinds.Kind.RESULT_REFUSED, why)


def _write(
    resource: heat_types.Resource, kind: kinds.Kind, said: str
) -> exception.Error:
    reason = kinds.reason(kind, eventful.shown(said))
    resource._add_event('SIGNAL', resource.FAILED, reason)
    return exception.Error(said)
