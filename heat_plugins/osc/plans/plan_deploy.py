# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan deploy|status|diff``."""

import argparse
import functools
import time
from typing import Any

from heat_plugins import jobs
from heat_plugins import retrying
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_plans
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.osc.plans import plan_common
from heat_plugins.plans import plan_operations
from heat_plugins.plans.deploy import deploying
from heat_plugins.plans.deploy import plan_deployment
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.validations import validation_operations

# Seconds between two polls of a stack at most, and of an execution.
_MOST, _INTERVAL = 5.0, 2.0

_SHOWN = (
    'plan',
    'status',
    'reason',
    'stack_id',
    'changed_at',
    'deployed_at',
    'deployed_hash',
    'content_hash',
    'current',
)


class DeployPlan(plan_common.PlanCommand):
    """Create or update the stack of a plan.

    What was removed from the plan, an update removes from the stack. Then
    the workflows that the plan names for after a deployment run. Exit codes:
    0 success, 3 the deployment failed, 1 it did not start, 130 interrupted.
    """

    example = 'shop --timeout 90'

    arguments = (
        command_line.either(
            command_line.flag(
                '--validate-only',
                'Let Heat check the plan, and show what would change in the '
                'root template, without changing it',
            ),
            command_line.flag(
                '--no-wait', 'Return when the deployment has started'
            ),
            command_line.flag(
                '--cancel',
                'Stop the deployment in progress, without a rollback',
            ),
        ),
        command_line.number(
            '--timeout',
            '<minutes>',
            "Maximum number of minutes for Heat (default: Heat's own limit)",
        ),
        command_line.flag(
            '--take-over',
            'Update a stack of this name even if no plan created it',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plans = self.plans()
        plan = parsed_args.plan
        if parsed_args.cancel:
            return common.one(plans.cancel(plan), *_SHOWN)
        if parsed_args.validate_only:
            preview = plans.preview(plan, take_over=parsed_args.take_over)
            self.warn(preview.pop('warnings'))
            action = preview.pop('action')
            names = {
                name: columns.NamesCell(value)
                for name, value in preview.items()
            }
            return common.one({'action': action, **names})
        show = progress.DeploymentProgress(self.progress, plan)
        try:
            step = self._deploy(plans, show, parsed_args)
            if step.success is False:
                self.log.error('%s', step.reason)
                self.exit_code = common.FAILED
        except KeyboardInterrupt:
            show.note(
                'Stopped waiting; Heat continues. Check or cancel it:\n  '
                f'openstack deployment plan status {plan} --wait\n  '
                f'openstack deployment plan deploy {plan} --cancel'
            )
            self.exit_code = common.INTERRUPTED
        return common.one(plans.status(plan), *_SHOWN)

    def _deploy(
        self,
        plans: plan_operations.PlanOperations,
        show: progress.DeploymentProgress,
        parsed_args: argparse.Namespace,
    ) -> plan_deployment.Step:
        """Deploy a plan, and show how it goes."""
        follower: plan_stacks.StackFollower | None = None

        def tell(step: plan_deployment.Step) -> bool:
            nonlocal follower
            started = step.state.started
            if not step.state.has_started:
                return False
            show.note(started.action)
            show.warn(started.warnings)
            if not parsed_args.no_wait:
                follower = follower or _follower(plans, show.plan, started)
                show.changed(follower.look())
            elif started.steps:
                self.log.warning(
                    "The plan's workflows and actions for after a deployment "
                    'will not run, because the command does not wait for its '
                    'end'
                )
            return bool(parsed_args.no_wait)

        def run(call: jobs.Call) -> jobs.CallOutcome:
            show.note(f'{call.kind} {call.name}')
            return run_call(self.app.client_manager, plans, call, show.what)

        state = plan_deployment.PlanDeployment(
            plan=show.plan,
            timeout=parsed_args.timeout,
            take_over=parsed_args.take_over,
        )
        return jobs.drive(
            plans.deployment,
            state,
            tell=tell,
            run=run,
            note=show.note,
            most=_MOST,
            sleep=time.sleep,
        )


class ShowStatus(plan_common.PlanCommand):
    """Show the state of a plan's deployment in Heat.

    Exit codes with --wait: 0 success, 3 the deployment failed, 130
    interrupted.
    """

    example = 'shop --wait'

    arguments = (
        command_line.flag('--wait', 'Wait until the deployment has ended'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plans = self.plans()
        status = plans.status(parsed_args.plan)
        if parsed_args.wait and status['status'].endswith('_IN_PROGRESS'):
            show = progress.DeploymentProgress(self.progress, status['plan'])
            started = deploying.Started(stack_id=status['stack_id'])
            follower = _follower(plans, show.plan, started)

            def has_ended(stack: plan_stacks.StackProgress) -> bool:
                show.changed(stack)
                return stack.ended

            try:
                retrying.follow(
                    follower.look,
                    has_ended,
                    interval=_INTERVAL,
                    sleep=time.sleep,
                )
            except KeyboardInterrupt:
                self.exit_code = common.INTERRUPTED
            status = plans.status(parsed_args.plan)
        if parsed_args.wait and status['status'].endswith('_FAILED'):
            self.exit_code = self.exit_code or common.FAILED
        return common.one(status, *_SHOWN)


class ShowDiff(plan_common.PlanCommand):
    """Show what deploying a plan would change in its stack.

    The command compares with the stack in Heat, so it also shows changes that
    were made to the stack without the plan. Secret values are
    masked. Exit code with --exit-code: 0 no difference, 3 some.
    """

    example = 'shop --names-only'

    arguments = (
        command_line.flag(
            '--names-only', 'List only the names of changed files'
        ),
        command_line.flag(
            '--exit-code', 'Exit with code 3 if there is a difference'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        differences = self.plans().diff(parsed_args.plan)['differences']
        if parsed_args.exit_code and differences:
            self.exit_code = common.FAILED
        if not differences:
            self.log.warning(
                'No difference: stack %s equals what plan %s would deploy',
                parsed_args.plan,
                parsed_args.plan,
            )
        shown = ['kind', 'change', 'name']
        if not parsed_args.names_only:
            shown.append('detail')
        rows = [
            tuple(columns.Value(difference[name]) for name in shown)
            for difference in differences
        ]
        return tuple(name.capitalize() for name in shown), rows


def _follower(
    plans: plan_operations.PlanOperations,
    plan: str,
    started: deploying.Started,
) -> plan_stacks.StackFollower:
    """Return a reader of the progress of a plan's deployment."""
    return plan_stacks.StackFollower(
        plans.plans.stacks,
        started.stack_id,
        before=started.before,
        after_event=started.after_event,
        mask=plans.deployer.mask(plan),
    )


def run_call(
    manager: Any,
    plans: plan_operations.PlanOperations,
    call: jobs.Call,
    description: str,
) -> jobs.CallOutcome:
    """Let Mistral run a call of a deployment, and wait for its end.

    Without Mistral, validations run in this process.
    """
    cloud = common.cloud(manager)
    if call.name == plan_deployment.VALIDATIONS and not mistral_api.is_there(
        cloud
    ):
        run = validation_operations.ValidationOperations(plans.plans).run(
            **call.input
        )
        return jobs.CallOutcome(success=run['success'], reason=run['reason'])
    executions = mistral_plans.WorkflowExecutions(cloud)
    execution_id = executions.start(call, description)
    return retrying.follow(
        functools.partial(executions.look, call, execution_id),
        lambda outcome: outcome.success is not None,
        interval=_INTERVAL,
        sleep=time.sleep,
    )
