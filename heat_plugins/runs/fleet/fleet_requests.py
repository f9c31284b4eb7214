# SPDX-License-Identifier: Apache-2.0
"""What users may ask of an operation."""

import contextlib

from heat_plugins import bounds
from heat_plugins import stored
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout

PAUSE, RESUME, CANCEL, RETRY = 'pause', 'resume', 'cancel', 'retry'

#: Cancels one run, which `operations.Request.only` names. A former release
#: ignores it.
CANCEL_RUN = 'cancel-run'

#: Deletes one that has ended, likewise; its objects are deleted before.
DELETE_RUN = 'delete-run'

#: Requests that an operation remembers: the latest, by their names. A listing
#: may show them again, or a user put back what was deleted.
KEPT = 20


def refusal(
    operation: operations.Operation,
    what: str,
    seal: binding.Seal,
    only: str | None = None,
) -> str | None:
    """Return why a request makes no sense now; None if it does.

    :param only: see `operations.Request`.
    """
    control = operation.control
    if what == RETRY:
        if isinstance(seal, binding.Former):
            return (
                'it is of a former release, so nothing in Heat proves what '
                'was ordered. Start the action again on the targets that have '
                'not succeeded'
            )
        if not operation.ended:
            return f'it is {control.phase.value}; wait for it or cancel it'
        if all(
            attempt.gone or attempt.state is operations.State.COMPLETE
            for attempt in operation.attempts
        ):
            return 'it has succeeded on all targets'
        if not deciding.retriable(operation, only):
            return (
                f'no target without success is, or is named, '
                f'{bounds.shortened(str(only))}'
            )
        return None
    if what == DELETE_RUN:
        if isinstance(seal, binding.Former):
            return (
                'it is of a former release; "software deployment operation '
                f'delete {operation.id}" deletes all its runs'
            )
        return None if _place(operation, only) else 'there is no such run'
    if operation.ended:
        return f'it has ended: {control.phase.value}'
    if what == CANCEL_RUN and operation.running(str(only)) is None:
        return f'run {bounds.shortened(str(only))} has ended'
    if what == RESUME and not (
        control.paused_by or deciding.needs_approval(operation)
    ):
        return f'it is {control.phase.value}, not paused'
    return None


def follow(
    operation: operations.Operation,
    wanted: operations.Request,
    now: float,
    seal: binding.Seal,
) -> operations.Operation:
    """Return an operation that does what a user asks for.

    A request that no longer makes sense changes nothing.
    """
    if refusal(operation, wanted.do, seal, wanted.only):
        return operation
    after = _followed(operation, wanted, now)
    if after == operation:
        return operation
    asked = operations.Asked(**vars(wanted), at=int(now))
    former = operation.control.asked
    return after.changed(asked=(*former, stored.dump(asked))[-KEPT:])


def _followed(
    operation: operations.Operation, wanted: operations.Request, now: float
) -> operations.Operation:
    what, who = wanted.do, wanted.who
    if what == PAUSE:
        return operation.changed(paused_by=who)
    if what == RESUME:
        approved = operation.control.approved or deciding.needs_approval(
            operation
        )
        return operation.changed(paused_by=None, approved=approved)
    if what == CANCEL and operation.control.stopped_by is None:
        return operation.changed(
            stopped=operations.Stop.CANCELLED, stopped_by=who
        )
    if what == RETRY:
        return deciding.retry(operation, now, who, wanted.only)
    if what == DELETE_RUN:
        return _without_run(operation, wanted.only)
    member = operation.running(str(wanted.only))
    if what == CANCEL_RUN and member is not None:
        return operation.attempted({member: {'cancelled_by': who}})
    return operation


def _place(
    operation: operations.Operation, run_id: str | None
) -> tuple[int, int] | None:
    """Return the member and the attempt of a run that has ended."""
    with contextlib.suppress(ValueError, IndexError):
        _, member, number = layout.attempt_of(str(run_id))
        its = operation.with_attempt(member, number).attempts[member]
        return None if its.is_live else (member, number)
    return None


def _without_run(
    operation: operations.Operation, run_id: str | None
) -> operations.Operation:
    """Return an operation that knows of a run only how it ended."""
    place = _place(operation, run_id)
    if place is None:
        return operation
    member, number = place
    attempt = operation.attempts[member]
    former = [each for each in attempt.former if each['number'] != number]
    if attempt.number != number:
        return operation.attempted({member: {'former': former}})
    return operation.attempted(
        {member: {'outputs': {}, 'cut': {}, 'late': None, 'deleted': True}}
    )


def is_news(operation: operations.Operation, name: str) -> bool:
    """Say whether an operation has yet to follow a request.

    :param name: of the request's object; names sort by time.
    """
    handled = operation.control.handled
    is_old = len(handled) >= KEPT and name < min(handled)
    return name not in handled and not is_old


def remember(
    operation: operations.Operation, name: str
) -> operations.Operation:
    """Return an operation that has followed a request."""
    handled = sorted({*operation.control.handled, name})
    return operation.changed(handled=tuple(handled[-KEPT:]))


def next_time(operation: operations.Operation, now: float) -> float:
    """Return a time for a request that is later than those it has followed.

    Clocks differ.
    """
    followed = [
        layout.requested_at(each) for each in operation.control.handled
    ]
    return max([now, *(each + 0.001 for each in followed)])
