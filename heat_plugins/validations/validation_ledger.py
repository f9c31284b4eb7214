# SPDX-License-Identifier: Apache-2.0
"""Runs of validations in the object store, and how to stop one from afar.

All lie in one container of the project, each below its id: what the run is,
the details of each validation, and a wish to stop it. The process
that runs them writes at least every `BEAT` seconds; after longer silence it
counts as dead.
"""

import contextlib
import dataclasses
import gzip
import json
import re
from typing import Any, Final, TypeVar
import uuid

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins import stored
from heat_plugins.objectstore import claims
from heat_plugins.objectstore import containers
from heat_plugins.objectstore import store as store_module
from heat_plugins.validations import validation_runs

#: What the name of the container of a project's runs begins with.
CONTAINER: Final = 'heat-plugins-validations'

#: Number of finished runs that are kept.
KEPT: Final = 50

#: Seconds after which a run that goes on is written again.
BEAT: Final = 20.0

# Seconds of silence after which its process counts as dead.
_SILENCE = 5 * BEAT

# The most runs that are read for one listing; each takes a request.
_READ = 500

_LIMIT = 64 * 1024 * 1024
_ID = re.compile('[A-Za-z0-9][A-Za-z0-9-]{7,63}')
_RUN = '/run.json'
_STOP = '/stop'

_Kept = TypeVar('_Kept', validation_runs.Run, validation_runs.Detail)


class Ledger:
    """The runs of a project.

    :param store: the project's object store.
    """

    def __init__(
        self,
        store: store_module.ObjectStore,
        pool: pools.Pool | None = None,
    ) -> None:
        self._store = store
        self._pool = pool or pools.Pool()
        self._own = containers.Own(store, CONTAINER)

    def begin(self, run: validation_runs.Run) -> None:
        """Write a run that begins.

        :raises errors.Exists: there is one of its id.
        :raises errors.Invalid: its id is none.
        """
        _checked(run.id)
        self._pool.insist(
            lambda name: self._store.put_container(name, {}), self._container
        )
        content = _packed(dataclasses.asdict(run))
        if not claims.create(
            self._store, self._container, f'{run.id}{_RUN}', content
        ):
            raise errors.Exists(f'There is a run {run.id} already')

    def write(self, run: validation_runs.Run) -> None:
        """Write how a run stands."""
        self._put(f'{run.id}{_RUN}', dataclasses.asdict(run))

    def write_detail(
        self, run_id: str, validation: str, detail: validation_runs.Detail
    ) -> None:
        """Write the outcome of a validation."""
        self._put(_detail(run_id, validation), dataclasses.asdict(detail))

    def find(self, run_id: str) -> validation_runs.Run:
        """Return a run as it stands.

        :raises errors.NotFound: there is no run of that id, or no longer.
        """
        found = self._read(_checked(run_id))
        if found is None:
            raise errors.NotFound(f'There is no run {run_id} of validations')
        return found

    def detail(self, run_id: str, validation: str) -> validation_runs.Detail:
        """Return the outcome of a validation in a run.

        :raises errors.NotFound: it has not ended, or was not part of it.
        """
        known = {one.validation for one in self.find(run_id).outcomes}
        found = None
        if validation in known:
            found = self._get(_detail(run_id, validation))
        if found is None:
            raise errors.NotFound(
                f'Run {run_id} has no result of a validation {validation}'
            )
        return self._unpacked(validation_runs.Detail, found)

    def every(self) -> list[validation_runs.Run]:
        """Return all runs, the latest first."""
        objects = self._objects()
        ids = [one for one, names in objects.items() if one + _RUN in names]
        newest = sorted(ids, reverse=True)[:_READ]
        found = self._pool.each(self._read, newest)
        every = [one for one in found if one is not None]
        return sorted(every, key=lambda one: one.started_at, reverse=True)

    def stop(self, run_id: str) -> None:
        """Ask the process that runs it to stop.

        :raises errors.Refused: it has ended.
        """
        found = self.find(run_id)
        if found.state.ended:
            raise errors.Refused(f'Run {run_id} has ended: {found.state}')
        self._pool.insist(
            lambda name: self._store.put_object(self._container, name, b''),
            f'{run_id}{_STOP}',
        )

    def is_to_stop(self, run_id: str) -> bool:
        """Say whether a caller has asked for it."""
        return self._get(f'{run_id}{_STOP}') is not None

    def tidy(self, kept: int = KEPT) -> None:
        """Forget the runs that have ended before the last few."""
        objects = self._objects()
        if len(objects) <= kept:
            return
        ended = [one for one in self.every() if one.state.ended]
        for run in ended[kept:]:
            # What says that there is a run goes last: what breaks off here
            # is done the next time.
            names = objects.get(run.id, [])
            for name in sorted(names, key=lambda name: name.endswith(_RUN)):
                self._store.delete_object(self._container, name)

    @property
    def _container(self) -> str:
        return self._pool.insist(lambda own: own.name, self._own)

    def _read(self, run_id: str) -> validation_runs.Run | None:
        found = self._get(f'{run_id}{_RUN}')
        if found is None:
            return None
        run = self._unpacked(validation_runs.Run, found)
        if not run.state.ended and found.age > _SILENCE:
            return dataclasses.replace(
                run,
                state=validation_runs.State.LOST,
                reason='The process that ran it has not written for '
                f'{found.age:.0f} s',
            )
        return run

    def _objects(self) -> dict[str, list[str]]:
        """Return the names of all objects by the runs that they are of."""
        try:
            found = self._store.list_objects(self._container, '')
        except errors.NoObject:
            return {}
        objects: dict[str, list[str]] = {}
        for one in found:
            if one.name.startswith(claims.FOLDER):
                continue
            run_id = one.name.partition('/')[0]
            objects.setdefault(run_id, []).append(one.name)
        return objects

    def _get(self, name: str) -> store_module.Fetched | None:
        with contextlib.suppress(errors.NoObject):
            return self._pool.insist(
                lambda name: self._store.fetch(self._container, name, _LIMIT),
                name,
            )
        return None

    def _put(self, name: str, value: Any) -> None:
        self._pool.insist(
            lambda name: self._store.put_object(
                self._container, name, _packed(value)
            ),
            name,
        )

    def _unpacked(
        self, kind: type[_Kept], found: store_module.Fetched
    ) -> _Kept:
        try:
            content = bounds.gunzip(found.content, _LIMIT)
            return stored.read(kind, bounds.read_json(content))
        except ValueError as exc:
            raise errors.ServiceError(
                f'A record in container {self._container} is unreadable; '
                'delete it'
            ) from exc


def new_id(at: str) -> str:
    """Return the id of a new run.

    :param at: when it begins, as `runs.Run.started_at`.
    """
    stamp = re.sub('[^0-9TZ]', '', at)
    return f'{stamp}-{uuid.uuid4().hex[:6]}'


def _checked(run_id: str) -> str:
    if not _ID.fullmatch(run_id):
        raise errors.Invalid(f'{run_id[:100]!r} is no id of a run')
    return run_id


def _detail(run_id: str, validation: str) -> str:
    return f'{run_id}/results/{validation}.json'


def _packed(value: Any) -> bytes:
    return gzip.compress(json.dumps(value).encode(), mtime=0)
