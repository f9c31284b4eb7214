# SPDX-License-Identifier: Apache-2.0
"""Advance an operation until it has ended or another process leads it.

The process that does so may die anywhere. It records what it starts first, as
starting, and the next leader finds out what of that was delivered.
"""

from collections import abc
import contextlib
import itertools

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import lease
from heat_plugins.runs import services
from heat_plugins.runs.fleet import deciding
from heat_plugins.runs.fleet import dispatch
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import journals
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

#: Seconds between two listings.
POLL = 1.0

# How the seconds between two steps grow while nothing happens.
_GROWTH, _LONGEST = 1.5, 5.0

# Seconds for an engine to begin with what it has said that it advances, and
# between two looks whether it has.
_HANDOVER, _LOOK = 15.0, 0.5


class Advancer:
    """Advances one operation, if no other process does.

    :param seal: what proves its records.
    :param chosen: targets that were chosen a moment ago.
    """

    def __init__(
        self,
        tools: services.Services,
        order: operations.OperationOrder,
        seal: binding.Seal,
        *,
        chosen: abc.Iterable[targets.Target] = (),
    ) -> None:
        self._tools = tools = tools.with_cached_signers()
        self._records = tools.records
        self._order = order
        self._seal = seal
        self._lease = tools.leadership(order.id)
        self._op = operations.Operation.new(order)
        self._journal = journals.Journal(tools, order, seal, self._lease)
        self._exclusion = exclusions.Exclusion(tools)
        self._dispatcher = dispatch.Dispatcher(
            tools,
            member_runs.MemberRuns(tools, order, self._lease.check, chosen),
            self._journal,
            self._exclusion,
        )
        self._next_listing = 0.0
        # What the last listing has shown, as far as it is not dealt with.
        self._news: set[str] = set()
        self._pause = POLL
        # Whether a step was not finished.
        self._is_stale = False
        # Whether it has warned of a forged request.
        self._has_warned = False
        # Whether lists show the end, which is recorded before that.
        self._is_listed = False

    @property
    def operation(self) -> operations.Operation:
        """The operation as it was seen last."""
        return self._op

    @property
    def is_leading(self) -> bool:
        return self._lease.epoch is not None

    @property
    def is_over(self) -> bool:
        """Whether the operation has ended, and no process has to list that.

        One that has died before it could leaves that to the next leader.
        """
        return self._op.ended and self._is_listed and not self.is_leading

    @property
    def pause(self) -> float:
        """The seconds until the next step is worth its requests."""
        is_behind = self.is_busy or self._dispatcher.is_behind
        is_at_once = is_behind and self.is_leading and not self._is_stale
        return 0.0 if is_at_once else self._pause

    @property
    def is_busy(self) -> bool:
        """Whether there is something to do at once."""
        return self._dispatcher.is_busy

    def begin(self, registered: str) -> None:
        """Record a new operation, and lead it.

        :param registered: see `operations.Control`.
        :raises errors.Unavailable: another process has claimed it since.
        """
        # Until it is recorded to the end, `release` records nothing.
        self._is_stale = True
        # The container, too.
        self._tools.sign(self._records.container)
        if self.is_leading:
            # What was done since the claim may have taken longer than that.
            self._renew()
        else:
            self._lease.begin()
        self._op = self._op.changed(
            registered=registered, began_at=int(self._tools.clock())
        )
        self._journal.begin(self._op)
        self._is_stale = False

    def claim(self, is_alone: abc.Callable[[], bool]) -> None:
        """Lead an operation that other processes may be creating, too.

        :param is_alone: says whether none has started with it, by a record
            that each changes before.
        :raises errors.Exists: one has created it.
        :raises errors.Unavailable: one does so, or died a moment ago.
        """
        self._tools.sign(self._records.container)
        # Until `begin`, there is nothing to record.
        self._is_stale = True
        if is_alone():
            self._lease.begin()
            # Who has started with it since may not have seen that.
            if is_alone():
                return
            # It may be the other's: it must not be released.
            self._lease.epoch = None
            raise self._claimed()
        self._refuse_existing()
        if not self._lease.acquire(self._records.epoch(self._order.id)):
            raise self._claimed()
        self._refuse_existing()
        # One may have died before it was recorded to the end.
        binding.forget(self._tools.heat, self._order.id)

    def _renew(self) -> None:
        try:
            self._lease.check()
        except lease.Lost as exc:
            raise self._claimed() from exc

    def _claimed(self) -> errors.Unavailable:
        return errors.Unavailable(
            f'Another process creates operation {self._order.id}'
        )

    def _refuse_existing(self) -> None:
        # Who may write into the container may write a head, and nothing that
        # Heat has.
        if self._records.heads.read(
            self._order.id
        ) and self._tools.heat.deployments(self._order.id):
            raise errors.Exists(f'Operation {self._order.id} exists')

    def lead(self) -> bool:
        """Lead the operation, unless another process does or it has ended.

        That only reads and copies its records; `step` does the work.

        :raises errors.Error: they are unreadable, or a service does not
            answer.
        """
        return self.is_leading or self._lead()

    def step(self) -> operations.Operation:
        """Advance the operation, or see how it stands if another one does.

        :raises errors.Error: the object store does not answer.
        :raises errors.Error: Heat does not, or the operation was deleted.
        """
        before = self._op.attempts
        try:
            if self.is_leading and self._is_stale:
                self._reload()
            if self.lead():
                self._advance()
        except lease.Lost:
            self._lease.epoch = None
        except BaseException:
            # Half of a step may have been done.
            self._is_stale = True
            raise
        finally:
            is_news = self._op.attempts != before
            self._pause = (
                POLL if is_news else min(self._pause * _GROWTH, _LONGEST)
            )
        return self._op

    def take_out(self) -> None:
        """Let engines no longer find an operation that has ended.

        A retry lets them find it again: so this is done by its leader alone.
        """
        if self._acquire():
            if not self._op.ended or self._is_asked():
                self.release()
                return
            self._journal.record(self._op)
            self._finish()

    def hand_over(self) -> bool:
        """Let an engine advance a new operation.

        :returns: False if none does; this process leads it, or may lead it.
        """
        epoch = self._lease.epoch
        try:
            if epoch != 1 or not binding.offer(self._tools.heat, self._op):
                # A command advances what it retries.
                return False
        except errors.Error as exc:
            LOG.info('No engine advances %s: %s', self._order.id, exc)
            return False
        self.release()
        until = self._tools.monotonic() + _HANDOVER
        while self._tools.monotonic() < until:
            self._tools.sleep(_LOOK)
            if self._records.epoch(self._order.id, certain=False) > epoch:
                return True
        return False

    def release(self) -> None:
        """Let another process advance it at once."""
        if not self.is_leading:
            return
        # Else the lease expires.
        with contextlib.suppress(errors.Error, lease.Lost):
            self._lease.check()
            if not self._is_stale:
                self._journal.write(self._op)
            self._lease.release()

    # Leading

    def _reload(self) -> None:
        """Go on from what is recorded."""
        self._op = self._journal.load()
        binding.check(self._tools.heat, self._op, self._seal)
        self._dispatcher.take_over(self._op)
        self._exclusion.take_over()
        self._is_stale = False

    def _lead(self) -> bool:
        """Take over an operation that no process advances."""
        epoch = self._records.epoch(self._order.id)
        self._op, _ = self._records.operation(self._order, epoch, self._seal)
        self._is_listed = self._op.ended and self._shows_end()
        if self._is_listed and not self._is_asked():
            return False
        return self._acquire(epoch)

    def _acquire(self, epoch: int | None = None) -> bool:
        if epoch is None:
            epoch = self._records.epoch(self._order.id)
        binding.check(self._tools.heat, self._op, self._seal)
        if not self._lease.acquire(epoch):
            return False
        # The former leader may have written until it lost the lease.
        self._is_stale = True
        self._reload()
        return True

    def _shows_end(self) -> bool:
        if isinstance(self._seal, binding.Former):
            # It is no longer led, and any user may have written its end.
            return True
        head = self._records.heads.read(self._order.id)
        return head is None or head.ended

    def _is_asked(self) -> bool:
        """Say whether users may have asked for more of what has ended."""
        # What is of a former release is not retried.
        return not isinstance(self._seal, binding.Former) and bool(
            self._names(layout.requests(self._order.id))
        )

    # A step

    def _advance(self) -> None:
        self._lease.check()
        now = self._tools.monotonic()
        # Steps may follow each other without a pause.
        if self.pause or now >= self._next_listing:
            self._news = self._arrived()
            self._next_listing = now + POLL
        elif not self._dispatcher.is_behind:
            self._news = set()
        operation = self._follow(self._op, self._news)
        if not operation.ended:
            operation = self._dispatcher.settle(operation, self._news)
        step = deciding.advance(operation, self._tools.clock())
        while step.expire or step.withdraw:
            before = step.operation
            operation = self._dispatcher.end(step)
            if operation == before:
                # Heat or the store is out of order: later.
                break
            step = deciding.advance(operation, self._tools.clock())
        self._journal.record(step.operation)
        self._op = step.operation
        self._op = self._dispatcher.start(self._op, step.start)
        if self._op.ended:
            self._finish()

    def _arrived(self) -> set[str]:
        """List what servers and users have sent.

        Ceph's gateway unpacks an archive below the name of a server's result:
        any number of objects, which must not hide those of others.
        """
        asked = layout.requests(self._order.id)
        names = self._names(layout.arrivals(self._order.id))
        if asked in names:
            names |= self._names(asked)
        return {name for name in names if not name.endswith('/')}

    def _names(self, prefix: str) -> set[str]:
        entries = self._records.store.iterate(
            self._records.container, prefix, folded=True
        )
        most = 4 * len(self._order.members) + 1000
        return {each.name for each in itertools.islice(entries, most)}

    def _follow(
        self, operation: operations.Operation, arrived: set[str]
    ) -> operations.Operation:
        """Do what a user has asked for."""
        prefix = layout.requests(operation.id)
        names = sorted(each for each in arrived if each.startswith(prefix))
        # The others wait for the next step.
        for name in names[: fleet_requests.KEPT]:
            if fleet_requests.is_news(operation, name):
                operation = self._obey(operation, name)
            self._journal.use(name)
        if self._op.ended and not operation.ended:
            binding.offer(self._tools.heat, operation)
        return operation

    def _obey(
        self, operation: operations.Operation, name: str
    ) -> operations.Operation:
        try:
            wanted = self._records.read_request(self._seal, name)
        except errors.Unreadable as exc:
            # It must not push others out of what is remembered.
            if not self._has_warned:
                LOG.warning('Ignoring a request: %s', exc)
            self._has_warned = True
            return operation
        if wanted is not None:
            now = self._tools.clock()
            operation = fleet_requests.follow(
                operation, wanted, now, self._seal
            )
        return fleet_requests.remember(operation, name)

    def _finish(self) -> None:
        """Leave an operation that has ended."""
        self._op = binding.finish(self._tools.heat, self._op, self._seal)
        self._exclusion.finish(self._order)
        asked = layout.requests(self._order.id)
        late = dispatch.unanswered(self._op).values()
        self._records.discard(
            [
                each
                for each in self._arrived().difference(late)
                # Servers may still read that they must stop.
                if not each.startswith(asked)
                and live.signal_name(each) == each
            ]
        )
        self._is_listed = True
        self.release()
