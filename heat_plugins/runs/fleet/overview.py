# SPDX-License-Identifier: Apache-2.0
"""An operation as it is shown to people and programs."""

from collections import abc
from typing import Any

from heat_plugins.runs import summary
from heat_plugins.runs.fleet import operation as operations

_State = operations.State

#: What stands for a member that nothing has started on.
PENDING = 'pending'

#: What is counted, in the order of an operation's life.
COUNTED = (
    PENDING,
    *(state.value for state in _State),
)

#: Keys of what is shown of a target.
TARGET_KEYS = (
    'stack',
    'resource',
    'server',
    'server_name',
    'state',
    'reason',
    'attempt',
    'started_at',
    'ended_at',
    'duration',
    'outputs',
    'cut',
)


def counts(found: operations.Operation) -> dict[str, int]:
    """Return how many targets are in which state; zeros are left out."""
    result = dict.fromkeys(COUNTED, 0)
    for one in found.attempts:
        result[one.state.value if one.state else PENDING] += 1
    return {name: number for name, number in result.items() if number}


def done(found: operations.Operation) -> int:
    """Return how many targets have ended."""
    return sum(
        one.state is not None and one.state.ended for one in found.attempts
    )


def percent(found: operations.Operation) -> int:
    """Return how much of an operation is done."""
    total = len(found.attempts)
    return 100 if found.ended else 100 * done(found) // max(1, total)


def estimated_end(found: operations.Operation, now: float) -> int | None:
    """Return when an operation is likely to end; None if unknown.

    This assumes that it continues at the average pace of this round.
    """
    control = found.control
    if found.ended or control.phase is not operations.Phase.RUNNING:
        return None
    mine = [one for one in found.attempts if one.round == control.round]
    ended = sum(one.state is not None and one.state.ended for one in mine)
    if not ended:
        return None
    rate = (now - control.began_at) / ended
    return int(now + rate * (len(mine) - ended))


def head(found: operations.Operation) -> dict[str, Any]:
    """Return what a list shows, in JSON's types; times are numbers."""
    order, control = found.order, found.control
    return {
        'id': order.id,
        'action': order.action,
        'state': control.phase.value,
        'reason': control.reason,
        'stacks': order.stacks,
        'stack_ids': order.stack_ids,
        'targets': len(order.members),
        'counts': counts(found),
        'percent': percent(found),
        'created_at': order.created_at,
        'created_by': order.created_by,
        'ended_at': control.ended_at,
    }


def of_head(found: abc.Mapping[str, Any]) -> dict[str, Any]:
    """Return a head as it is shown; times are texts in UTC."""
    created, ended = found['created_at'], found['ended_at']
    return {
        **found,
        'failed': sum(
            found['counts'].get(one.value, 0)
            for one in (_State.FAILED, _State.TIMED_OUT)
        ),
        'created_at': summary.time(created),
        'ended_at': summary.time(ended),
        'duration': None if ended is None else ended - created,
    }


def of(found: operations.Operation, now: float) -> dict[str, Any]:
    """Return all that may be shown of an operation, without its targets.

    Of the inputs only the names are there: the values may be secrets.
    """
    order = found.order
    shown = of_head(head(found))
    del shown['counts']
    return {
        **shown,
        'counts': counts(found),
        'estimated_end': summary.time(estimated_end(found, now)),
        'round': found.control.round,
        'targets_from': order.targets,
        'limits': order.limits.shown(),
        'inputs': sorted(order.inputs),
        'failures': [target(found, n) for n in found.failures],
    }


def target(found: operations.Operation, member: int) -> dict[str, Any]:
    """Return what may be shown of a target: `TARGET_KEYS` with values."""
    one, attempt = found.order.members[member], found.attempts[member]
    ended, started = attempt.ended_at, attempt.started_at
    took = None
    if ended is not None and started is not None:
        took = ended - started
    return {
        'stack': one.stack_name,
        'resource': one.resource,
        'server': one.server_id,
        'server_name': one.server_name,
        'state': attempt.state.value if attempt.state else PENDING,
        'reason': attempt.reason,
        'attempt': attempt.number,
        'started_at': summary.time(started),
        'ended_at': summary.time(ended),
        'duration': took,
        'outputs': dict(attempt.outputs),
        'cut': dict(attempt.cut),
    }
