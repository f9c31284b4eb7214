# SPDX-License-Identifier: Apache-2.0
"""What users may ask of an operation in progress."""

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

#: Requests that an operation remembers: the latest, by their names. A listing
#: may show them again, or a user put back what was deleted.
KEPT = 20


def refusal(
    found: operations.Operation,
    what: str,
    seal: binding.Seal,
    only: str | None = None,
) -> str | None:
    """Return why a request makes no sense now; None if it does.

    :param only: see `operations.Request`.
    """
    control = found.control
    if what == RETRY:
        if isinstance(seal, binding.Former):
            return (
                'it is of a former release, so nothing in Heat proves what '
                'was ordered. Start the action again on the targets that have '
                'not succeeded'
            )
        if not found.ended:
            return f'it is {control.phase.value}; wait for it or cancel it'
        if all(
            one.gone or one.state is operations.State.COMPLETE
            for one in found.attempts
        ):
            return 'it has succeeded on all targets'
        if not deciding.retriable(found, only):
            return (
                f'no target without success is, or is named, '
                f'{bounds.shortened(str(only))}'
            )
        return None
    if found.ended:
        return f'it has ended: {control.phase.value}'
    if what == CANCEL_RUN and found.running(str(only)) is None:
        return f'run {bounds.shortened(str(only))} has ended'
    if what == RESUME and not (
        control.paused_by or deciding.needs_approval(found)
    ):
        return f'it is {control.phase.value}, not paused'
    return None


def follow(
    found: operations.Operation,
    wanted: operations.Request,
    now: float,
    seal: binding.Seal,
) -> operations.Operation:
    """Return an operation that does what a user asks for.

    A request that no longer makes sense changes nothing.
    """
    if refusal(found, wanted.do, seal, wanted.only):
        return found
    after = _followed(found, wanted, now)
    if after == found:
        return found
    asked = operations.Asked(do=wanted.do, who=wanted.who, at=int(now))
    former = found.control.asked
    return after.changed(asked=(*former, stored.dump(asked))[-KEPT:])


def _followed(
    found: operations.Operation, wanted: operations.Request, now: float
) -> operations.Operation:
    what, who = wanted.do, wanted.who
    if what == PAUSE:
        return found.changed(paused_by=who)
    if what == RESUME:
        approved = found.control.approved or deciding.needs_approval(found)
        return found.changed(paused_by=None, approved=approved)
    if what == CANCEL and found.control.stopped_by is None:
        return found.changed(stopped=operations.Stop.CANCELLED, stopped_by=who)
    if what == RETRY:
        return deciding.retry(found, now, who, wanted.only)
    member = found.running(str(wanted.only))
    if what == CANCEL_RUN and member is not None:
        return found.attempted({member: {'cancelled_by': who}})
    return found


def is_news(found: operations.Operation, name: str) -> bool:
    """Say whether an operation has yet to follow a request.

    :param name: of the request's object; names sort by time.
    """
    handled = found.control.handled
    is_old = len(handled) >= KEPT and name < min(handled)
    return name not in handled and not is_old


def remember(found: operations.Operation, name: str) -> operations.Operation:
    """Return an operation that has followed a request."""
    handled = sorted({*found.control.handled, name})
    return found.changed(handled=tuple(handled[-KEPT:]))


def next_time(found: operations.Operation, now: float) -> float:
    """Return a time for a request that is later than those it has followed.

    Clocks differ.
    """
    followed = [layout.requested_at(one) for one in found.control.handled]
    return max([now, *(one + 0.001 for one in followed)])
