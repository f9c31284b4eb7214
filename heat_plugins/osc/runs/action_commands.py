# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment action list`` and ``… trigger``."""

import argparse
from collections import abc
import json
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc.runs import ordering
from heat_plugins.runs import run_service as services
from heat_plugins.runs.start import batch as batches
from heat_plugins.runs.start import targets

# What a list has of an action; the name stands in for the server in tables.
_LISTED = ('Resource', 'Action', 'Tool', 'Server', 'Inputs')
_KEYS = (*_LISTED, 'Server name')


class Inputs(columns.Column):
    """Declared inputs, with types and defaults."""

    def human_readable(self) -> str:
        return '\n'.join(_input(one) for one in self._value)

    def machine_readable(self) -> Any:
        return [
            {
                key: one.get(key)
                for key in ('name', 'type', 'default', 'description')
            }
            for one in self._value
        ]


def _input(one: abc.Mapping[str, Any]) -> str:
    shown = f'{one["name"]}: {one.get("type") or "String"}'
    if one.get('default') is not None:
        shown += f' = {json.dumps(one["default"])}'
    return columns.text(shown)


class ListActions(common.Report):
    """List what can be run on the servers of a stack."""

    example = 'shop'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_stack(parser)
        parser.add_argument(
            'resource',
            metavar='<resource>',
            nargs='?',
            help='A deployment of it, or a resource that holds some: name, '
            'path in nested stacks (parent.child) or physical ID (default: '
            'all)',
        )
        parser.add_argument(
            '--lifecycle',
            action='store_true',
            help='Include those that Heat runs by itself, such as CREATE',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = common.service(self.app.client_manager)
        found = service.find(parsed_args.stack, parsed_args.resource)
        rows = [
            {
                'Resource': action.resource,
                'Action': action.name,
                'Tool': action.tool,
                'Server': columns.Server(action.server_id, action.server_name),
                'Server name': action.server_name,
                'Inputs': Inputs(action.inputs),
            }
            for target in found
            for action in target.actions()
            if parsed_args.lifecycle or not action.lifecycle
        ]
        return _KEYS, common.Many(rows, _LISTED)


class Trigger(common.Report):
    """Run an action on a server of a stack, or on several.

    Exit codes with --wait: 0 success, 3 failed, 4 timed out, 5 cancelled,
    1 not started or another error, 130 interrupted.
    """

    example = 'shop --all BACKUP --wait --max-concurrent 10'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_stack(parser)
        parser.add_argument(
            'resources',
            metavar='<resource>',
            nargs='*',
            help='A deployment, or a resource that holds some, such as a '
            'group: name, path in nested stacks (parent.child) or physical '
            'ID; repeat for several',
        )
        parser.add_argument(
            'action', metavar='<action>', help='The action, such as BACKUP'
        )
        parser.add_argument(
            '--all',
            action='store_true',
            help='Run it on every deployment of the stack that has it',
        )
        ordering.add_options(parser)
        parser.add_argument(
            '--max-concurrent',
            metavar='<number>',
            type=common.positive,
            help='With --wait or --follow: run on that many servers at a time',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if bool(parsed_args.resources) == parsed_args.all:
            raise exceptions.CommandError('Name a resource, or give --all')
        if parsed_args.max_concurrent and not ordering.waits(parsed_args):
            raise exceptions.CommandError(
                '--max-concurrent needs --wait or --follow'
            )
        service = ordering.service(self.app.client_manager, parsed_args)
        order = ordering.order(parsed_args, parsed_args.action)
        found = _targets(service, parsed_args)
        follower = ordering.follower(
            self, service, parsed_args, several=len(found) > 1
        )
        batch = batches.Batch(
            service,
            found,
            order,
            concurrent=parsed_args.max_concurrent,
            started=follower.started,
        )
        batch.check()
        if ordering.waits(parsed_args):
            runs = follower.batch(batch, found[0].root.id)
        else:
            batch.start()
            runs = batch.runs
        for failure in batch.failures:
            if len(found) == 1:
                raise failure.error
            self.log.error('%s: %s', failure.target.path, failure.error)
            self.exit_code = self.exit_code or 1
        return columns.many(runs, single=True)


def _targets(
    service: services.Runs, parsed_args: argparse.Namespace
) -> list[targets.Target]:
    if parsed_args.all:
        offered = [
            (target, [action.name for action in target.actions()])
            for target in service.find(parsed_args.stack)
        ]
        wanted = parsed_args.action
        found = [target for target, names in offered if wanted in names]
        if not found:
            known = dict.fromkeys(
                name for _, names in offered for name in names
            )
            raise errors.NotFound(
                f'No deployment of stack {parsed_args.stack} has an action '
                f'{wanted}' + bounds.did_you_mean(wanted, known)
            )
        return found
    named = {
        target.deployment.id: target
        for resource in parsed_args.resources
        for target in service.find(parsed_args.stack, resource)
    }
    return list(named.values())
