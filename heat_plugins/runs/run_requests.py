# SPDX-License-Identifier: Apache-2.0
"""What users may ask of a run."""

from heat_plugins import bounds
from heat_plugins.runs import deciding
from heat_plugins.runs import run_records

PAUSE, RESUME, CANCEL, RETRY = 'pause', 'resume', 'cancel', 'retry'

#: Cancels one target, whose run `run_records.Request.only` names.
CANCEL_RUN = 'cancel-run'

# The latest requests that a run remembers.
_KEPT = 20


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
        if all(
            attempt.gone or attempt.state is run_records.State.COMPLETE
            for attempt in run.attempts
        ):
            return 'it has succeeded on all targets'
        if not deciding.retriable(run, only):
            return (
                f'no target without success is, or is named, '
                f'{bounds.shortened(str(only))}'
            )
        return None
    if run.ended:
        return f'it has ended: {control.phase.value}'
    if what == CANCEL_RUN and run.running(str(only)) is None:
        return f'run {bounds.shortened(str(only))} has ended'
    if what == RESUME and not (
        control.paused_by or deciding.needs_approval(run)
    ):
        return f'it is {control.phase.value}, not paused'
    return None


def follow(
    run: run_records.RunRecord,
    wanted: run_records.Request,
    now: float,
) -> run_records.RunRecord:
    """Return a run that does what a user asks for.

    A request that no longer makes sense changes nothing.
    """
    what, who = wanted.do, wanted.who
    if refusal(run, what, wanted.only):
        return run
    after, member = run, run.running(str(wanted.only))
    if what == PAUSE:
        after = run.changed(paused_by=who)
    elif what == RESUME:
        approved = run.control.approved or deciding.needs_approval(run)
        after = run.changed(paused_by=None, approved=approved)
    elif what == CANCEL and run.control.stopped_by is None:
        after = run.changed(stopped=run_records.Stop.CANCELLED, stopped_by=who)
    elif what == RETRY:
        after = deciding.retry(run, now, who, wanted.only)
    elif what == CANCEL_RUN and member is not None:
        after = run.attempted({member: {'cancelled_by': who}})
    if after == run and wanted.request is None:
        return run
    asked = run_records.Asked(**vars(wanted), at=int(now))
    former = run.control.asked
    return after.changed(asked=(*former, asked)[-_KEPT:])
