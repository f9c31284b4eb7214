# SPDX-License-Identifier: Apache-2.0
"""The collaborators of one deployment, as its Heat resource is given them."""

from collections import abc
import contextlib
from typing import Any

from heat.objects import software_config as config_objects
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.deployments import answers
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import histories
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import outside
from heat_plugins.deployments import removals
from heat_plugins.deployments import signallers
from heat_plugins.engine import deriving
from heat_plugins.engine import heat_types
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import triggering
from heat_plugins.engine.shared import hubs
from heat_plugins.runs import orchestration

config.register_opts(cfg.CONF)


class Stack:
    """The stack of a deployment, as `outside.Stack` has it."""

    def __init__(self, hub: hubs.Hub, stack: heat_types.Stack) -> None:
        self._hub = hub
        self._stack = stack

    def is_cancelled(self, since: float) -> bool:
        return self._hub.cancellation.of(self._stack, since)

    def renew_access(self) -> None:
        # If none is available the trouble lasts, up to the budget.
        with contextlib.suppress(errors.Denied):
            self._hub.adopt(self._stack)


class Template:
    """A deployment's template, as `outside.Template` has it."""

    def __init__(self, deployment: heat_types.Deployment) -> None:
        self._deployment = deployment
        self.users_project = deployment.stack.stack_user_project_id

    @property
    def input_values(self) -> abc.Mapping[str, Any] | None:
        values: abc.Mapping[str, Any] | None = self._deployment.properties[
            self._deployment.INPUT_VALUES
        ]
        return values

    def inputs(
        self, action: str, source: deliveries.Source
    ) -> list[dict[str, Any]]:
        return derived.inputs(source, action, self.input_values)

    def choose(self, config_id: str) -> deliveries.Signalling:
        return transports.choose(self._deployment, config_id)

    def choose_again(self, row: deliveries.Row) -> deliveries.Signalling:
        return transports.choose_again(self._deployment, row)

    def derive(
        self,
        action: str,
        source: deliveries.Source,
        signalling: deliveries.Signalling,
    ) -> orchestration.Draft:
        return deriving.Derivation(
            self._deployment, self._deployment.properties
        ).draft(
            source,
            action,
            signalling,
            name=self._deployment.name,
            server_id=self._deployment.properties[self._deployment.SERVER],
        )


class Parts:
    """Makes the collaborators of one deployment.

    They hold the resource and no state, apart from what waits; so they are
    made as they are needed, and the resource holds none of them.

    :param loop: Heat's, around the checks of what begins.
    """

    def __init__(
        self, deployment: heat_types.Deployment, loop: outside.Loop
    ) -> None:
        self._deployment = deployment
        self._loop = loop
        self.rows = deployment_rows.Rows(
            deployment.rpc_client(), deployment.context
        )
        self.history = histories.History(deployment, self.rows)

    @property
    def terms(self) -> deliveries.Terms:
        """What the template says of all actions."""
        return deliveries.Terms(self._deployment.properties)

    @property
    def servers(self) -> servers.Servers:
        """The servers, as the deployment's stack sees them."""
        return servers.Servers(
            self._deployment, transports.root_stack_id(self._deployment)
        )

    @property
    def engine(self) -> outside.Engine:
        """What it shares with the other deployments of its stack."""
        hub = transports.hub_for(self._deployment)
        return outside.Engine(
            rows=self.rows,
            signals=hub,
            watcher=hub.watcher,
            stack=Stack(hub, self._deployment.stack),
            loop=self._loop,
            settings=settings(),
        )

    @property
    def template(self) -> Template:
        """What Heat makes of the template."""
        return Template(self._deployment)

    def named_config(self) -> orchestration.Config | None:
        """Return the template's config; see `named_config`."""
        return named_config(self._deployment)

    def lifecycle(self) -> lifecycle.Lifecycle:
        """Return what decides which actions its server is given."""
        return lifecycle.Lifecycle(
            self._deployment,
            terms=self.terms,
            servers=self.servers,
            template=self.template,
            engine=self.engine,
        )

    def removal(
        self,
        source: deliveries.Source | None,
        delete: abc.Callable[[], None],
    ) -> removals.Removal:
        """Return what lets it go.

        :param source: None if the template's config is gone.
        :param delete: deletes all that was made in Heat and Keystone.
        """
        deployment = self._deployment
        terms, found = self.terms, self.servers
        return removals.Removal(
            self.lifecycle().undoing(source, self._taken_over),
            resource=deployment,
            server_name=lambda: found.name(terms.server_id),
            is_server_there=lambda: found.is_there(terms.server_id),
            delete=delete,
            sweep=lambda: sweeping.Sweep(deployment),
            settings=settings(),
        )

    def _taken_over(self) -> abc.Collection[str]:
        deployment = self._deployment
        return resources.data_of_later(
            deployment.context,
            deployment.stack.id,
            deployment.name,
            deployment.id,
            histories.TAKEN_OVER_KEY,
        )

    def answers(self, signaller: signallers.Signaller) -> answers.Answers:
        """Return what takes a result or a report that comes as a signal."""
        return answers.Answers(
            self._deployment,
            rows=self.rows,
            signaller=signaller,
            user_id=self._deployment._get_user_id(),
            server_name=self.servers.name,
        )

    def triggering(
        self, row: deliveries.Row | None = None
    ) -> triggering.Triggering:
        """Return what starts runs.

        :param row: what its server was given last, if anything.
        """
        deployment = self._deployment
        return triggering.Triggering(
            triggering.Subject(
                resource=deployment,
                name=deployment.name,
                names=[deployment.name],
                deployment_id=deployment.resource_id,
                type=deployment.type(),
            ),
            row,
            terms=self.terms,
            servers=self.servers,
            draft=lambda action: self.template.derive(
                action, deployment.source(), deliveries.NOTHING
            ),
            named_config=self.named_config,
        )


def settings() -> outside.Settings:
    """Return what the operator has set."""
    options = cfg.CONF.heat_plugins
    return outside.Settings(
        known_hooks=options.known_hooks,
        body_limit=options.signal_body_limit,
        budget=options.swift_error_budget,
    )


def named_config(
    resource: heat_types.Resource,
) -> orchestration.Config | None:
    """Return the config that a template names, as stored; None: it has none.

    :raises exception.NotFound: it is gone.
    """
    config_id = resource.properties['config']
    if not config_id:
        return None
    return own_heat.config(
        config_objects.SoftwareConfig.get_by_id(resource.context, config_id)
    )
