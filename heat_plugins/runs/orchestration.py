# SPDX-License-Identifier: Apache-2.0
"""The way to Heat: what runs need of it, as a protocol.

The real one is `heat_plugins.clients.heat`, over REST, so that it works with
any Heat; an engine has one of its own, `engine.database.own_heat`. The strict
fake is in ``tests/unit/runs/fake_heat.py``.
"""

from collections import abc
from typing import Any, Protocol

from heat_plugins import heat_values


class Deploying(Protocol):
    """What it takes to hand a run to a server and to see it to its end.

    Each may raise `errors.NotFound`, `errors.Denied`, `errors.Unavailable`
    or another `errors.ServiceError`.
    """

    def stack(self, name_or_id: str) -> heat_values.Stack:
        """Return a stack of this project."""

    def create_config(self, draft: heat_values.DerivedConfig) -> str:
        """Make a config; return its id."""

    def deployment(self, deployment_id: str) -> heat_values.Deployment:
        """Return a deployment."""

    def deployments(self, server_id: str) -> list[heat_values.Deployment]:
        """Return the deployments of a server."""

    def create_deployment(
        self, *, config_id: str, server_id: str, action: str, reason: str
    ) -> str:
        """Give a config to a server; return the deployment's id."""

    def tell(self, deployment: heat_values.Deployment) -> None:
        """Tell a server again what it was given; it may know."""

    def set_status(self, deployment_id: str, status: str) -> str | None:
        """Change the status of a deployment; its server is told nothing.

        :returns: the reason that Heat shows then.
        """

    def server_configs(self, server_id: str) -> list[heat_values.Config]:
        """Return the configs of the deployments of a server."""

    def delete_deployment(
        self, deployment_id: str, server_id: str | None = None
    ) -> None:
        """Take a config from its server; it may be gone already.

        :param server_id: the server to tell again if the deployment is gone:
            who deleted it may have died, or failed, before the server was
            told. Heat's API offers no way to do that.
        """

    def config(self, config_id: str) -> heat_values.Config:
        """Return a config."""

    def recent_configs(self, suffix: str, since: float) -> list[str]:
        """Return the IDs of new configs, the newest first.

        As many as some requests list: older ones may be missing.

        :param suffix: what their names end with.
        :param since: when the first may have been made, in seconds since the
            epoch.
        """

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

    def template(self, stack: heat_values.Stack) -> abc.Mapping[str, Any]:
        """Return the template of a stack."""

    def resources(
        self, stack: heat_values.Stack
    ) -> list[heat_values.Resource]:
        """Return the resources of a stack, nested ones included."""

    def signal(
        self, resource: heat_values.Resource, details: abc.Mapping[str, Any]
    ) -> None:
        """Send a signal to a resource; Heat handles it after the answer."""

    def attribute(self, resource: heat_values.Resource, name: str) -> Any:
        """Return an attribute of a resource; None if it has none such."""

    def update_environment(
        self, stack: heat_values.Stack, environment: abc.Mapping[str, Any]
    ) -> None:
        """Begin to update a stack, with more in its environment."""
