# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan validation result list|show``."""

import argparse

from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import ways
from heat_plugins.osc.validations import validation_common


class ListResults(common.Report):
    """List the runs of validations that are kept, the latest first."""

    example = 'overcloud'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'plan', metavar='<plan>', nargs='?', help='Only those of a plan'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = ways.way(self.app.client_manager, True).validations
        found = core.results(parsed_args.plan)
        if not found:
            self.log.warning('There is no run of validations that is kept')
        rows = [
            (
                one['id'],
                one['source'],
                one['stack'],
                str(one['state']),
                one['started_at'],
                columns.Seconds(one['seconds']),
                columns.Outputs(one['summary']),
            )
            for one in found
        ]
        headers = (
            'Run',
            'Source',
            'Stack',
            'State',
            'Started',
            'Duration',
            'Summary',
        )
        return headers, rows


class ShowResult(common.Report):
    """Show the outcome of a run, or of a validation in it.

    Exit codes: 0 passed, 3 not passed, 5 stopped, 6 it goes on; with a
    validation always 0.
    """

    example = '20261121T034228Z-00f2c40a check-ram'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('run', metavar='<run>', help='The run')
        parser.add_argument(
            'validation',
            metavar='<validation>',
            nargs='?',
            help='A validation in it: each of its tasks on each host',
        )
        parser.add_argument(
            '--stdout',
            action='store_true',
            help='With a validation: what Ansible has printed',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        core = ways.way(self.app.client_manager, True).validations
        if parsed_args.validation is None:
            run = core.result(parsed_args.run)
            self.exit_code = validation_common.exit_code(run)
            if run['reason']:
                self.log.warning('%s', run['reason'])
            return validation_common.outcomes(run)
        found = core.result(parsed_args.run, parsed_args.validation)
        if found['cut']:
            self.log.warning('There was more than is kept')
        if parsed_args.stdout:
            return ('stdout',), common.One((found['stdout'].rstrip(),))
        rows = [
            (
                columns.Value(one['host']),
                columns.Value(one['play']),
                columns.Value(one['task']),
                columns.Value(one['state']),
                columns.Seconds(one['seconds']),
                columns.Value(one['message']),
            )
            for one in found['tasks']
        ]
        headers = ('Host', 'Play', 'Task', 'State', 'Duration', 'Message')
        return headers, rows
