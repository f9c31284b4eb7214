# SPDX-License-Identifier: Apache-2.0
"""The operations on plans, in terms of JSON.

Commands and Mistral's actions call them, so both have one result. Each method
takes and returns values of JSON, and raises errors of `heat_plugins.errors`.
"""

from collections import abc
import dataclasses
from typing import Any

from heat_plugins import jobs
from heat_plugins import pools
from heat_plugins.content import sources
from heat_plugins.content import storage
from heat_plugins.content import tarballs
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_service
from heat_plugins.plans.deploy import comparing
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_deployment
from heat_plugins.plans.parameters import settings

Report = dict[str, Any]
Reports = list[Report]


class PlanOperations:
    """The operations on the plans of a project."""

    def __init__(self, plans: plan_service.Plans) -> None:
        self.plans = plans
        self.deployer = deploying.Deployer(plans)
        self.deployment = plan_deployment.Deploy(self.deployer)
        self._store = plans.store

    # Plans

    def create(
        self,
        plan: str,
        container: str,
        object: str | None = None,
        template: str | None = None,
        description: str | None = None,
        render: bool = False,
        resume: bool = False,
        *,
        content: sources.Content | None = None,
        progress: pools.Progress | None = None,
    ) -> Report:
        """Create a plan from files in the object store.

        :param plan: its name.
        :param container: the objects in it are the plan's files.
        :param object: a tarball in the container, which has the files then.
        :param template: the root template, where the plan itself names none.
        :param description: of the plan.
        :param render: whether to render Jinja templates.
        :param resume: whether to resume a creation that was interrupted.
        :returns: the plan, as plan.show shows it.
        """
        # A command gives files, which Mistral cannot.
        if content is None:
            content = self._content(container, object)
        self.plans.create(
            plan,
            content,
            template=template,
            description=description,
            render=render,
            resume=resume,
            progress=progress,
        )
        return self.show(plan)

    def update(
        self,
        plan: str,
        container: str | None = None,
        object: str | None = None,
        delete: abc.Collection[str] = (),
        prune: bool = False,
        *,
        content: sources.Content | None = None,
        progress: pools.Progress | None = None,
    ) -> Report:
        """Change the files of a plan; its environments and parameters stay.

        :param plan: its name.
        :param container: of files to add, if any.
        :param object: a tarball in the container, which has the files then.
        :param delete: a list of paths to remove.
        :param prune: whether to remove all other files.
        :returns: the plan, as plan.show shows it.
        """
        if container:
            folders = self.plans.load(plan).folders
            content = self._content(container, object, folders)
        self.plans.update(
            plan, content or {}, delete=delete, prune=prune, progress=progress
        )
        return self.show(plan)

    def delete(
        self, plan: str, *, progress: pools.Progress | None = None
    ) -> None:
        """Delete a plan that has no stack.

        :param plan: its name.
        """
        self.plans.delete(plan, progress)

    def list(self) -> Reports:
        """List the plans of the project.

        :returns: a list of maps: name, description, created_at.
        """
        return [
            dataclasses.asdict(summary) for summary in self.plans.summaries()
        ]

    def show(self, plan: str) -> Report:
        """Show a plan without its content.

        :param plan: its name.
        """
        loaded = self.plans.load(plan)
        environment = loaded.environment
        return {
            'name': loaded.name,
            'description': environment.description,
            # A plan lies in the container of its name.
            'container': loaded.name,
            'template': environment.template,
            'environments': [*environment.enabled],
            'parameters': sorted(environment.parameter_defaults),
            'secrets': sorted(environment.passwords),
            'post_deployment': [
                f'{call.kind} {call.name}'
                for call in deploy_records.steps(environment)
            ],
            'files': len(loaded.entries),
            'size': sum(entry.size for entry in loaded.entries.values()),
            'rendered': loaded.rendered,
            'content_hash': loaded.content_hash,
        }

    # Choosing and setting

    def get_capabilities(self, plan: str) -> Report:
        """Show the choices of a plan, and which are enabled.

        :param plan: its name.
        """
        capabilities = self.plans.capabilities(self.plans.load(plan))
        return dataclasses.asdict(capabilities)

    def update_capabilities(
        self,
        plan: str,
        choices: abc.Mapping[str, bool],
        requirements: bool = False,
    ) -> Report:
        """Enable and disable environments of a plan.

        :param plan: its name.
        :param choices: a map of paths, each with true or false.
        :param requirements: whether to enable required environments, too.
        :returns: the enabled environments.
        """
        changed = self.plans.select(plan, choices, requirements=requirements)
        return {'environments': [*changed.environment.enabled]}

    def get_parameters(self, plan: str, refresh: bool = False) -> Report:
        """Show the parameters of a plan, for each of its templates.

        :param plan: its name.
        :param refresh: whether to ask Heat even if nothing has changed.
        """
        loaded = self.plans.load(plan)
        return dataclasses.asdict(
            settings.show(self.plans, loaded, refresh=refresh)
        )

    def update_parameters(
        self,
        plan: str,
        values: abc.Mapping[str, Any] | None = None,
        unset: abc.Collection[str] = (),
        role: str | None = None,
    ) -> Report:
        """Set and unset parameters of a plan.

        :param plan: its name.
        :param values: a map of parameters and their values; or a reference to
            one, as Mistral keeps and shows its input.
        :param unset: a list of parameters.
        :param role: change parameters of this role only.
        :returns: the names of the parameters that are set.
        """
        with parcels.opened(self._store, values or {}) as given:
            changed = settings.update(
                self.plans, plan, given, unset, role=role
            )
        return {'parameters': sorted(changed.environment.parameter_defaults)}

    def list_roles(self, plan: str) -> Reports:
        """List the roles of a plan's servers.

        :param plan: its name.
        """
        roles = self.plans.roles(self.plans.load(plan))
        return [dataclasses.asdict(role) for role in roles]

    # Deploying

    def preview(self, plan: str, take_over: bool = False) -> Report:
        """Let Heat check a plan; return the changes of a deployment.

        :param plan: its name.
        :param take_over: whether the stack may be one that no plan has made.
        """
        preview = self.deployer.preview(plan, take_over=take_over)
        return dataclasses.asdict(preview)

    def start(
        self, plan: str, timeout: int | None = None, take_over: bool = False
    ) -> Report:
        """Begin to create or update the stack of a plan, and do not wait.

        The workflow plan.deploy waits, and runs the plan's post_deployment.

        :param plan: its name.
        :param timeout: the most minutes that Heat may take.
        :param take_over: whether the stack may be one that no plan has made.
        """
        return dataclasses.asdict(
            self.deployer.start(plan, timeout=timeout, take_over=take_over)
        )

    def look(self, stack_id: str, before: str = '') -> Report:
        """Show the state of a deployment that has started.

        :param stack_id: as plan.start has returned it.
        :param before: as plan.start has returned it.
        """
        return self.deployer.poll(stack_id, before)

    def deploy(
        self,
        plan: str,
        timeout: int | None = None,
        take_over: bool = False,
        state: abc.Mapping[str, Any] | None = None,
        outcome: abc.Mapping[str, Any] | None = None,
    ) -> Report:
        """Take a step of a deployment, as the workflow plan.deploy does.

        :param plan: its name.
        :param timeout: the most minutes that Heat may take.
        :param take_over: whether the stack may be one that no plan has made.
        :param state: as the last step has returned it; null for the first.
        :param outcome: of the call that the last step asked for, if it did.
        :returns: a map: state; call, the workflow or action to run next, or
            null; next_look, the seconds to wait; success, null until the
            end; and the reason.
        """
        begun = plan_deployment.PlanDeployment(
            plan=plan, timeout=timeout, take_over=take_over
        )
        return jobs.advance(self.deployment, begun, state, outcome)

    def status(self, plan: str) -> Report:
        """Show the state of the deployment of a plan.

        :param plan: its name.
        """
        return dataclasses.asdict(self.deployer.status(plan))

    def cancel(self, plan: str) -> Report:
        """Stop the deployment of a plan, without a rollback.

        :param plan: its name.
        """
        self.deployer.cancel(plan)
        return self.status(plan)

    def diff(self, plan: str) -> Report:
        """Show the changes that a deployment would make in a plan's stack.

        :param plan: its name.
        """
        differences = comparing.differences(self.plans, plan)
        return {
            'differences': [
                dataclasses.asdict(difference) for difference in differences
            ]
        }

    def _content(
        self,
        container: str,
        object: str | None,
        folders: abc.Container[str] = (),
    ) -> sources.Content:
        """Read the files of a plan from a container or a tarball in it."""
        if object is None:
            return sources.from_container(
                storage.Container(self._store, container, pools.Pool())
            )
        return tarballs.from_object(self._store, container, object, folders)
