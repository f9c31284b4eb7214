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


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """What to do next.

    :ivar operation: what to record before anything else.
    :ivar start: the members to start a run on; they are marked as starting.
    :ivar expire: the members whose run has had its time, with the reason.
        Settle them, and decide again.
    :ivar withdraw: the members to take their run from. Settle them as
        cancelled, and decide again.
    """

    operation: _Operation
    start: tuple[int, ...] = ()
    expire: abc.Mapping[int, str] = dataclasses.field(default_factory=dict)
    withdraw: tuple[int, ...] = ()


def advance(found: _Operation, now: float) -> Step:
    """Decide what an operation does next."""
    if found.ended:
        return Step(operation=found)
    found = _stopped(found, now)
    live, control = found.live, found.control
    withdraw = [
        n
        for n in live
        if control.stopped in _WITHDRAWN or found.attempts[n].cancelled_by
    ]
    if withdraw:
        return Step(operation=_standing(found), withdraw=tuple(withdraw))
    if expire := _overdue(found, live, now):
        return Step(operation=_standing(found), expire=expire)
    if not live and (control.stopped or not found.pending):
        return Step(operation=_ended(found, now))
    start = _next(found, now)
    found = found.attempted({n: _begun(found, n, now) for n in start})
    return Step(operation=_standing(found), start=start)


def retry(
    found: _Operation, now: float, who: str, only: str | None = None
) -> _Operation:
    """Return an operation that runs again where it did not succeed.

    :param found: one that may be retried; see `fleet_requests.refusal`.
    :param only: see `operations.Request`.
    """
    again = retriable(found, only)
    number = found.control.round + 1
    return found.attempted(
        {
            n: {
                'state': None,
                'round': number,
                'wait_until': None,
                'reason': '',
                'started_at': None,
                'reported_at': None,
                'ended_at': None,
                'row_id': None,
                'config_id': None,
                'outputs': {},
                'cut': {},
                'former': _former(found, n),
                'cancelled_by': None,
                'late': None,
            }
            for n in again
        }
    ).changed(
        phase=_Phase.RUNNING,
        reason=f'Retried by {who}',
        round=number,
        began_at=int(now),
        ended_at=None,
        stopped=None,
        stopped_by=None,
        paused_by=None,
    )


def retriable(found: _Operation, only: str | None = None) -> list[int]:
    """Return the members that a retry runs again.

    :param only: see `operations.Request`.
    """
    return [
        n
        for n, one in enumerate(found.attempts)
        if one.state is not _State.COMPLETE
        and not one.gone
        and only in (None, *_names(found, n))
    ]


def _names(found: _Operation, member: int) -> list[str | None]:
    """Return what a user may call a member, or its state."""
    one, attempt = found.order.members[member], found.attempts[member]
    state = attempt.state.value if attempt.state else NOT_STARTED
    return [state, one.resource, one.server_name, one.server_id, one.label]


