# SPDX-License-Identifier: Apache-2.0
"""The door to operations, for commands, workflows and engines alike."""

from collections import abc
import contextlib
import dataclasses
import itertools
import json
import secrets
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.objectstore import stores
from heat_plugins.objectstore import wire
from heat_plugins.runs import orchestration
from heat_plugins.runs import services
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import followers
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import notice_orders
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders

LOG = foreign.logger(__name__)

#: How many finished operations of an action are kept.
KEPT = record_names.Retention(number=100)

# The most operations that are forgotten as one is created; the next one
# continues.
_FORGOTTEN = 20

#: The same for ticks. One of `_TICKS` does that: it reads the heads of all.
FORGOTTEN_AT_TICKS = 100
_TICKS = 50

# Requests, seconds and bytes for that: an engine serves others, too, and
# anybody who may write into the container chooses what is read.
_REQUESTS, _SECONDS, _SIZE = 20_000, 300.0, 32 * 1024 * 1024

# Seconds to wait until who leads an operation has followed a request.
_PATIENCE = 15.0

#: The beginning of the container's name.
CONTAINER = 'heat-plugins-results'

_SUFFIXES = ('html', 'json')
_DAY = 86400


def is_tick_to_tidy() -> bool:
    """Say whether a tick calls `Fleets.tidy`, as some do for the others.

    Who creates the operation of a tick has to release it first.
    """
    return secrets.randbelow(_TICKS) == 0


