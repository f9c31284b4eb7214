# SPDX-License-Identifier: Apache-2.0
"""Requests to Mistral about workflows: a protocol, and its values."""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
from typing import Any, Protocol

from heat_plugins.mistral.executions import outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A workflow that exists.

    :ivar own: whether it belongs to our project; a public one may not.
    """

    id: str
    name: str
    own: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Begun:
    """An execution, as far as ending it needs.

    :ivar by_trigger: whether a cron or an event trigger has started it.
    """

    id: str
    state: str
    by_trigger: bool = False

    @property
    def finished(self) -> bool:
        return self.state in outcome.FINISHED


class WorkflowService(Protocol):
    """Mistral, in one namespace of workflows of one project.

    Every method may raise an `errors.ServiceError`.
    """

    def refusal(self, text: str, workbook: bool) -> str | None:
        """Return why Mistral rejects a definition; None if it does not."""

    def find(self, names: Collection[str]) -> Mapping[str, Found]:
        """Return the existing workflows, by name.

        Our own workflow takes precedence over a public one of the same name.
        """

    def create(self, text: str) -> None:
        """Create all the workflows of a text, or none."""

    def update(self, text: str) -> None:
        """Change all the workflows of a text, or none."""

    def delete(self, workflow_id: str) -> None:
        """Delete a workflow."""

    def has_book(self, name: str) -> bool:
        """Return whether there is a workbook of that name."""

    def create_book(self, text: str) -> None:
        """Create a workbook and its content, or nothing."""

    def update_book(self, text: str) -> None:
        """Change a workbook and its content, or nothing."""

    def delete_book(self, name: str) -> None:
        """Delete a workbook; its workflows and actions stay."""

    def delete_action(self, name: str) -> None:
        """Delete an ad-hoc action."""

    def start(
        self,
        execution_id: str,
        name: str,
        workflow_input: Mapping[str, Any],
        params: Mapping[str, Any],
        description: str,
    ) -> None:
        """Run a workflow; a repetition with the same ID changes nothing."""

    def triggers(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the workflow for each cron trigger that runs one of them."""

    def executions(
        self, names: Collection[str], limit: int
    ) -> list[dict[str, Any]]:
        """Return the newest executions that no other one has started."""

    def begun(self, names: Collection[str]) -> Iterable[Begun]:
        """Return all executions that no other one has started, page by page.

        Delete none until the last page has been read.
        """

    def running(self, names: Collection[str]) -> bool:
        """Say whether any execution of these workflows is running."""

    def cancel(self, execution_id: str) -> None:
        """Cancel an execution."""

    def delete_execution(self, execution_id: str) -> None:
        """Delete an execution and those that it started."""
