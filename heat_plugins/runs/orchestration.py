# SPDX-License-Identifier: Apache-2.0
"""The way to Heat: what runs need of it, as a protocol.

Commands have `heat_plugins.clients.heat`, over REST; an engine has one of its
own, `engine.database.stack_reading`. The strict fake is in
``tests/unit/runs/fake_heat.py``.
"""

from collections import abc
from typing import Any, Protocol

from heat_plugins import heat_values


class Stacks(Protocol):
    """What it takes to find resources of any stack.

    Each may raise `errors.NotFound`, `errors.Denied`, `errors.Unavailable`
    or another `errors.ServiceError`.
    """

    def stack(self, name_or_id: str) -> heat_values.Stack:
        """Return a stack of this project."""

    def stack_names(self) -> list[str]:
        """Return names of stacks of this project, perhaps not all."""

    def stack_ids(self, tag: str | None = None) -> list[str]:
        """Return the ids of the root stacks of this project.

        :param tag: only those that bear it.
        """

    def resources(
        self, stack: heat_values.Stack
    ) -> list[heat_values.Resource]:
        """Return the resources of a stack, nested ones included."""

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        """Return an attribute of a resource; None if it has none such."""


class Selecting(Stacks, Protocol):
    """What it takes to find, in any stack, what can be run, too.

    An engine has `engine.database.stack_reading` for it.
    """

    def template(self, stack: heat_values.Stack) -> abc.Mapping[str, Any]:
        """Return the template of a stack."""

    def deployment(self, deployment_id: str) -> heat_values.Deployment:
        """Return a deployment."""

    def config(self, config_id: str) -> heat_values.Config:
        """Return a config."""


class Orchestration(Stacks, Protocol):
    """What it takes to signal and to update stacks, too."""

    def signal(
        self, resource: heat_values.Resource, details: abc.Mapping[str, Any]
    ) -> None:
        """Send a signal to a resource; Heat handles it after the answer."""

    def update_environment(
        self, stack: heat_values.Stack, environment: abc.Mapping[str, Any]
    ) -> None:
        """Begin to update a stack, with more in its environment."""
