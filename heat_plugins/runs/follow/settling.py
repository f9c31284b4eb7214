# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run.

Each process that reads a run settles it: a command, a workflow, an engine. To
settle it twice, or in two processes at a time, has the same outcome. Neither
does the time matter: a result counts as of the time at which it came to the
object store. First the record says how the run ended; then its deployment and
config in Heat are deleted. Its mark under ``runs/open/`` goes last: as long as
that is there, something is left to do.
"""

from collections import abc
import contextlib
import dataclasses

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from heat_plugins.configs import hooks
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs import withdrawal
from heat_plugins.runs.records import records
from heat_plugins.signals import body

LOG = foreign.logger(__name__)

# The most seconds between the announcement of a run and its hand-over.
_START_LIMIT = 180

# For how many seconds to believe that a stack is there.
_FRESH = 2.0

#: The most bytes of a report.
REPORT_LIMIT = 16 * 1024

_MESSAGE_LENGTH = 200

_SIGNATURES = masking.Mask()


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerReport:
    """A report.

    :ivar progress: percent; None if it does not say.
    :ivar message: short, and on one line.
    """

    progress: float | None = None
    message: str | None = None


def parse_report(
    content: bytes, mask: masking.Mask = _SIGNATURES
) -> ServerReport:
    """Read a report; what cannot be used of it is left out.

    :param mask: masks secrets in its message.

    :raises errors.BadContent: it is no JSON map.
    """
    details = body.parse(content)
    return ServerReport(
        progress=_percent(details.get('progress')),
        message=_line(details.get('message'), mask),
    )


def _percent(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # Before it becomes a float, which not every whole number can.
    return float(min(100, max(0, value)))


def _line(value: object, mask: masking.Mask) -> str | None:
    """Return a text as one line of limited length; None if it is none."""
    if not isinstance(value, str):
        return None
    text = ' '.join(mask.text(value).split())
    return foreign.line(text, _MESSAGE_LENGTH) or None


class Settler:
    """Settles the runs of one root stack."""

    def __init__(
        self, tools: services.Services, store: records.Records
    ) -> None:
        self._tools = tools
        self._records = store
        self._masks: dict[str, masking.Mask] = {}
        # Whether stacks are gone, and when that was asked.
        self._stacks: dict[str, tuple[float, bool]] = {}

    def settle(
        self,
        run: runs.Run,
        arrivals: abc.Collection[str],
        *,
        deep: bool = True,
    ) -> runs.Run:
        """Return a run as it stands now.

        :param arrivals: what `records.Records.arrivals` has listed.
        :param deep: whether to ask Heat, too, if the run is still there.
        """
        if run.state is runs.State.STARTING:
            # The process that starts it may have delivered it since it was
            # read; what that has written must not be lost.
            run = self._records.read(run.key) or run
        if run.signal in arrivals:
            return self._take_late(run) if run.ended else self._take(run)
        if run.ended:
            return run
        now = self._tools.clock()
        if run.state is runs.State.STARTING:
            if now - run.started_at > _START_LIMIT:
                return self._end(
                    run,
                    runs.State.FAILED,
                    'The process that started this run died before '
                    'delivering it',
                )
            return run
        run = self._report(run, arrivals)
        if _overdue(run, now) and now < run.deadline:
            # The listing may lag behind.
            run = self._report(run, {run.progress_signal})
        if reason := _overdue(run, now):
            at = run.started_at + (run.delivery_timeout or 0)
            return self._take(
                run, reason, run.deadline if now >= run.deadline else at
            )
        return self._hint(self._check_heat(run) if deep else run, now)

    @staticmethod
    def _hint(run: runs.Run, now: float) -> runs.Run:
        """Say what may keep a run from starting that waits for long."""
        if run.state is not runs.State.WAITING or not run.unknown_hook:
            return run
        if now - run.started_at < hooks.PATIENCE:
            return run
        reason = f'{runs.UNANSWERED}. {hooks.warning(run.unknown_hook)}'
        return dataclasses.replace(run, reason=reason)

    def cancel(self, run: runs.Run, arrivals: abc.Collection[str]) -> runs.Run:
        """Take a run back from its server.

        :raises errors.AlreadyEnded: it has ended.
        """
        run = self.settle(run, arrivals, deep=False)
        if run.ended:
            raise errors.AlreadyEnded(
                f'Run {run.id} has ended: {run.state.value}'
            )
        begun = run.state is runs.State.RUNNING
        return self._end(
            run,
            runs.State.CANCELLED,
            f'Cancelled by {self._tools.who}'
            + (' after the server had begun' if begun else ''),
            cancelled_by=self._tools.who,
        )

    def lost(self, run: runs.Run) -> runs.Run:
        """Return a run whose records are gone, container and all."""
        withdrawal.withdraw(self._tools.heat, run)
        reason = self.gone(run)
        return dataclasses.replace(
            run,
            state=runs.State.CANCELLED,
            reason=reason or 'A user has deleted its records',
            ended_at=int(self._tools.clock()),
        )

    def given_up(self, run: runs.Run) -> runs.Run:
        """Return a run whose record was read, and is now unreadable.

        It is left alone: a later release may know more of it than we do.
        """
        return dataclasses.replace(
            run,
            state=runs.State.FAILED,
            reason='Its record has become unreadable',
            ended_at=int(self._tools.clock()),
        )

    def clean_up(self, run: runs.Run) -> None:
        """Remove what a run that has ended needs no more."""
        if run.is_unanswered:
            # Its server may have started it, or may fetch it just now.
            expires = run.deadline + run_objects.MARGIN
            lifetime = max(60, int(expires - self._tools.clock()))
            with contextlib.suppress(errors.NoObject):
                self._objects(run).request_stop(lifetime)
        withdrawal.withdraw(self._tools.heat, run)
        self._objects(run).discard(run.progress_signal)
        self._records.close(run.key)

    def _objects(self, run: runs.Run) -> run_objects.RunObjects:
        return self._records.objects(run.key)

    def _report(
        self, run: runs.Run, arrivals: abc.Collection[str]
    ) -> runs.Run:
        """Take notice of what the server says of its progress."""
        if run.progress_signal not in arrivals:
            return run
        try:
            sent = self._records.fetch(run.progress_signal, REPORT_LIMIT)
            report = parse_report(sent.content, self._mask(run))
        except errors.NoObject:
            return run
        except errors.BadContent as exc:
            report = ServerReport(message=f'(its report: {exc})')
        first = run.reported_at is None
        run = dataclasses.replace(
            run,
            state=runs.State.RUNNING,
            reason='The server has started the action',
            reported_at=run.reported_at or int(self._tools.clock()),
            progress=report.progress,
            message=report.message,
        )
        if first:
            fresh = self._records.read(run.key)
            if fresh is not None and not fresh.ended:
                self._records.write(run)
        return run

    def _take(
        self,
        run: runs.Run,
        otherwise: str | None = None,
        at: float | None = None,
        state: runs.State = runs.State.TIMED_OUT,
    ) -> runs.Run:
        """End a run by its result.

        :param otherwise: why it ends if there is none; None if it does not.
        :param at: when it does so.
        :param state: in which state.
        """
        try:
            answer = self._answer(run)
        except errors.NoObject:
            # The process that read it has written what it was.
            fresh = self._records.read(run.key)
            if fresh is None or fresh.ended or otherwise is None:
                return self.lost(run) if fresh is None else fresh
            return self._end(run, state, otherwise, at=at)
        return self._end_by(run, answer)

    def _answer(self, run: runs.Run) -> run_objects.Result:
        """Fetch the result of a run.

        :raises errors.NoObject: there is none, or it was taken.
        """
        return self._objects(run).fetch(
            lambda: run_objects.Expected(
                declared=run.declared, mask=self._mask(run)
            ),
            run.inputs,
            self._tools.clock(),
        )

    def _mask(self, run: runs.Run) -> masking.Mask:
        """Return what masks the hidden inputs of a run."""
        if not run.hidden:
            return masking.Mask()
        if run.id not in self._masks:
            mask = masking.Mask(everything=True)
            with contextlib.suppress(errors.NotFound):
                # Without the config it is unknown what is hidden.
                config = self._tools.heat.config(run.config_id or '')
                mask = hidden_inputs.mask(config.inputs, config.options)
            self._masks[run.id] = mask
        return self._masks[run.id]

    def _end_by(self, run: runs.Run, answer: run_objects.Result) -> runs.Run:
        """End a run by its result, unless that came too late."""
        if answer.is_late(run.deadline):
            return self._take_late(
                self._end(
                    run,
                    runs.State.TIMED_OUT,
                    str(_overdue(run, run.deadline)),
                    at=run.deadline,
                )
            )
        outcome = answer.outcome
        return self._end(
            run,
            answer.state,
            outcome.reason,
            outcome,
            at=max(answer.at, run.started_at),
        )

    def _end(
        self,
        run: runs.Run,
        state: runs.State,
        reason: str,
        outcome: body.SignalOutcome | None = None,
        *,
        at: float | None = None,
        cancelled_by: str | None = None,
    ) -> runs.Run:
        ended = dataclasses.replace(
            run,
            state=state,
            reason=reason,
            ended_at=int(self._tools.clock() if at is None else at),
            cancelled_by=cancelled_by,
        )
        if outcome is not None:
            kept = self._objects(run).keep(outcome)
            ended = dataclasses.replace(ended, **kept)
        fresh = self._records.read(run.key)
        if fresh is not None and fresh.ended:
            ended = fresh
        else:
            self._records.write(ended)
        self.clean_up(ended)
        self._masks.pop(run.id, None)
        if outcome is not None:
            self._objects(run).discard(run.signal)
        return ended

    def _take_late(self, run: runs.Run) -> runs.Run:
        """Note the result of a run that had ended without it."""
        try:
            answer = self._answer(run)
        except errors.NoObject:
            return self._records.read(run.key) or run
        if run.state in runs.REPORTED or run.late is not None:
            # It was taken, and could not be deleted at the time; or the
            # server has sent it twice.
            self._objects(run).discard(run.signal)
            return run
        run = dataclasses.replace(run, **answer.late(run.reason))
        self._records.write(run)
        objects = self._objects(run)
        objects.discard(objects.control, objects.result)
        return run

    def _check_heat(self, run: runs.Run) -> runs.Run:
        """End a run whose stack or deployment is gone from Heat."""
        gone = self.gone(run)
        if gone:
            return self._end(run, runs.State.CANCELLED, gone)
        with contextlib.suppress(errors.NotFound):
            self._tools.heat.deployment(run.row_id or '')
            return run
        fresh = self._records.read(run.key)
        if fresh is None or fresh.ended:
            return fresh or self.lost(run)
        reason = 'A user has deleted its deployment in Heat'
        return self._take(run, reason, state=runs.State.CANCELLED)

    def gone(self, run: runs.Run) -> str | None:
        """Return that a run's stack or deployment is deleted, if it is."""
        if self._is_gone(run.stack_id):
            return f'Stack {run.stack_name} was deleted'
        if run.standalone or run.guarded:
            return None
        try:
            self._tools.heat.deployment(run.deployment_id)
        except errors.NotFound:
            return withdrawal.deployment_gone(run.resource, run.stack_name)
        return None

    def _is_gone(self, stack_id: str) -> bool:
        """Ask Heat for a stack; once for all runs that are looked at."""
        asked_at, gone = self._stacks.get(stack_id, (-_FRESH, False))
        now = self._tools.clock()
        if now - asked_at >= _FRESH:
            gone = withdrawal.is_gone(self._tools.heat, stack_id)
            self._stacks[stack_id] = now, gone
        return gone


def _overdue(run: runs.Run, now: float) -> str | None:
    """Return why the time of a run is over, and what is known of it."""
    reason = runs.overdue(run, run.timeout, run.delivery_timeout, now)
    if reason is None:
        return None
    started = run.reported_at is not None
    parts = [
        f'{reason}.',
        body.explained(started=started, config_id=run.config_id),
    ]
    if run.unknown_hook and not started:
        parts.append(hooks.warning(run.unknown_hook))
    return ' '.join(parts)
