# SPDX-License-Identifier: Apache-2.0
"""One run of an action on a deployment at a time, of operations as well.

A single run announces itself in the container of its stack, see `run_claims`;
the record of an attempt announces a run of an operation. Each announces first
and then reads what the others have announced, so at least one of two sees the
other:

- An operation is listed before its first run, and reads what runs in a stack
  before its first run there.
- Who comes later finds it in that list. It notifies the operation, by an
  object that the operation looks for before each start, and reads its
  attempts. An operation that was notified reads what runs before each start.
- A single run gives way to an operation; of two operations the younger one.
  The other waits until that has happened.

Scripts of a user's own are no action of a deployment: operations with one
neither exclude others nor are excluded.

So an operation that meets nothing asks for one object in each step that starts
runs, however many. The windows of `objectstore.exclusive` remain: then
both are handed to the server, which runs them one after the other.
"""

from collections import abc
import dataclasses

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import other_operations
from heat_plugins.runs.fleet.records import books
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.follow import settling
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records

LOG = foreign.logger(__name__)

# Seconds after which what starts is taken for started, and after which a
# single run without a record is that of a process that has died.
_UNDECIDED, _STALE = 30.0, 180.0

# Seconds by which two clocks may differ.
_SKEW = 600.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Other:
    """What runs an action on a deployment already.

    :ivar is_decided: whether it does not give way.
    """

    run_id: str
    is_decided: bool = True


class Exclusion:
    """What else runs on the members of one operation.

    :param who: the name of who advances it.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        book: books.Book,
        *,
        who: str,
        clock: abc.Callable[[], float],
        monotonic: abc.Callable[[], float],
    ) -> None:
        self._heat = heat
        self._book = book
        self._who = who
        self._clock = clock
        self._monotonic = monotonic
        self._others = other_operations.OtherOperations(
            heat, book, who=who, clock=clock
        )
        self._warned: set[str] = set()
        self.take_over()

    def take_over(self) -> None:
        """Start again: another process may have led meanwhile."""
        self._stacks: set[str] = set()
        self._is_met = False
        # By run: when it was met first, while it may still give way.
        self._since: dict[str, float] = {}

    def others(
        self, order: operations.Order, members: abc.Sequence[int]
    ) -> dict[int, Other]:
        """Return what runs on members that are recorded as starting."""
        if order.config is not None:
            return {}
        its = {order.members[n].stack_id for n in members}
        is_first, new = not self._stacks, its - self._stacks
        if is_first:
            self._book.announce(order)
        self._is_met = self._is_met or self._book.store.has_object(
            self._book.container, layout.met(order.id)
        )
        wanted = its if self._is_met else new
        running: dict[str, Other] = {}
        for part in self._book.pool.each(
            lambda stack_id: self._known_singles(order, members, stack_id),
            sorted(wanted),
        ):
            running |= part
        if is_first or self._is_met:
            running |= self._of_operations(order)
        self._stacks |= new
        # What has been met is met again.
        self._is_met = self._is_met or bool(running)
        return {
            n: other
            for n in members
            if (other := running.get(order.members[n].deployment_id))
        }

    def finish(self, order: operations.Order) -> None:
        """No longer be listed."""
        self._book.discard([layout.live(order.action) + order.id])
        self._stacks = set()

    def _known_singles(
        self,
        order: operations.Order,
        members: abc.Iterable[int],
        stack_id: str,
    ) -> dict[str, Other]:
        """Return the single runs of a stack, as far as that tells of them.

        What is wrong with one stack must not stop an operation over many.
        """
        try:
            return self._singles(order, members, stack_id)
        except errors.Unavailable:
            raise
        except errors.Error as exc:
            if stack_id not in self._warned:
                LOG.warning(
                    'Cannot tell whether %(action)s already runs in stack '
                    '%(stack)s: %(error)s',
                    {'action': order.action, 'stack': stack_id, 'error': exc},
                )
            self._warned.add(stack_id)
            return {}

    def _singles(
        self,
        order: operations.Order,
        members: abc.Iterable[int],
        stack_id: str,
    ) -> dict[str, Other]:
        """Return the single runs of a stack, by deployment."""
        wanted = {order.members[n].deployment_id for n in members}
        found = records.Records(self._book.store, stack_id)
        try:
            opened = [
                key
                for key in found.opened()
                if key.action == order.action and key.deployment_id in wanted
            ]
            arrivals = found.arrivals() if opened else ()
        except errors.NoObject:
            return {}
        settler = settling.Settler(
            self._heat, found, who=self._who, clock=self._clock
        )
        return {
            key.deployment_id: other
            for key in opened
            if (other := self._single(found, key, settler, arrivals))
        }

    def _single(
        self,
        found: records.Records,
        key: record_names.Key,
        settler: settling.Settler,
        arrivals: abc.Collection[str],
    ) -> Other | None:
        try:
            run = found.read(key)
        except errors.UnreadableRun:
            return Other(run_id=key.run_id)
        if run is None:
            age = self._clock() - record_names.started_at(key.run_id)
            if -_SKEW < age < _STALE:
                return Other(run_id=key.run_id, is_decided=False)
            return None
        if not settler.settle(run, arrivals).ended:
            return Other(run_id=key.run_id)
        return None

    def _of_operations(self, order: operations.Order) -> dict[str, Other]:
        """Return the runs of other operations, by deployment."""
        found = self._others.running(
            order.action,
            order.stack_ids,
            {one.deployment_id for one in order.members},
            order.id,
        )
        return {
            deployment_id: self._other(order.id, *run)
            for deployment_id, run in found.items()
        }

    def _other(self, ours: str, run_id: str, state: runs.State) -> Other:
        if state is not runs.State.STARTING or run_id < ours:
            return Other(run_id=run_id)
        # It gives way, unless it has not seen us. Then its record says soon
        # that it has started.
        now = self._monotonic()
        since = self._since.setdefault(run_id, now)
        return Other(run_id=run_id, is_decided=now - since > _UNDECIDED)
