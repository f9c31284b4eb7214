# SPDX-License-Identifier: Apache-2.0
"""What other operations run in stacks; see `exclusions`.

A user who may only write into the container of operations must not keep
others from running: what holds a target is proved, see `records.binding`.
"""

from collections import abc

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import lease
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import registration
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import books
from heat_plugins.runs.fleet.records import layout

LOG = foreign.logger(__name__)

# Seconds for which a run whose time is over still holds its target although
# no process advances the operation: one may be about to.
_MARGIN = 600

#: Runs with their states, by deployment.
Running = dict[str, tuple[str, runs.State]]


class OtherOperations:
    """The operations of one project, as other runs meet them.

    :param who: the name of the caller, for people.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        book: books.Book,
        *,
        who: str,
        clock: abc.Callable[[], float],
    ) -> None:
        self._heat = heat
        self._book = book
        self._who = who
        self._clock = clock
        self._warned: set[str] = set()

    def running(
        self,
        action: str,
        stack_ids: abc.Collection[str],
        deployment_ids: abc.Container[str],
        ours: str = '',
    ) -> Running:
        """Return what operations run on deployments of stacks.

        Each that may start more there is notified first.

        :param ours: an operation that is no other one.
        """
        names = [one for one in self._book.announced(action) if one != ours]
        stacks = set(stack_ids)

        def may_meet(operation_id: str) -> bool:
            head = self._book.heads.read(operation_id)
            # One that was deleted is no longer announced then.
            if head is None or head.state is None:
                return True
            return not (head.state.ended or stacks.isdisjoint(head.stack_ids))

        near = self._book.pool.each(may_meet, names)
        found: Running = {}
        for name, is_near in zip(names, near, strict=True):
            if is_near:
                found |= self._meet(action, name, stacks, deployment_ids)
        return found

    def _meet(
        self,
        action: str,
        operation_id: str,
        stack_ids: set[str],
        deployment_ids: abc.Container[str],
    ) -> Running:
        """Notify another operation; return its runs.

        One that is unreadable, or not proved, holds nothing.
        """
        seal: binding.Seal = binding.Unchecked(operation_id=operation_id)
        try:
            found = self._book.outline(seal)
            if found.ended or stack_ids.isdisjoint(found.order.stack_ids):
                return {}
            self._book.store.put_object(
                self._book.container, layout.met(operation_id), b'{}'
            )
            # As it stands once it can know of the caller.
            found = self._book.show(seal)
            if self._holds(found, deployment_ids):
                found = self._proved(found)
            return self._holds(found, deployment_ids)
        except errors.NotFound:
            # It was deleted before it had ended.
            self._book.discard([layout.live(action) + operation_id])
            return {}
        except errors.Unavailable:
            raise
        except errors.Error as exc:
            if operation_id not in self._warned:
                LOG.warning('%s', exc)
            self._warned.add(operation_id)
            return {}

    def _proved(self, found: operations.Operation) -> operations.Operation:
        """Return an operation as its seal proves it.

        :raises errors.Tampered: it does not.
        """
        try:
            seal = registration.seal_of(self._heat, found.id)
            proved = self._book.show(seal)
            registration.check(self._heat, proved, seal)
        except errors.Denied:
            # Who may not read what Heat has believes it.
            return found
        return proved

    def _holds(
        self,
        found: operations.Operation,
        deployment_ids: abc.Container[str],
    ) -> Running:
        """Return what an operation runs on deployments.

        Runs whose time is over hold nothing if no process ends them.
        """
        members = [
            n
            for n in found.live
            if found.order.members[n].deployment_id in deployment_ids
        ]
        now = self._clock()
        late = {n for n in members if now > _end(found, n) + _MARGIN}
        if late and self._is_led(found.id):
            late = set()
        return {
            found.order.members[n].deployment_id: (found.run_id(n), state)
            for n in members
            if n not in late and (state := found.attempts[n].state)
        }

    def _is_led(self, operation_id: str) -> bool:
        epoch = self._book.epoch(operation_id, certain=False)
        return lease.Lease(
            self._book.store,
            self._book.container,
            layout.leads(operation_id),
            who=self._who,
            clock=self._clock,
        ).is_held(epoch)


def _end(found: operations.Operation, member: int) -> int:
    """Return when a run must have ended."""
    return (found.attempts[member].started_at or 0) + found.timeout(member)
