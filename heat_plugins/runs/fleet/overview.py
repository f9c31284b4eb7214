# SPDX-License-Identifier: Apache-2.0
"""An operation as it is shown to people and programs."""

from collections import abc
import dataclasses
import math
from typing import Any

from heat_plugins import bounds
from heat_plugins import wording
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import operations

_State = operations.State

#: The state of an operation whose record is unreadable.
UNREADABLE = 'unreadable'

#: What stands for a member on which nothing has started: it may yet, or the
#: operation has ended.
PENDING, NOT_STARTED = 'pending', 'not-started'

#: The states of targets, in the order of an operation's life.
COUNTED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in _State),
)

_UNFINISHED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in _State if not each.ended),
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
    'attempts',
)


def state(found: operations.Operation, member: int) -> str:
    """Return the state of a target."""
    attempt = found.attempts[member]
    if attempt.state is not None:
        return attempt.state.value
    is_pending = not found.ended and attempt.round == found.control.round
    return PENDING if is_pending else NOT_STARTED


def counts(found: operations.Operation) -> dict[str, int]:
    """Return how many targets are in which state; zeros are left out."""
    result = dict.fromkeys(COUNTED, 0)
    for member in range(len(found.attempts)):
        result[state(found, member)] += 1
    return {name: number for name, number in result.items() if number}


def done(found: operations.Operation) -> int:
    """Return how many targets have ended."""
    return _done(len(found.attempts), counts(found))


def _done(targets: int, counts: abc.Mapping[str, int]) -> int:
    return targets - sum(counts.get(name, 0) for name in _UNFINISHED)


def percent(found: operations.Operation) -> int:
    """Return how many percent of the targets have ended."""
    total = len(found.attempts)
    return 100 * done(found) // max(1, total)


def estimated_end(found: operations.Operation, now: float) -> int | None:
    """Return when an operation is likely to end; None if unknown.

    This assumes that runs take as long as the average of this round, and
    counts no time in which it waited for a user.
    """
    control, limits = found.control, found.order.limits
    if found.ended or control.phase is not operations.Phase.RUNNING:
        return None
    average = _average(found)
    if average is None:
        return None
    starts = [found.attempts[member].started_at for member in found.live]
    rest = [start + average - now for start in starts if start is not None]
    concurrent = limits.concurrent(len(found.attempts))
    waves = math.ceil(len(found.pending) / concurrent)
    seconds = max([0, *rest]) + waves * (average + limits.pause)
    return int(now + seconds)


def _average(found: operations.Operation) -> float | None:
    """Return how many seconds a run of this round has taken on average."""
    taken = [
        attempt.duration
        for attempt in found.attempts
        if attempt.round == found.control.round
        and attempt.duration is not None
    ]
    return sum(taken) / len(taken) if taken else None


def failures(
    found: operations.Operation, members: abc.Iterable[int]
) -> list[wording.Failure]:
    """Return targets that have failed, for people."""
    return [
        wording.Failure(
            name=_name(found.order.members[member]),
            also=tuple(
                filter(
                    None,
                    (
                        found.order.members[member].server_name,
                        found.order.members[member].resource,
                    ),
                )
            ),
            reason=f'{state(found, member)}: {found.attempts[member].reason}',
        )
        for member in members
    ]


def _name(member: operations.Member) -> str:
    return f'{member.stack_name} {member.server_name or member.resource}'


def head(found: operations.Operation) -> operations.Head:
    """Return what a list shows."""
    order, control = found.order, found.control
    return operations.Head(
        id=order.id,
        action=order.action,
        state=control.phase,
        reason=control.reason,
        stacks=order.stacks,
        stack_ids=order.stack_ids,
        targets=len(order.members),
        counts=counts(found),
        percent=percent(found),
        created_at=order.created_at,
        created_by=order.created_by,
        ended_at=control.ended_at,
        script=_first_line(order.script),
    )


def _first_line(script: str) -> str:
    """Return the first line of a script that does something."""
    lines = [one for one in script.splitlines() if one and one[0] != '#']
    return bounds.shortened(lines[0]) if lines else ''


def of_head(found: operations.Head) -> dict[str, Any]:
    """Return a head as it is shown; times are texts in UTC."""
    created, ended = found.created_at, found.ended_at
    counts, total = dict(found.counts), found.targets
    if ended is not None and PENDING in counts:
        # As an earlier release wrote it.
        counts[NOT_STARTED] = counts.pop(PENDING)
    return {
        **dataclasses.asdict(found),
        'state': found.state.value if found.state else UNREADABLE,
        'counts': counts,
        'percent': 100 * _done(total, counts) // max(1, total),
        'failed': sum(
            counts.get(one.value, 0)
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
        'round': found.control.round + 1,
        'targets_from': order.targets,
        'limits': order.limits.shown(),
        'inputs': sorted(order.inputs),
        'script': order.script,
        'requests': [
            {**vars(one), 'at': summary.time(one.at)}
            for one in found.control.requests
        ],
        'failures': [target(found, n) for n in found.failures],
    }


def target(found: operations.Operation, member: int) -> dict[str, Any]:
    """Return what may be shown of a target: `TARGET_KEYS` with values."""
    one, attempt = found.order.members[member], found.attempts[member]
    return {
        'stack': one.stack_name,
        'resource': one.resource,
        'server': one.server_id,
        'server_name': one.server_name,
        'state': state(found, member),
        'reason': attempt.reason,
        'attempt': attempt.number,
        'started_at': summary.time(attempt.started_at),
        'ended_at': summary.time(attempt.ended_at),
        'duration': attempt.duration,
        'outputs': dict(attempt.outputs),
        'cut': dict(attempt.cut),
        'attempts': [
            {
                'attempt': each.number,
                'state': each.state.value,
                'reason': each.reason,
                'started_at': summary.time(each.started_at),
                'ended_at': summary.time(each.ended_at),
            }
            for each in attempt.every
            if each.state is not None
        ],
    }
