# SPDX-License-Identifier: Apache-2.0
"""Deploying plans: one stack for each, of the plan's name.

A deployment replaces all that the stack was made from, so what has been
removed from the plan goes from the stack too. How it stands is asked of Heat,
each time; here is only recorded what Heat was given.
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

#: Tags of a plan's stack: that it is one, and from which content it is.
TAG = 'deployment-plan'
CONTENT_TAG = 'plan-content-'

#: What is shown where there is no stack.
NOT_DEPLOYED = 'NOT_DEPLOYED'

#: Seconds until the next poll of a deployment, at least and at most. Each poll
#: is a row in Mistral's database, so they become seldom.
SOONEST, LATEST = 2, 60


@dataclasses.dataclass(frozen=True, kw_only=True)
class Started:
    """A deployment that has started.

    :ivar before: when the stack's action before this one began; '' for a
        new stack.
    :ivar after_event: the id of the last event before it.
    :ivar steps: what runs after the stack is complete.
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
    """How the deployment of a plan stands.

    :ivar status: of the stack, or `NOT_DEPLOYED`.
    :ivar deployed_hash: of the content that the stack is from; '' if no
        deployment of a plan was its last update.
    :ivar deployed_at: when that content was given to Heat, if recorded.
    :ivar current: whether the plan is what was deployed.
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
    """What a deployment would do; names of resources of the root template.

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
        """Return what a deployment of a plan follows.

        One that is in progress has nothing before it, so it can be joined.
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

        Called again with the plan unchanged, it returns the deployment that
        has started: before that ends, and after it by `before`.

        :param before: what `observe` returned before the first call.
        :param timeout: the most minutes that Heat may take.
        :param take_over: whether the stack may be one that no plan has made.
        :raises errors.Refused: no plan has made the stack, or what the plan
            requires has not passed.
        :raises errors.ServiceError: Heat does not take the plan, or not now.
        """
        with self._plans.lock(name) as plan:
            wanted = deploy_records.steps(plan.environment)
            stack = self._stacks.find(name)
            _check(stack, plan, take_over)
            if stack is not None and _has_taken(stack, plan, before):
                content = self._plans.resolve(plan)
                started = dataclasses.replace(
                    before or Started(), stack_id=stack.id, action=stack.action
                )
            else:
                deploy_records.check(
                    self._plans.annex(plan), plan, self._plans.clock()
                )
                content = self._plans.resolve(plan)
                started = self._give(stack, plan, content, timeout)
            return dataclasses.replace(
                started,
                content_hash=plan.content_hash,
                steps=wanted,
                warnings=content.warnings,
            )

    def _give(
        self,
        stack: heat_values.Stack | None,
        plan: plans.Plan,
        content: references.Resolved,
        timeout: int | None,
    ) -> Started:
        """Give a content to Heat, and record it."""
        tags = (TAG, f'{CONTENT_TAG}{plan.content_hash}')
        with secrecy.guarding(content, plan.environment):
            if stack is None:
                stack_id = self._stacks.create(
                    plan.name, content, tags=tags, timeout=timeout
                )
                started = Started(stack_id=stack_id, action='CREATE')
            else:
                started = dataclasses.replace(
                    self._after(stack), action='UPDATE'
                )
                self._stacks.replace(
                    stack, content, tags=tags, timeout=timeout
                )
        deploy_records.write_deployed(
            self._plans.annex(plan),
            plan.content_hash,
            content,
            self._plans.clock(),
        )
        return started

    def _after(self, stack: heat_values.Stack) -> Started:
        if stack.is_deploying:
            return Started(stack_id=stack.id)
        return Started(
            stack_id=stack.id,
            before=stack.changed_at,
            after_event=self._stacks.last_event(stack),
        )

    def preview(self, name: str, *, take_over: bool = False) -> Preview:
        """Let Heat check a plan, values too, and change nothing.

        :raises errors.ServiceError: Heat does not take the plan.
        """
        plan = self._plans.load(name)
        deploy_records.steps(plan.environment)
        stack = self._stacks.find(name)
        _check(stack, plan, take_over)
        content = self._plans.resolve(plan)
        with secrecy.guarding(content, plan.environment):
            if stack is None:
                self._stacks.preview(name, content)
                # Of a nested stack Heat's preview has not its name.
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
        """Return how the deployment of a plan stands, as Heat says."""
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
        """Stop a deployment where it stands; the stack fails.

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
        """Return how a deployment stands, and no counts.

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
        """Return what masks the plan's secrets in words about its stack.

        Resources quote their properties in what they say of a failure. What
        the secrets are is read when there is such a thing to mask.
        """

        @functools.cache
        def made() -> masking.Mask:
            return masking.Mask(self._secrets(name))

        def masked(text: str) -> str:
            if not text:
                return ''
            try:
                return made().text(text)
            except (errors.NotFound, errors.PlanUnfinished):
                return (
                    'Heat has the reason. It is not shown here, because it '
                    f'may quote secrets of plan {name}, which was deleted'
                )

        return masked

    def _secrets(self, name: str) -> abc.Collection[str]:
        """Return those of what was deployed last, and of the plan now."""
        plan = self._plans.load(name)
        record = self._deployed(plan, self._stacks.find(name))
        content = record.content if record else self._plans.resolve(plan)
        return secrecy.of_content(content, plan.environment)

    def _deployed(
        self, plan: plans.Plan, stack: heat_values.Stack | None
    ) -> deploy_records.DeployRecord | None:
        """Return the record of the content that a stack is from, if any."""
        tag = _content_tag(stack) if stack else ''
        annex = self._plans.annex(plan)
        return deploy_records.find_deployed(annex, tag) if tag else None


def _check(
    stack: heat_values.Stack | None, plan: plans.Plan, take_over: bool
) -> None:
    """Refuse to replace what another user or deployment has made."""
    if stack is None:
        return
    if TAG not in stack.tags and not take_over:
        raise errors.Refused(
            f'No plan created stack {stack.name}. To replace all of it by '
            'the plan, add --take-over (in a workflow, take_over: true)'
        )
    # Heat itself would let another update in.
    if stack.in_progress and not _is_content(stack, plan):
        raise errors.Refused(
            f'Stack {stack.name} is {stack.status}; wait until that ends, or '
            'cancel it'
        )


def _has_taken(
    stack: heat_values.Stack, plan: plans.Plan, before: Started | None
) -> bool:
    """Return whether Heat has been given the plan as it is.

    :param before: what the deployment follows; None if that is unknown.
    """
    changed = before is not None and stack.changed_at != before.before
    return _is_content(stack, plan) and (
        stack.is_deploying or (stack.deploys and changed)
    )


def _content_tag(stack: heat_values.Stack) -> str:
    for tag in stack.tags:
        if tag.startswith(CONTENT_TAG):
            return tag.removeprefix(CONTENT_TAG)
    return ''


def _is_content(stack: heat_values.Stack, plan: plans.Plan) -> bool:
    return _content_tag(stack) == plan.content_hash
