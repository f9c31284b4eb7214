# SPDX-License-Identifier: Apache-2.0
"""What is asked of Mistral: a protocol, and the forms of its answers."""

from collections.abc import Collection, Iterable, Mapping
import dataclasses
from typing import Any, Protocol

from heat_plugins.mistral.executions import outcome


@dataclasses.dataclass(frozen=True, kw_only=True)
class Found:
    """A workflow that is there.

    :ivar own: whether it belongs to our project; a public one may not.
    """

    id: str
    name: str
    own: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Begun:
    """An execution, as far as it takes to end it.

    :ivar by_trigger: whether a cron or an event trigger began it.
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
        """Return what is wrong with a definition, None if nothing is."""

    def find(self, names: Collection[str]) -> Mapping[str, Found]:
        """Return the workflows that are there, by name.

        One of our own goes before a public one of the same name.
        """

    def create(self, text: str) -> None:
        """Make all the workflows of a text, or none."""

    def update(self, text: str) -> None:
        """Change all the workflows of a text, or none."""

    def delete(self, workflow_id: str) -> None:
        """Delete a workflow."""

    def has_book(self, name: str) -> bool:
        """Return whether there is a workbook of that name."""

    def create_book(self, text: str) -> None:
        """Make a workbook and what is in it, or nothing."""

    def update_book(self, text: str) -> None:
        """Change a workbook and what is in it, or nothing."""

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
        """Run a workflow; a second time with one id changes nothing."""

    def triggers(self, names: Collection[str]) -> Mapping[str, str]:
        """Return the workflow for each cron trigger that runs one of them."""

    def executions(
        self, names: Collection[str], limit: int
    ) -> list[dict[str, Any]]:
        """Return the newest executions that no other one began."""

    def begun(self, names: Collection[str]) -> Iterable[Begun]:
        """Return all executions that no other one began, page by page.

        None may be deleted before the last that is wanted has come.
        """

    def running(self, names: Collection[str]) -> bool:
        """Return whether any execution of them has not finished."""

    def cancel(self, execution_id: str) -> None:
        """Let an execution end."""

    def delete_execution(self, execution_id: str) -> None:
        """Delete an execution and those that it began."""
