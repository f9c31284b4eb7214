# SPDX-License-Identifier: Apache-2.0
"""The event of a trigger that has come to nothing.

Heat answers whoever sends a signal before it looks at it, and writes no event
when that fails.
"""

import textwrap

from heat.common import exception
from heat.common.i18n import _

from heat_plugins.runs import errors as run_errors
from heat_plugins.signals import errors

# What the database holds of an event's reason.
_REASON = 255

# What others say may hold what is nobody's business.
_TOLD = (run_errors.RunError, errors.SignalError, exception.HeatException)


def not_triggered(resource, exc):
    """Write the event; return what is to be raised."""
    said = str(exc) if isinstance(exc, _TOLD) else type(exc).__name__
    reason = textwrap.shorten(
        _('Not triggered: %s') % said, _REASON, placeholder='…'
    )
    resource._add_event('SIGNAL', resource.FAILED, reason)
    return exception.Error(said)
