# SPDX-License-Identifier: Apache-2.0
"""The port of an action to its servers, their rows and their signals.

A `Fleet` is the server of one deployment, or the servers of a group. Its real
implementations are in `heat_plugins.engine`.
"""

from collections import abc
import dataclasses
from typing import Protocol

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import plan_tasks
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher


@dataclasses.dataclass(frozen=True, kw_only=True)
class Withdrawal:
    """What to take from a server.

    :ivar config_id: of the action that must still be in progress.
    :ivar reason: why the action fails; None if the row goes, whatever it
        says.
    """

    deployment_id: str
    server_id: str
    config_id: str
    reason: str | None = None

    @classmethod
    def of_row(
        cls, row: heat_values.DeploymentRow, reason: str | None = None
    ) -> 'Withdrawal':
        """Return what takes from its server what a row says."""
        return cls(
            deployment_id=row.id,
            # A row that was taken from its server names another.
            server_id=plan_tasks.Member.of_row(row).server_id,
            config_id=row.config.id,
            reason=reason,
        )


class Answers(Protocol):
    """How servers answer, and their rows; see `Fleet` for what they raise."""

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        """Read rows; those that are gone are left out."""

    def fetch(
        self, names: abc.Sequence[str]
    ) -> abc.Sequence[bytes | errors.ServiceError]:
        """Fetch signals, some at a time."""

    def discard(self, names: abc.Sequence[str]) -> None:
        """Delete signals that were taken, before long."""

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        """End what still waits for just that; return whose outcome counts."""

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        """Write that servers have started."""


class Fleet(Answers, Protocol):
    """Servers, their rows, and the signals and the action of their stack.

    Each may raise `errors.ServiceError`; `errors.Unavailable` if the database
    does not answer, which may have written the change all the same.
    """

    @property
    def label(self) -> str:
        """What the log calls the resource, with its names and IDs."""

    def server_name(self, member: plan_tasks.Member) -> str:
        """Return what people call the server of a member."""

    # What servers are given

    def derive(
        self, tasks: abc.Sequence[plan_tasks.Task]
    ) -> abc.Sequence[deliveries.Delivery | plan_tasks.Refusal]:
        """Return what servers are given, and how each is to answer.

        :raises failures.NoAnswer: no transport can be used.
        """

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and rows, all or none; delete unused configs."""

    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write to servers' metadata what the rows say."""

    def request_stop(self, names: abc.Sequence[str]) -> None:
        """Tell servers to stop what signals are of; what fails is logged."""

    def withdraw(
        self, withdrawals: abc.Sequence[Withdrawal]
    ) -> abc.Collection[str]:
        """Take actions from their servers.

        :returns: the ids of the deployments whose action had not ended.
        """

    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete rows that no server has, and the configs of none."""

    def gone(self, server_ids: abc.Collection[str]) -> abc.Collection[str]:
        """Return which servers no longer exist; doubt counts as no."""

    # How they answer

    def poll_queue(
        self, delivery: deliveries.Delivery
    ) -> heat_values.DeploymentRow | None:
        """Settle a deployment by what lies in its queue; return its row."""

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer still work."""

    # The stack

    def tell(self, action: str, reason: str) -> None:
        """Write an event of an action in progress, and log it; never fail."""

    def is_cancelled(self, since: float) -> bool:
        """Say whether the stack's action was cancelled or is rolled back.

        :param since: when the action began, by `time.monotonic`.
        """

    def renew_access(self) -> None:
        """Take other stored credentials, if the present ones were refused."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class RolloutPace:
    """How fast an action goes from member to member.

    :ivar batch: members at a time; None: all.
    :ivar pause: seconds between two batches.
    :ivar allowed: how many members may fail.
    :ivar timeout: seconds for a member to answer; None: as the stack has.
    :ivar delivery_timeout: seconds for it to report the start; None: it
        need not.
    :ivar budget: seconds for which the object store or the database may fail.
    :ivar known_hooks: those that servers are known to have.
    """

    batch: int | None = None
    pause: float = 0.0
    allowed: int = 0
    timeout: float | None = None
    delivery_timeout: float | None = None
    budget: float = 300.0
    known_hooks: abc.Collection[str] = actions.HOOKS


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """How far an action is, in members."""

    action: str
    all: int
    complete: int
    failed: int
    waiting: int
    started: int

    def __str__(self) -> str:
        members = wording.counted(self.all, 'member')
        parts = [f'{self.complete} of {members} complete']
        for number, what in (
            (self.failed, 'failed'),
            (self.waiting, 'waiting for their servers'),
            (self.started, 'of these started'),
        ):
            if number:
                parts.append(f'{number} {what}')
        return f'{self.action}: {", ".join(parts)}'
