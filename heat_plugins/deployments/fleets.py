# SPDX-License-Identifier: Apache-2.0
"""What an action on the members of a group deals with, and how it tells."""

from collections import abc
import dataclasses
from typing import Protocol

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.configs import hooks
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import members
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher

# The most reasons of failed members that the reason of a group has.
_REASONS = 3


class Fleet(Protocol):
    """The servers and rows of a group, and the signals of its stack.

    Each may raise `errors.ServiceError`; `errors.Unavailable` if the database
    does not answer, which may have written the change all the same.
    """

    def derive(
        self, tasks: abc.Sequence[members.Task]
    ) -> abc.Sequence[deliveries.Delivery | members.Refusal]:
        """Return what servers are given, with signed URLs; make nothing."""

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write configs and rows, all or none; delete unused configs."""

    def push(self, server_ids: abc.Collection[str]) -> None:
        """Write to servers' metadata what the rows say."""

    def tell(self, action: str, reason: str) -> None:
        """Write an event of an action that is in progress."""

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, deliveries.Row]:
        """Read rows; those that are gone are left out."""

    def fetch(
        self, names: abc.Sequence[str]
    ) -> abc.Sequence[bytes | errors.ServiceError]:
        """Fetch signals, some at a time."""

    def discard(self, names: abc.Sequence[str]) -> None:
        """Delete signals that were taken, before long."""

    def request_stop(self, names: abc.Sequence[str]) -> None:
        """Tell servers to stop what signals are of; what fails is logged."""

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.Outcome]
    ) -> abc.Collection[watcher.Ticket]:
        """End what still waits for just that; return whose outcome counts."""

    def begin(self, tickets: abc.Collection[watcher.Ticket]) -> None:
        """Write that servers have started."""

    def detach(self, reasons: abc.Mapping[str, str | None]) -> None:
        """Take rows from their servers; fail those that come with a reason.

        The servers' metadata must be pushed after that.
        """

    def key_holds(self, signer: keys.Signer) -> bool:
        """Say whether URLs of a signer still work."""

    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete rows that no server has, and the configs of none."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Pace:
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
    known_hooks: abc.Collection[str] = hooks.HOOKS


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
        members_ = wording.counted(self.all, 'member')
        parts = [f'{self.complete} of {members_} complete']
        for number, what in (
            (self.failed, 'failed'),
            (self.waiting, 'waiting for their servers'),
            (self.started, 'of these started'),
        ):
            if number:
                parts.append(f'{number} {what}')
        return f'{self.action}: {", ".join(parts)}'


def failure(
    failures: abc.Mapping[str, str], members_: int, waiting: int = 0
) -> str:
    """Say which members failed, and why.

    :param failures: reasons by key; at least one.
    :param members_: how many there are.
    :param waiting: how many have not answered.
    """
    reasons = wording.lines(
        (
            wording.Failure(name=key, reason=why)
            for key, why in sorted(failures.items())
        ),
        'see the attribute "members"',
        noun='member',
        limit=_REASONS,
    )
    total = wording.counted(members_, 'member')
    text = f'{len(failures)} of {total} failed. {"; ".join(reasons)}'
    if waiting:
        text += (
            f'. {waiting} have not answered; the next update waits for them'
        )
    return text
