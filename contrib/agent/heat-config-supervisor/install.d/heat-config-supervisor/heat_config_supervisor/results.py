# SPDX-License-Identifier: Apache-2.0
"""Results on disk: of configs that run, and those not accepted yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
import contextlib
import json
import os
import pathlib
from typing import Any

from heat_config_supervisor import config as configs
from heat_config_supervisor import places


class Folder:
    """A folder with a file for each config, for our eyes only."""

    def __init__(self, name: str) -> None:
        self._path = places.state() / name

    def put(self, config_id: str, details: Mapping[str, Any]) -> None:
        """Write the record of a config; it is there in full, or not."""
        places.make_private(self._path)
        # A dot, so that it is not taken for one.
        draft = self._path / f'.{config_id}'
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        with os.fdopen(os.open(draft, flags, 0o600), 'w') as stream:
            json.dump(details, stream)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(self._file(config_id))
        sync(self._path)

    def get(self, config_id: str) -> dict[str, Any]:
        """Return the record of a config.

        :raises OSError: nothing is.
        :raises ValueError: it cannot be read.
        """
        result = json.loads(self._file(config_id).read_bytes())
        if not isinstance(result, dict):
            raise ValueError('it is not a map')
        return result

    def age(self, config_id: str, now: float) -> float:
        """Return for how many seconds it has been there."""
        return now - self._file(config_id).stat().st_mtime

    def drop(self, config_id: str) -> None:
        self._file(config_id).unlink(missing_ok=True)

    def __iter__(self) -> Iterator[str]:
        with contextlib.suppress(FileNotFoundError):
            for path in sorted(self._path.glob('[!.]*.json')):
                yield path.stem

    def path(self, config_id: str) -> pathlib.Path:
        """Return where another file about a config may be."""
        return self._path / config_id

    def _file(self, config_id: str) -> pathlib.Path:
        return self._path / f'{config_id}.json'


def sync(path: pathlib.Path) -> None:
    """Let a file, or the list of a folder, survive a loss of power."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def running() -> Folder:
    """The configs that have started, and whose results are still to come."""
    return Folder('running')


def pending() -> Folder:
    """The results that are still to be accepted."""
    return Folder('pending')


def logs() -> Folder:
    """The output of configs that was not sent yet."""
    return Folder('logs')


def note_interrupted() -> list[str]:
    """Make results of interrupted configs; return their IDs.

    Only to be called where no hook can be running.
    """
    interrupted = []
    for config_id in running():
        with contextlib.suppress(OSError, ValueError):
            content = places.deployed(config_id).read_bytes()
            if configs.read(content).is_signalled:
                pending().put(config_id, _INTERRUPTED)
                interrupted.append(config_id)
        running().drop(config_id)
    return interrupted


_INTERRUPTED = {
    'deploy_stderr': 'heat-config-supervisor: the server or its agent '
    'stopped before the config had ended; it will not run again\n',
    'deploy_status_code': 1,
}
