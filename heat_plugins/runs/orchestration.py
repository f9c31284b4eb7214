# SPDX-License-Identifier: Apache-2.0
"""The way to Heat: what runs need of it, as a protocol.

The real one is `heat_plugins.clients.heat`, over REST, so that it works with
any Heat; an engine has one of its own, `engine.database.own_heat`. The strict
fake is in ``tests/unit/runs/fake_heat.py``.
"""

from collections import abc
import dataclasses
from typing import Any, Protocol


@dataclasses.dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack.

    :ivar parent: the id of the stack that it is nested in.
    :ivar parameters: their values; hidden ones are masked.
    """

    id: str
    name: str
    status: str
    parent: str | None
    parameters: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )

    @property
    def gone(self) -> bool:
        """Whether it is deleted, or on its way there."""
        return self.status.startswith('DELETE')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource of a stack or of one nested in it.

    :ivar stack_id: the stack that it stands in.
    :ivar nested_id: the stack that it is.
    """

    name: str
    type: str
    physical_id: str
    status: str
    stack_id: str
    nested_id: str | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Draft:
    """A software config to be made."""

    name: str | None
    group: str | None
    config: Any
    inputs: abc.Sequence[abc.Mapping[str, Any]] = dataclasses.field(repr=False)
    outputs: abc.Sequence[abc.Mapping[str, Any]]
    options: abc.Mapping[str, Any]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(Draft):
    """A software config."""

    id: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Deployment:
    """A software deployment: a config that a server has been given."""

    id: str
    server_id: str
    config_id: str
    action: str | None = None
    status: str | None = None
    reason: str | None = None


class Deploying(Protocol):
    """What it takes to hand a run to a server and to see it to its end.

    Each may raise `errors.NotFound`, `errors.Denied`, `errors.Unavailable`
    or another `errors.ServiceError`.
    """

    def stack(self, name_or_id: str) -> Stack:
        """Return a stack of this project."""

    def create_config(self, draft: Draft) -> str:
        """Make a config; return its id."""

    def deployment(self, deployment_id: str) -> Deployment:
        """Return a deployment."""

    def deployments(self, server_id: str) -> list[Deployment]:
        """Return the deployments of a server."""

    def create_deployment(
        self, *, config_id: str, server_id: str, action: str, reason: str
    ) -> str:
        """Give a config to a server; return the deployment's id."""

    def set_status(self, deployment_id: str, status: str) -> None:
        """Change the status of a deployment; its server is told nothing."""

    def server_configs(self, server_id: str) -> list[Config]:
        """Return the configs of the deployments of a server."""

    def delete_deployment(self, deployment_id: str) -> None:
        """Take a config from its server; it may be gone already."""

    def config(self, config_id: str) -> Config:
        """Return a config."""

    def delete_config(self, config_id: str) -> None:
        """Delete a config; it may be gone already."""


class Orchestration(Deploying, Protocol):
    """What it takes to find, in any stack, what can be run, too."""

    def stack_names(self) -> list[str]:
        """Return names of stacks of this project, perhaps not all."""

    def stack_ids(self, tag: str | None = None) -> list[str]:
        """Return the ids of the root stacks of this project.

        :param tag: only those that bear it.
        """

    def template(self, stack: Stack) -> abc.Mapping[str, Any]:
        """Return the template of a stack."""

    def resources(self, stack: Stack) -> list[Resource]:
        """Return the resources of a stack, nested ones included."""

    def attribute(self, resource: Resource, name: str) -> Any:
        """Return an attribute of a resource; None if it has none such."""
