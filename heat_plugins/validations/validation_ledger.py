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
import re
from typing import Any, Final
import uuid

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import stores
from heat_plugins.validations import validation_runs

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

    def begin(self, run: validation_runs.ValidationRun) -> None:
        """Write a run that begins.

        :raises errors.Exists: there is one of its id.
        :raises errors.Invalid: its id is none.
        """
        if not _ID.fullmatch(run.id):
            raise errors.Invalid(f'{run.id[:100]!r} is not the ID of a run')
        if not self._records.create(f'{run.id}{_RUN}', _values(run)):
            raise errors.Exists(f'Run {run.id} exists already')

    def write(self, run: validation_runs.ValidationRun) -> None:
        """Write how a run stands."""
        self._records.write(f'{run.id}{_RUN}', _values(run))

    def write_detail(
        self, run_id: str, validation: str, detail: validation_runs.Detail
    ) -> None:
        """Write the outcome of a validation."""
        self._records.write(_detail(run_id, validation), _values(detail))

    def find(self, run_id: str) -> validation_runs.ValidationRun:
        """Return a run as it stands.

        :raises errors.NotFound: there is no run of that id, or no longer.
        """
        name = f'{run_id}{_RUN}'
        try:
            record = self._records.fetch(name)
            run = stored.read(validation_runs.ValidationRun, record.value)
        except errors.NoObject as exc:
            raise errors.NotFound(
                f'There is no run {run_id} of validations'
            ) from exc
        except ValueError as exc:
            raise self._records.unreadable(name, exc) from exc
        if not run.state.ended and lease.has_expired(record.age, _SILENCE):
            return dataclasses.replace(
                run,
                state=validation_runs.ValidationState.LOST,
                reason='The process that ran it has not reported for '
                f'{record.age:.0f} s',
            )
        return run

    def detail(self, run_id: str, validation: str) -> validation_runs.Detail:
        """Return the outcome of a validation in a run.

        :raises errors.NotFound: it has not ended, or was not part of it.
        """
        known = {outcome.validation for outcome in self.find(run_id).outcomes}
        if validation in known:
            with contextlib.suppress(errors.NoObject):
                return self._records.read(
                    validation_runs.Detail, _detail(run_id, validation)
                )
        raise errors.NotFound(
            f'Run {run_id} has no result of a validation {validation}'
        )

    def every(self) -> list[validation_runs.ValidationRun]:
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

    def _listed(self, run_id: str) -> validation_runs.ValidationRun | None:
        try:
            return self.find(run_id)
        except (errors.NotFound, errors.Unreadable):
            return None


def _ids(names: abc.Iterable[str]) -> list[str]:
    """Return the ids of runs, of names of records."""
    return [name.removesuffix(_RUN) for name in names if name.endswith(_RUN)]


def _values(
    kept: validation_runs.ValidationRun | validation_runs.Detail,
) -> Any:
    return stored.versioned(type(kept), dataclasses.asdict(kept))


def new_id(at: str) -> str:
    """Return the id of a new run.

    :param at: when it begins, as `validation_runs.ValidationRun.started_at`.
    """
    stamp = re.sub('[^0-9TZ]', '', at)
    return f'{stamp}-{uuid.uuid4().hex[:6]}'


def _detail(run_id: str, validation: str) -> str:
    return f'{run_id}/results/{validation}.json'
