# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment apply``: a config of one's own."""

import argparse
from collections import abc
from typing import Any

from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import ordering
from heat_plugins.runs import orchestration


class Apply(common.Report):
    """Run a config of your own on a server of a stack.

    This is a run like others: see "software deployment run list". The command
    creates a config, a deployment and a URL for the result, which are deleted
    when the run has ended. Exit codes are those of "software deployment
    trigger".
    """

    example = 'shop db_server --config-file fix.sh --wait'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.stack()
        add.value(
            'server',
            '<server>',
            'The server, a resource of the stack: name, path in nested '
            'stacks (parent.child) or physical ID',
        )
        source = add.either(required=True)
        source.value(
            '--config', '<id>', 'Name or ID of a software config in Heat'
        )
        source.value('--config-file', '<file>', 'A file, such as a script')
        add.value(
            '--group',
            '<hook>',
            'The hook for --config-file (default: script)',
            default='script',
        )
        add.several(
            '--output',
            '<name>',
            'An output of --config-file (repeat option for several)',
            dest='outputs',
        )
        add.value(
            '--action',
            '<action>',
            'The action: which config of a component runs, and the name in '
            'the records (default: APPLY)',
            default='APPLY',
        )
        ordering.add_options(add)
        ordering.add_retention(add)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = ordering.service(self.app.client_manager, parsed_args)
        order = ordering.order(parsed_args, parsed_args.action)
        if parsed_args.config:
            config = service.config(parsed_args.config)
        else:
            config = config_of(
                common.read_text(parsed_args.config_file),
                parsed_args.group,
                order.inputs,
                parsed_args.outputs,
            )
        target = service.server(parsed_args.stack, parsed_args.server, config)
        run = ordering.run(
            self, service, parsed_args, lambda: service.start(target, order)
        )
        return columns.one(run)


def config_of(
    text: str,
    group: str,
    inputs: abc.Mapping[str, Any],
    outputs: abc.Iterable[str] = (),
) -> orchestration.Config:
    """Return a config as it would be in Heat; it takes any input."""
    return orchestration.Config(
        id='',
        name=None,
        group=group,
        config=text,
        inputs=[
            {
                'name': name,
                'type': 'Json'
                if isinstance(value, (dict, list))
                else 'String',
            }
            for name, value in inputs.items()
        ],
        outputs=[{'name': name, 'type': 'String'} for name in outputs],
        options={},
    )
