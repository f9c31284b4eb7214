# SPDX-License-Identifier: Apache-2.0
"""Deploying plans: one stack for each, of the plan's name.

A deployment replaces the whole content of the stack, so files removed from the
plan are removed from the stack, too. Its state is always read from Heat; only
the content that Heat was given is recorded.
"""

from collections import abc
import dataclasses
import functools
from typing import Any

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import jobs
from heat_plugins import masking
from heat_plugins.plans import plan_service
from heat_plugins.plans.content import plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import deploy_records
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.plans.parameters import parameters
from heat_plugins.plans.parameters import secrecy

#: Tags of a plan's stack, and of the hash of its content.
TAG = 'deployment-plan'
CONTENT_TAG = 'plan-content-'

#: The status without a stack.
NOT_DEPLOYED = 'NOT_DEPLOYED'

#: Seconds until the next poll of a deployment, at least and at most. Each poll
#: is a row in Mistral's database, so they become seldom.
SOONEST, LATEST = 2, 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class Started:
    """A deployment that has started.

    :ivar before: the start of the stack's former action; '' for a new stack.
    :ivar after_event: the id of the last event before it.
    :ivar steps: calls after the stack is complete.
    :ivar warnings: a sentence each.
    """

    stack_id: str = ''
    action: str = ''
    content_hash: str = ''
    before: str = ''
    after_event: str | None = None
    steps: tuple[jobs.Call, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Status:
    """The state of the deployment of a plan.

    :ivar status: of the stack, or `NOT_DEPLOYED`.
    :ivar deployed_hash: of the stack's content; '' if its last update was not
        by a plan.
    :ivar deployed_at: the time at which Heat got that content, if recorded.
    :ivar current: whether the plan has the deployed content.
    """

    plan: str
    status: str
    reason: str = ''
    stack_id: str = ''
    changed_at: str = ''
    content_hash: str = ''
    deployed_hash: str = ''
    deployed_at: str = ''
    current: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Preview:
    """The changes of a deployment: names of resources of the root template.

    :ivar action: CREATE or UPDATE.
    """

    action: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Deployer:
    """Deploys the plans of a project."""

    def __init__(self, plans: plan_service.Plans) -> None:
        self._plans = plans
        self._stacks = plans.stacks

    def observe(self, name: str) -> Started:
        """Return the state of a stack before a deployment.

        A deployment in progress has no state before it, so it can be joined.
        """
        stack = self._stacks.find(name)
        if stack is None:
            return Started(stack_id=name)
        return self._after(stack)

    def start(
        self,
        name: str,
        *,
        before: Started | None = None,
        timeout: int | None = None,
        take_over: bool = False,
    ) -> Started:
        """Begin to create or update the stack of a plan.

        A repeated call for an unchanged plan returns the deployment that has
        started; after the end of that, it needs `before`.

        :param before: the result of `observe` before the first call.
        :param timeout: the most minutes that Heat may take.
        :param take_over: whether the stack may be one that no plan has made.
        :raises errors.Refused: no plan has made the stack, or required
            validations have not passed.
        :raises errors.ServiceError: Heat refuses the plan, or refuses it now.
        """
        with self._plans.lock(name) as plan:
            wanted = deploy_records.steps(plan.environment)
            stack = self._stacks.find(name)
            _check(stack, plan, take_over)
            # Without `before`, a deployment that has ended is an older one.
            changed = stack and before and stack.changed_at != before.before
            if (
                stack is not None
                and _is_content(stack, plan)
                and (stack.is_deploying or (stack.deploys and changed))
            ):
                content = self._plans.resolve(plan)
                started = dataclasses.replace(
                    before or Started(), stack_id=stack.id, action=stack.action
                )
            else:
                annex = self._plans.annex(plan)
                deploy_records.check(annex, plan, self._plans.clock())
                content = self._plans.resolve(plan)
                with secrecy.guarding(content, plan.environment):
                    started = self._give(plan, stack, content, timeout)
                deploy_records.write_deployed(
                    annex, plan.content_hash, content, self._plans.clock()
                )
            return dataclasses.replace(
                started,
                content_hash=plan.content_hash,
                steps=wanted,
                warnings=content.warnings,
            )

    def _give(
        self,
        plan: plans.Plan,
        stack: heat_values.Stack | None,
        content: references.Resolved,
        timeout: int | None,
    ) -> Started:
        """Let Heat create or update the stack of a plan."""
        tags = (TAG, f'{CONTENT_TAG}{plan.content_hash}')
        if stack is None:
            stack_id = self._stacks.create(
                plan.name, content, tags=tags, timeout=timeout
            )
            return Started(stack_id=stack_id, action='CREATE')
        started = dataclasses.replace(self._after(stack), action='UPDATE')
        self._stacks.replace(stack, content, tags=tags, timeout=timeout)
        return started

    def _after(self, stack: heat_values.Stack) -> Started:
        """Return from where to follow a deployment of a stack."""
        if stack.is_deploying:
            return Started(stack_id=stack.id)
        return Started(
            stack_id=stack.id,
            before=stack.changed_at,
            after_event=self._stacks.last_event(stack),
        )

    def preview(self, name: str, *, take_over: bool = False) -> Preview:
        """Let Heat check a plan and its values, and change nothing.

        :raises errors.ServiceError: Heat refuses the plan.
        """
        plan = self._plans.load(name)
        deploy_records.steps(plan.environment)
        stack = self._stacks.find(name)
        _check(stack, plan, take_over)
        content = self._plans.resolve(plan)
        with secrecy.guarding(content, plan.environment):
            if stack is None:
                self._stacks.preview(name, content)
                # Heat's preview lacks the names of nested stacks.
                names = parameters.section(content.template, 'resources')
                changes = {'added': tuple(sorted(names))}
            else:
                changes = dict(self._stacks.preview_replace(stack, content))
        return Preview(
            action='UPDATE' if stack else 'CREATE',
            warnings=content.warnings,
            **changes,
        )

    def status(self, name: str) -> Status:
        """Return the state of the deployment of a plan."""
        plan = self._plans.load(name)
        stack = self._stacks.find(name)
        if stack is None:
            return Status(
                plan=name, status=NOT_DEPLOYED, content_hash=plan.content_hash
            )
        record = self._deployed(plan, stack)
        return Status(
            plan=name,
            status=stack.status,
            reason=self.mask(name)(plan_stacks.judge(stack, '').reason),
            stack_id=stack.id,
            changed_at=stack.changed_at,
            content_hash=plan.content_hash,
            deployed_hash=_content_tag(stack),
            deployed_at=record.at if record else '',
            current=_is_content(stack, plan),
        )

    def cancel(self, name: str) -> None:
        """Stop a deployment without a rollback; the stack fails.

        :raises errors.Refused: the stack of that name is not the plan's.
        :raises errors.ServiceError: Heat has none in progress.
        """
        stack = self._stacks.find(name)
        if stack is None:
            raise errors.NotFound(f'Plan {name} is not deployed')
        if TAG not in stack.tags:
            raise errors.Refused(
                f'No plan created stack {name}. To stop it nevertheless: '
                f'openstack stack cancel --no-rollback {name}'
            )
        self._stacks.cancel(stack)

    def required(self, name: str) -> list[str]:
        """Return the groups of validations that a plan requires."""
        return [*deploy_records.required(self._plans.load(name).environment)]

    def poll(self, stack_id: str, before: str) -> dict[str, Any]:
        """Return the state of a deployment.

        :param before: as `start` has returned it.
        """
        stack = self._stacks.find(stack_id)
        progress = plan_stacks.judge(stack, before)
        reason, age = progress.reason, self._plans.clock() - progress.since
        if stack is not None:
            reason = self.mask(stack.name)(reason)
        interval = int(min(max(SOONEST, age / 10), LATEST))
        return {
            'status': progress.status,
            'reason': reason,
            'success': progress.success if progress.ended else None,
            'next_look': 0 if progress.ended else interval,
        }

    def mask(self, name: str) -> abc.Callable[[str], str]:
        """Return a function that masks a plan's secrets in reasons of Heat.

        Resources quote their properties in reasons of failures. Secrets of the
        deployed content and of the present plan are masked; they are read when
        there is a reason.
        """

        @functools.cache
        def mask() -> masking.Mask:
            plan = self._plans.load(name)
            record = self._deployed(plan, self._stacks.find(name))
            content = record.content if record else self._plans.resolve(plan)
            return masking.Mask(secrecy.of_content(content, plan.environment))

        def masked(text: str) -> str:
            if not text:
                return ''
            try:
                return mask().text(text)
            except (errors.NotFound, errors.PlanUnfinished):
                return (
                    'Heat has the reason. It is not shown here, because it '
                    f'may quote secrets of plan {name}, which was deleted'
                )

        return masked

    def _deployed(
        self, plan: plans.Plan, stack: heat_values.Stack | None
    ) -> deploy_records.DeployRecord | None:
        """Return the record of the content of a stack, if any."""
        tag = _content_tag(stack) if stack else ''
        annex = self._plans.annex(plan)
        return deploy_records.find_deployed(annex, tag) if tag else None


def _check(
    stack: heat_values.Stack | None, plan: plans.Plan, take_over: bool
) -> None:
    """Refuse to replace a stack of another user or deployment."""
    if stack is None:
        return
    if TAG not in stack.tags and not take_over:
        raise errors.Refused(
            f'No plan created stack {stack.name}. To replace all of it by '
            'the plan, add --take-over (in a workflow, take_over: true)'
        )
    # Heat itself would accept another update.
    if stack.in_progress and not _is_content(stack, plan):
        raise errors.Refused(
            f'Stack {stack.name} is {stack.status}; wait until that ends, or '
            'cancel it'
        )


def _content_tag(stack: heat_values.Stack) -> str:
    """Return the hash of the plan's content that a stack was made of."""
    for tag in stack.tags:
        if tag.startswith(CONTENT_TAG):
            return tag.removeprefix(CONTENT_TAG)
    return ''


def _is_content(stack: heat_values.Stack, plan: plans.Plan) -> bool:
    """Say whether a stack was made of a plan as it is now."""
    return _content_tag(stack) == plan.content_hash
