# SPDX-License-Identifier: Apache-2.0
"""What actions return: values that Mistral can store, and never a secret."""

from typing import Any

from heat_plugins import errors
from heat_plugins import foreign

LOG = foreign.logger(__name__)

# Seconds until the next try where Heat or the object store is out of order.
_OUT_OF_ORDER = 60


def error(exc: Exception) -> dict[str, Any]:
    """Return what went wrong as a map: a code for programs, and a message.

    Its ``next_look``: seconds after which it may have passed; 0 if not.
    """
    return _timed(errors.report(exc))


def unexpected(action: Any, context: Any, exc: Exception) -> dict[str, Any]:
    """Log what should not happen, and return the same for it.

    Mistral would show all that it says to everybody in the project.
    """
    kind, execution = type(action), context.execution
    LOG.error(
        '%(action)s failed: action execution %(id)s of workflow execution '
        '%(workflow)s',
        {
            'action': f'{kind.__module__}.{kind.__name__}',
            'id': execution.action_execution_id,
            'workflow': execution.workflow_execution_id,
        },
        exc_info=exc,
    )
    return _timed(
        errors.report(
            errors.Error(
                f"{type(exc).__name__}; the executor's log says where"
            )
        )
    )


def _timed(report: dict[str, Any]) -> dict[str, Any]:
    passing = report['code'] == errors.Unavailable.code
    return {**report, 'next_look': _OUT_OF_ORDER if passing else 0}
