# SPDX-License-Identifier: Apache-2.0
"""The runs of root stacks that are known by their ids.

It is what an engine needs, which has its stacks at hand; `run_service` finds
them by name as well.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import attempts
from heat_plugins.runs import runs
from heat_plugins.runs import services
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.follow import logs
from heat_plugins.runs.follow import settling
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import targets

LOG = foreign.logger(__name__)


class Ledger:
    """Starts runs, and knows what has become of them."""

    def __init__(self, tools: services.Services) -> None:
        self._tools = tools = tools.with_cached_signers()
        self._attempts = attempts.Attempts(tools)
        self._logs: dict[str, logs.RunLogs] = {}

    def start(
        self, target: targets.Target, order: orders.RunOrder
    ) -> runs.Run:
        """Start a run.

        :returns: the run; it has ended if another process ended it meanwhile.
        :raises errors.Refused: there is no such action, its inputs do not
            fit, or it runs already.
        :raises errors.NotFound: the stack is gone, or the deployment goes
            meanwhile.
        :raises errors.Error: Heat did not take it.
        :raises heat_plugins.errors.ServiceError: the object store
            did not.
        """
        target = targets.with_own_config(self._tools.heat, target)
        # Before anything is asked of the object store.
        orders.check(target, order)
        run = self._start(target, order)
        # It has been started, whatever becomes of others.
        with contextlib.suppress(errors.ServiceError):
            self.forget_surplus(target.stack_id)
        return run

    def latest_of(
        self,
        root_stack_id: str,
        deployment_ids: abc.Collection[str],
        limit: int,
    ) -> dict[str, list[runs.Run]]:
        """Return runs of deployments as they stand, the newest first.

        :param limit: the most of each.
        """
        store = self._records(root_stack_id)
        listed: dict[str, list[record_names.Key]] = {
            each: [] for each in deployment_ids
        }
        for key in store.keys():  # noqa: SIM118, no mapping
            if key.deployment_id in listed:
                listed[key.deployment_id].append(key)
        if not any(listed.values()):
            return {each: [] for each in listed}
        opened, arrivals = news(store)
        settler = self._settler(store)
        newest = [
            key for its in listed.values() for key in its[: -limit - 1 : -1]
        ]
        recorded = pools.Pool(attempts=1).each(
            lambda key: recorded_run(store, key), newest
        )
        latest: dict[str, list[runs.Run]] = {each: [] for each in listed}
        for key, run in zip(newest, recorded, strict=True):
            if run is not None:
                latest[key.deployment_id].append(
                    settler.settled(run, arrivals, opened)
                )
        return latest

    def outputs(self, run: runs.Run) -> abc.Mapping[str, Any]:
        """Return the outputs of a run, long ones whole."""
        return self._tools.objects(run).outputs(run)

    def log(self, run: runs.Run) -> logs.Reader:
        """Return what reads the output of a run until it ends."""
        objects = self._tools.objects(run)
        # Of the runs of a stack, or of an operation.
        prefix = objects.log.rstrip('/').rpartition('/')[0] + '/'
        source = self._logs.setdefault(
            objects.container + '/' + prefix,
            logs.RunLogs(
                self._tools.store,
                objects.container,
                prefix,
                self._tools.monotonic,
            ),
        )
        return logs.Reader(source, objects.log)

    def tail(
        self,
        run: runs.Run,
        *,
        show: abc.Callable[[bytes], None],
        note: abc.Callable[[str], None],
    ) -> logs.Tail:
        """Return what follows the output of a run; see there."""
        return logs.Tail(
            self.log(run),
            self.outputs,
            show=show,
            note=note,
            clock=self._tools.monotonic,
            sleep=self._tools.sleep,
        )

    def waiter(
        self,
        root_stack_id: str,
        watch: settling.Watch = lambda run: None,
        tick: abc.Callable[[], None] = lambda: None,
        pace: settling.Pace | None = None,
        everything: bool = False,
        note: abc.Callable[[str], None] = lambda line: None,
    ) -> settling.Waiter:
        """Return what waits for runs of a root stack; see there."""
        store = self._records(root_stack_id)
        return settling.Waiter(
            self._settler(store),
            store,
            watch=watch,
            tick=tick,
            pace=pace,
            everything=everything,
            note=note,
            reread=self.reread,
            clock=self._tools.monotonic,
            sleep=self._tools.sleep,
        )

    def reread(self, run: runs.Run) -> runs.Run | None:
        """Return a run as it is recorded now; None if it is not."""
        return self._records(run.stack_id).read(run.key)

    def forget_surplus(self, root_stack_id: str) -> None:
        """Delete the records that are more than retention allows."""
        store = self._records(root_stack_id)
        opened, _ = news(store)
        for key in self._tools.keep.surplus(
            store.keys(), opened, self._tools.clock()
        ):
            store.remove(key)

    def _start(
        self, target: targets.Target, order: orders.RunOrder
    ) -> runs.Run:
        # What was found may be long ago, and the container of a stack that
        # has gone would be made again, for good.
        if self._tools.heat.stack(target.stack_id).gone:
            raise errors.NotFound(
                f'Stack {target.stack_name} is deleted or being deleted'
            )
        now = self._tools.clock()
        store = self._records(target.stack_id)
        known, timeout = self._tools.known_hooks, order.timeout
        timeout = timeout or target.timeout
        run = runs.Run(
            id=record_names.new_run_id(now),
            **{
                **vars(target.with_action(order.action, known)),
                'timeout': timeout or runs.DEFAULT_TIMEOUT,
                'delivery_timeout': (
                    order.delivery_timeout or target.delivery_timeout
                ),
            },
            action=order.action,
            state=runs.State.STARTING,
            reason='heat-plugins is delivering it to the server',
            started_at=int(now),
            started_by=self._tools.who,
            inputs=dict(order.inputs),
            declared=[
                {
                    'name': output['name'],
                    'error_output': bool(output.get('error_output')),
                }
                for output in target.config.outputs
            ],
            hidden=hidden_inputs.names(target.config.options),
            repeats=order.repeats,
            standalone=target.standalone,
            guarded=target.guarded,
        )
        # A run is announced in the container, which this makes if need be.
        self._tools.sign(store.container)
        exclusions.claim(self._tools, store, run)
        return self._hand_over(store, run, target)

    def _hand_over(
        self,
        store: records.Records,
        run: runs.Run,
        target: targets.Target,
    ) -> runs.Run:
        limit = self._tools.keep.log_limit
        try:
            run = self._attempts.deliver(
                run, lambda: self._attempts.draft(run, target, limit)
            )
            ended = _ended(store, run)
            if ended is None:
                store.write(run)
                if store.is_open(run.key):
                    return run
                ended = _ended(store, run)
            if ended is None:
                # Nor may who revoked the announcement have seen what we have
                # made since; see `attempts`.
                raise errors.NotFound(
                    f'Deployment {run.resource} or its stack was deleted '
                    f'while {run.action} started on it'
                )
            # Who cancelled it may not have seen what we have made since.
            self._attempts.withdraw(run)
            store.close(run.key)
        except BaseException:
            self._undo(store, self._attempts.known(run))
            raise
        return ended

    def _undo(self, store: records.Records, run: runs.Run) -> None:
        """Undo a run that was not delivered, as far as possible."""
        try:
            try:
                self._attempts.withdraw(run)
            except Exception:
                # The next process that reads it withdraws it by its record.
                if _ended(store, run) is None:
                    store.write(self._not_started(run))
                raise
            if _ended(store, run) is None:
                store.remove(run.key)
            store.close(run.key)
        except Exception as exc:
            LOG.warning(
                'Cannot clean up after run %(run)s, which did not start: '
                '%(error)s',
                {'run': run.id, 'error': exc},
            )

    def _not_started(self, run: runs.Run) -> runs.Run:
        """Return a run as it ends that could not be undone."""
        ended = self._attempts.cancelled(run, 'It did not start')
        if run.config_id is None:
            return dataclasses.replace(ended, state=runs.State.FAILED)
        # Its server may have it all the same, and is told to stop.
        return ended

    def _records(self, root_stack_id: str) -> records.Records:
        return records.Records(self._tools.store, root_stack_id)

    def _settler(self, store: records.Records) -> settling.Settler:
        return settling.Settler(self._tools, store)


def news(store: records.Records) -> tuple[set[str], abc.Collection[str]]:
    """Return the ids of the runs that are not over, and what has arrived."""
    try:
        opened = {key.run_id for key in store.opened()}
        return opened, store.arrivals()
    except errors.NoObject:
        return set(), set()


def recorded_run(
    store: records.Records, key: record_names.Key
) -> runs.Run | None:
    """Return a run as it is recorded; None if it is gone, or unreadable."""
    try:
        return store.read(key)
    except errors.UnreadableRun as exc:
        LOG.warning('%s', exc)
        return None


def _ended(store: records.Records, run: runs.Run) -> runs.Run | None:
    """Return a run as another process has ended it, if one has."""
    fresh = store.read(run.key)
    return fresh if fresh is not None and fresh.ended else None
