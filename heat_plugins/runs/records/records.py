# SPDX-License-Identifier: Apache-2.0
"""The records of the runs of one root stack, in its container."""

from collections import abc
import contextlib
import dataclasses

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins import stored
from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import stores
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs.records import record_names
from heat_plugins.signals import arrivals
from heat_plugins.signals import signal_names

# Outputs as an agent may send them, escaped once more.
_LIMIT = 16 * 1024 * 1024


class Records:
    """The records of one root stack.

    :ivar container: the container that they lie in; it may not be there.
    """

    def __init__(self, store: stores.ObjectStore, root_stack_id: str) -> None:
        self.store = store
        self.root_stack_id = root_stack_id
        self.container = signal_names.container(root_stack_id)
        self._kept = json_records.Records(store, self.container, limit=_LIMIT)

    def opened(
        self,
        prefix: str = record_names.OPEN,
        most: int = stores.MOST,
    ) -> list[record_names.Key]:
        """List the runs that are not over and cleaned up.

        :raises errors.NoObject: there is no container.
        :raises errors.TooManyObjects: there are more than `most`.
        """
        entries = self.store.list_objects(self.container, prefix, most)
        return _parsed(
            record_names.parse_open(entry.name) for entry in entries
        )

    def arrivals(self) -> abc.Collection[str]:
        """List what servers have sent; see `arrivals.Listed`.

        :raises errors.NoObject: there is no container.
        """
        return arrivals.Listed(self.store, self.container)

    def keys(self, run_id: str = '') -> list[record_names.Key]:
        """List the runs there are, the oldest first.

        :param run_id: how their ids begin.
        """
        try:
            entries = self.store.list_objects(
                self.container, record_names.RECORDS + run_id
            )
        except errors.NoObject:
            return []
        return _parsed(
            record_names.parse_record(entry.name) for entry in entries
        )

    def find(self, run_id: str) -> record_names.Key:
        """Return the one run whose id begins, or ends, like that.

        :raises errors.NotFound: there is none, or more than one.
        """
        keys: dict[str, record_names.Key] = {}

        def listed(beginning: str) -> list[str]:
            keys.update((key.run_id, key) for key in self.keys(beginning))
            return list(keys)

        return keys[record_names.find(run_id, 'run', listed)]

    def read(self, key: record_names.Key) -> runs.Run | None:
        """Return a run; None if there is no record of it.

        :raises errors.UnreadableRun: what is there is no record of it.
        """
        name = record_names.record_name(key)
        try:
            run = runs.Run.read(self._kept.fetch(name).value)
            if run.key != key:
                raise ValueError('it is the record of another run')
            if run.stack_id != self.root_stack_id:
                raise ValueError('it is the record of another stack')
        except errors.NoObject:
            return None
        except ValueError as exc:
            # What it says may quote the record, in any length; an event of
            # Heat has room for what comes first.
            reason = foreign.line(masking.signatures(str(exc)), 200)
            raise errors.UnreadableRun(
                f'Run {key.run_id} of {key.action} has an unreadable record; '
                '"openstack software deployment run delete" withdraws it '
                'from its server and deletes its record. Object '
                f'{self.container}/{name}: {reason}',
                **dataclasses.asdict(key),
            ) from exc
        return run

    def write(self, run: runs.Run) -> None:
        self._kept.write(
            record_names.record_name(run.key),
            stored.versioned(runs.Run, dataclasses.asdict(run)),
        )

    def revoke(self, key: record_names.Key) -> None:
        """Tell who starts a run not to; it is listed as before."""
        exclusive.revoke(
            self.store, self.container, record_names.open_name(key)
        )

    def is_open(self, key: record_names.Key) -> bool:
        """Say whether a run is announced, asked of the object itself."""
        return exclusive.stands(
            self.store, self.container, record_names.open_name(key)
        )

    def close(self, key: record_names.Key) -> None:
        """Say that there is nothing left to be done for a run."""
        self.store.delete_object(self.container, record_names.open_name(key))

    def remove(self, key: record_names.Key) -> None:
        """Delete what is known of a run."""
        self.objects(key).remove()
        self.store.delete_object(self.container, record_names.record_name(key))

    def objects(self, key: record_names.Key) -> run_objects.RunObjects:
        """Return the objects of a run, but its record."""
        return run_objects.RunObjects(
            self.store,
            self.container,
            result=key.signal,
            log=record_names.log_folder(key.run_id),
            outputs=record_names.outputs_name(key.run_id),
        )

    def discard(self, name: str) -> None:
        """Delete what a server has sent."""
        self.store.delete_object(self.container, name)

    def drop(self) -> None:
        """Delete the container, unless something is left in it."""
        with contextlib.suppress(errors.NoObject, errors.Conflict):
            self.store.delete_container(self.container)


def _parsed(
    keys: abc.Iterable[record_names.Key | None],
) -> list[record_names.Key]:
    return [key for key in keys if key is not None]
