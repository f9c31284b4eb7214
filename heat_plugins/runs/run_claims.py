# SPDX-License-Identifier: Apache-2.0
"""One run of an action on a deployment at a time.

Each run announces itself under ``runs/open/`` and wins, or gives way, as
`objectstore.exclusive` has it. An announcement stays until the run is over and
cleaned up, and the run's record says that it has won. A run of an operation
comes first, see `fleet.exclusions`. Where two win all the
same, both are handed to the server, which runs them one after the other.
"""

from collections import abc

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import other_operations
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records


class Claims:
    """Lets one run through.

    :param clock: seconds; for how long something takes.
    """

    def __init__(
        self,
        found: records.Records,
        operations: other_operations.OtherOperations,
        *,
        clock: abc.Callable[[], float],
        sleep: abc.Callable[[float], None],
    ) -> None:
        self._records = found
        self._operations = operations
        self._clock = clock
        self._sleep = sleep

    def claim(self, run: runs.Run) -> None:
        """Announce a run and write its record, or leave no trace of it.

        :raises errors.AlreadyRunning: another one is there.
        :raises errors.Refused: it cannot be told whether one is.
        """
        contest = _Contest(self._records, self._operations, run)
        if not exclusive.win(contest, clock=self._clock, sleep=self._sleep):
            raise errors.Refused(
                f'Cannot tell whether {run.action} already runs on '
                f'{run.resource}: a listing of the object store took more '
                f'than {exclusive.PATIENCE:.0f} s. Retry later'
            )


class _Contest:
    """The contest for an action on a deployment; see `exclusive.Contest`."""

    def __init__(
        self,
        found: records.Records,
        operations: other_operations.OtherOperations,
        run: runs.Run,
    ) -> None:
        self._records = found
        self._operations = operations
        self._is_announced = False
        self._run = run
        self._key = run.key
        self.ours = run.id

    def others(self) -> abc.Iterable[str]:
        key = self._key
        if self._is_announced and (other := self._operation_run()):
            raise self._lost_to_operation(other)
        prefix = record_names.open_prefix(key.deployment_id, key.action)
        found = self._records.opened(prefix, exclusive.CANDIDATES)
        return sorted(one.run_id for one in found if one != key)

    def _operation_run(self) -> str | None:
        """Return the run of an operation that is there, if one is."""
        deployment_id = self._key.deployment_id
        others = self._operations.running(
            self._key.action, [self._run.stack_id], [deployment_id]
        )
        run_id, _ = others.get(deployment_id, (None, None))
        return run_id

    def is_undecided(self, other: str) -> bool:
        try:
            found = self._records.read(self._key_of(other))
        except errors.UnreadableRun as exc:
            raise errors.Refused(
                f'Another run may be in progress. {exc}'
            ) from exc
        if found is not None and not found.ended:
            raise self.lost(other)
        # The process that has ended the run is cleaning up after it.
        return found is None

    def lost(self, other: str) -> Exception:
        return errors.AlreadyRunning(
            f'Run {other} of {self._key.action} has not ended on '
            'this deployment; wait for it or cancel it',
            other,
        )

    def _lost_to_operation(self, other: str) -> Exception:
        operation = record_names.operation_of(other)
        return errors.AlreadyRunning(
            f'Run {other} of {self._key.action} has not ended on '
            'this deployment; wait for its operation or cancel that: '
            f'openstack software deployment operation wait|cancel {operation}',
            other,
        )

    def announced_before(self, other: str) -> float:
        ours = record_names.started_at(self.ours)
        return ours - record_names.started_at(other)

    def announce(self) -> None:
        self._records.open(self._key)
        self._is_announced = True

    def withdraw(self, candidate: str) -> None:
        self._records.close(self._key_of(candidate))

    def take(self) -> None:
        self._records.write(self._run)

    def _key_of(self, run_id: str) -> record_names.Key:
        return record_names.Key(
            run_id=run_id,
            deployment_id=self._key.deployment_id,
            action=self._key.action,
        )
