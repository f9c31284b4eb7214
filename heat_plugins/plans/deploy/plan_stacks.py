# SPDX-License-Identifier: Apache-2.0
"""The way to Heat: what plans need of it, as a protocol.

The real one is `heat_plugins.clients.heat`, over REST; the strict fake is in
``tests/unit/plans/fake_heat.py``.
"""

from collections import abc
import dataclasses
from typing import Any, Protocol

from heat_plugins.plans.content import references


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack, as Heat describes it.

    :ivar status: such as ``CREATE_FAILED``.
    :ivar changed_at: when its last action began, in ISO 8601.
    """

    id: str
    name: str
    status: str
    reason: str = ''
    tags: tuple[str, ...] = ()
    changed_at: str = ''

    @property
    def action(self) -> str:
        return self.status.partition('_')[0]

    @property
    def deploys(self) -> bool:
        """Whether its last action was to create or update it."""
        return self.action in ('CREATE', 'UPDATE')

    @property
    def is_deploying(self) -> bool:
        """Whether Heat creates or updates it, or has just agreed to."""
        return self.action == 'INIT' or (self.deploys and self.in_progress)

    @property
    def in_progress(self) -> bool:
        return self.status.endswith('_IN_PROGRESS')

    @property
    def failed(self) -> bool:
        return self.status.endswith('_FAILED')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Event:
    """Something that has happened to a resource, or to a stack.

    :ivar resource: its name; for a stack, the stack's.
    :ivar stack: the stack that it stands in: name and id, with a slash.
    :ivar status: such as ``CREATE_IN_PROGRESS``.
    """

    id: str
    resource: str
    physical_id: str
    stack: str
    status: str
    reason: str
    time: str

    @property
    def place(self) -> str:
        """What is the same for all events of one resource."""
        return f'{self.stack}/{self.resource}'

    @property
    def of_stack(self) -> bool:
        """Whether it is about a stack as a whole."""
        return bool(self.physical_id) and self.stack.endswith(
            f'/{self.physical_id}'
        )


class Stacks(Protocol):
    """Heat's stacks, of one project.

    Each may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`. Where Heat refuses a content, its words may quote
    values of it.
    """

    def find(self, name: str) -> Stack | None:
        """Return a stack by its name or id; None if it is gone."""

    def create(
        self,
        name: str,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> str:
        """Begin to create a stack; return its id.

        :param timeout: the most minutes that it may take.
        """

    def replace(
        self,
        stack: Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        """Begin to update a stack so that it is this content alone."""

    def cancel(self, stack: Stack) -> None:
        """Stop a create or update where it stands, with no rollback."""

    def validate(self, content: references.Resolved) -> abc.Mapping[str, Any]:
        """Return what Heat's validation says, nested templates included.

        Values of parameters are not checked by it.
        """

    def resource_types(self) -> frozenset[str]:
        """Return the types whose services this cloud has."""

    def preview(self, name: str, content: references.Resolved) -> None:
        """Let Heat check a content, values too, as for a new stack."""

    def preview_replace(
        self, stack: Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        """Let Heat check a content as for an update.

        :return: names of resources: unchanged, updated, replaced, added
            and deleted.
        """

    def content(
        self, stack: Stack
    ) -> tuple[abc.Mapping[str, Any], abc.Mapping[str, Any], dict[str, str]]:
        """Return the template, merged environment and files of a stack."""

    def events(
        self, stack: Stack, after: str | None, limit: int
    ) -> list[Event]:
        """Return events of a stack and those nested in it, oldest first.

        :param after: the id of an event; None for the beginning.
        """

    def last_event(self, stack: Stack) -> str | None:
        """Return the id of the latest event."""

    def statuses(self, stack: Stack) -> list[str]:
        """Return the status of each resource, nested ones included."""
