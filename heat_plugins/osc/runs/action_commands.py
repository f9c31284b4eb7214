# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment action list`` and ``… trigger``."""

import argparse
from collections import abc
import json
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import ordering
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import operation_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

# What a list has of an action; the name stands in for the server in tables.
_LISTED = ('Resource', 'Action', 'Tool', 'Server', 'Inputs')
_KEYS = (*_LISTED, 'Server name')


class Inputs(columns.Column):
    """Declared inputs, with types and defaults."""

    def human_readable(self) -> str:
        return '\n'.join(_input(each) for each in self._value)

    def machine_readable(self) -> Any:
        return [
            {
                key: each.get(key)
                for key in ('name', 'type', 'default', 'description')
            }
            for each in self._value
        ]


def _input(declared: abc.Mapping[str, Any]) -> str:
    shown = f'{declared["name"]}: {declared.get("type") or "String"}'
    if declared.get('default') is not None:
        shown += f' = {json.dumps(declared["default"])}'
    return columns.text(shown)


class ListActions(common.Report):
    """List the actions that you can run on the servers of a stack."""

    example = 'shop'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.stack()
        add.value(
            'resource',
            '<resource>',
            'A deployment, or a resource that has some, such as a group: '
            'name, path in nested stacks (parent.child) or physical ID '
            '(default: all)',
            nargs='?',
        )
        add.flag(
            '--lifecycle',
            'Include actions that Heat runs by itself, such as CREATE',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = common.service(self.app.client_manager)
        targets_there = service.find(parsed_args.stack, parsed_args.resource)
        rows = [
            {
                'Resource': action.resource,
                'Action': action.name,
                'Tool': action.tool,
                'Server': columns.ServerCell(
                    action.server_id, action.server_name
                ),
                'Server name': action.server_name,
                'Inputs': Inputs(action.inputs),
            }
            for target in targets_there
            for action in target.actions()
            if parsed_args.lifecycle or not action.lifecycle
        ]
        return _KEYS, common.Many(rows, _LISTED)


class Trigger(common.Report):
    """Run an action on a server of a stack, or on several.

    On several it is an operation; see "operation show".
    Exit codes with --wait: 0 success, 3 failed, 4 timed out, 5 cancelled,
    1 not started or another error, 130 interrupted.
    """

    example = 'shop --all BACKUP --wait --max-concurrent 10'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.stack()
        add.value(
            'resources',
            '<resource>',
            'A deployment, or a resource that has some, such as a group: '
            'name, path in nested stacks (parent.child) or physical ID; '
            'repeat for several',
            nargs='*',
        )
        add.value('action', '<action>', 'The action, such as BACKUP')
        add.flag(
            '--all',
            'Run the action on every deployment of the stack that has it',
        )
        ordering.add_options(add)
        ordering.add_retention(add)
        add.number(
            '--max-concurrent',
            '<number>',
            'Maximum number of servers at a time (default: all)',
        )
        ordering.add_if_running(add)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if bool(parsed_args.resources) == parsed_args.all:
            raise exceptions.CommandError('Name a resource, or give --all')
        manager = self.app.client_manager
        service = ordering.service(manager, parsed_args)
        order = ordering.order(parsed_args, parsed_args.action)
        chosen = _targets(service, parsed_args)
        if len(chosen) > 1 or parsed_args.if_running == operations.WAIT:
            return self._operate(parsed_args, chosen, order)
        run = ordering.run(
            self, service, parsed_args, lambda: service.start(chosen[0], order)
        )
        return columns.many([run], single=True)

    def _operate(
        self,
        parsed_args: argparse.Namespace,
        offered: list[targets.Target],
        order: starting.RunOrder,
    ) -> common.Shown:
        """Run an action on several targets, as an operation."""
        for target in offered:
            starting.check(target, order)
        limits = operations.OperationLimits(
            max_concurrent=operations.Share(
                parsed_args.max_concurrent or len(offered)
            ),
            # A run that fails does not keep the others from starting.
            max_errors=operations.Share(100, is_percent=True),
            timeout=order.timeout,
            delivery_timeout=order.delivery_timeout,
            if_running=parsed_args.if_running,
        )
        chosen = fleet_targets.Chosen(
            targets=offered, description=f'stack {parsed_args.stack}'
        )
        limit = parsed_args.log_limit
        advancer = common.fleets(self.app.client_manager).create(
            chosen,
            limits,
            order,
            # The default is for one run; of many, each may have to do with
            # less.
            log_limit=None if limit == live.LIMIT else limit,
        )
        ended = following.follow(self, parsed_args, advancer)
        states = {attempt.state for attempt in ended.attempts}
        if states == {runs.State.SKIPPED}:
            # As if one alone is refused.
            self.exit_code = common.NOT_STARTED
        return columns.many(operation_runs.of(ended, skipped=True))


def _targets(
    service: run_service.Runs, parsed_args: argparse.Namespace
) -> list[targets.Target]:
    if parsed_args.all:
        offered = [
            (target, [action.name for action in target.actions()])
            for target in service.find(parsed_args.stack)
        ]
        wanted = parsed_args.action
        chosen = [target for target, names in offered if wanted in names]
        if not chosen:
            known = dict.fromkeys(
                name for _, names in offered for name in names
            )
            raise errors.NotFound(
                f'No deployment of stack {parsed_args.stack} has an action '
                f'{wanted}' + bounds.did_you_mean(wanted, known)
            )
        return chosen
    return service.find(parsed_args.stack, *parsed_args.resources)


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
) -> heat_values.Config:
    """Return a config as it would be in Heat; it takes any input."""
    return heat_values.Config(
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
