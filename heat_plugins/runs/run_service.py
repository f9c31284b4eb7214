# SPDX-License-Identifier: Apache-2.0
"""The door to runs, for commands and workflows alike."""

from collections import abc
import contextlib
import dataclasses
import functools
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.objectstore import stores
from heat_plugins.runs import attempts
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import member_runs
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.records import ledgers
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import stack_tree
from heat_plugins.runs.start import targets

_FAILURES = (runs.State.FAILED, runs.State.TIMED_OUT)

# How many runs are read for that, the latest.
_OTHERS = 20


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filter:
    """Which runs are wanted; None stands for any.

    :ivar resource: the path of a deployment's resource, or of one that
        holds it.
    :ivar servers: the IDs of servers, or the paths of their resources; none
        for all.
    :ivar failed: whether only those that failed or timed out are wanted.
    :ivar single: whether to leave out the runs of operations.
    :ivar since: those that ended before it are not wanted, in seconds since
        the epoch.
    :ivar limit: the most, the newest.
    """

    resource: str | None = None
    servers: abc.Collection[str] = ()
    action: str | None = None
    state: runs.State | None = None
    failed: bool = False
    single: bool = False
    since: float | None = None
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
            and (
                not self.servers
                or not {run.server_id, run.server_name}.isdisjoint(
                    self.servers
                )
            )
            and (not self.failed or run.state in _FAILURES)
            and (
                self.since is None
                or run.ended_at is None
                or run.ended_at >= self.since
            )
        )


