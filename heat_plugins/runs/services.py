# SPDX-License-Identifier: Apache-2.0
"""What it takes to run actions in a project."""

from collections import abc
import dataclasses
import functools
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.configs import hooks
from heat_plugins.deployments import deliveries
from heat_plugins.objectstore import keys
from heat_plugins.objectstore import lease
from heat_plugins.objectstore import stores
from heat_plugins.runs import orchestration
from heat_plugins.runs import run_objects
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import targets

#: The digests to sign with, the most wanted first.
_DIGESTS = ('sha256', 'sha512', 'sha1')


#: Targets by deployment, or why one does not take its action now.
Derived = abc.Mapping[str, targets.Target | errors.Error]


class Batching(Protocol):
    """What an engine does for many members of an operation at once.

    The real one is `engine.runs.member_batches`. Each may raise
    `errors.Unavailable`.
    """

    def refusals(
        self, order: operations.OperationOrder, members: abc.Collection[int]
    ) -> abc.Mapping[int, str]:
        """Return why members get no run, by their number.

        An engine acts with the credentials of a stack. What a user may do
        Heat's API decides.
        """

    def read(
        self, deployment_ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        """Read deployments by ID; those that are gone are left out."""

    def existing(
        self, deployment_ids: abc.Collection[str]
    ) -> abc.Collection[str]:
        """Return which deployments there are, or were withdrawn.

        Heat withdraws that of an action that times out, and creates it again
        for the next. Its resource is there meanwhile.
        """

    def withdrawn(
        self,
        members: abc.Sequence[runs.RunTarget],
        wanted: orders.RunOrder,
    ) -> Derived:
        """Return members whose deployments were withdrawn as targets.

        One is left out if Heat no longer has its resource.
        """

    def deliver(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Give servers their runs, each at most once.

        :raises errors.Unavailable: some may have theirs, perhaps by another
            process.
        :raises errors.ServiceError: none has, such as for a limit of the
            project.
        """

    def withdraw_runs(self, ended: abc.Sequence[runs.Run]) -> None:
        """Take runs from their servers, and delete what Heat has of them.

        Again where another process has died meanwhile.

        :param ended: whose deployments and configs are known.
        """


@dataclasses.dataclass(frozen=True, kw_only=True)
class Services:
    """The services of a project, as one caller uses them.

    :ivar heat: the way to Heat, with the credentials of the caller.
    :ivar records: the records of operations, in the project's object store.
    :ivar who: the name of the caller, for the records.
    :ivar sign: returns what signs the URLs of a container, and makes it if
        need be.
    :ivar keep: what is kept of finished runs.
    :ivar known_hooks: the hooks that servers are known to have.
    :ivar batches: None where only Heat's API is there.
    :ivar clock: seconds since the epoch; `monotonic` is for how long
        something takes.
    """

    heat: orchestration.Deploying
    records: operation_records.OperationRecords
    who: str
    sign: abc.Callable[[str], keys.Signer]
    keep: record_names.Retention = dataclasses.field(
        default_factory=record_names.Retention
    )
    known_hooks: abc.Collection[str] = hooks.HOOKS
    batches: Batching | None = None
    clock: abc.Callable[[], float] = time.time
    monotonic: abc.Callable[[], float] = time.monotonic
    sleep: abc.Callable[[float], None] = time.sleep

    @classmethod
    def of(
        cls,
        heat: orchestration.Deploying,
        store: stores.ObjectStore,
        pool: pools.Pool | None = None,
        reaches: operation_records.Reaches | None = None,
        **options: Any,
    ) -> 'Services':
        """Return them with the clock of a store, and the keys that it has.

        A container gets a key of its own: no stack goes with it.

        :param pool: for many requests at a time.
        :param reaches: what a process remembers of operations.
        :param options: fields; None stands for the default.
        """
        keeper = keys.KeyKeeper(
            store, secret=None, digests=_DIGESTS, overlap=None
        )
        given = {k: v for k, v in options.items() if v is not None}
        return cls(
            heat=heat,
            records=operation_records.OperationRecords(
                store, pool, reaches=reaches
            ),
            **{'sign': keeper.ensure, 'clock': store.now, **given},
        )

    def with_cached_signers(self) -> 'Services':
        """Return the same for what signs often, in a short time."""
        return dataclasses.replace(self, sign=functools.cache(self.sign))

    @property
    def store(self) -> stores.ObjectStore:
        """The project's object store."""
        return self.records.store

    def objects(self, run: runs.Run) -> run_objects.RunObjects:
        """Return the objects of a run, wherever they lie.

        Those of an operation's run are in the container of the project, others
        in that of the stack.
        """
        if run.operation is not None:
            return self.records.objects(*layout.attempt_of(run.id))
        return records.Records(self.store, run.stack_id).objects(run.key)

    def leadership(self, operation_id: str) -> lease.Lease:
        """Return the leadership of an operation."""
        return lease.Lease(
            lease.objects(
                self.store, self.records.container, layout.leads(operation_id)
            ),
            who=self.who,
            clock=self.clock,
            monotonic=self.monotonic,
            sleep=self.sleep,
        )

    def is_led(self, operation_id: str) -> bool:
        """Say whether a process leads an operation, by its lease alone."""
        epoch = self.records.epoch(operation_id, certain=False)
        return epoch > 0 and self.leadership(operation_id).is_held(epoch)
