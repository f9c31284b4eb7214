# SPDX-License-Identifier: Apache-2.0
"""What actions return: values that Mistral can store, and never a secret."""

import dataclasses
import datetime
import time

from heat_plugins.runs import errors
from heat_plugins.runs import run as runs
from heat_plugins.signals import errors as store_errors

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
    (errors.Denied, 'denied'),
    (errors.Unavailable, 'unavailable'),
    (store_errors.NotFound, 'not-found'),
    (store_errors.Denied, 'denied'),
    (store_errors.Unavailable, 'unavailable'),
    (store_errors.TempURLUnusable, 'no-temp-url'),
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
    """A run, for workflows.

    Of its inputs there are only the names. Times are in UTC, as in
    2026-11-21T01:40:36Z.

    :ivar stack: the id of the root stack: with it a run is found also when
        another stack has taken over the name.
    :ivar success: whether it is complete; null while it goes on.
    :ivar outputs: by name; of long ones the end.
    :ivar next_look: seconds after which to look again; 0 if it has ended.
    """

    id: str
    stack: str
    stack_name: str
    resource: str
    server: str
    action: str
    state: str
    reason: str
    success: bool | None
    started_at: str
    started_by: str
    ended_at: str | None
    timeout: int
    progress: float | None
    message: str | None
    inputs: list[str]
    outputs: dict[str, object]
    next_look: int


def run(found):
    """Return a run as a map; see `Run`."""
    return dataclasses.asdict(
        Run(
            id=found.id,
            stack=found.stack_id,
            stack_name=found.stack_name,
            resource=found.resource,
            server=found.server_id,
            action=found.action,
            state=found.state.value,
            reason=found.reason,
            success=(
                found.state is runs.State.COMPLETE if found.ended else None
            ),
            started_at=_time(found.started_at),
            started_by=found.started_by,
            ended_at=_time(found.ended_at),
            timeout=found.timeout,
            progress=found.progress,
            message=found.message,
            inputs=sorted(found.inputs),
            outputs=dict(found.outputs),
            next_look=0 if found.ended else _next_look(found),
        )
    )


def error(exc):
    """Return what went wrong as a map: a code for programs, and a message.

    Its ``next_look``: seconds after which it may have passed; 0 if not.
    """
    code = next(
        (code for kind, code in _CODES if isinstance(exc, kind)), 'error'
    )
    return _error(code, str(exc))


def unexpected(exc):
    """Return the same for what should not happen."""
    return _error(
        'error', f"{type(exc).__name__}; the executor's log says where"
    )


def _error(code, message):
    return {
        'code': code,
        'message': message,
        'next_look': _OUT_OF_ORDER if code == 'unavailable' else 0,
    }


def _next_look(found):
    now = int(time.time())
    wanted = min((now - found.started_at) // _PART, found.deadline - now)
    return min(max(wanted, _LEAST), _MOST)


def _time(seconds):
    if seconds is None:
        return None
    when = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return when.strftime('%Y-%m-%dT%H:%M:%SZ')
