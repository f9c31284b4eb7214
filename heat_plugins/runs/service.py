# SPDX-License-Identifier: Apache-2.0
"""The door to runs, for commands, workflows and engines alike."""

from collections import abc
import contextlib
import dataclasses
import re
import time
from typing import Any

from heat_plugins.runs import errors
from heat_plugins.runs import names
from heat_plugins.runs import orchestration
from heat_plugins.runs import records
from heat_plugins.runs import retention
from heat_plugins.runs import run as runs
from heat_plugins.runs import settling
from heat_plugins.runs import starting
from heat_plugins.runs import targets
from heat_plugins.runs import waiting
from heat_plugins.signals import errors as store_errors
from heat_plugins.signals import store as store_module

_STACK_ID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filter:
    """Which runs are wanted; None stands for any.

    :ivar resource: the path of a deployment's resource, or of one that
        holds it.
    :ivar limit: the most, the newest.
    """

    resource: str | None = None
    action: str | None = None
    state: runs.State | None = None
    limit: int | None = None

    def matches(self, run: runs.Run) -> bool:
        return (
            (self.state is None or run.state is self.state)
            and (self.action is None or run.action == self.action)
            and (
                self.resource is None
                or f'{run.resource}.'.startswith(f'{self.resource}.')
                or self.resource == run.deployment_id
            )
        )


