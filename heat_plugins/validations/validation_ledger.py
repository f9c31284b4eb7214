# SPDX-License-Identifier: Apache-2.0
"""Runs of validations in the object store, and requests to stop them.

They lie in one container of the project, each below its ID: the run's record,
the details of each validation, and a request to stop it. The process of a run
rewrites its record every few seconds. A run whose record has not changed for
long is lost: its process has died, and no other process repeats it.
"""

from collections import abc
import contextlib
import dataclasses
import enum
import re
from typing import Any, Final
import uuid

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins import wording
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores


class ValidationState(enum.StrEnum):
    """The state of a validation, or of a run of several.

    A run is LOST when the process that ran it died before its end.
    """

    WAITING = 'WAITING'
    RUNNING = 'RUNNING'
    PASSED = 'PASSED'
    FAILED = 'FAILED'
    TIMED_OUT = 'TIMED_OUT'
    STOPPED = 'STOPPED'
    LOST = 'LOST'

    @property
    def ended(self) -> bool:
        return self not in (ValidationState.WAITING, ValidationState.RUNNING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaskResult:
    """The result of a task on a host.

    :ivar state: ok, changed, skipped, ignored, failed or unreachable.
    :ivar message: of the task, cut.
    """

    play: str
    task: str
    host: str
    state: str
    message: str = ''
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOutcome:
    """The state of a validation in a run.

    :ivar under_way: the task that has started last.
    :ivar hosts: of each host, how many tasks ended in which state.
    """

    validation: str
    name: str = ''
    groups: tuple[str, ...] = ()
    state: ValidationState = ValidationState.WAITING
    reason: str = ''
    seconds: float = 0.0
    under_way: str = ''
    hosts: abc.Mapping[str, abc.Mapping[str, int]] = dataclasses.field(
        default_factory=dict
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Detail:
    """The details that are kept of a validation in a run.

    :ivar tasks: in their order, up to a limit.
    :ivar stdout: the output of Ansible, up to a limit.
    :ivar cut: whether there was more of either.
    """

    tasks: tuple[TaskResult, ...] = ()
    stdout: str = ''
    cut: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationRun:
    """A run of validations.

    :ivar id: contains the time of its start.
    :ivar source: of the playbooks, such as ``plan shop``.
    :ivar stack: the stack with the servers; '' for the machine that runs
        the playbooks.
    :ivar content_hash: of the plan at that time; '' without a plan.
    :ivar started_at: in UTC, as in 2026-11-21T01:40:36Z.
    """

    id: str
    source: str
    plan: str = ''
    stack: str = ''
    content_hash: str = ''
    started_at: str
    seconds: float = 0.0
    state: ValidationState = ValidationState.RUNNING
    reason: str = ''
    outcomes: tuple[ValidationOutcome, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The number of its validations in each state."""
        states = [outcome.state for outcome in self.outcomes]
        return {
            str(state): states.count(state) for state in dict.fromkeys(states)
        }


def judged(run: ValidationRun, *, stopped: bool) -> ValidationRun:
    """Return a run that has ended, with its state and reason.

    :param stopped: whether a caller has stopped it.
    """
    bad = [
        outcome
        for outcome in run.outcomes
        if outcome.state is not ValidationState.PASSED
    ]
    if not bad:
        return dataclasses.replace(run, state=ValidationState.PASSED)
    if stopped:
        return dataclasses.replace(
            run,
            state=ValidationState.STOPPED,
            reason=run.reason or 'It was stopped',
        )
    reasons = wording.lines(
        (
            wording.Fault(name=outcome.validation, reason=outcome.reason)
            for outcome in bad
        ),
        '"validation result show" has all',
        noun='validation',
        limit=5,
    )
    return dataclasses.replace(
        run,
        state=ValidationState.FAILED,
        reason=f'{len(bad)} of {len(run.outcomes)} did not pass: '
        + '; '.join(reasons),
    )


#: Prefix of the name of the container with a project's runs.
CONTAINER: Final = 'heat-plugins-validations'

#: Number of finished runs that are kept.
KEPT: Final = 50

# Seconds of silence after which the process of a run counts as dead.
_SILENCE = 100.0

# An ID is part of a path.
_ID = re.compile('[A-Za-z0-9][A-Za-z0-9-]{7,63}')
_RUN = '/run.json'
_STOP = '/stop'
_DETAIL = '{}/results/{}.json'


class Ledger:
    """The runs of a project."""

    def __init__(
        self,
        store: stores.ObjectStore,
        pool: pools.Pool | None = None,
    ) -> None:
        self._pool = pool or pools.Pool()
        self._records = json_records.Records(
            store,
            stores.OwnContainer(store, CONTAINER),
            packed=True,
            pool=self._pool,
        )

    def begin(self, run: ValidationRun) -> None:
        """Create the record of a run that begins.

        :raises errors.Exists: a run has the same ID.
        :raises errors.Invalid: the ID is malformed.
        """
        if not _ID.fullmatch(run.id):
            raise errors.Invalid(f'{run.id[:100]!r} is not the ID of a run')
        if not self._records.create(f'{run.id}{_RUN}', _values(run)):
            raise errors.Exists(f'Run {run.id} exists already')

    def write(self, run: ValidationRun) -> None:
        """Update the record of a run."""
        self._records.write(f'{run.id}{_RUN}', _values(run))

    def write_detail(
        self, run_id: str, validation: str, detail: Detail
    ) -> None:
        """Write the details of a validation."""
        self._records.write(
            _DETAIL.format(run_id, validation), _values(detail)
        )

    def find(self, run_id: str) -> ValidationRun:
        """Return a run; one without a sign of life becomes LOST.

        :raises errors.NotFound: there is no run of that ID, or no longer.
        """
        name = f'{run_id}{_RUN}'
        try:
            record = self._records.fetch(name)
            run = stored.read(ValidationRun, record.value)
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'There is no run {run_id} of validations'
            ) from exc
        except ValueError as exc:
            raise self._records.unreadable(name, exc) from exc
        if not run.state.ended and record.age > _SILENCE:
            return dataclasses.replace(
                run,
                state=ValidationState.LOST,
                reason='The process that ran it has not reported for '
                f'{record.age:.0f} s',
            )
        return run

    def detail(self, run_id: str, validation: str) -> Detail:
        """Return the details of a validation in a run.

        :raises errors.NotFound: it has not ended, or was not part of it.
        """
        known = {outcome.validation for outcome in self.find(run_id).outcomes}
        if validation in known:
            with contextlib.suppress(errors.NoObject):
                name = _DETAIL.format(run_id, validation)
                return self._records.read(Detail, name)
        raise errors.NotFound(
            f'Run {run_id} has no result of a validation {validation}'
        )

    def every(self) -> list[ValidationRun]:
        """Return the runs with readable records, the latest first."""

        def read(run_id: str) -> list[ValidationRun]:
            with contextlib.suppress(errors.NotFound, errors.Unreadable):
                return [self.find(run_id)]
            return []

        listed = self._pool.each(read, _ids(self._records.names()))
        runs = [run for readable in listed for run in readable]
        return sorted(runs, key=lambda run: run.started_at, reverse=True)

    def stop(self, run_id: str) -> None:
        """Ask the process of a run to stop it.

        :raises errors.Refused: it has ended.
        """
        run = self.find(run_id)
        if run.state.ended:
            raise errors.Refused(f'Run {run_id} has ended: {run.state}')
        self._records.write(f'{run_id}{_STOP}', True)

    def is_to_stop(self, run_id: str) -> bool:
        """Return whether a caller has asked to stop a run."""
        return self._records.has(f'{run_id}{_STOP}')

    def tidy(self, kept: int = KEPT, spared: str = '') -> None:
        """Delete all but the last few of the runs that have ended.

        :param spared: the ID of a run that stays in any case.
        """
        names = self._records.names()
        if len(_ids(names)) <= kept:
            return
        ended = [run for run in self.every() if run.state.ended]
        for run in ended[kept:]:
            # The record of the run goes last, so that the next call finishes
            # an interrupted deletion.
            own = [name for name in names if name.startswith(f'{run.id}/')]
            own.sort(key=lambda name: name.endswith(_RUN))
            self._records.delete(*(own if run.id != spared else ()))


def _ids(names: abc.Iterable[str]) -> list[str]:
    """Return the IDs of the runs that some records belong to."""
    return [name.removesuffix(_RUN) for name in names if name.endswith(_RUN)]


def _values(kept: ValidationRun | Detail) -> Any:
    """Return a record as JSON has it."""
    return stored.versioned(type(kept), dataclasses.asdict(kept))


def new_id(at: str) -> str:
    """Return an ID for a run, such as 20261121T014036Z-1421e4.

    :param at: its start, as in `ValidationRun.started_at`.
    """
    stamp = re.sub('[^0-9TZ]', '', at)
    return f'{stamp}-{uuid.uuid4().hex[:6]}'
