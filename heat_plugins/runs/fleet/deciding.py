# SPDX-License-Identifier: Apache-2.0
"""What an operation does next: a pure decision over what is known of it.

Who advances an operation asks `advance`, records the operation that it
returns, and only then acts. So the record always knows of what may have been
started:

- at most C runs go on at a time (``max_concurrent``);
- at most E + C failures begin (``max_errors``): after one more than E no run
  starts, and at most C - 1 others were running then;
- a member has at most one run for each attempt.
"""

from collections import abc
import dataclasses
import json
from typing import Any

from heat_plugins import stored
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations

_Operation = operations.Operation
_Phase = operations.Phase
_State = operations.State
_Stop = operations.Stop

#: The state of a member on which nothing has started.
NOT_STARTED = 'not-started'

# Former attempts that are kept, and the bytes of outputs of each.
_KEPT, _OUTPUTS = 5, 16 * 1024

_WITHDRAWN = (_Stop.CANCELLED, _Stop.DEADLINE)
_LATE = (_Stop.DEADLINE, _Stop.CUT_OFF)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """What to do next.

    :ivar operation: what to record before anything else.
    :ivar start: the members to start a run on; they are marked as starting.
    :ivar expire: the members whose run has had its time. Settle them, and
        decide again.
    :ivar withdraw: the members to take their run from. Settle them as
        cancelled, and decide again.
    """

    operation: _Operation
    start: tuple[int, ...] = ()
    expire: tuple[int, ...] = ()
    withdraw: tuple[int, ...] = ()


def advance(operation: _Operation, now: float) -> Step:
    """Decide what an operation does next."""
    if operation.ended:
        return Step(operation=operation)
    operation = _stopped(operation, now)
    live, control = operation.live, operation.control
    withdraw = [
        n
        for n in live
        if control.stopped in _WITHDRAWN or operation.attempts[n].cancelled_by
    ]
    if withdraw:
        return Step(operation=_standing(operation), withdraw=tuple(withdraw))
    if expire := _overdue(operation, live, now):
        return Step(operation=_standing(operation), expire=expire)
    if not live and (control.stopped or not operation.pending):
        return Step(operation=_ended(operation, now))
    start = _next(operation, now)
    operation = operation.attempted(
        {n: _begun(operation, n, now) for n in start}
    )
    return Step(operation=_standing(operation), start=start)


def retry(
    operation: _Operation, now: float, who: str, only: str | None = None
) -> _Operation:
    """Return an operation that runs again where it did not succeed.

    :param operation: one that may be retried; see `fleet_requests.refusal`.
    :param only: see `operations.Request`.
    """
    again = retriable(operation, only)
    number = operation.control.round + 1
    return operation.attempted(
        {
            n: vars(
                operations.Attempt(
                    number=operation.attempts[n].number,
                    round=number,
                    former=_former(operation, n),
                )
            )
            for n in again
        }
    ).changed(
        phase=_Phase.RUNNING,
        reason=f'Retried by {who}',
        round=number,
        began_at=int(now),
        ended_at=None,
        stopped=None,
        stopped_before=None,
        stopped_by=None,
        paused_by=None,
    )


def retriable(operation: _Operation, only: str | None = None) -> list[int]:
    """Return the members that a retry runs again.

    :param only: see `operations.Request`.
    """
    return [
        n
        for n, attempt in enumerate(operation.attempts)
        if attempt.state is not _State.COMPLETE
        and not attempt.gone
        and only in (None, *_names(operation, n))
    ]


def _names(operation: _Operation, member: int) -> list[str | None]:
    """Return what a user may call a member, or its state."""
    target, attempt = (
        operation.order.members[member],
        operation.attempts[member],
    )
    state = attempt.state.value if attempt.state else NOT_STARTED
    return [
        state,
        target.resource,
        target.server_name,
        target.server_id,
        target.label,
    ]


def _former(operation: _Operation, member: int) -> tuple[Any, ...]:
    """Return the attempts before the next one, as far as they are kept."""
    attempt = operation.attempts[member]
    if not attempt.is_run:
        return tuple(attempt.former)
    outputs, cut = _shortened(attempt)
    is_cancelled = attempt.state is _State.CANCELLED
    last = dataclasses.replace(
        attempt,
        former=(),
        outputs=outputs,
        cut=cut,
        cancelled_by=attempt.cancelled_by
        or (operation.control.stopped_by if is_cancelled else None),
        late=attempt.late and dataclasses.replace(attempt.late, outputs={}),
    )
    return (*attempt.former, stored.dump(last))[-_KEPT:]


