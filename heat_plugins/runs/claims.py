# SPDX-License-Identifier: Apache-2.0
"""One run of an action on a deployment at a time.

Swift cannot create an object only if it is not there. So each run announces
itself under ``runs/open/`` and then reads a fresh listing of that folder:

- If there is a run that is past its beginning, it gives way to that one;
  and to one whose record cannot be read, for as long as that is there.
- If there is another that begins at the same time, the one whose name comes
  first goes on, but not before the other has given way or has gone on
  itself: that one may have read its listing before we came.
- Who has not got through within `PATIENCE` seconds gives way, and who has
  died in there is not waited for any longer than that.

What is left of a window: a listing that does not show an announcement made
before it (Swift's may lag behind), and a process that stands still for more
than `PATIENCE` seconds between reading its last listing and writing its
record. Two runs can then be handed to the server, which runs them one after
the other.
"""

from collections import abc

from heat_plugins.runs import errors
from heat_plugins.runs import names
from heat_plugins.runs import records
from heat_plugins.runs import run as runs

#: The most seconds that a run may take to get through; two are as many as
#: one may stand still in between.
PATIENCE = 10.0

_PAUSE = 0.25

# By how many seconds, clocks told by, an announcement must be older than
# ours to be that of somebody who has died.
_STALE = 120


class Claims:
    """Lets one run through.

    :param clock: seconds; for how long something takes.
    """

    def __init__(
        self,
        found: records.Records,
        *,
        clock: abc.Callable[[], float],
        sleep: abc.Callable[[float], None],
    ) -> None:
        self._records = found
        self._clock = clock
        self._sleep = sleep

    def claim(self, run: runs.Run) -> None:
        """Announce a run and write its record, or leave no trace of it.

        :raises errors.AlreadyRunning: another one is there.
        :raises errors.Refused: it cannot be told whether one is.
        """
        key = run.key
        begun = self._clock()
        # Before we may be in the way of somebody.
        self._refuse(key, self._others(key), begun)
        try:
            self._records.open(key)
            while True:
                listed = self._clock()
                rivals = self._refuse(key, self._others(key), begun)
                if not rivals:
                    break
                self._sleep(_PAUSE)
            if self._clock() - listed > PATIENCE:
                raise errors.Refused(
                    f'{run.action} on {run.resource} could not be announced '
                    f'within {PATIENCE:.0f} s; try again'
                )
            self._records.write(run)
        except BaseException:
            self._records.close(key)
            raise

    def _others(self, key: names.Key) -> list[names.Key]:
        prefix = names.open_prefix(key.deployment_id, key.action)
        return [each for each in self._records.opened(prefix) if each != key]

    def _refuse(
        self, key: names.Key, others: list[names.Key], begun: float
    ) -> list[names.Key]:
        """Give way to those who were first; return those to wait for."""
        rivals = []
        for other in others:
            try:
                found = self._records.read(other)
            except errors.Unreadable as exc:
                raise errors.Refused(f'Another may go on. {exc}') from exc
            if found is not None and found.ended:
                # Whoever ended it is cleaning up after it.
                continue
            if found is None and self._is_dead(other, key, begun):
                self._records.close(other)
                continue
            if found is not None or other.run_id < key.run_id:
                raise errors.AlreadyRunning(
                    f'Run {other.run_id} of {key.action} has not ended on '
                    'this deployment; wait for it or cancel it',
                    other.run_id,
                )
            rivals.append(other)
        return rivals

    def _is_dead(self, other: names.Key, key: names.Key, begun: float) -> bool:
        """Say whether an announcement is nobody's any more."""
        age = names.started_at(key.run_id) - names.started_at(other.run_id)
        return age > _STALE or self._clock() - begun > PATIENCE
