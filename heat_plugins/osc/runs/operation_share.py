# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation share``."""

import argparse

from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import operation_commands
from heat_plugins.runs import summary
from heat_plugins.timeline import operation_page


class ShareOperation(operation_commands.OperationCommand):
    """Copy results of an operation for colleagues who may only read.

    The copy has the targets with their states and outputs, but no inputs and
    no script. All users with a role in the project can read it. Look at the
    outputs first: what a script prints may be a secret.
    """

    example = '00f2c40a --days 1'

    def add_arguments(self, add: command_line.Adder) -> None:
        operation_commands.add_operation(add)
        add.number(
            '--days',
            '<days>',
            'Days after which the object store deletes the copy (default: '
            '%(default)s)',
            default=7,
        )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found, now = self.fleets.show(parsed_args.operation), self.fleets.now()
        page = operation_page.draw(found, now)
        shared = self.fleets.results.share(found, page, parsed_args.days, now)
        self.progress.say(
            'Your colleagues read it by:',
            *(
                f'  openstack object save {shared.container} {name}'
                for name in shared.objects
            ),
        )
        return ('id', 'container', 'objects', 'expires_at'), common.One(
            (
                found.id,
                shared.container,
                columns.NamesCell(shared.objects),
                summary.time(shared.expires_at),
            )
        )