class Runs:
    """Actions on the running stacks of a project.

    :param heat: the way to Heat, with the credentials of who asks.
    :param store: the project's object store.
    :param who: the name of who asks, for the records.
    """

    def __init__(
        self,
        heat: orchestration.Orchestration,
        store: store_module.ObjectStore,
        *,
        who: str,
        keep: retention.Retention | None = None,
        clock: abc.Callable[[], float] = time.time,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._heat = heat
        self._store = store
        self._who = who
        self._keep = keep or retention.Retention()
        self._clock = clock
        self._sleep = sleep
        self._finder = targets.Finder(heat)
        self._starter = starting.Starter(
            heat, store, who=who, clock=clock, sleep=sleep
        )

    # What there is to run

    def find(
        self, stack: str, resource: str | None = None
    ) -> list[targets.Target]:
        """See `targets.Finder.targets`."""
        return self._finder.targets(stack, resource)

    def server(
        self, stack: str, resource: str, config: orchestration.Config
    ) -> targets.Target:
        """See `targets.Finder.server`."""
        return self._finder.server(stack, resource, config)

    def config(self, config_id: str) -> orchestration.Config:
        """Return a config that Heat has."""
        return self._heat.config(config_id)

    # Starting

    def start(self, target: targets.Target, order: starting.Order) -> runs.Run:
        """Start a run; see `starting.Starter.start`."""
        # Before anything is asked of the object store.
        starting.check(target, order)
        self._settle_former(target, order.action)
        run = self._starter.start(target, order)
        # It has been started, whatever becomes of others.
        with contextlib.suppress(store_errors.SignalError):
            self.forget_surplus(target.root.id)
        return run

    def repeat(self, run: runs.Run, order: starting.Order) -> runs.Run:
        """Start a run once more; `order` says what is different."""
        if run.standalone:
            raise errors.Refused(
                f'Run {run.id} had a config of its own, which is gone; start '
                'it anew'
            )
        found = self._finder.targets(run.stack_id, run.resource)
        if len(found) != 1:
            raise errors.NotFound(
                f'There are {len(found)} deployments at {run.resource} now'
            )
        inputs = {**run.inputs, **order.inputs}
        return self.start(
            found[0],
            dataclasses.replace(order, inputs=inputs, repeats=run.id),
        )

    def _settle_former(self, target: targets.Target, action: str) -> None:
        """Settle what ran before, so that it is not in the way."""
        found = records.Records(self._store, target.root.id)
        prefix = names.open_prefix(target.deployment.id, action)
        try:
            opened = found.opened(prefix)
            arrivals = found.arrivals() if opened else set()
        except store_errors.NotFound:
            return
        for key in opened:
            run = found.read(key)
            if run is not None:
                self._settled(found, run, arrivals, {key.run_id})

    # Looking

    def history(self, stack: str, wanted: Filter) -> list[runs.Run]:
        """Return runs of a stack as they stand now, the newest first."""
        found = self._records(stack)
        listed = found.keys()
        opened, arrivals = self._news(found)
        self._sweep(found, listed, arrivals)
        settler = self._settler(found)
        result: list[runs.Run] = []
        for key in reversed(listed):
            if wanted.limit is not None and len(result) >= wanted.limit:
                break
            if wanted.action not in (None, key.action):
                continue
            run = found.read(key)
            if run is not None:
                run = _settled(settler, run, arrivals, opened)
                result += [run] if wanted.matches(run) else []
        return result

    def show(self, stack: str, run_id: str) -> runs.Run:
        """Return a run as it stands now.

        :raises errors.NotFound: there is no such stack or run.
        """
        found = self._records(stack)
        opened, arrivals = self._news(found)
        run = self._read(found, run_id)
        return self._settled(found, run, arrivals, opened)

    def outputs(self, run: runs.Run) -> abc.Mapping[str, Any]:
        """Return the outputs of a run, long ones whole."""
        return self._records_of(run).outputs(run)

    def waiter(
        self,
        root_stack_id: str,
        watch: waiting.Watch,
        tick: abc.Callable[[], None] = lambda: None,
    ) -> waiting.Waiter:
        """Return what waits for runs of a root stack."""
        found = records.Records(self._store, root_stack_id)
        return waiting.Waiter(
            self._settler(found),
            found,
            watch=watch,
            tick=tick,
            sleep=self._sleep,
        )

    # Ending

    def cancel(self, stack: str, run_id: str) -> runs.Run:
        """Take a run back from its server.

        :raises errors.Ended: it has ended.
        """
        found = self._records(stack)
        run = self._read(found, run_id)
        _, arrivals = self._news(found)
        return self._settler(found).cancel(run, arrivals)

    def delete(self, stack: str, run_id: str) -> runs.Run:
        """Forget a run that has ended.

        :raises errors.Refused: it has not.
        """
        found = self._records(stack)
        opened, arrivals = self._news(found)
        run = self._settled(found, self._read(found, run_id), arrivals, opened)
        if not run.ended:
            raise errors.Refused(
                f'Run {run.id} is {run.state.value}; cancel it first'
            )
        found.remove(run.key)
        if self._is_gone(stack) and not found.keys():
            # As long as there is a stack, an engine may wait for a signal
            # in a container that is empty.
            self._sweep(found, [], found.arrivals())
            found.drop()
        return run

    def forget_surplus(self, root_stack_id: str) -> None:
        """Delete the records that are more than retention allows."""
        found = records.Records(self._store, root_stack_id)
        opened, _ = self._news(found)
        for key in self._keep.surplus(found.keys(), opened, self._clock()):
            found.remove(key)

    # What these share

    def _settler(self, found: records.Records) -> settling.Settler:
        return settling.Settler(
            self._heat, found, who=self._who, clock=self._clock
        )

    def _settled(
        self,
        found: records.Records,
        run: runs.Run,
        arrivals: abc.Collection[str],
        opened: abc.Collection[str],
    ) -> runs.Run:
        return _settled(self._settler(found), run, arrivals, opened)

    def _news(self, found: records.Records) -> tuple[set[str], set[str]]:
        try:
            opened = {key.run_id for key in found.opened()}
            return opened, found.arrivals()
        except store_errors.NotFound:
            return set(), set()

    @staticmethod
    def _sweep(
        found: records.Records,
        keys: abc.Iterable[names.Key],
        arrivals: abc.Iterable[str],
    ) -> None:
        """Delete what servers send for runs that nobody knows any more."""
        known = {key.run_id for key in keys}
        for name in arrivals:
            run_id = names.signal_of_run(name)
            if run_id is not None and run_id not in known:
                found.discard(name)

    @staticmethod
    def _read(found: records.Records, run_id: str) -> runs.Run:
        run = found.read(found.find(run_id))
        if run is None:
            raise errors.NotFound(f'Run {run_id} has just been deleted')
        return run

    def _records_of(self, run: runs.Run) -> records.Records:
        return records.Records(self._store, run.stack_id)

    def _records(self, stack: str) -> records.Records:
        """Return the records of a stack, or of one that was deleted.

        :param stack: a name, or an id; that of a root if it is deleted.
        """
        try:
            return records.Records(self._store, self._finder.root(stack).id)
        except errors.NotFound:
            found = records.Records(self._store, stack)
            if _STACK_ID.fullmatch(stack) and self._has(found):
                return found
            raise

    def _has(self, found: records.Records) -> bool:
        try:
            self._store.head_container(found.container)
        except store_errors.NotFound:
            return False
        return True

    def _is_gone(self, stack: str) -> bool:
        try:
            return self._finder.root(stack).gone
        except errors.NotFound:
            return True


def _settled(
    settler: settling.Settler,
    run: runs.Run,
    arrivals: abc.Collection[str],
    opened: abc.Collection[str],
) -> runs.Run:
    was_ended = run.ended
    run = settler.settle(run, arrivals)
    if was_ended and run.id in opened:
        # Who ended it did not come to the end of that.
        settler.clean_up(run)
    return run