def _former(found: _Operation, member: int) -> tuple[Any, ...]:
    """Return the attempts before the next one, as far as they are kept."""
    attempt = found.attempts[member]
    if attempt.state is None or attempt.state is _State.SKIPPED:
        return tuple(attempt.former)
    outputs, cut = _shortened(attempt)
    is_cancelled = attempt.state is _State.CANCELLED
    last = dataclasses.replace(
        attempt,
        former=(),
        outputs=outputs,
        cut=cut,
        cancelled_by=attempt.cancelled_by
        or (found.control.stopped_by if is_cancelled else None),
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


def needs_approval(found: _Operation) -> bool:
    """Say whether the canaries have succeeded and a user must resume it."""
    limits, control = found.order.limits, found.control
    return (
        limits.approve_after_canary
        and limits.canary > 0
        and not control.approved
        and bool(found.pending)
        and all(
            found.attempts[n].state is _State.COMPLETE
            for n in _canaries(found)
        )
    )


def _canaries(found: _Operation) -> list[int]:
    there = [n for n, one in enumerate(found.attempts) if one.counts]
    return there[: found.order.limits.canary]


def _stopped(found: _Operation, now: float) -> _Operation:
    """Return an operation that has stopped if there is a reason to."""
    if found.control.stopped:
        return found
    limits = found.order.limits
    # What a retry leaves alone has been counted.
    failures = [
        n
        for n in found.failures
        if found.attempts[n].round == found.control.round
    ]
    deadline = limits.deadline
    if deadline is not None and now >= found.control.began_at + deadline:
        return found.changed(stopped=_Stop.DEADLINE)
    if not set(failures).isdisjoint(_canaries(found)):
        return found.changed(stopped=_Stop.CANARY)
    if len(failures) > limits.errors(len(found.attempts)):
        return found.changed(stopped=_Stop.ERRORS)
    return found


def _overdue(
    found: _Operation, live: abc.Iterable[int], now: float
) -> dict[int, str]:
    overdue = {}
    for n in live:
        one = found.attempts[n]
        begun = one.started_at or 0
        timeout = found.timeout(n)
        delivery = found.delivery_timeout(n)
        if now >= begun + timeout:
            overdue[n] = f'There was no result within {timeout} s'
        elif delivery and not one.reported_at and now >= begun + delivery:
            overdue[n] = (
                f'The server did not report within {delivery} s that it '
                'started'
            )
    return overdue


def _next(found: _Operation, now: float) -> tuple[int, ...]:
    """Return the members to start a run on."""
    control, limits = found.control, found.order.limits
    if control.stopped or control.paused_by or needs_approval(found):
        return ()
    live = found.live
    if limits.pause and (live or now < _pause_ends(found)):
        return ()
    pending = found.pending
    canaries = set(_canaries(found)) & {*pending, *live}
    if canaries:
        pending = [n for n in pending if n in canaries]
    pending = [
        n for n in pending if now >= (found.attempts[n].wait_until or 0)
    ]
    room = limits.concurrent(len(found.attempts)) - len(live)
    return tuple(pending[: max(0, room)])


def _pause_ends(found: _Operation) -> float:
    """Return when the next batch may start."""
    ends = [
        one.ended_at
        for one in found.attempts
        if one.ended_at is not None
        and one.round == found.control.round
        and one.counts
    ]
    return max(ends) + found.order.limits.pause if ends else 0


def _begun(found: _Operation, member: int, now: float) -> dict[str, object]:
    return {
        'number': found.attempts[member].number + 1,
        'round': found.control.round,
        'state': _State.STARTING,
        'reason': '',
        'wait_until': None,
        'started_at': int(now),
    }


def _standing(found: _Operation) -> _Operation:
    """Return an operation with the phase that it is in."""
    control = found.control
    if control.stopped:
        return found.changed(phase=_Phase.STOPPING, reason=_why(found))
    if control.paused_by:
        reason = (
            f'Paused by {control.paused_by}. To continue: {_resume(found)}'
        )
        return found.changed(phase=_Phase.PAUSED, reason=reason)
    if needs_approval(found):
        reason = (
            'The canaries have succeeded. To start the others: '
            + _resume(found)
        )
        return found.changed(phase=_Phase.APPROVAL, reason=reason)
    if control.phase is _Phase.RUNNING:
        return found
    return found.changed(phase=_Phase.RUNNING, reason='')


def _resume(found: _Operation) -> str:
    return f'openstack software deployment operation resume {found.id}'


def _why(found: _Operation) -> str:
    """Say why nothing else starts."""
    control, limits = found.control, found.order.limits
    if control.stopped is _Stop.CANCELLED:
        return f'Cancelled by {control.stopped_by}'
    if control.stopped is _Stop.DEADLINE:
        return f'It has not ended within {limits.deadline} s'
    if control.stopped is _Stop.CANARY:
        return 'A canary has failed'
    return f'More failures than max-errors allows ({limits.max_errors})'


def _ended(found: _Operation, now: float) -> _Operation:
    """Return an operation that has come to its end."""
    total = sum(one.counts for one in found.attempts)
    failed, pending = len(found.failures), found.count(None)
    told = [_why(found)] if found.control.stopped else []
    if failed:
        told.append(f'{failed} of {total} failed')
    if pending:
        told.append(f'{pending} not started')
    if cancelled := _cancelled(found):
        told.append(f'{cancelled} cancelled')
    if not told and total and not _is_idle(found):
        told = [_success(total)]
    if skipped := found.count(_State.SKIPPED):
        verb = 'runs' if _is_idle(found) else 'ran'
        told.append(f'{found.order.action} already {verb} on {skipped}')
    return found.changed(
        phase=_end(found),
        reason='; '.join(told),
        ended_at=int(now),
    )


def _success(total: int) -> str:
    return 'It succeeded' if total == 1 else f'All {total} succeeded'


def _end(found: _Operation) -> _Phase:
    """Return how an operation ended: as the worst of its runs did."""
    stopped = found.control.stopped
    if stopped is _Stop.CANCELLED:
        return _Phase.CANCELLED
    if stopped is _Stop.DEADLINE or found.count(_State.TIMED_OUT):
        return _Phase.TIMED_OUT
    # A retry of some may leave others that have not started.
    if found.count(_State.FAILED) or found.count(None) or _is_idle(found):
        return _Phase.FAILED
    is_complete = found.count(_State.COMPLETE) and not _cancelled(found)
    return _Phase.COMPLETE if is_complete else _Phase.CANCELLED


def _cancelled(found: _Operation) -> int:
    """Return how many runs a user has cancelled one by one."""
    return sum(one.cancelled_by is not None for one in found.attempts)


def _is_idle(found: _Operation) -> bool:
    """Say whether a round has left all that it could run to other runs."""
    states = [
        one.state for one in found.attempts if one.round == found.control.round
    ]
    return _State.SKIPPED in states and _State.COMPLETE not in states
