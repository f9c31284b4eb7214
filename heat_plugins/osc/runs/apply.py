# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment apply``: a config of one's own."""

import argparse
from collections import abc
from typing import Any

from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc.runs import ordering
from heat_plugins.runs import orchestration


class Apply(common.Report):
    """Run a config that is not the stack's on one of its servers.

    It makes the config, the deployment and the URL to signal to, and it is
    a run like others: see "software deployment run list" and its like. What
    was made for it goes when it has ended. Exit codes are those of "software
    deployment trigger".
    """

    example = 'shop db_server --config-file fix.sh --wait'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_stack(parser)
        parser.add_argument(
            'server',
            metavar='<server>',
            help='The server among its resources: name, path in nested '
            'stacks (parent.child) or physical ID',
        )
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument(
            '--config', metavar='<id>', help='A software config of Heat'
        )
        source.add_argument(
            '--config-file', metavar='<file>', help='A file, such as a script'
        )
        parser.add_argument(
            '--group',
            metavar='<hook>',
            default='script',
            help='The hook for --config-file (default: script)',
        )
        parser.add_argument(
            '--output',
            dest='outputs',
            metavar='<name>',
            action='append',
            default=[],
            help='An output of --config-file (repeat option for several)',
        )
        parser.add_argument(
            '--action',
            metavar='<action>',
            default='APPLY',
            help='The action, for a component and for the records '
            '(default: APPLY)',
        )
        ordering.add_options(parser)
        return parser

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
        follower = ordering.follower(self, service, parsed_args)
        run = service.start(target, order)
        follower.started(run)
        if ordering.waits(parsed_args):
            (run,) = follower.wait([run])
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