class Runs(ledgers.Ledger):
    """Actions on the running stacks of a project, found by name.

    :param heat: the way to Heat, with the credentials of who asks.
    :param store: the project's object store.
    :param options: see `services.Services`.
    """

    def __init__(
        self,
        heat: orchestration.Orchestration,
        store: stores.ObjectStore,
        **options: Any,
    ) -> None:
        super().__init__(services.Services.of(heat, store, **options))
        self._heat = heat
        self._finder = targets.Finder(heat)
        self._operated = overview.OperationRuns(self._tools.records, heat)

    # What there is to run

    def find(self, stack: str, *resources: str | None) -> list[targets.Target]:
        """See `targets.Finder.targets`."""
        return self._finder.targets(stack, *resources)

    def server(
        self, stack: str, resource: str, config: heat_values.Config
    ) -> targets.Target:
        """See `targets.Finder.server`."""
        return self._finder.server(stack, resource, config)

    def config(self, config_id: str) -> heat_values.Config:
        """Return a config that Heat has."""
        return self._heat.config(config_id)

    def repeat(self, run: runs.Run, order: orders.RunOrder) -> runs.Run:
        """Start a run once more; `order` says what is different."""
        if run.standalone:
            raise errors.Refused(
                f'Cannot repeat run {run.id}, because its config was '
                'deleted; start a new run'
            )
        targets_now = self._finder.targets(run.stack_id, run.resource)
        if len(targets_now) != 1:
            raise errors.NotFound(
                f'{run.resource} now has {len(targets_now)} deployments; '
                'trigger the action on one of them'
            )
        inputs = {**run.inputs, **order.inputs}
        return self.start(
            targets_now[0],
            dataclasses.replace(order, inputs=inputs, repeats=run.id),
        )

    # Looking

    def history(self, stack: str | None, wanted: Filter) -> list[runs.Run]:
        """Return runs of a stack as they stand now, the newest first.

        A warning names each that cannot be read.

        :param stack: None for all stacks of the project.
        :raises errors.NotFound: there is no such stack; or no run of it is
            wanted, for there is no such resource, server or action.
        """
        if stack is None:
            stores = [self._records(each) for each in self._heat.stack_ids()]
        else:
            stores = [self._records_at(stack)]
        parts = pools.Pool(attempts=1).each(
            lambda store: self._single(store, wanted), stores
        )
        listed = [run for part, _ in parts for run in part]
        if not wanted.single:
            listed += self._operated.history(
                stack and stores[0].root_stack_id,
                wanted.matches,
                action=wanted.action,
                since=wanted.since,
                limit=wanted.limit,
            )
        listed.sort(key=lambda run: run.started_at, reverse=True)
        listed = listed[: wanted.limit]
        if stack is None:
            return listed
        if not listed and (wanted.resource or wanted.servers or wanted.action):
            self._check(stack, wanted, stores[0], self._places(stack))
        return explained(stores[0], listed, lambda: parts[0][1])

    def _single(
        self, store: records.Records, wanted: Filter
    ) -> tuple[list[runs.Run], list[record_names.Key]]:
        """Return runs of a stack that belong to no operation, and all keys."""
        # What has arrived first: the record of a run is there before that.
        opened, arrivals = ledgers.news(store)
        listed = store.keys()
        self._sweep(store, listed, arrivals)
        settler = self._settler(store)
        places = functools.cache(lambda: self._places(store.root_stack_id))
        result: list[runs.Run] = []
        for key in reversed(listed):
            if wanted.limit is not None and len(result) >= wanted.limit:
                break
            if wanted.action not in (None, key.action):
                continue
            run = ledgers.recorded_run(store, key)
            if run is None:
                continue
            run = settler.settled(run, arrivals, opened)
            run = _named(run, places)
            if wanted.matches(run):
                result.append(run)
        return result, listed

    def show(self, stack: str, run_id: str) -> runs.Run:
        """Return a run as it stands now.

        :raises errors.NotFound: there is no such stack or run.
        :raises errors.UnreadableRun: its record cannot be read.
        """
        if record_names.operation_of(run_id) is not None:
            run = self._operated_run(stack, run_id)
            store = self._records(run.stack_id)
            its = attempts.Attempts(self._tools)
            if not run.ended and (gone := its.gone(run)):
                # Who advances the operation ends it, if a process does.
                run = dataclasses.replace(run, reason=gone)
            else:
                run = its.hinted(run)
        else:
            store = self._records_at(stack)
            run = self._show(store, run_id)
        (run,) = explained(store, [run], store.keys)
        return _named(run, lambda: self._places(stack))

    # Ending

    def await_stop(self, run: runs.Run, seconds: float) -> runs.Run:
        """Wait until the server of a cancelled run has stopped it.

        :returns: the run; without a late result if the server has not
            reacted in that time.
        """
        store = self._records(run.stack_id)
        settler = self._settler(store)
        end = self._tools.monotonic() + seconds
        while run.late is None and self._tools.monotonic() < end:
            self._tools.sleep(1.0)
            # The next poll may go well.
            with contextlib.suppress(errors.Unavailable):
                if run.operation is not None:
                    run = self._operated_run(run.stack_id, run.id)
                elif self._tools.objects(run).has_result():
                    run = settler.settle(run, {run.signal})
        return run

    def cancel(self, stack: str, run_id: str) -> runs.Run:
        """Take a run back from its server.

        :raises errors.AlreadyEnded: it has ended.
        """
        if record_names.operation_of(run_id) is not None:
            run = self._operated_run(stack, run_id)
            if run.ended:
                raise errors.AlreadyEnded(
                    f'Run {run.id} has ended: {run.state.value}'
                )
            self._ask(run, fleet_requests.CANCEL_RUN)
            return self._operated_run(stack, run.id)
        store = self._records_at(stack)
        run = self._read(store, run_id)
        _, arrivals = ledgers.news(store)
        return self._settler(store).cancel(run, arrivals)

    def _ask(self, run: runs.Run, what: str) -> None:
        """Ask who advances an operation for something with one of its runs.

        Of an operation that has ended, this process does it.
        """
        door = fleets.Fleets(self._heat, self._tools)
        door.request(str(run.operation), what, run.id).release()

    def reread(self, run: runs.Run) -> runs.Run | None:
        """Return a run of an operation as it stands now, too."""
        if run.operation is None:
            return super().reread(run)
        return self._operated_run(run.stack_id, run.id)

    def delete(self, stack: str, run_id: str) -> runs.Run | None:
        """Forget a run that has ended, or that cannot be read.

        :returns: the run; None if it cannot be read. It may have
            continued, and was withdrawn from its server.
        :raises errors.Refused: it has not ended.
        """
        if record_names.operation_of(run_id) is not None:
            ended = _require_end(self._operated_run(stack, run_id))
            door = fleets.Fleets(self._heat, self._tools)
            door.check(
                str(ended.operation), fleet_requests.DELETE_RUN, ended.id
            )
            # The record goes last, so that a failure can be retried.
            objects = self._tools.objects(ended)
            objects.discard(objects.result)
            objects.remove()
            self._ask(ended, fleet_requests.DELETE_RUN)
            self._require_deletion(ended)
            return ended
        store = self._records_at(stack)
        run: runs.Run | None = None
        try:
            run = _require_end(self._show(store, run_id))
            if run.config_id is None:
                self._settler(store).clean_up(run, is_last=True)
            store.remove(run.key)
        except errors.UnreadableRun as exc:
            key = record_names.Key(
                run_id=exc.run_id,
                deployment_id=exc.deployment_id,
                action=exc.action,
            )
            attempts.withdraw_marked(self._heat, key)
            attempts.forget_unreadable(store, key)
        if self._is_gone(stack) and not store.keys():
            # As long as there is a stack, an engine may wait for a signal
            # in a container that is empty.
            self._sweep(store, [], store.arrivals())
            store.drop()
        return run

    # What these share

    def _require_deletion(self, run: runs.Run) -> None:
        """Check that an operation no longer has a run.

        :raises errors.Unavailable: the process that advances it has not
            deleted the run.
        """
        with contextlib.suppress(errors.NotFound):
            self._operated.find(run.id)
            raise errors.Unavailable(
                f'Run {run.id} is still listed, because the process that '
                f'advances operation {run.operation} has not deleted it yet. '
                'Delete the run again later'
            )

    def _places(self, stack: str) -> list[stack_tree.Place]:
        """Return the resources of a stack; none if it is deleted."""
        try:
            return stack_tree.find(self._heat, self._finder.root(stack))
        except errors.NotFound:
            return []

    def _check(
        self,
        stack: str,
        wanted: Filter,
        store: records.Records,
        places: list[stack_tree.Place],
    ) -> None:
        """Refuse a filter that nothing can match.

        :raises errors.NotFound: there is no such resource, server or action.
        """
        keys = store.keys()
        if wanted.action is not None:
            known = {key.action for key in keys}
            if places and wanted.action not in known:
                every = self._finder.targets(stack)
                known |= {name for each in every for name in each.actions}
            _require('action', wanted.action, known, stack)
        if wanted.resource is None and not wanted.servers:
            return
        known = {place.resource.physical_id for place in places}
        paths = {place.path for place in places}
        for run in _readable(store, keys):
            known |= {run.deployment_id, run.server_id}
            paths |= {run.resource, run.server_name or run.server_id}
        for path in list(paths):
            # A resource that holds one, too.
            parts = path.split('.')
            known |= {'.'.join(parts[:end]) for end in range(1, len(parts))}
        if wanted.resource is not None:
            _require('resource', wanted.resource, known | paths, stack)
        for server in wanted.servers:
            _require('server', server, known | paths, stack)

    def _show(self, store: records.Records, run_id: str) -> runs.Run:
        opened, arrivals = ledgers.news(store)
        run = self._read(store, run_id)
        return self._settler(store).settled(run, arrivals, opened)

    @staticmethod
    def _sweep(
        store: records.Records,
        keys: abc.Iterable[record_names.Key],
        arrivals: abc.Iterable[str],
    ) -> None:
        """Delete what servers send for runs that are no longer known."""
        known = {key.run_id for key in keys}
        for name in arrivals:
            run_id = record_names.signal_of_run(name)
            if run_id is not None and run_id not in known:
                store.discard(name)

    def _operated_run(self, stack: str, run_id: str) -> runs.Run:
        """Return a run of an operation, if it is one on a stack."""
        operation, member = self._operated.find(run_id)
        run = overview.run_of(operation, member)
        if stack not in (run.stack_name, run.stack_id):
            raise errors.NotFound(f'Run {run.id} is not on stack {stack}')
        its = member_runs.MemberRuns(self._tools, operation.order).attempts
        with contextlib.suppress(errors.NoObject):
            if run.state is runs.State.RUNNING:
                return its.reported(run)
            if run.is_unanswered:
                # It is noted as the operation is advanced, if it is.
                return its.answered_late(run)
        return run

    @staticmethod
    def _read(store: records.Records, run_id: str) -> runs.Run:
        run = store.read(store.find(run_id))
        if run is None:
            raise errors.NotFound(f'Run {run_id} has just been deleted')
        return run

    def _records_at(self, stack: str) -> records.Records:
        """Return the records of a stack, or of one that was deleted.

        :param stack: a name, or an id; that of a root if it is deleted.
        """
        try:
            return self._records(self._finder.root(stack).id)
        except errors.NotFound as exc:
            store = self._records(stack)
            if not targets.STACK_ID.fullmatch(stack):
                raise
            try:
                self._tools.store.head_container(store.container)
            except errors.NoObject:
                raise exc from None
            return store

    def _is_gone(self, stack: str) -> bool:
        try:
            return self._finder.root(stack).gone
        except errors.NotFound:
            return True


