# SPDX-License-Identifier: Apache-2.0
"""The way to Heat: what plans need of it, as a protocol.

The real one is `heat_plugins.clients.heat_plans`, over REST; the strict fake
is in ``tests/unit/plans/fake_heat.py``.
"""

from collections import abc
from typing import Any, Protocol

from heat_plugins import heat_values
from heat_plugins.plans.content import references


class Stacks(Protocol):
    """Heat's stacks, of one project.

    Each may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`. Where Heat refuses a content, its words may quote
    values of it.
    """

    def find(self, name: str) -> heat_values.Stack | None:
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
        stack: heat_values.Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        """Begin to update a stack so that it is this content alone."""

    def cancel(self, stack: heat_values.Stack) -> None:
        """Stop a create or update where it stands, with no rollback."""

    def validate(self, content: references.Resolved) -> abc.Mapping[str, Any]:
        """Return what Heat's validation says, nested templates included.

        Values of parameters are not checked by it.
        """

    def preview(self, name: str, content: references.Resolved) -> None:
        """Let Heat check a content, values too, as for a new stack."""

    def preview_replace(
        self, stack: heat_values.Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        """Let Heat check a content as for an update.

        :return: names of resources: unchanged, updated, replaced, added
            and deleted.
        """

    def content(
        self, stack: heat_values.Stack
    ) -> tuple[abc.Mapping[str, Any], abc.Mapping[str, Any], dict[str, str]]:
        """Return the template, merged environment and files of a stack."""

    def events(
        self, stack: heat_values.Stack, after: str | None, limit: int
    ) -> list[heat_values.Event]:
        """Return events of a stack and those nested in it, oldest first.

        :param after: the id of an event; None for the beginning.
        """

    def last_event(self, stack: heat_values.Stack) -> str | None:
        """Return the id of the latest event."""
