# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown to people and programs, whichever way they ask."""

import datetime
from typing import Any

from heat_plugins.runs import run as runs


def of(run: runs.Run) -> dict[str, Any]:
    """Return all that may be shown of a run, in JSON's types.

    Times are texts in UTC. Of the inputs only the names are there: the
    values may be secrets.
    """
    late = run.late
    return {
        'id': run.id,
        'stack': run.stack_name,
        'resource': run.resource,
        'action': run.action,
        'state': run.state.value,
        'reason': run.reason,
        'server': run.server_id,
        'started_at': time(run.started_at),
        'started_by': run.started_by,
        'reported_at': time(run.reported_at),
        'progress': run.progress,
        'message': run.message,
        'ended_at': time(run.ended_at),
        'duration': duration(run),
        'timeout': run.timeout,
        'cancelled_by': run.cancelled_by,
        'repeats': run.repeats,
        'inputs': sorted(run.inputs),
        'outputs': dict(run.outputs),
        'cut': dict(run.cut),
        'late_result': late
        and {
            'at': time(late.at),
            'status': late.status,
            'reason': late.reason,
            **{name: value for name, value in late.outputs.items() if value},
        },
    }


def duration(run: runs.Run) -> int | None:
    """Return how many seconds a run has taken; None if it goes on."""
    return None if run.ended_at is None else run.ended_at - run.started_at


def time(seconds: int | None) -> str | None:
    """Return a time as ISO 8601 has it."""
    if seconds is None:
        return None
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime('%Y-%m-%dT%H:%M:%SZ')
