# SPDX-License-Identifier: Apache-2.0
"""Deploy a plan from here: validations, the stack, and what runs after it."""

from collections import abc
import time
from typing import Any, Protocol

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.plans.deploy import stack_following
from heat_plugins.plans.deploy import steps

LOG = foreign.logger(__name__)


class Validations(Protocol):
    """What runs validations; see `validations.validation_operations`."""

    def required(self, plan: str) -> dict[str, Any]:
        """Return the groups that must pass before a plan is deployed."""

    def run(self, plan: str, *, groups: abc.Collection[str]) -> dict[str, Any]:
        """Run validations, and wait for their end."""


class Show(Protocol):
    """What shows the progress of a deployment."""

    def begun(self, what: str, warnings: abc.Iterable[str]) -> None:
        """Say that it has started."""

    def warn(self, warnings: abc.Iterable[str]) -> None:
        """Say what is no error."""

    def changed(self, found: stack_following.Progress) -> None:
        """Show how far it is."""

    def step(self, what: str) -> None:
        """Say that a step of it starts."""


def deploy(
    plan: str,
    show: Show,
    *,
    deployer: deploying.Deployer,
    stacks: plan_stacks.Stacks,
    validations: Validations,
    runner: steps.Runner,
    wait: bool,
    timeout: int | None,
    take_over: bool,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> None:
    """Deploy a plan.

    :param runner: runs what the plan names for after.
    :param wait: whether to wait for the end.
    :param timeout: the most minutes that Heat may take.
    :param take_over: whether the stack may be one that no plan has made.
    :raises errors.Refused: a validation that the plan requires did not pass.
    :raises errors.Failed: the deployment did not succeed.
    """
    _validate(plan, show, validations)
    started = deployer.start(plan, timeout=timeout, take_over=take_over)
    show.begun(started.action, started.warnings)
    if not wait:
        if started.steps:
            LOG.warning(
                "The plan's workflows and actions for after a deployment "
                'will not run, because the command does not wait for its end'
            )
        return
    found = stack_following.Follower(
        stacks,
        started.stack_id,
        before=started.before,
        after_event=started.after_event,
        mask=deployer.mask(plan),
        sleep=sleep,
    ).follow(show.changed)
    if not found.success:
        raise errors.Failed(f'{found.status}: {found.reason}')
    steps.run(
        started.steps,
        runner,
        f'plan {plan}',
        tell=lambda step: show.step(f'{step.kind} {step.name}'),
        sleep=sleep,
    )


def _validate(plan: str, show: Show, validations: Validations) -> None:
    groups = validations.required(plan)['groups']
    if not groups:
        return
    show.step(f'validations of {", ".join(groups)}')
    run = validations.run(plan, groups=groups)
    if not run['success']:
        raise errors.Refused(
            'Validations that the plan requires have not passed: '
            f'{run["reason"]}'
        )