def _require_end(run: runs.Run) -> runs.Run:
    """Return a run that has ended.

    :raises errors.Refused: it has not.
    """
    if not run.ended:
        raise errors.Refused(
            f'Run {run.id} is {run.state.value}; cancel it first'
        )
    return run


def _named(
    run: runs.Run, places: abc.Callable[[], list[stack_tree.Place]]
) -> runs.Run:
    """Return a run with the name of its server, as far as it has one.

    :param places: the resources of its root stack, asked for if the record
        does not say.
    """
    if run.server_name is not None:
        return run
    return dataclasses.replace(
        run, server_name=stack_tree.server_names(places()).get(run.server_id)
    )


def _readable(
    store: records.Records, keys: abc.Iterable[record_names.Key]
) -> abc.Iterator[runs.Run]:
    for key in keys:
        with contextlib.suppress(errors.UnreadableRun):
            if (run := store.read(key)) is not None:
                yield run


def _require(
    kind: str, name: str, known: abc.Collection[str], stack: str
) -> None:
    if name not in known:
        raise errors.NotFound(
            f'Stack {stack} has no {kind} {name}, and no run of one'
            + bounds.did_you_mean(name, known)
        )


def explained(
    store: records.Records,
    wanted: abc.Sequence[runs.Run],
    keys: abc.Callable[[], abc.Sequence[record_names.Key]],
) -> list[runs.Run]:
    """Return runs whose reasons say what their servers are busy with.

    :param wanted: the runs; those change that wait for their servers.
    :param keys: lists the runs there are, the oldest first.
    """
    if not any(run.state is runs.State.WAITING for run in wanted):
        return list(wanted)
    there = {run.id: run for run in _readable(store, keys()[-_OTHERS:])}
    # These may be newer than their records.
    there |= {run.id: run for run in wanted}
    return [_explained(run, there.values()) for run in wanted]


# What another run must be to keep a server busy, and what a user is told.
_BUSY: abc.Sequence[tuple[abc.Callable[[runs.Run, runs.Run], bool], str]] = (
    (
        lambda run, other: other.state is runs.State.RUNNING,
        'Its server is busy with {0}',
    ),
    (
        lambda run, other: (
            other.is_unanswered and other.reported_at is not None
        ),
        'Its server may be busy with {0}, which is {1} and has not stopped',
    ),
    (
        lambda run, other: not other.ended and other.id < run.id,
        'Its server runs {0} first',
    ),
)


def _explained(run: runs.Run, there: abc.Iterable[runs.Run]) -> runs.Run:
    if run.state is not runs.State.WAITING:
        return run
    others = [
        other
        for other in sorted(there, key=lambda each: each.id)
        if other.server_id == run.server_id and other.id != run.id
    ]
    for tells, reason in _BUSY:
        for other in others:
            if tells(run, other):
                busy = reason.format(
                    f'run {other.id} ({other.action} on {other.resource})',
                    other.state.value,
                )
                return dataclasses.replace(run, reason=f'{run.reason}. {busy}')
    return run