def _shortened(
    attempt: operations.Attempt,
) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the outputs of a former attempt, and how long those cut are.

    Many attempts are in one object; the first outputs are kept.
    """
    outputs, cut = {}, dict(attempt.cut)
    room = _OUTPUTS
    for name, value in attempt.outputs.items():
        shown = value if isinstance(value, str) else json.dumps(value)
        room -= len(name) + len(json.dumps(value))
        if room >= 0:
            outputs[name] = value
        else:
            cut.setdefault(name, len(shown))
    return outputs, cut


def needs_approval(operation: _Operation) -> bool:
    """Say whether the canaries have succeeded and a user must resume it."""
    limits, control = operation.order.limits, operation.control
    return (
        limits.approve_after_canary
        and limits.canary > 0
        and not control.approved
        and bool(operation.pending)
        and all(
            operation.attempts[n].state is _State.COMPLETE
            for n in _canaries(operation)
        )
    )


def _canaries(operation: _Operation) -> list[int]:
    there = [
        n for n, attempt in enumerate(operation.attempts) if attempt.counts
    ]
    return there[: operation.order.limits.canary]


def _stopped(operation: _Operation, now: float) -> _Operation:
    """Return an operation that has stopped if there is a reason to."""
    control, limits = operation.control, operation.order.limits
    if control.stopped in _WITHDRAWN:
        return operation
    age = now - control.began_at
    is_late = limits.deadline is not None and age >= limits.deadline
    # What runs after another stop is withdrawn, too.
    if is_late and (operation.live or not control.stopped):
        return operation.changed(
            stopped=_Stop.DEADLINE, stopped_before=control.stopped
        )
    if control.stopped:
        return operation
    # What a retry leaves alone has been counted.
    failures = [
        n
        for n in operation.failures
        if operation.attempts[n].round == control.round
    ]
    if not set(failures).isdisjoint(_canaries(operation)):
        return operation.changed(stopped=_Stop.CANARY)
    if len(failures) > limits.errors(len(operation.attempts)):
        return operation.changed(stopped=_Stop.ERRORS)
    cut_off = limits.cut_off
    if cut_off is not None and age >= cut_off and _may_start(operation):
        return operation.changed(stopped=_Stop.CUT_OFF)
    return operation


def _may_start(operation: _Operation) -> bool:
    """Say whether a run may not have been delivered yet."""
    # What is recorded as starting may wait for its delivery.
    return bool(operation.pending) or any(
        attempt.state is _State.STARTING for attempt in operation.attempts
    )


def _overdue(
    operation: _Operation, live: abc.Iterable[int], now: float
) -> tuple[int, ...]:
    return tuple(
        n
        for n in live
        if runs.overdue(
            operation.attempts[n],
            operation.timeout(n),
            operation.delivery_timeout(n),
            now,
        )
    )


def _next(operation: _Operation, now: float) -> tuple[int, ...]:
    """Return the members to start a run on."""
    control, limits = operation.control, operation.order.limits
    if control.stopped or control.paused_by or needs_approval(operation):
        return ()
    live = operation.live
    if limits.pause and (live or now < _pause_ends(operation)):
        return ()
    pending = operation.pending
    canaries = set(_canaries(operation)) & {*pending, *live}
    if canaries:
        pending = [n for n in pending if n in canaries]
    pending = [
        n for n in pending if now >= (operation.attempts[n].wait_until or 0)
    ]
    room = limits.concurrent(len(operation.attempts)) - len(live)
    return tuple(pending[: max(0, room)])


def _pause_ends(operation: _Operation) -> float:
    """Return when the next batch may start."""
    ends = [
        attempt.ended_at
        for attempt in operation.attempts
        if attempt.ended_at is not None
        and attempt.round == operation.control.round
        and attempt.counts
    ]
    return max(ends) + operation.order.limits.pause if ends else 0


def _begun(
    operation: _Operation, member: int, now: float
) -> dict[str, object]:
    return {
        'number': operation.attempts[member].number + 1,
        'round': operation.control.round,
        'state': _State.STARTING,
        'reason': '',
        'wait_until': None,
        'started_at': int(now),
    }


def _standing(operation: _Operation) -> _Operation:
    """Return an operation with the phase that it is in."""
    control = operation.control
    if control.stopped:
        return operation.changed(phase=_Phase.STOPPING, reason=_why(operation))
    if control.paused_by:
        reason = (
            f'Paused by {control.paused_by}. To continue: {_resume(operation)}'
        )
        return operation.changed(phase=_Phase.PAUSED, reason=reason)
    if needs_approval(operation):
        reason = (
            'The canaries have succeeded. To start the others: '
            + _resume(operation)
        )
        return operation.changed(phase=_Phase.APPROVAL, reason=reason)
    if control.phase is _Phase.RUNNING:
        return operation
    return operation.changed(phase=_Phase.RUNNING, reason='')


def _resume(operation: _Operation) -> str:
    return f'openstack software deployment operation resume {operation.id}'


def _why(operation: _Operation) -> str:
    """Say why nothing else starts: both reasons, the first one first."""
    control = operation.control
    why = _reason(operation, control.stopped)
    if control.stopped_before is None:
        return why
    before = _reason(operation, control.stopped_before)
    return f'{before}; {why[0].lower()}{why[1:]}'


def _reason(operation: _Operation, stop: _Stop | None) -> str:
    limits = operation.order.limits
    if stop is _Stop.CANCELLED:
        return f'Cancelled by {operation.control.stopped_by}'
    if stop is _Stop.DEADLINE:
        return f'It has not ended within {limits.deadline} s'
    if stop is _Stop.CUT_OFF:
        return f'No run starts after the cut-off of {limits.cut_off} s'
    if stop is _Stop.CANARY:
        return 'A canary has failed'
    return f'More failures than max-errors allows ({limits.max_errors})'


def _ended(operation: _Operation, now: float) -> _Operation:
    """Return an operation that has come to its end."""
    is_cut_off = operation.control.stopped is _Stop.CUT_OFF
    if is_cut_off and not operation.count(None):
        # What was starting at that time had been delivered.
        operation = operation.changed(stopped=None)
    total = sum(attempt.counts for attempt in operation.attempts)
    failed, pending = len(operation.failures), operation.count(None)
    parts = [_why(operation)] if operation.control.stopped else []
    if failed:
        parts.append(f'{failed} of {total} failed')
    if pending:
        parts.append(f'{pending} not started')
    if cancelled := _cancelled(operation):
        parts.append(f'{cancelled} cancelled')
    if not parts and total and not _is_idle(operation):
        parts = ['It succeeded' if total == 1 else f'All {total} succeeded']
    if skipped := operation.count(_State.SKIPPED):
        verb = 'runs' if _is_idle(operation) else 'ran'
        parts.append(f'{operation.order.action} already {verb} on {skipped}')
    return operation.changed(
        phase=_end(operation),
        reason='; '.join(parts),
        ended_at=int(now),
    )


def _end(operation: _Operation) -> _Phase:
    """Return how an operation ended: as the worst of its runs did."""
    stopped = operation.control.stopped
    if stopped is _Stop.CANCELLED:
        return _Phase.CANCELLED
    if stopped in _LATE or operation.count(_State.TIMED_OUT):
        return _Phase.TIMED_OUT
    # A retry of some may leave others that have not started.
    if (
        operation.count(_State.FAILED)
        or operation.count(None)
        or _is_idle(operation)
    ):
        return _Phase.FAILED
    is_complete = operation.count(_State.COMPLETE) and not _cancelled(
        operation
    )
    return _Phase.COMPLETE if is_complete else _Phase.CANCELLED


def _cancelled(operation: _Operation) -> int:
    """Return how many runs were cancelled, but not with the operation."""
    is_withdrawn = operation.control.stopped in _WITHDRAWN
    return sum(
        attempt.state is _State.CANCELLED
        and not attempt.gone
        and (attempt.cancelled_by is not None or not is_withdrawn)
        for attempt in operation.attempts
    )


def _is_idle(operation: _Operation) -> bool:
    """Say whether a round has left all that it could run to other runs."""
    states = [
        attempt.state
        for attempt in operation.attempts
        if attempt.round == operation.control.round
    ]
    return _State.SKIPPED in states and _State.COMPLETE not in states
