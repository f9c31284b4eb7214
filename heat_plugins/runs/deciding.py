# SPDX-License-Identifier: Apache-2.0
"""The next step of a run, and the requests of users: pure decisions.

The leader of a run asks `advance`, records the run that it returns, and only
then acts. So the record always knows of what may have been started:

- at most C runs go on at a time (``max_concurrent``);
- at most E + C failures begin (``max_errors``): after one more than E no run
  starts, and at most C - 1 others were running then;
- a target has at most one run for each attempt.
"""

import dataclasses
from typing import Any

from heat_plugins import bounds
from heat_plugins.runs import run_records

_Record = run_records.RunRecord
_Phase = run_records.Phase
_State = run_records.State
_Stop = run_records.Stop

#: The state of a member on which nothing has started.
NOT_STARTED = 'not-started'

# Former attempts that are kept, and the bytes of outputs of each.
_KEPT, _OUTPUTS = 5, 16 * 1024

_WITHDRAWN = (_Stop.CANCELLED, _Stop.DEADLINE)
_LATE = (_Stop.DEADLINE, _Stop.CUT_OFF)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Step:
    """The next step of a run.

    :ivar run: what to record before anything else.
    :ivar start: the members to start a run on; they are marked as starting.
    :ivar expire: the members whose run has had its time. Settle them, and
        decide again.
    :ivar withdraw: the members to take their run from. Settle them as
        cancelled, and decide again.
    """

    run: _Record
    start: tuple[int, ...] = ()
    expire: tuple[int, ...] = ()
    withdraw: tuple[int, ...] = ()


def advance(run: _Record, now: float) -> Step:
    """Decide the next step of a run."""
    if run.ended:
        return Step(run=run)
    run = _stopped(run, now)
    live, control = run.live, run.control
    withdraw = [
        n
        for n in live
        if control.stopped in _WITHDRAWN or run.attempts[n].cancelled_by
    ]
    if withdraw:
        return Step(run=_with_phase(run), withdraw=tuple(withdraw))
    expire = tuple(n for n in live if run.overdue(n, now))
    if expire:
        return Step(run=_with_phase(run), expire=expire)
    if not live and (control.stopped or not run.pending):
        return Step(run=_ended(run, now))
    start = _next(run, now)
    begun = {
        n: {
            'number': run.attempts[n].number + 1,
            'round': run.control.round,
            'state': _State.STARTING,
            'reason': '',
            'wait_until': None,
            'started_at': int(now),
        }
        for n in start
    }
    run = run.attempted(begun)
    return Step(run=_with_phase(run), start=start)


def next_time(run: _Record) -> float | None:
    """Return when `advance` may decide otherwise as time passes; or None."""
    control, limits = run.control, run.order.limits
    times: list[float] = [
        (attempt.started_at or 0) + seconds
        for n in run.live
        if (attempt := run.attempts[n])
        for seconds in (
            run.timeout(n),
            None if attempt.reported_at else run.delivery_timeout(n),
        )
        if seconds is not None
    ]
    if limits.deadline is not None:
        times.append(control.began_at + limits.deadline)
    if not control.stopped and run.pending:
        if limits.cut_off is not None:
            times.append(control.began_at + limits.cut_off)
        waits = [run.attempts[n].wait_until for n in run.pending]
        times += [each for each in waits if each is not None]
        if limits.pause and not run.live:
            times.append(_pause_ends(run))
    return min(times, default=None)


