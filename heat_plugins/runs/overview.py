# SPDX-License-Identifier: Apache-2.0
"""A run as it is shown to people and programs, and its targets."""

import collections
from collections import abc
import dataclasses
import math
from typing import Any

from heat_plugins import bounds
from heat_plugins.runs import run_records
from heat_plugins.runs import summary

#: The state of a run whose record is unreadable.
UNREADABLE = 'unreadable'

#: What stands for a member on which nothing has started: it may yet, or the
#: run has ended.
PENDING, NOT_STARTED = 'pending', 'not-started'

#: The states of targets, in the order of a run's life.
COUNTED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in run_records.State),
)

_UNFINISHED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in run_records.State if not each.ended),
)


def state(run: run_records.RunRecord, member: int) -> str:
    """Return the state of a target."""
    attempt = run.attempts[member]
    if attempt.state is not None:
        return attempt.state.value
    is_pending = not run.ended and attempt.round == run.control.round
    return PENDING if is_pending else NOT_STARTED


def counts(run: run_records.RunRecord) -> dict[str, int]:
    """Return the number of targets in each state, without zeros."""
    numbers = collections.Counter(
        state(run, n) for n in range(len(run.attempts))
    )
    return {name: numbers[name] for name in COUNTED if name in numbers}


def estimated_end(run: run_records.RunRecord, now: float) -> int | None:
    """Return when a run is likely to end; None if unknown.

    This assumes that runs take as long as the average of this round, and
    counts no time in which it waited for a user.
    """
    control, limits = run.control, run.order.limits
    if run.ended or control.phase is not run_records.Phase.RUNNING:
        return None
    taken = [
        attempt.duration
        for attempt in run.attempts
        if attempt.round == control.round and attempt.duration is not None
    ]
    if not taken:
        return None
    average = sum(taken) / len(taken)
    starts = [run.attempts[member].started_at for member in run.live]
    rest = [start + average - now for start in starts if start is not None]
    concurrent = limits.concurrent(len(run.attempts))
    waves = math.ceil(len(run.pending) / concurrent)
    seconds = max([0, *rest]) + waves * (average + limits.pause)
    return int(now + seconds)


def head(run: run_records.RunRecord) -> run_records.Head:
    """Return the row of a run in a list."""
    order, control = run.order, run.control
    # The first line of a script that does something.
    lines = [e for e in order.script.splitlines() if e and e[0] != '#']
    return run_records.Head(
        id=order.id,
        action=order.action,
        state=control.phase,
        reason=control.reason,
        stacks=order.stacks,
        stack_ids=order.stack_ids,
        targets=len(order.members),
        counts=counts(run),
        created_at=order.created_at,
        created_by=order.created_by,
        ended_at=control.ended_at,
        script=bounds.shortened(lines[0]) if lines else '',
    )


def recounted(
    head: run_records.Head, counts: abc.Mapping[str, int]
) -> run_records.Head:
    """Return the row of a run after answers have changed its counts.

    :param counts: of the targets that something has started on, by state.
    """
    unstarted = {
        name: head.counts[name]
        for name in (PENDING, NOT_STARTED)
        if name in head.counts
    }
    return dataclasses.replace(head, counts={**unstarted, **counts})


def of_head(head: run_records.Head) -> dict[str, Any]:
    """Return a head as it is shown; times are texts in UTC."""
    created, ended = head.created_at, head.ended_at
    counts, total = dict(head.counts), head.targets
    done = total - sum(counts.get(name, 0) for name in _UNFINISHED)
    return {
        **dataclasses.asdict(head),
        'state': head.state.value if head.state else UNREADABLE,
        'counts': counts,
        'percent': 100 * done // max(1, total),
        'failed': sum(
            counts.get(each.value, 0)
            for each in (run_records.State.FAILED, run_records.State.TIMED_OUT)
        ),
        'created_at': summary.time(created),
        'ended_at': summary.time(ended),
        'duration': None if ended is None else ended - created,
    }


def of(run: run_records.RunRecord, now: float) -> dict[str, Any]:
    """Return all that may be shown of a run, without its targets.

    Of the inputs only the names are there: the values may be secrets.
    """
    order = run.order
    return {
        **of_head(head(run)),
        'estimated_end': summary.time(estimated_end(run, now)),
        'round': run.control.round + 1,
        'targets_from': order.targets,
        'limits': order.limits.shown(),
        'inputs': sorted(order.inputs),
        'script': order.script,
        'requests': [
            {
                'do': request.do,
                'who': request.who,
                'only': request.only,
                'at': summary.time(request.at),
            }
            for request in run.control.asked
        ],
        'failures': [target(run, n) for n in run.failures],
        **({'notify': order.notify} if order.notify else {}),
        'notices': [
            *(
                {
                    'event': each.event.value,
                    'state': 'given-up' if each.why else 'delivered',
                    'at': summary.time(each.at),
                    'tries': each.tries,
                    'reason': each.why,
                }
                for each in run.control.notices.sent
            ),
            *(
                {
                    'event': each.event.value,
                    'state': 'pending',
                    'at': None,
                    'tries': each.tries,
                    'reason': '',
                }
                for each in run.control.notices.notices
            ),
        ],
    }


def target(run: run_records.RunRecord, member: int) -> dict[str, Any]:
    """Return a target for users, as `clients.runs` reads it."""
    its, attempt = run.order.members[member], run.attempts[member]
    late = attempt.late
    return {
        'stack': its.stack_name,
        'stack_id': its.stack_id,
        'resource': its.resource,
        'server': its.server_id,
        'server_name': its.server_name,
        'state': state(run, member),
        'reason': attempt.reason,
        'attempt': attempt.number,
        'started_at': summary.time(attempt.started_at),
        'reported_at': summary.time(attempt.reported_at),
        'ended_at': summary.time(attempt.ended_at),
        'duration': attempt.duration,
        'timeout': run.timeout(member),
        # What its server says, for who has it.
        'progress': None,
        'message': None,
        'cancelled_by': attempt.cancelled_by,
        'outputs': dict(attempt.outputs),
        'cut': dict(attempt.cut),
        'late_result': late
        and {
            'at': summary.time(late.at),
            'status': late.status,
            'reason': late.reason,
            **{name: value for name, value in late.outputs.items() if value},
        },
        'attempts': [
            {
                'attempt': each.number,
                'state': each.state.value,
                'reason': each.reason,
                'started_at': summary.time(each.started_at),
                'reported_at': summary.time(each.reported_at),
                'ended_at': summary.time(each.ended_at),
            }
            for each in attempt.every
            if each.state is not None
        ],
    }


def kept_busy(
    run: run_records.RunRecord,
    member: int,
    others: abc.Iterable[run_records.RunRecord],
) -> str:
    """Return the run that keeps a server from starting an attempt.

    Empty if nothing says so.

    :param others: other runs on that server, each with this target alone.
    """
    started_at = run.attempts[member].started_at or 0
    reasons = {}
    for other in others:
        its = other.attempts[0]
        what = (
            f'run {other.id} ({other.order.action} on '
            f'{other.order.members[0].resource})'
        )
        if its.state is run_records.State.RUNNING:
            reasons[0] = f'Its server is busy with {what}'
        elif its.is_unanswered and its.reported_at is not None:
            reasons[1] = (
                f'Its server may be busy with {what}, which is '
                f'{its.state} and has not stopped'
            )
        elif its.is_live and (its.started_at or 0) < started_at:
            reasons[2] = f'Its server runs {what} first'
    return reasons[min(reasons)] if reasons else ''
