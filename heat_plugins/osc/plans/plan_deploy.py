# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan deploy|status|diff``."""

import argparse

from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import drivers
from heat_plugins.osc import progress
from heat_plugins.osc.plans import plan_common

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
        driver = self.driver(parsed_args)
        plan = parsed_args.plan
        if parsed_args.cancel:
            return _status(driver.call('plan.cancel', plan=plan))
        if parsed_args.validate_only:
            return self._preview(driver, parsed_args)
        show = progress.DeploymentProgress(self.progress, plan)
        try:
            driver.deploy(
                plan,
                show,
                wait=not parsed_args.no_wait,
                timeout=parsed_args.timeout,
                take_over=parsed_args.take_over,
            )
        except errors.Failed as exc:
            self.log.error('%s', exc)
            self.exit_code = common.FAILED
        except KeyboardInterrupt:
            show.note(
                'Stopped waiting; Heat continues. Check or cancel it:\n  '
                f'openstack deployment plan status {plan} --wait\n  '
                f'openstack deployment plan deploy {plan} --cancel'
            )
            self.exit_code = common.INTERRUPTED
        return _status(driver.call('plan.status', plan=plan))

    def _preview(
        self, driver: drivers.Driver, parsed_args: argparse.Namespace
    ) -> common.Shown:
        preview = driver.call(
            'plan.preview',
            plan=parsed_args.plan,
            take_over=parsed_args.take_over,
        )
        self.warn(preview.pop('warnings'))
        action = preview.pop('action')
        shown = {
            name: columns.NamesCell(names) for name, names in preview.items()
        }
        return plan_common.one({'action': action, **shown})


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
        driver = self.driver(parsed_args)
        status = driver.call('plan.status', plan=parsed_args.plan)
        if parsed_args.wait and status['status'].endswith('_IN_PROGRESS'):
            self._wait(driver, status)
            status = driver.call('plan.status', plan=parsed_args.plan)
        if parsed_args.wait and status['status'].endswith('_FAILED'):
            self.exit_code = self.exit_code or common.FAILED
        return _status(status)

    def _wait(self, driver: drivers.Driver, status: drivers.Report) -> None:
        show = progress.DeploymentProgress(self.progress, status['plan'])
        try:
            driver.follow(status['plan'], status['stack_id'], show)
        except KeyboardInterrupt:
            self.exit_code = common.INTERRUPTED


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
        driver = self.driver(parsed_args)
        differences = driver.call('plan.diff', plan=parsed_args.plan)[
            'differences'
        ]
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


def _status(status: drivers.Report) -> common.Shown:
    return plan_common.one(status, *_SHOWN)
