# SPDX-License-Identifier: Apache-2.0
"""Everything that can be done with plans, in terms of JSON.

Commands call this directly, or the actions of Mistral that call it; so both
ways have one result. Each method takes and returns what JSON can say, and
raises `errors.PlanError` or what `heat_plugins.signals.errors` has.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins.plans import comparing
from heat_plugins.plans import deploying
from heat_plugins.plans import following
from heat_plugins.plans import orchestration
from heat_plugins.plans import service
from heat_plugins.plans import settings
from heat_plugins.plans import steps
from heat_plugins.signals import store as store_module

Report = dict[str, Any]


class Operations:
    """The operations on the plans of a project.

    :param plans: the plans.
    :param store: the project's object store.
    :param stacks: the way to Heat.
    """

    def __init__(
        self,
        plans: service.Plans,
        store: store_module.ObjectStore,
        stacks: orchestration.Stacks,
    ) -> None:
        self._plans = plans
        self._stacks = stacks
        self._settings = settings.Settings(plans, store, stacks)
        self._deployer = deploying.Deployer(plans, store, stacks)
        self._comparer = comparing.Comparer(plans, stacks)

    # Plans

    def summaries(self) -> list[Report]:
        """Return the plans by name."""
        return [dataclasses.asdict(one) for one in self._plans.summaries()]

    def show(self, plan: str) -> Report:
        """Return what a plan is, without its content."""
        found = self._plans.load(plan)
        environment = found.environment
        return {
            'name': found.name,
            'description': environment.description,
            'container': found.container,
            'template': environment.template,
            'environments': list(environment.enabled),
            'parameters': sorted(environment.parameter_defaults),
            'secrets': sorted(environment.passwords),
            'steps': [
                f'{one.kind} {one.name}' for one in steps.read(environment)
            ],
            'files': len(found.entries),
            'size': sum(entry.size for entry in found.entries.values()),
            'rendered': found.rendered,
            'content_hash': found.content_hash,
        }

    # Choosing and setting

    def capabilities(self, plan: str) -> Report:
        """Return what can be chosen in a plan, and what is."""
        found = self._plans.capabilities(self._plans.load(plan))
        return dataclasses.asdict(found)

    def select(
        self,
        plan: str,
        choices: abc.Mapping[str, bool],
        requirements: bool = False,
    ) -> Report:
        """Enable and disable environments; return what is enabled then."""
        found = self._plans.select(plan, choices, requirements=requirements)
        return {'environments': [*found.environment.enabled]}

    def parameters(self, plan: str, refresh: bool = False) -> Report:
        """Return the parameters of a plan."""
        return dataclasses.asdict(self._settings.show(plan, refresh=refresh))

    def set_parameters(
        self,
        plan: str,
        values: abc.Mapping[str, Any],
        role: str | None = None,
    ) -> Report:
        """Set parameters; return the names of what is set then."""
        self._settings.set(plan, values, role=role)
        return self._set(plan)

    def unset_parameters(
        self,
        plan: str,
        names: abc.Collection[str],
        role: str | None = None,
    ) -> Report:
        """Take back what was set; return the names of what is set then."""
        self._settings.unset(plan, names, role=role)
        return self._set(plan)

    def roles(self, plan: str) -> list[Report]:
        """Return the roles of a plan's servers."""
        found = self._plans.roles(self._plans.load(plan))
        return [dataclasses.asdict(one) for one in found]

    # Deploying

    def preview(self, plan: str, take_over: bool = False) -> Report:
        """Let Heat check a plan, and say what a deployment would change."""
        found = self._deployer.preview(plan, take_over=take_over)
        return dataclasses.asdict(found)

    def start(
        self, plan: str, timeout: int | None = None, take_over: bool = False
    ) -> Report:
        """Begin to deploy a plan.

        :param timeout: the most minutes that Heat may take.
        """
        return dataclasses.asdict(
            self._deployer.start(plan, timeout=timeout, take_over=take_over)
        )

    def look(self, stack_id: str, before: str = '') -> Report:
        """Return how a deployment that has begun stands.

        :param before: as `start` has returned it.
        """
        return dataclasses.asdict(
            following.look(self._stacks, stack_id, before)
        )

    def status(self, plan: str) -> Report:
        """Return how the deployment of a plan stands."""
        return dataclasses.asdict(self._deployer.status(plan))

    def cancel(self, plan: str) -> Report:
        """Stop a deployment where it stands."""
        self._deployer.cancel(plan)
        return self.status(plan)

    def diff(self, plan: str) -> Report:
        """Return what a deployment would change in the plan's stack."""
        found = self._comparer.differences(plan)
        return {'differences': [dataclasses.asdict(one) for one in found]}

    def _set(self, plan: str) -> Report:
        found = self._plans.load(plan).environment
        return {'parameters': sorted(found.parameter_defaults)}


def started(found: abc.Mapping[str, Any]) -> deploying.Started:
    """Read what `Operations.start` has returned."""
    return deploying.Started(
        **{
            **found,
            'steps': tuple(
                steps.Step(**{**one, 'kind': steps.Kind(one['kind'])})
                for one in found['steps']
            ),
            'warnings': tuple(found['warnings']),
        }
    )
