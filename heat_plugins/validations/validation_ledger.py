# SPDX-License-Identifier: Apache-2.0
"""Runs of validations in the object store, and how to stop one from afar.

All lie in one container of the project, each below its id: what the run is,
the details of each validation, a wish to stop it, and a claim of each process
that repeats it. The record of a run is the lease of the process that runs it,
see `objectstore.lease`; the process rewrites it every few seconds.
"""

import dataclasses
import re
from typing import Any, Final, TypeVar
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

_ID = re.compile('[A-Za-z0-9][A-Za-z0-9-]{7,63}')
# What `new_id` makes of the time.
_BEGUN = re.compile(r'(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z.*')
_RUN = '/run.json'
_STOP = '/stop'

LOST: Final = validation_runs.ValidationState.LOST

_Kept = TypeVar('_Kept', validation_runs.Run, validation_runs.Detail)


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

    def begin(self, run: validation_runs.Run) -> None:
        """Write a run that begins, or that is repeated as its process died.

        :raises errors.Exists: there is one of its id.
        :raises errors.Invalid: its id is none.
        """
        name = f'{_checked(run.id)}{_RUN}'
        if not self._records.create(name, _values(run)):
            if not self._is_ours_to_repeat(run.id):
                raise errors.Exists(f'Run {run.id} exists already')
            self.write(run)

    def _is_ours_to_repeat(self, run_id: str) -> bool:
        """Say whether its process has died, and no other one repeats it."""
        # Each repetition has a claim, older than the record that it led to.
        number = 0
        while self._is_lost(run_id):
            claim = f'{run_id}/repeat-{number}'
            if self._records.create(claim, True):
                # Another one may have repeated it meanwhile.
                return self._is_lost(run_id)
            if not self._has_lapsed(claim):
                return False
            number += 1
        return False

    def _is_lost(self, run_id: str) -> bool:
        run = self._read(run_id)
        return run is not None and run.state is LOST

    def _has_lapsed(self, claim: str) -> bool:
        try:
            age = self._records.fetch(claim).age
        except errors.NoObject:
            return False
        return lease.has_expired(age, _SILENCE)

    def write(self, run: validation_runs.Run) -> None:
        """Write how a run stands."""
        self._records.write(f'{run.id}{_RUN}', _values(run))

    def write_detail(
        self, run_id: str, validation: str, detail: validation_runs.Detail
    ) -> None:
        """Write the outcome of a validation."""
        self._records.write(_detail(run_id, validation), _values(detail))

    def find(self, run_id: str) -> validation_runs.Run:
        """Return a run as it stands.

        :raises errors.NotFound: there is no run of that id, or no longer.
        """
        run = self._read(_checked(run_id))
        if run is None:
            raise errors.NotFound(f'There is no run {run_id} of validations')
        return run

    def detail(self, run_id: str, validation: str) -> validation_runs.Detail:
        """Return the outcome of a validation in a run.

        :raises errors.NotFound: it has not ended, or was not part of it.
        """
        known = {outcome.validation for outcome in self.find(run_id).outcomes}
        kept = None
        if validation in known:
            kept = self._get(
                validation_runs.Detail, _detail(run_id, validation)
            )
        if kept is None:
            raise errors.NotFound(
                f'Run {run_id} has no result of a validation {validation}'
            )
        return kept[0]

    def every(self) -> list[validation_runs.Run]:
        """Return all runs, the latest first.

        An unreadable record is a run in the state UNREADABLE.
        """
        objects = self._objects()
        ids = [
            run_id
            for run_id, names in objects.items()
            if run_id + _RUN in names
        ]
        newest = sorted(ids, reverse=True)[:_READ]
        runs = self._pool.each(self._listed, newest)
        every = [run for run in runs if run is not None]
        return sorted(every, key=lambda run: run.started_at, reverse=True)

    def stop(self, run_id: str) -> None:
        """Ask the process that runs it, or would repeat it, to stop.

        :raises errors.Refused: it has ended.
        """
        run = self.find(run_id)
        if run.state.ended and run.state is not LOST:
            raise errors.Refused(f'Run {run_id} has ended: {run.state}')
        self._records.write(f'{run_id}{_STOP}', True)

    def is_to_stop(self, run_id: str) -> bool:
        """Say whether a caller has asked for it."""
        return self._records.has(f'{run_id}{_STOP}')

    def tidy(self, kept: int = KEPT, spared: str = '') -> None:
        """Forget the runs that have ended before the last few.

        :param spared: the id of one that stays in any case.
        """
        objects = self._objects()
        if len(objects) <= kept:
            return
        ended = [run for run in self.every() if run.state.ended]
        for run in ended[kept:]:
            if run.id == spared:
                continue
            # What says that there is a run goes last: what is interrupted here
            # is done the next time.
            names = objects.get(run.id, [])
            self._records.delete(
                *sorted(names, key=lambda name: name.endswith(_RUN))
            )

    def _listed(self, run_id: str) -> validation_runs.Run | None:
        try:
            return self._read(run_id)
        except errors.Unreadable as exc:
            return validation_runs.Run(
                id=run_id,
                source='',
                started_at=_BEGUN.sub(r'\1-\2-\3T\4:\5:\6Z', run_id),
                state=validation_runs.ValidationState.UNREADABLE,
                reason=str(exc),
            )

    def _read(self, run_id: str) -> validation_runs.Run | None:
        name = f'{run_id}{_RUN}'
        kept = self._get(validation_runs.Run, name)
        if kept is None:
            return None
        run, age = kept
        if run.id != run_id:
            raise self._records.unreadable(
                name, ValueError('it is the record of another run')
            )
        if not run.state.ended and lease.has_expired(age, _SILENCE):
            return dataclasses.replace(
                run,
                state=LOST,
                reason='The process that ran it has not reported for '
                f'{age:.0f} s',
            )
        return run

    def _objects(self) -> dict[str, list[str]]:
        """Return the names of all objects by the runs that they are of."""
        objects: dict[str, list[str]] = {}
        for name in self._records.names():
            objects.setdefault(name.partition('/')[0], []).append(name)
        return objects

    def _get(self, kind: type[_Kept], name: str) -> tuple[_Kept, float] | None:
        """Return what is recorded, and its age in seconds."""
        try:
            record = self._records.fetch(name)
            return stored.read(kind, record.value), record.age
        except errors.NoObject:
            return None
        except ValueError as exc:
            raise self._records.unreadable(name, exc) from exc


def _values(kept: validation_runs.Run | validation_runs.Detail) -> Any:
    return stored.versioned(type(kept), dataclasses.asdict(kept))


def new_id(at: str) -> str:
    """Return the id of a new run.

    :param at: when it begins, as `validation_runs.Run.started_at`.
    """
    stamp = re.sub('[^0-9TZ]', '', at)
    return f'{stamp}-{uuid.uuid4().hex[:6]}'


def _checked(run_id: str) -> str:
    if not _ID.fullmatch(run_id):
        raise errors.Invalid(f'{run_id[:100]!r} is not the ID of a run')
    return run_id


def _detail(run_id: str, validation: str) -> str:
    return f'{run_id}/results/{validation}.json'
