# SPDX-License-Identifier: Apache-2.0
"""Runs of validations in the object store, and how to stop one from afar.

All lie in one container of the project, each below its id: what the run is,
the details of each validation, and a wish to stop it. The process that runs it
rewrites its record every few seconds. A run whose record has not changed for
long is lost: its process has died, and no other one repeats it.
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
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import stores


class ValidationState(enum.StrEnum):
    """How a validation, or a run of several, stands.

    A run is LOST when the process that ran it died without a word.
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
    """What a task has done on a host.

    :ivar state: that of the host then: ok, changed, skipped, ignored, failed
        or unreachable.
    :ivar message: what it says, cut.
    """

    play: str
    task: str
    host: str
    state: str
    message: str = ''
    seconds: float = 0.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOutcome:
    """How a validation stands in a run.

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
    """All that is kept of a validation in a run.

    :ivar tasks: in their order, up to a limit.
    :ivar stdout: what Ansible has printed, up to a limit.
    :ivar cut: whether there was more of either.
    """

    tasks: tuple[TaskResult, ...] = ()
    stdout: str = ''
    cut: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationRun:
    """A run of validations.

    :ivar id: tells when it began, too.
    :ivar source: where the playbooks are from, such as ``plan shop``.
    :ivar stack: whose servers; '' for the machine that runs them.
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
        """How many of its validations are in which state."""
        states = [outcome.state for outcome in self.outcomes]
        return {
            str(state): states.count(state) for state in dict.fromkeys(states)
        }


def judged(run: ValidationRun, *, stopped: bool) -> ValidationRun:
    """Return a run that has ended, with a state and a reason.

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


#: What the name of the container of a project's runs begins with.
CONTAINER: Final = 'heat-plugins-validations'

#: Number of finished runs that are kept.
KEPT: Final = 50

# Seconds of silence after which the process of a run counts as dead.
_SILENCE = 100.0

# The most runs that are read for one listing; each takes a request.
_READ = 500

# It is part of a path.
_ID = re.compile('[A-Za-z0-9][A-Za-z0-9-]{7,63}')
_RUN = '/run.json'
_STOP = '/stop'


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
        """Write a run that begins.

        :raises errors.Exists: there is one of its id.
        :raises errors.Invalid: its id is none.
        """
        if not _ID.fullmatch(run.id):
            raise errors.Invalid(f'{run.id[:100]!r} is not the ID of a run')
        if not self._records.create(f'{run.id}{_RUN}', _values(run)):
            raise errors.Exists(f'Run {run.id} exists already')

    def write(self, run: ValidationRun) -> None:
        """Write how a run stands."""
        self._records.write(f'{run.id}{_RUN}', _values(run))

    def write_detail(
        self, run_id: str, validation: str, detail: Detail
    ) -> None:
        """Write the outcome of a validation."""
        self._records.write(_detail(run_id, validation), _values(detail))

    def find(self, run_id: str) -> ValidationRun:
        """Return a run as it stands.

        :raises errors.NotFound: there is no run of that id, or no longer.
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
        if not run.state.ended and lease.has_expired(record.age, _SILENCE):
            return dataclasses.replace(
                run,
                state=ValidationState.LOST,
                reason='The process that ran it has not reported for '
                f'{record.age:.0f} s',
            )
        return run

    def detail(self, run_id: str, validation: str) -> Detail:
        """Return the outcome of a validation in a run.

        :raises errors.NotFound: it has not ended, or was not part of it.
        """
        known = {outcome.validation for outcome in self.find(run_id).outcomes}
        if validation in known:
            with contextlib.suppress(errors.NoObject):
                return self._records.read(Detail, _detail(run_id, validation))
        raise errors.NotFound(
            f'Run {run_id} has no result of a validation {validation}'
        )

    def every(self) -> list[ValidationRun]:
        """Return all runs whose records are readable, the latest first."""
        newest = sorted(_ids(self._records.names()), reverse=True)[:_READ]
        runs = self._pool.each(self._listed, newest)
        every = [run for run in runs if run is not None]
        return sorted(every, key=lambda run: run.started_at, reverse=True)

    def stop(self, run_id: str) -> None:
        """Ask the process that runs it to stop.

        :raises errors.Refused: it has ended.
        """
        run = self.find(run_id)
        if run.state.ended:
            raise errors.Refused(f'Run {run_id} has ended: {run.state}')
        self._records.write(f'{run_id}{_STOP}', True)

    def is_to_stop(self, run_id: str) -> bool:
        """Say whether a caller has asked for it."""
        return self._records.has(f'{run_id}{_STOP}')

    def tidy(self, kept: int = KEPT, spared: str = '') -> None:
        """Forget the runs that have ended before the last few.

        :param spared: the id of one that stays in any case.
        """
        names = self._records.names()
        if len(_ids(names)) <= kept:
            return
        ended = [run for run in self.every() if run.state.ended]
        for run in ended[kept:]:
            # What says that there is a run goes last: what is interrupted here
            # is done the next time.
            own = [name for name in names if name.startswith(f'{run.id}/')]
            own.sort(key=lambda name: name.endswith(_RUN))
            self._records.delete(*(own if run.id != spared else ()))

    def _listed(self, run_id: str) -> ValidationRun | None:
        try:
            return self.find(run_id)
        except (errors.NotFound, errors.Unreadable):
            return None


def _ids(names: abc.Iterable[str]) -> list[str]:
    """Return the ids of runs, of names of records."""
    return [name.removesuffix(_RUN) for name in names if name.endswith(_RUN)]


def _values(
    kept: ValidationRun | Detail,
) -> Any:
    return stored.versioned(type(kept), dataclasses.asdict(kept))


def new_id(at: str) -> str:
    """Return the id of a new run.

    :param at: when it begins, as `ValidationRun.started_at`.
    """
    stamp = re.sub('[^0-9TZ]', '', at)
    return f'{stamp}-{uuid.uuid4().hex[:6]}'


def _detail(run_id: str, validation: str) -> str:
    return f'{run_id}/results/{validation}.json'
