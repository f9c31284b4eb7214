# SPDX-License-Identifier: Apache-2.0
"""The door to operations, for commands, workflows and engines alike."""

from collections import abc
import contextlib
import dataclasses
import itertools
from typing import Any

from heat_plugins import errors
from heat_plugins import pool as pools
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet.records import book as books
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import retention
from heat_plugins.runs.start import starting

#: How many finished operations of an action are kept.
KEPT = retention.Retention(number=100)

# Seconds to wait until who leads an operation has followed a request.
_PATIENCE = 15.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filter:
    """Which operations are wanted; None stands for any.

    :ivar stack: the name of a stack that it has targets in.
    :ivar since: those that ended before it are not wanted, in seconds since
        the epoch.
    :ivar limit: the most, the newest.
    """

    state: str | None = None
    action: str | None = None
    stack: str | None = None
    since: float | None = None
    limit: int | None = None

    def matches(self, head: abc.Mapping[str, Any]) -> bool:
        return (
            self.state in (None, head['state'])
            and self.action in (None, head['action'])
            and (self.stack is None or self.stack in head['stacks'])
            and (
                self.since is None
                or head['ended_at'] is None
                or head['ended_at'] >= self.since
            )
        )


class Fleets:
    """The operations of a project.

    :param keep: how many that have ended are kept.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        tools: advancing.Tools,
        keep: retention.Retention = KEPT,
    ) -> None:
        self._heat = heat
        self._tools = tools
        self._book = tools.book
        self._keep = keep

    @classmethod
    def with_own_key(
        cls,
        heat: orchestration.Deploying,
        store: store_module.ObjectStore,
        *,
        who: str,
        keep: retention.Retention = KEPT,
        pool: pools.Pool | None = None,
    ) -> 'Fleets':
        """Return the operations of a store's project.

        The container has a key of its own: no stack goes with it.
        """
        keeper = keys.KeyKeeper(
            store, secret=None, digests=starting.DIGESTS, overlap=None
        )
        tools = advancing.Tools(
            heat=heat,
            book=books.Book(store, pool),
            sign=keeper.ensure,
            who=who,
        )
        return cls(heat, tools, keep)

    @property
    def pool(self) -> pools.Pool:
        """For many requests at a time."""
        return self._book.pool

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self._tools.clock()

    def create(
        self,
        chosen: fleet_targets.Chosen,
        limits: limit_values.Limits,
        order: starting.Order,
        config: orchestration.Config | None = None,
        log_limit: int | None = None,
    ) -> advancing.Advancer:
        """Record an operation; return what leads it.

        Nothing has started; `advancing.Advancer.step` starts it.

        :param log_limit: see `operation.Order`.
        """
        now = self._tools.clock()
        found = operations.Order(
            id=record_names.new_run_id(now),
            action=order.action,
            limits=limits,
            members=tuple(chosen.members()),
            created_at=int(now),
            created_by=self._tools.who,
            targets=chosen.told,
            inputs=dict(order.inputs),
            config=None if config is None else dataclasses.asdict(config),
            log_limit=log_limit,
        )
        advancer = advancing.Advancer(self._tools, found, found=chosen.targets)
        registered = fleet_requests.register(self._heat, found)
        try:
            advancer.begin(registered)
        except BaseException:
            with contextlib.suppress(errors.Error):
                self._heat.delete_config(registered)
            raise
        with contextlib.suppress(errors.Error):
            self.forget_surplus()
        return advancer

    def history(self, wanted: Filter) -> list[dict[str, Any]]:
        """Return the heads of operations, the newest first."""
        found = filter(wanted.matches, self._book.heads.newest())
        return list(itertools.islice(found, wanted.limit))

    def show(self, operation_id: str) -> operations.Operation:
        """Return an operation as it is recorded.

        :param operation_id: the id, or the beginning or the end of it.
        :raises errors.NotFound: there is none, or more than one.
        """
        return self._book.show(self._book.find(operation_id))

    def advancer(self, operation_id: str) -> advancing.Advancer:
        """Return what advances an operation if no other process does."""
        order = self._book.order(self._book.find(operation_id))
        return advancing.Advancer(self._tools, order)

    def advance_for(
        self, advancer: advancing.Advancer, seconds: float
    ) -> None:
        """Advance an operation for a while, if no other process does."""
        until = self._tools.monotonic() + seconds
        advancer.step()
        while advancer.is_leading and self._tools.monotonic() < until:
            if not advancer.is_busy:
                self._tools.sleep(advancing.POLL)
            advancer.step()

    def request(self, operation_id: str, what: str) -> advancing.Advancer:
        """Pause, resume, cancel or retry an operation.

        :returns: what advances it; it has followed the request, or who leads
            the operation will.
        :raises errors.Refused: it makes no sense now.
        """
        before = self.show(operation_id)
        if refusal := fleet_requests.refusal(before, what):
            raise errors.Refused(
                f'Cannot {what} operation {before.id}: {refusal}'
            )
        self._book.request(
            before.id, self._tools.clock(), do=what, who=self._tools.who
        )
        advancer = advancing.Advancer(self._tools, before.order)
        until = self._tools.monotonic() + _PATIENCE
        handled = set(before.control.handled)
        while self._tools.monotonic() < until:
            found = advancer.step()
            if set(found.control.handled) - handled:
                break
            self._tools.sleep(advancing.POLL)
        return advancer

    def delete(self, operation_id: str, *, force: bool = False) -> str:
        """Forget an operation that has ended; return its id.

        :param force: also one whose record cannot be read.
        :raises errors.Refused: it has not ended.
        """
        found = self._book.find(operation_id)
        try:
            operation = self.show(found)
        except errors.Error:
            if not force:
                raise
        else:
            if not operation.ended:
                raise errors.Refused(
                    f'Operation {found} is {operation.control.phase.value}; '
                    'cancel it first'
                )
        self._book.delete(found)
        return found

    def forget_surplus(self) -> None:
        """Delete the operations that are more than retention allows."""
        if len(self._book.heads.ids()) <= self._keep.number:
            return
        heads = list(self._book.heads.newest())[::-1]
        ended = ('complete', 'failed', 'timed-out', 'cancelled')
        for key in self._keep.surplus(
            [
                record_names.Key(
                    run_id=one['id'], deployment_id='', action=one['action']
                )
                for one in heads
            ],
            {one['id'] for one in heads if one['state'] not in ended},
            self._tools.clock(),
        ):
            # It may have been retried since it was listed.
            head = self._book.heads.read(key.run_id)
            if head is not None and head['state'] in ended:
                self._book.delete(key.run_id)
