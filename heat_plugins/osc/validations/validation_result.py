# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan validation result list|show``."""

import argparse
from collections import abc
from typing import Any

from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import drivers
from heat_plugins.validations import validation_runs

_CODES = {
    validation_runs.ValidationState.PASSED: 0,
    validation_runs.ValidationState.STOPPED: common.CANCELLED,
    validation_runs.ValidationState.RUNNING: common.STILL_RUNNING,
}


def exit_code(run: dict[str, Any]) -> int:
    """Return the exit code for how a run stands."""
    return _CODES.get(run['state'], common.FAILED)


def outcomes(run: dict[str, Any]) -> common.Shown:
    """Return columns and rows of the outcome of each validation."""
    return common.table(
        run['outcomes'],
        {
            'Validation': 'validation',
            'Name': columns.of(columns.Value, 'name'),
            'State': columns.of(str, 'state'),
            'Duration': columns.of(columns.Seconds, 'seconds'),
            'Hosts': columns.of(_hosts, 'hosts'),
            'Reason': columns.of(columns.Value, 'reason'),
        },
    )


def _hosts(
    hosts: abc.Mapping[str, abc.Mapping[str, int]],
) -> columns.Outputs:
    """Return the numbers of each host by their names, as people read them."""
    return columns.Outputs(
        {
            host: ', '.join(
                f'{count} {name}' for name, count in counts.items()
            )
            for host, counts in hosts.items()
        }
    )


class ListResults(common.Report):
    """List the runs of validations, the latest first."""

    example = 'shop'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.value('plan', '<plan>', 'Only runs of a plan', nargs='?')

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = drivers.driver(self.app.client_manager, True).validations
        runs = core.results(parsed_args.plan)
        if not runs:
            self.log.warning('There are no recorded runs of validations')
        return common.table(
            runs,
            {
                'Run': 'id',
                'Source': 'source',
                'Stack': 'stack',
                'State': columns.of(str, 'state'),
                'Started': 'started_at',
                'Duration': columns.of(columns.Seconds, 'seconds'),
                'Summary': columns.of(columns.Outputs, 'summary'),
            },
        )


class ShowResult(common.Report):
    """Show the outcome of a run, or of a validation in it.

    Exit codes: 0 passed, 3 failed, 5 stopped, 6 in progress; with a validation
    always 0.
    """

    example = '20261121T034228Z-00f2c40a check-ram'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.value('run', '<run>', 'The run')
        add.value(
            'validation',
            '<validation>',
            'Show a validation of the run: each task on each host',
            nargs='?',
        )
        add.flag('--stdout', 'With a validation: show the output of Ansible')

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = drivers.driver(self.app.client_manager, True).validations
        if parsed_args.validation is None:
            run = core.result(parsed_args.run)
            self.exit_code = exit_code(run)
            if run['reason']:
                self.log.warning('%s', run['reason'])
            return outcomes(run)
        detail = core.result(parsed_args.run, parsed_args.validation)
        if detail['cut']:
            self.log.warning('The output was longer; only a part is kept')
        if parsed_args.stdout:
            return ('stdout',), common.One((detail['stdout'].rstrip(),))
        shown = {
            name.capitalize(): columns.of(columns.Value, name)
            for name in ('host', 'play', 'task', 'state')
        }
        shown['Duration'] = columns.of(columns.Seconds, 'seconds')
        shown['Message'] = columns.of(columns.Value, 'message')
        return common.table(detail['tasks'], shown)