def retry(
    run: _Record, now: float, who: str, only: str | None = None
) -> _Record:
    """Return a run that runs again where it did not succeed.

    :param run: one that may be retried; see `refusal`.
    :param only: see `run_records.Request`.
    """
    again = retriable(run, only)
    number = run.control.round + 1
    return run.attempted(
        {
            n: vars(
                run_records.Attempt(
                    number=run.attempts[n].number,
                    round=number,
                    former=_former(run, n),
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


def retriable(run: _Record, only: str | None = None) -> list[int]:
    """Return the members that a retry runs again.

    :param only: see `run_records.Request`.
    """
    return [
        n
        for n, (target, attempt) in enumerate(
            zip(run.order.members, run.attempts, strict=True)
        )
        if attempt.state is not _State.COMPLETE
        and not attempt.gone
        and only
        in (
            None,
            attempt.state.value if attempt.state else NOT_STARTED,
            target.resource,
            target.server_name,
            target.server_id,
            target.label,
        )
    ]


def _former(run: _Record, member: int) -> tuple[Any, ...]:
    """Return the attempts before the next one, as far as they are kept.

    Many are in one row, so little of their outputs is.
    """
    attempt = run.attempts[member]
    if not attempt.is_run:
        return attempt.former
    outputs, cut = run_records.limited(attempt.outputs, attempt.cut, _OUTPUTS)
    is_cancelled = attempt.state is _State.CANCELLED
    last = dataclasses.replace(
        attempt,
        former=(),
        outputs=outputs,
        cut=cut,
        cancelled_by=attempt.cancelled_by
        or (run.control.stopped_by if is_cancelled else None),
        late=attempt.late and dataclasses.replace(attempt.late, outputs={}),
    )
    return (*attempt.former, last)[-_KEPT:]


def needs_approval(run: _Record) -> bool:
    """Say whether the canaries have succeeded and a user must resume it."""
    limits, control = run.order.limits, run.control
    return (
        limits.approve_after_canary
        and limits.canary > 0
        and not control.approved
        and bool(run.pending)
        and all(
            run.attempts[n].state is _State.COMPLETE for n in _canaries(run)
        )
    )


def _canaries(run: _Record) -> list[int]:
    """Return the targets that go first, by number."""
    there = [n for n, attempt in enumerate(run.attempts) if attempt.counts]
    return there[: run.order.limits.canary]


def _stopped(run: _Record, now: float) -> _Record:
    """Return a run that has stopped if there is a reason to."""
    control, limits = run.control, run.order.limits
    if control.stopped in _WITHDRAWN:
        return run
    age = now - control.began_at
    is_late = limits.deadline is not None and age >= limits.deadline
    # What runs after another stop is withdrawn, too.
    if is_late and (run.live or not control.stopped):
        return run.changed(
            stopped=_Stop.DEADLINE, stopped_before=control.stopped
        )
    if control.stopped:
        return run
    # What a retry leaves alone has been counted.
    failures = [
        n for n in run.failures if run.attempts[n].round == control.round
    ]
    if not set(failures).isdisjoint(_canaries(run)):
        return run.changed(stopped=_Stop.CANARY)
    if len(failures) > limits.max_errors.of(len(run.attempts)):
        return run.changed(stopped=_Stop.ERRORS)
    cut_off = limits.cut_off
    # What is recorded as starting may wait for its delivery.
    may_start = run.pending or run.count(_State.STARTING)
    if cut_off is not None and age >= cut_off and may_start:
        return run.changed(stopped=_Stop.CUT_OFF)
    return run


def _next(run: _Record, now: float) -> tuple[int, ...]:
    """Return the members to start a run on."""
    control, limits = run.control, run.order.limits
    if control.stopped or control.paused_by or needs_approval(run):
        return ()
    live = run.live
    if limits.pause and (live or now < _pause_ends(run)):
        return ()
    pending = run.pending
    canaries = set(_canaries(run)) & {*pending, *live}
    if canaries:
        pending = [n for n in pending if n in canaries]
    pending = [n for n in pending if now >= (run.attempts[n].wait_until or 0)]
    room = limits.concurrent(len(run.attempts)) - len(live)
    return tuple(pending[: max(0, room)])


def _pause_ends(run: _Record) -> float:
    """Return when the next batch may start."""
    ends = [
        attempt.ended_at
        for attempt in run.attempts
        if attempt.ended_at is not None
        and attempt.round == run.control.round
        and attempt.counts
    ]
    return max(ends) + run.order.limits.pause if ends else 0


def _with_phase(run: _Record) -> _Record:
    """Return a run with the phase that it is in."""
    control = run.control
    resume = f'openstack software deployment run resume {run.id}'
    if control.stopped:
        return run.changed(phase=_Phase.STOPPING, reason=_why(run))
    if control.paused_by:
        reason = f'Paused by {control.paused_by}. To continue: {resume}'
        return run.changed(phase=_Phase.PAUSED, reason=reason)
    if needs_approval(run):
        reason = f'The canaries have succeeded. To start the others: {resume}'
        return run.changed(phase=_Phase.APPROVAL, reason=reason)
    if control.phase is _Phase.RUNNING:
        return run
    return run.changed(phase=_Phase.RUNNING, reason='')


def _why(run: _Record) -> str:
    """Return why no further target starts: both reasons, in their order."""
    limits, control = run.order.limits, run.control
    reasons = {
        _Stop.CANCELLED: f'Cancelled by {control.stopped_by}',
        _Stop.DEADLINE: f'It has not ended within {limits.deadline} s',
        _Stop.CUT_OFF: (
            f'No run starts after the cut-off of {limits.cut_off} s'
        ),
        _Stop.CANARY: 'A canary has failed',
        _Stop.ERRORS: (
            f'More failures than max-errors allows ({limits.max_errors})'
        ),
    }
    why = reasons.get(control.stopped or _Stop.ERRORS, '')
    if control.stopped_before is None:
        return why
    before = reasons[control.stopped_before]
    return f'{before}; {why[0].lower()}{why[1:]}'


def _ended(run: _Record, now: float) -> _Record:
    """Return a run with its end: phase, reason and time."""
    is_cut_off = run.control.stopped is _Stop.CUT_OFF
    if is_cut_off and not run.count(None):
        # The cut-off stopped no target: all had been delivered before it.
        run = run.changed(stopped=None)
    total = sum(attempt.counts for attempt in run.attempts)
    failed, pending = len(run.failures), run.count(None)
    parts = [_why(run)] if run.control.stopped else []
    if failed:
        parts.append(f'{failed} of {total} failed')
    if pending:
        parts.append(f'{pending} not started')
    if cancelled := _cancelled(run):
        parts.append(f'{cancelled} cancelled')
    if all(attempt.gone for attempt in run.attempts):
        parts.append('Its stacks or deployments were deleted')
    if not parts and total and not _is_idle(run):
        parts = ['It succeeded' if total == 1 else f'All {total} succeeded']
    if skipped := run.count(_State.SKIPPED):
        verb = 'runs' if _is_idle(run) else 'ran'
        parts.append(f'{run.order.action} already {verb} on {skipped}')
    return run.changed(
        phase=_end(run),
        reason='; '.join(parts),
        ended_at=int(now),
    )


def _end(run: _Record) -> _Phase:
    """Return how a run ended: as the worst of its runs did."""
    stopped = run.control.stopped
    if stopped is _Stop.CANCELLED:
        return _Phase.CANCELLED
    if stopped in _LATE or run.count(_State.TIMED_OUT):
        return _Phase.TIMED_OUT
    # A retry of some may leave others that have not started.
    if run.count(_State.FAILED) or run.count(None) or _is_idle(run):
        return _Phase.FAILED
    is_complete = run.count(_State.COMPLETE) and not _cancelled(run)
    return _Phase.COMPLETE if is_complete else _Phase.CANCELLED


def _cancelled(run: _Record) -> int:
    """Return how many runs were cancelled, but not with the run."""
    is_withdrawn = run.control.stopped in _WITHDRAWN
    return sum(
        attempt.state is _State.CANCELLED
        and not attempt.gone
        and (attempt.cancelled_by is not None or not is_withdrawn)
        for attempt in run.attempts
    )


def _is_idle(run: _Record) -> bool:
    """Say whether a round has left all that it could run to other runs."""
    states = [
        attempt.state
        for attempt in run.attempts
        if attempt.round == run.control.round
    ]
    return _State.SKIPPED in states and _State.COMPLETE not in states


PAUSE, RESUME, CANCEL, RETRY = 'pause', 'resume', 'cancel', 'retry'

#: Cancels one target, whose run `run_records.Request.only` names.
CANCEL_RUN = 'cancel-run'

# The latest requests that a run remembers.
_REQUESTS = 20


def refusal(
    run: run_records.RunRecord,
    what: str,
    only: str | None = None,
) -> str | None:
    """Return why a request makes no sense now; None if it does.

    :param only: see `run_records.Request`.
    """
    control = run.control
    if what == RETRY:
        if not run.ended:
            return f'it is {control.phase.value}; wait for it or cancel it'
        if not retriable(run):
            return 'it has succeeded on all targets'
        if not retriable(run, only):
            return (
                f'no target without success is, or is named, '
                f'{bounds.shortened(str(only))}'
            )
        return None
    if run.ended:
        return f'it has ended: {control.phase.value}'
    if what == CANCEL_RUN and run.running(str(only)) is None:
        return f'run {bounds.shortened(str(only))} has ended'
    if what == RESUME and not (control.paused_by or needs_approval(run)):
        return f'it is {control.phase.value}, not paused'
    return None


def follow(
    run: run_records.RunRecord,
    wanted: run_records.Request,
    now: float,
) -> run_records.RunRecord:
    """Return a run that follows the request of a user.

    A request that no longer makes sense changes nothing.
    """
    what, who = wanted.do, wanted.who
    if refusal(run, what, wanted.only):
        return run
    after, member = run, run.running(str(wanted.only))
    if what == PAUSE:
        after = run.changed(paused_by=who)
    elif what == RESUME:
        approved = run.control.approved or needs_approval(run)
        after = run.changed(paused_by=None, approved=approved)
    elif what == CANCEL and run.control.stopped_by is None:
        after = run.changed(stopped=run_records.Stop.CANCELLED, stopped_by=who)
    elif what == RETRY:
        after = retry(run, now, who, wanted.only)
    elif member is not None:
        # CANCEL_RUN names it.
        after = run.attempted({member: {'cancelled_by': who}})
    asked = run_records.Asked(**vars(wanted), at=int(now))
    former = run.control.asked
    return after.changed(asked=(*former, asked)[-_REQUESTS:])