def results(
    operation: operations.Operation, now: float
) -> abc.Mapping[str, object]:
    """Return an operation and its targets in JSON's types, without inputs."""
    shown = overview.of(operation, now)
    del shown['inputs'], shown['script']
    members = range(len(operation.attempts))
    return {
        **shown,
        'results': [overview.target(operation, member) for member in members],
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class Filter:
    """Which operations are wanted; None stands for any.

    :ivar stack: the name or ID of a stack that it has targets in.
    :ivar since: those that ended before it are not wanted, in seconds since
        the epoch.
    :ivar limit: the most, the newest.
    """

    state: str | None = None
    action: str | None = None
    stack: str | None = None
    since: float | None = None
    limit: int | None = None

    def matches(self, head: operations.Head) -> bool:
        return (
            self.state in (None, head.state and head.state.value)
            and self.action in (None, head.action)
            and (self.stack is None or self.is_on(self.stack, head))
            and (
                self.since is None
                or head.ended_at is None
                or head.ended_at >= self.since
            )
        )

    @staticmethod
    def is_on(stack: str, head: operations.Head) -> bool:
        """Say whether an operation has targets in a stack."""
        return stack in head.stacks or stack in head.stack_ids


class Fleets:
    """The operations of a project.

    :param keep: how many that have ended are kept.
    """

    def __init__(
        self,
        heat: orchestration.Deploying,
        tools: services.Services,
        keep: record_names.Retention = KEPT,
    ) -> None:
        self._heat = heat
        self._tools = tools
        self._records = tools.records
        self._keep = keep
        self._shared = stores.OwnContainer(self._records.store, CONTAINER)

    @classmethod
    def with_own_key(
        cls,
        heat: orchestration.Deploying,
        store: stores.ObjectStore,
        *,
        who: str,
        keep: record_names.Retention = KEPT,
        pool: pools.Pool | None = None,
        batches: services.Batching | None = None,
        reaches: operation_records.Reaches | None = None,
    ) -> 'Fleets':
        """Return the operations of a store's project.

        The container has a key of its own: no stack goes with it.

        :param batches: see `services.Services`.
        :param reaches: see `services.Services.of`.
        """
        tools = services.Services.of(
            heat, store, pool, reaches, who=who, batches=batches
        )
        return cls(heat, tools, keep)

    @property
    def pool(self) -> pools.Pool:
        """For many requests at a time."""
        return self._records.pool

    def now(self) -> float:
        """Return the time, in seconds since the epoch."""
        return self._tools.clock()

    def create(
        self,
        chosen: fleet_targets.Chosen,
        limits: operations.OperationLimits,
        order: orders.RunOrder,
        config: heat_values.Config | None = None,
        log_limit: int | None = None,
        operation_id: str | None = None,
        is_alone: abc.Callable[[], bool] = lambda: False,
        notify: notice_orders.NoticeOrder | None = None,
    ) -> advancing.Advancer:
        """Record an operation; return what leads it.

        Nothing has started; `advancing.Advancer.step` starts it.

        :param log_limit: see `operations.OperationOrder`.
        :param operation_id: of one that several processes may create, see
            `record_names.id_of_tick`; None for a new one.
        :param is_alone: whether no other process has started with it; see
            `advancing.Advancer.claim`.
        :param notify: whom engines tell of its end.
        :raises errors.Refused: no engine does.
        :raises errors.Exists: another process has created it.
        :raises errors.Unavailable: one does so.
        """
        # The response tells the time of the object store.
        _ = self._records.container
        now = self._tools.clock()
        ordered = operations.OperationOrder(
            id=operation_id or record_names.new_run_id(now),
            action=order.action,
            limits=limits,
            members=tuple(
                each.with_action(order.action, self._tools.known_hooks)
                for each in chosen.targets
            ),
            created_at=record_names.started_at(operation_id)
            if operation_id
            else int(now),
            created_by=self._tools.who,
            targets=chosen.description,
            inputs=dict(order.inputs),
            config=None if config is None else dataclasses.asdict(config),
            log_limit=log_limit,
            notify=notify.to if notify else '',
        )
        seal = self._records.bind(ordered)
        advancer = followers.Follower(
            self._tools, ordered, seal, chosen=chosen.targets
        )
        try:
            if operation_id is not None:
                advancer.claim(is_alone)
            if notify is not None:
                notice_orders.watch(self._heat, ordered, notify)
            self._record(advancer, ordered, seal)
        except BaseException as exc:
            advancer.release()
            if operation_id is None and not isinstance(exc, errors.Failed):
                # No process looks for it.
                with contextlib.suppress(errors.Error):
                    self._records.delete(ordered.id)
            raise
        if operation_id is None:
            self.tidy()
        return advancer

    def _record(
        self,
        advancer: advancing.Advancer,
        order: operations.OperationOrder,
        seal: binding.Binding,
    ) -> None:
        """Record a new operation, or let no engine find it.

        :raises errors.Failed: it is not recorded, and an engine may find it.
        """
        registered = binding.register(self._heat, order, seal)
        try:
            advancer.begin(registered)
        except BaseException as exc:
            self._withdraw(order.id, seal, exc)
            raise

    def _withdraw(
        self,
        operation_id: str,
        seal: binding.Binding,
        cause: BaseException,
    ) -> None:
        try:
            binding.forget(self._heat, operation_id, seal)
        except errors.Error as exc:
            raise errors.Failed(
                f'Operation {operation_id} may start nevertheless: it was not '
                f'recorded to the end ({cause}), and Heat did not forget it '
                f'({exc}). Before you repeat it, see "openstack software '
                f'deployment operation show {operation_id}"'
            ) from cause

    def tidy(self, most: int = _FORGOTTEN) -> None:
        """Forget what is surplus; a failure is only logged.

        :param most: how many operations; the next ones continue.
        """
        budget = wire.Budget(
            'the operations of a project',
            requests=_REQUESTS,
            seconds=_SECONDS,
            size=_SIZE,
            clock=self._tools.monotonic,
        )
        tools = dataclasses.replace(
            self._tools, records=self._records.within(budget)
        )
        try:
            Fleets(self._heat, tools, self._keep).forget_surplus(most)
        except Exception as exc:
            LOG.warning(
                'Cannot delete the operations that are more than are kept; '
                'the next operation retries: %s',
                exc,
            )

    def history(self, wanted: Filter) -> list[operations.Head]:
        """Return the heads of operations, the newest first."""
        heads = filter(wanted.matches, self._records.heads.newest())
        return list(itertools.islice(heads, wanted.limit))

    def notify_error(self, operation: operations.Operation) -> str:
        """Return why the last notice of an operation was given up, if so."""
        if not operation.order.notify:
            return ''
        return notice_orders.error(self._heat, operation.id)

    def has_stack(self, stack: str) -> bool:
        """Say whether an operation has targets in a stack, or had."""
        heads = self._records.heads.newest()
        return any(Filter.is_on(stack, head) for head in heads)

    def show(self, operation_id: str) -> operations.Operation:
        """Return an operation as it is recorded.

        :param operation_id: the id, or the beginning or the end of it.
        :raises errors.NotFound: there is none, or more than one.
        """
        return self._show(self._records.find(operation_id))

    def _show(self, operation_id: str) -> operations.Operation:
        return self._records.show(self._seal(operation_id))

    def _seal(self, operation_id: str) -> binding.Seal:
        """Return what proves the records of an operation.

        :raises errors.Tampered: they are not what Heat knows of it.
        """
        seal = binding.seal_of(self._heat, operation_id)
        if isinstance(seal, binding.Former):
            binding.check(self._heat, self._records.outline(seal), seal)
        return seal

    def outline(self, operation_id: str) -> operations.Operation:
        """Return an operation without its attempts.

        :param operation_id: the whole ID: no listing, which may lag, tells
            whether it is there.
        :raises errors.NotFound: it is not.
        """
        return self._records.outline(self._seal(operation_id))

    def is_recorded(self, operation_id: str) -> bool:
        """Say whether an operation was recorded to the end.

        :param operation_id: the whole ID.
        """
        head = self._records.heads.read(operation_id)
        return head is not None and bool(self._heat.deployments(operation_id))

    def advancer(
        self, operation_id: str, seal: binding.Seal | None = None
    ) -> advancing.Advancer:
        """Return what advances an operation if no other process does.

        :param seal: what proves its records, if that is known; the ID is
            whole then.
        """
        seal = seal or self._seal(self._records.find(operation_id))
        return followers.Follower(self._tools, self._records.order(seal), seal)

    def is_led(self, operation_id: str) -> bool:
        """Say whether a process advances an operation, with few requests.

        :param operation_id: the whole ID, as a user may have made it up.
        """
        return layout.is_operation_id(operation_id) and self._tools.is_led(
            operation_id
        )

    def recorded(self, seal: binding.Seal) -> advancing.Advancer:
        """Return what advances an operation that a list shows.

        :param seal: of that operation, of whatever ID a user has made up.
        :raises errors.NotFound: there is no such operation, or it was not
            recorded to the end.
        """
        operation_id = seal.operation_id
        is_id = layout.is_operation_id(operation_id)
        if not is_id or self._records.heads.read(operation_id) is None:
            raise errors.NotFound(
                f'There is no operation {bounds.shortened(operation_id)}'
            )
        return self.advancer(operation_id, seal)

    def advance_for(
        self, advancer: advancing.Advancer, seconds: float
    ) -> None:
        """Advance an operation for a while, if no other process does."""
        until = self._tools.monotonic() + seconds
        advancer.step()
        while advancer.is_leading and self._tools.monotonic() < until:
            self._tools.sleep(min(advancer.pause, advancing.POLL))
            advancer.step()

    def request(
        self, operation_id: str, what: str, only: str | None = None
    ) -> advancing.Advancer:
        """Pause, resume, cancel or retry an operation.

        :param only: see `operations.Request`.
        :returns: what advances it; it has followed the request, or who leads
            the operation will.
        :raises errors.Refused: it makes no sense now.
        """
        seal, before = self._permitted(operation_id, what, only)
        now = fleet_requests.next_time(before, self._tools.clock())
        wanted = {'do': what, 'who': self._tools.who}
        if only is not None:
            wanted['only'] = only
        name = self._records.request(seal, now, **wanted)
        advancer = followers.Follower(self._tools, before.order, seal)
        until = self._tools.monotonic() + _PATIENCE
        while self._tools.monotonic() < until:
            if name in advancer.step().control.handled:
                break
            self._tools.sleep(advancing.POLL)
        return advancer

    def check(self, operation_id: str, what: str, only: str) -> None:
        """Check whether `request` would be permitted now.

        :raises errors.Refused: it makes no sense now.
        """
        self._permitted(operation_id, what, only)

    def _permitted(
        self, operation_id: str, what: str, only: str | None
    ) -> tuple[binding.Seal, operations.Operation]:
        seal = self._seal(self._records.find(operation_id))
        operation = self._records.show(seal)
        if refusal := fleet_requests.refusal(operation, what, seal, only):
            raise errors.Refused(
                f'Cannot {what} operation {operation.id}: {refusal}'
            )
        return seal, operation

    def share(
        self, operation: operations.Operation, page: str, days: int
    ) -> dict[str, Any]:
        """Copy the results of an operation; replace an earlier copy.

        :param page: a page of HTML, without inputs.
        :returns: the container and the objects of the copy, and when it
            expires, in seconds since the epoch.
        :raises errors.Refused: the project is not known.
        """
        store, now = self._records.store, self.now()
        if store.project_id is None:
            raise errors.Refused(
                'The object store does not say which project this is, so '
                'nothing can be shared with its users'
            )
        # Any role will do; listing the container, too, is reading.
        readers = {'X-Container-Read': f'{store.project_id}:*'}
        store.put_container(self._shared.name, readers)
        names = [f'{operation.id}.{suffix}' for suffix in _SUFFIXES]
        contents = page, json.dumps(results(operation, now), indent=2)
        for name, text in zip(names, contents, strict=True):
            store.put_object(
                self._shared.name, name, text.encode(), lifetime=days * _DAY
            )
        return {
            'container': self._shared.name,
            'objects': names,
            'expires_at': int(now) + days * _DAY,
        }

    def delete(self, operation_id: str, *, force: bool = False) -> str:
        """Forget an operation that has ended; return its id.

        :param force: also one whose record cannot be read.
        :raises errors.Refused: it has not ended.
        """
        whole_id = self._records.find(operation_id)
        try:
            operation = self._show(whole_id)
        except errors.Error:
            if not force:
                raise
        else:
            if not operation.ended:
                raise errors.Refused(
                    f'Operation {whole_id} is '
                    f'{operation.control.phase.value}; cancel it first'
                )
        store = self._records.store
        for suffix in _SUFFIXES:
            store.delete_object(self._shared.name, f'{whole_id}.{suffix}')
        with contextlib.suppress(errors.NoObject, errors.Conflict):
            store.delete_container(self._shared.name)
        self.forget(whole_id)
        return whole_id

    def forget(self, operation_id: str) -> None:
        """Delete all that Heat and the object store have of an operation."""
        # Who is interrupted can find it by its records.
        binding.forget(self._heat, operation_id)
        self._records.delete(operation_id)

    def forget_surplus(self, most: int = _FORGOTTEN) -> None:
        """Delete the operations that are more than retention allows.

        :param most: how many of them, the oldest first.
        """
        if len(self._records.heads.ids()) <= self._keep.number:
            return
        listed, live, ended = [], set(), {}
        # Of each no more is kept than this takes.
        for head in self._records.heads.newest():
            listed.append(
                record_names.Key(
                    run_id=head.id, deployment_id='', action=head.action
                )
            )
            if not head.ended:
                live.add(head.id)
            elif head.ended_at is not None:
                ended[head.id] = head.ended_at
        surplus = self._keep.surplus(listed, live, self._tools.clock(), ended)
        for key in surplus[: -most - 1 : -1]:
            if self._is_over(key.run_id):
                self.forget(key.run_id)

    def _is_over(self, operation_id: str) -> bool:
        """Say whether an operation has ended, whatever its head says."""
        try:
            return self.outline(operation_id).ended
        except errors.NotFound:
            # All but the head has been deleted.
            return not self._heat.deployments(operation_id)
        except errors.Unavailable:
            raise
        except errors.Error as exc:
            LOG.warning('Cannot forget operation %s: %s', operation_id, exc)
            return False
