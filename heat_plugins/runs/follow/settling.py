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
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs import withdrawal
from heat_plugins.runs.records import records

# The most seconds between the announcement of a run and its hand-over.
_START_LIMIT = 180


class Settler:
    """Settles the runs of one root stack."""

    def __init__(
        self, tools: services.Services, store: records.Records
    ) -> None:
        self._tools = tools
        self._records = store
        self._attempts = attempts.Attempts(tools)

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
        if run.state is runs.State.STARTING:
            if self._tools.clock() - run.started_at <= _START_LIMIT:
                return run
            adopted = self._attempts.adopt(run, resumes=True)
            if adopted is None:
                reason = (
                    'The process that started this run died before '
                    'delivering it'
                )
                ended = self._attempts.cancelled(run, reason)
                return self._end(
                    dataclasses.replace(ended, state=runs.State.FAILED)
                )
            run = self._note(adopted)
        run = self._report(run, arrivals)
        expired = self._attempts.expired(run)
        if expired.ended:
            return self._take(run, expired)
        run = self._note_start(run, expired)
        return self._attempts.hinted(self._check_heat(run) if deep else run)

    def settled(
        self,
        run: runs.Run,
        arrivals: abc.Collection[str],
        opened: abc.Container[str],
    ) -> runs.Run:
        """Return a run as it stands now, and clean up after it.

        :param opened: the IDs of the runs that are announced.
        """
        was_ended = run.ended
        run = self.settle(run, arrivals)
        if was_ended and run.id in opened:
            # Who ended it did not come to the end of that.
            self.clean_up(run)
        return run

    def cancel(self, run: runs.Run, arrivals: abc.Collection[str]) -> runs.Run:
        """Take a run back from its server.

        :raises errors.AlreadyEnded: it has ended.
        """
        run = self.settle(run, arrivals, deep=False)
        if run.ended:
            raise errors.AlreadyEnded(
                f'Run {run.id} has ended: {run.state.value}'
            )
        who = self._tools.who
        ended = self._attempts.cancelled(run, runs.cancelled(run, who))
        return self._end(dataclasses.replace(ended, cancelled_by=who))

    def lost(self, run: runs.Run) -> runs.Run:
        """Return a run whose records are gone, container and all."""
        self._attempts.withdraw(run)
        reason = self._attempts.gone(dataclasses.replace(run, row_id=None))
        return self._attempts.cancelled(
            run, reason or 'A user has deleted its records'
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
            self._attempts.stop(run)
        self._attempts.withdraw(run)
        if run.config_id is None and run.state is runs.State.FAILED:
            # Who has started it may have died before it could record that.
            withdrawal.delete_undelivered(self._tools.heat, [run])
        self._records.discard(run.progress_signal)
        self._records.close(run.key)

    def _report(
        self, run: runs.Run, arrivals: abc.Collection[str]
    ) -> runs.Run:
        """Take notice of what the server says of its progress."""
        if run.progress_signal not in arrivals:
            return run
        with contextlib.suppress(errors.NoObject):
            return self._note_start(run, self._attempts.reported(run))
        return run

    def _note_start(self, before: runs.Run, run: runs.Run) -> runs.Run:
        """Record that the server of a run has started it."""
        is_new = before.reported_at is None and run.reported_at is not None
        return self._note(run) if is_new else run

    def _note(self, run: runs.Run) -> runs.Run:
        """Record a run that continues, unless another process has ended it."""
        fresh = self._records.read(run.key)
        if fresh is not None and not fresh.ended:
            self._records.write(run)
        return run

    def _take(
        self, run: runs.Run, otherwise: runs.Run | None = None
    ) -> runs.Run:
        """End a run by its result.

        :param otherwise: how it ends if there is none; None if it does not.
        """
        try:
            return self._end(self._attempts.answered(run))
        except errors.NoObject:
            # The process that read it has written what it was.
            fresh = self._records.read(run.key)
        if fresh is None or fresh.ended or otherwise is None:
            return self.lost(run) if fresh is None else fresh
        return self._end(otherwise)

    def _end(self, ended: runs.Run) -> runs.Run:
        fresh = self._records.read(ended.key)
        if fresh is not None and fresh.ended:
            ended = fresh
        else:
            self._records.write(ended)
        self.clean_up(ended)
        if not ended.is_unanswered:
            # Else a result that came with it is noted as a late one.
            self._records.discard(ended.signal)
        return ended

    def _take_late(self, run: runs.Run) -> runs.Run:
        """Note the result of a run that had ended without it."""
        if run.state in runs.REPORTED or run.late is not None:
            # It was taken, and could not be deleted at the time; or the
            # server has sent it twice.
            self._records.discard(run.signal)
            return run
        try:
            run = self._attempts.answered_late(run)
        except errors.NoObject:
            return self._records.read(run.key) or run
        self._records.write(run)
        objects = self._records.objects(run.key)
        objects.discard(objects.control, objects.result)
        return run

    def _check_heat(self, run: runs.Run) -> runs.Run:
        """End a run whose stack or deployment is gone from Heat."""
        gone = self._attempts.gone(run)
        if gone is None:
            return run
        return self._take(run, self._attempts.cancelled(run, gone))
