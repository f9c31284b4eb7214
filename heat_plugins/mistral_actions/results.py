# SPDX-License-Identifier: Apache-2.0
"""What actions return: values that Mistral can store, and never a secret."""

import time

from heat_plugins import foreign
from heat_plugins.objectstore import errors as store_errors
from heat_plugins.runs import errors
from heat_plugins.runs import run as runs
from heat_plugins.runs import summary

LOG = foreign.logger(__name__)

# Seconds until the next look at a run: a part of its age, within limits. An
# agent asks for its work every 30 s, and each look is a row in Mistral's
# database.
_PART, _LEAST, _MOST = 10, 5, 300

# Seconds until the next try where Heat or the object store is out of order.
_OUT_OF_ORDER = 60

_CODES = (
    (errors.AlreadyRunning, 'already-running'),
    (errors.Refused, 'refused'),
    (errors.NotFound, 'not-found'),
    (errors.Ended, 'ended'),
    (errors.Unreadable, 'unreadable'),
    (errors.Denied, 'denied'),
    (errors.Unavailable, 'unavailable'),
    (store_errors.NotFound, 'not-found'),
    (store_errors.Denied, 'denied'),
    (store_errors.Unavailable, 'unavailable'),
    (store_errors.TempURLUnusable, 'no-temp-url'),
)


def run(found):
    """Return all that may be shown of a run, and some more.

    - ``stack_id``: with it a run is found also when another stack has taken
      over the name;
    - ``success``: whether it is complete; null while it goes on;
    - ``next_look``: seconds after which to look again; 0 if it has ended.
    """
    complete = found.state is runs.State.COMPLETE
    return {
        **summary.of(found),
        'stack_id': found.stack_id,
        'success': complete if found.ended else None,
        'next_look': 0 if found.ended else _next_look(found),
    }


def error(exc):
    """Return what went wrong as a map: a code for programs, and a message.

    Its ``next_look``: seconds after which it may have passed; 0 if not.
    """
    code = next(
        (code for kind, code in _CODES if isinstance(exc, kind)), 'error'
    )
    return _error(code, str(exc))


def unexpected(action, context, exc):
    """Log what should not happen, and return the same for it.

    Mistral would show all that it says to everybody in the project.
    """
    kind, execution = type(action), context.execution
    LOG.error(
        '%(action)s has failed: action execution %(id)s of workflow execution '
        '%(workflow)s',
        {
            'action': f'{kind.__module__}.{kind.__name__}',
            'id': execution.action_execution_id,
            'workflow': execution.workflow_execution_id,
        },
        exc_info=exc,
    )
    return _error(
        'error', f"{type(exc).__name__}; the executor's log says where"
    )


def _error(code, message):
    return {
        'code': code,
        'message': foreign.block(message),
        'next_look': _OUT_OF_ORDER if code == 'unavailable' else 0,
    }


def _next_look(found):
    now = int(time.time())
    wanted = min((now - found.started_at) // _PART, found.deadline - now)
    return min(max(wanted, _LEAST), _MOST)
