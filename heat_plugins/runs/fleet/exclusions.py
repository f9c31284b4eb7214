# SPDX-License-Identifier: Apache-2.0
"""One run of an action on a deployment at a time, of operations as well.

A single run announces itself under ``runs/open/`` in the container of its
stack, see `claim`, until it is over and cleaned up; the record of an attempt
announces a run of an operation. Each announces first and then reads what the
others have announced, so at least one of two sees the other:

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
runs, however many. A process reads the order of another operation once: its
members never change. What has none of the caller's is neither read further nor
notified, so a thousand can start at once on one stack.

The windows of `objectstore.exclusive` remain: then both are handed to the
server, which runs them one after the other.
"""

from collections import abc
import dataclasses

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import exclusive
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
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


# Seconds for which a run whose time is over still holds its target although
# no process advances the operation: one may be about to.
_MARGIN = 600

# What to do about a single run.
_WAIT = 'wait for it or cancel it'

#: Runs with their states, by deployment.
Running = dict[str, tuple[str, runs.State]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Other:
    """What runs an action on a deployment already.

    :ivar is_decided: whether it does not give way.
    """

    run_id: str
    is_decided: bool = True


class Exclusion:
    """What else runs on the members of one operation."""

    def __init__(self, tools: services.Services) -> None:
        self._tools = tools
        self._records = tools.records
        self._others = OtherOperations(tools)
        self._warned: set[str] = set()
        self.take_over()

    def take_over(self) -> None:
        """Start again: another process may have led meanwhile."""
        self._stacks: set[str] = set()
        self._is_met = False
        # By run: when it was met first, while it may still give way.
        self._since: dict[str, float] = {}

    def others(
        self, order: operations.OperationOrder, members: abc.Sequence[int]
    ) -> dict[int, Other]:
        """Return what runs on members that are recorded as starting."""
        if order.config is not None:
            return {}
        its = {order.members[n].stack_id for n in members}
        is_first, new = not self._stacks, its - self._stacks
        if is_first:
            self._records.announce(order)
        elif not self._is_met:
            # Who comes after the announcement is listed below, at first.
            self._is_met = self._records.store.has_object(
                self._records.container, layout.met(order.id)
            )
        wanted = its if self._is_met else new
        running: dict[str, Other] = {}
        for part in self._records.pool.each(
            lambda stack_id: self._singles(order, members, stack_id),
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

    def finish(self, order: operations.OperationOrder) -> None:
        """No longer be listed."""
        self._records.discard([layout.live(order.action) + order.id])
        self._stacks = set()

    def _singles(
        self,
        order: operations.OperationOrder,
        members: abc.Iterable[int],
        stack_id: str,
    ) -> dict[str, Other]:
        """Return the single runs of a stack, as far as that tells of them.

        What is wrong with one stack must not stop an operation over many.

        :returns: by deployment.
        """
        wanted = {order.members[n].deployment_id for n in members}
        store = records.Records(self._records.store, stack_id)
        settler = settling.Settler(self._tools, store)
        try:
            opened = [
                key
                for key in store.opened()
                if key.action == order.action and key.deployment_id in wanted
            ]
            arrivals = store.arrivals() if opened else ()
            return {
                key.deployment_id: other
                for key in opened
                if (other := self._single(store, key, settler, arrivals))
            }
        except errors.NoObject:
            return {}
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

    def _single(
        self,
        store: records.Records,
        key: record_names.Key,
        settler: settling.Settler,
        arrivals: abc.Collection[str],
    ) -> Other | None:
        try:
            run = store.read(key)
        except errors.UnreadableRun:
            return Other(run_id=key.run_id)
        if run is None:
            age = self._tools.clock() - record_names.started_at(key.run_id)
            if -_SKEW < age < _STALE:
                return Other(run_id=key.run_id, is_decided=False)
            return None
        if not settler.settled(run, arrivals, {key.run_id}).ended:
            return Other(run_id=key.run_id)
        return None

    def _of_operations(
        self, order: operations.OperationOrder
    ) -> dict[str, Other]:
        """Return the runs of other operations, by deployment."""
        running = self._others.running(
            order.action,
            {member.deployment_id for member in order.members},
            order.id,
        )
        return {
            deployment_id: self._other(order.id, *run)
            for deployment_id, run in running.items()
        }

    def _other(self, ours: str, run_id: str, state: runs.State) -> Other:
        if state is not runs.State.STARTING or run_id < ours:
            return Other(run_id=run_id)
        # It gives way, unless it has not seen us. Then its record says soon
        # that it has started.
        now = self._tools.monotonic()
        since = self._since.setdefault(run_id, now)
        return Other(run_id=run_id, is_decided=now - since > _UNDECIDED)


class OtherOperations:
    """The operations of one project, as other runs meet them.

    A user who may only write into the container of operations must not keep
    others from running: what holds a target is proved, see `binding`.
    """

    def __init__(self, tools: services.Services) -> None:
        self._tools = tools
        self._records = tools.records
        self._warned: set[str] = set()

    def running(
        self,
        action: str,
        deployment_ids: abc.Set[str],
        ours: str = '',
    ) -> Running:
        """Return what operations run on deployments.

        Each that may start more there is notified first.

        :param ours: an operation that is no other one.
        """
        digests = self._records.announced(action)
        digests.pop(ours, None)
        near = self._records.pool.each(
            lambda each: self._is_near(*each, deployment_ids),
            [*digests.items()],
        )
        running: Running = {}
        for name, is_near in zip(digests, near, strict=True):
            if is_near:
                running |= self._meet(action, name, deployment_ids)
        return running

    def _is_near(
        self, operation_id: str, digest: str, deployment_ids: abc.Set[str]
    ) -> bool:
        """Say whether an operation may run on deployments.

        :param digest: of its announcement.

        One that is unreadable holds nothing; one that seems to be gone may.
        """
        known = self._records.known_deployments(operation_id, digest)
        if known is not None and known.isdisjoint(deployment_ids):
            return False
        head = self._records.heads.read(operation_id)
        if head is not None and head.ended:
            return False
        try:
            its = known or self._records.deployments(operation_id, digest)
        except errors.NotFound:
            return True
        except errors.Unreadable as exc:
            self._warn(operation_id, exc)
            return False
        return not its.isdisjoint(deployment_ids)

    def _warn(self, operation_id: str, exc: errors.Error) -> None:
        if operation_id not in self._warned:
            LOG.warning('%s', exc)
        self._warned.add(operation_id)

    def _meet(
        self,
        action: str,
        operation_id: str,
        deployment_ids: abc.Set[str],
    ) -> Running:
        """Notify another operation; return its runs.

        One that is unreadable, or not proved, holds nothing.
        """
        seal = binding.Unchecked(operation_id=operation_id)
        try:
            exclusive.announce(
                self._records.store,
                self._records.container,
                layout.met(operation_id),
            )
            # As it stands once it can know of the caller.
            operation = self._records.show(seal)
            if self._holds(operation, deployment_ids):
                operation = self._proved(operation)
            return self._holds(operation, deployment_ids)
        except errors.NotFound:
            # It was deleted before it had ended.
            self._records.discard(
                [layout.live(action) + operation_id, layout.met(operation_id)]
            )
            return {}
        except errors.Unavailable:
            raise
        except errors.Error as exc:
            self._warn(operation_id, exc)
            return {}

    def _proved(self, operation: operations.Operation) -> operations.Operation:
        """Return an operation as its seal proves it.

        :raises errors.Tampered: it does not.
        """
        try:
            seal = binding.seal_of(self._tools.heat, operation.id)
            proved = self._records.show(seal)
            binding.check(self._tools.heat, proved, seal)
        except errors.Denied:
            # Who may not read what Heat has believes it.
            return operation
        return proved

    def _holds(
        self,
        operation: operations.Operation,
        deployment_ids: abc.Set[str],
    ) -> Running:
        """Return what an operation runs on deployments.

        Runs whose time is over hold nothing if no process ends them.
        """
        members = [
            n
            for n in operation.live
            if operation.order.members[n].deployment_id in deployment_ids
        ]
        now = self._tools.clock()
        late = {n for n in members if now > _end(operation, n) + _MARGIN}
        if late and self._tools.is_led(operation.id):
            late = set()
        return {
            operation.order.members[n].deployment_id: (
                operation.run_id(n),
                state,
            )
            for n in members
            if n not in late and (state := operation.attempts[n].state)
        }


def _end(operation: operations.Operation, member: int) -> int:
    """Return when a run must have ended."""
    return (operation.attempts[member].started_at or 0) + operation.timeout(
        member
    )


def claim(
    tools: services.Services, store: records.Records, run: runs.Run
) -> None:
    """Announce a run and write its record, or leave no trace of it.

    :raises errors.AlreadyRunning: another one is there.
    :raises errors.Refused: it cannot be told whether one is.
    """
    key, others = run.key, OtherOperations(tools)
    settler = settling.Settler(tools, store)

    def check(is_announced: bool) -> None:
        running = {}
        if is_announced:
            running = others.running(key.action, {key.deployment_id})
        for other, _ in running.values():
            operation = record_names.operation_of(other)
            raise _already_runs(
                run,
                other,
                'wait for its operation or cancel that: openstack software '
                f'deployment operation wait|cancel {operation}',
            )

    contest = exclusive.Contest(
        store=store.store,
        container=store.container,
        folder=record_names.open_prefix(key.deployment_id, key.action),
        ours=run.id,
        started=_started,
        check=check,
        is_undecided=lambda other: _is_undecided(store, settler, run, other),
    )
    try:
        won = contest.win(lambda: store.write(run), sleep=tools.sleep)
    except exclusive.Taken as exc:
        raise _already_runs(run, exc.other, _WAIT) from exc
    if not won:
        raise errors.Refused(
            f'Cannot tell whether {run.action} already runs on '
            f'{run.resource}: a listing of the object store took more '
            f'than {exclusive.PATIENCE:.0f} s. Retry later'
        )


def _started(candidate: str) -> float | None:
    if record_names.is_run_id(candidate):
        return record_names.started_at(candidate)
    return None


def _is_undecided(
    store: records.Records,
    settler: settling.Settler,
    ours: runs.Run,
    other: str,
) -> bool:
    """Say whether another run is neither there nor over.

    One that has ended unseen is settled, so that it is not in the way.

    :raises errors.AlreadyRunning: it has not ended.
    :raises errors.Refused: its record is unreadable.
    """
    try:
        run = store.read(dataclasses.replace(ours.key, run_id=other))
    except errors.UnreadableRun as exc:
        raise errors.Refused(f'Another run may be in progress. {exc}') from exc
    if run is None:
        return True
    if not settler.settled(run, store.arrivals(), {other}).ended:
        raise _already_runs(ours, other, _WAIT)
    return False


def _already_runs(
    ours: runs.Run, other: str, remedy: str
) -> errors.AlreadyRunning:
    return errors.AlreadyRunning(
        f'Run {other} of {ours.action} has not ended on this deployment; '
        f'{remedy}',
        other,
    )
