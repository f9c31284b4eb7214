# SPDX-License-Identifier: Apache-2.0
"""What the leader of a run stores next: a decision, with what servers get.

See `deciding` for what comes next at all. Everything here is pure.
"""

from collections import abc
import dataclasses
from typing import TypeAlias

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.runs import attempts
from heat_plugins.runs import deciding
from heat_plugins.runs import run_objects
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store

#: Seconds for which a service may be out of order for a target that starts, or
#: whose time is over.
BUDGET = 300.0

# Seconds until another run of the action may have ended.
_WAIT = 10

_FULL = (
    'Waits for room: the project has as many software configs or deployments '
    'as Heat permits (max_software_deployments_per_tenant in heat.conf)'
)

_State = run_records.State

#: What targets may be given, or why they are given nothing.
Prepared: TypeAlias = abc.Mapping[int, deliveries.Delivery | errors.Error]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    """What a step stores.

    :ivar given: what servers are given, by number of the target.
    :ivar taken: the targets whose runs are taken from their servers.
    """

    after: run_records.RunRecord
    given: abc.Mapping[int, deliveries.Delivery]
    taken: tuple[int, ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Answer:
    """How an attempt that its server has changes.

    :ivar result: what the server has sent; None if there is none.
    :ivar lost: why the attempt ends without a result; None if it does not: its
        server has reported that it has started.
    :ivar state: as what it ends without a result.
    """

    result: run_objects.Result | None = None
    lost: str | None = None
    state: _State = _State.CANCELLED


def ending(
    run: run_records.RunRecord,
    step: deciding.Step,
    reasons: abc.Collection[int],
) -> list[int]:
    """Return the targets whose runs are about to be taken from servers."""
    return sorted({*step.expire, *step.withdraw, *reasons} & {*run.live})


def may_wait(
    run: run_records.RunRecord, step: deciding.Step, now: float
) -> bool:
    """Say whether targets whose time is over may have a result all the same.

    They wait for a store that is out of order, but not for ever.
    """
    times = [over[0] for n in step.expire if (over := run.overdue(n, now))]
    return not step.withdraw and now - max(times, default=0) < BUDGET


def decide(
    stored: run_store.StoredRun,
    now: float,
    reasons: abc.Mapping[int, abc.Mapping[str, object]],
    prepared: Prepared,
    room: float,
) -> Decision:
    """Return what to store of a run.

    A run ends in a step of its own, once servers were told what was taken
    from them.

    :param reasons: what changes of targets that cannot go on.
    :param prepared: what targets that may start are given, or why they are
        given nothing.
    """
    before = stored.run
    going = {*before.live, *before.pending}
    run = before.attempted(
        {n: change for n, change in reasons.items() if n in going}
    )
    step = deciding.advance(run, now)
    while step.expire or step.withdraw:
        run = step.run.attempted(
            {
                n: attempts.withdrawn(step.run, n, now)
                or attempts.overdue(step.run, n, now)
                for n in (*step.expire, *step.withdraw)
            }
        )
        step = deciding.advance(run, now)
    given, changes = {}, {}
    for n in step.start:
        outcome = prepared.get(n)
        if isinstance(outcome, deliveries.Delivery):
            given[n] = outcome
        changes[n] = _begun(run, n, outcome, now)
    after = step.run.attempted(changes)
    taken = tuple(
        n
        for n, attempt in enumerate(after.attempts)
        if attempt.row_id and not attempt.is_live
    )
    if taken and after.ended:
        after = run
    is_full = len(step.start) > room
    if after.control.phase is run_records.Phase.RUNNING:
        if is_full:
            after = after.changed(reason=_FULL)
        elif after.control.reason == _FULL:
            after = after.changed(reason='')
    nothing = {'row_id': None, 'config_id': None}
    return Decision(
        after=after.attempted(dict.fromkeys(taken, nothing)),
        given=given,
        taken=taken,
    )


def _begun(
    run: run_records.RunRecord,
    number: int,
    outcome: deliveries.Delivery | errors.Error | None,
    now: float,
) -> abc.Mapping[str, object]:
    """Return what changes of a target that may start."""
    if isinstance(outcome, deliveries.Delivery):
        return {
            'state': _State.WAITING,
            'reason': run_records.UNANSWERED,
            'row_id': outcome.deployment_id,
            'config_id': outcome.config_id,
            'transport': outcome.signalling.transport,
        }
    before = vars(run.attempts[number])
    if outcome is None or isinstance(outcome, errors.Unavailable):
        return before
    ended = {'reason': str(outcome), 'ended_at': int(now)}
    if isinstance(outcome, errors.AlreadyRunning):
        if run.order.limits.if_running == run_records.SKIP:
            return {**ended, 'state': _State.SKIPPED, 'started_at': None}
        return {
            **before,
            'reason': str(outcome),
            'wait_until': int(now) + _WAIT,
        }
    if isinstance(outcome, errors.NotFound):
        ended['reason'] = attempts.deployment_gone(run.order.members[number])
        return {**ended, 'state': _State.CANCELLED, 'gone': True}
    return {**ended, 'state': _State.FAILED}


def answered(
    run: run_records.RunRecord, number: int, answer: Answer, now: float
) -> run_records.Attempt | None:
    """Return an attempt with an answer; None if it takes none."""
    attempt = run.attempts[number]
    if answer.result is not None:
        change = attempts.settled(run, number, answer.result)
    elif not attempt.is_live:
        return None
    elif answer.lost is not None:
        change = {
            'state': answer.state,
            'reason': answer.lost,
            'ended_at': int(now),
        }
    else:
        change = {
            'state': _State.RUNNING,
            'reason': 'The server has started the action',
            'reported_at': attempt.reported_at or int(now),
        }
    return dataclasses.replace(attempt, **change)
