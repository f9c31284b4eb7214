# SPDX-License-Identifier: Apache-2.0
"""The commands that start runs, and the list of what can be started."""

import argparse
from collections import abc
import functools
import json
import shlex
import sys
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import ordering
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import operation_runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from heat_plugins.signals import live

# More targets than these are confirmed, and some of them are shown first.
_CONFIRMED, _SHOWN = 10, 40

_APPLY = 'APPLY'

_TARGETS = ('--stack', '--stack-tag', '--resource', '--server-metadata')

_LISTED = ('stack', 'resource', 'server', 'is_target', 'variant', 'reason')

# What a list has of an action; the name stands in for the server in tables.
_ACTIONS = ('Resource', 'Action', 'Tool', 'Server', 'Inputs')
_ACTION_KEYS = (*_ACTIONS, 'Server name')


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
        return _ACTION_KEYS, common.Many(rows, _ACTIONS)


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


class RunOperation(common.Report):
    """Run an action, or a script of your own, on many servers over stacks.

    The operation continues without this command. Exit codes with --wait: 0
    success, 3 failed, 4 timed out, 5 cancelled, 1 not started or another
    error, 130 interrupted.
    """

    example = 'BACKUP --stack-tag production --max-concurrent 10 --wait'

    def add_arguments(self, add: command_line.Adder) -> None:
        vars(add.parser)['parse_args'] = functools.partial(
            _parse, add.parser.parse_args
        )
        add.value(
            'action',
            '<action>',
            'The action, such as BACKUP. Instead, you can give a script '
            '(--config-file), or a command after "--", such as: -- uptime',
            nargs='?',
        )
        add.value(
            '--config-file',
            '<file>',
            'Run a file, such as a script, on the servers',
        )
        add.value(
            '--group',
            '<hook>',
            'The hook for --config-file (default: script)',
            default='script',
        )
        _add_targets(add)
        _add_limits(add)
        ordering.add_options(add)
        following.add_page(add)
        add.flag(
            '--dry-run',
            'List the targets, their differences, and which servers are left '
            'out and why, without starting anything',
        )
        add.flag(
            '--yes',
            f'Do not ask for confirmation above {_CONFIRMED} targets; give '
            'this in a pipeline, whatever the number is now',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        manager = self.app.client_manager
        limits = _limits(parsed_args)
        _warn_of_options(parsed_args)
        inputs = ordering.inputs(parsed_args)
        config = _config(parsed_args, inputs)
        order = ordering.order(parsed_args, parsed_args.action or _APPLY)
        fleets = common.fleets(manager)
        chooser = fleet_targets.Chooser(
            common.orchestration(manager), fleets.pool
        )
        self.progress.show('finding the targets')
        chosen = chooser.choose(
            _wanted(parsed_args), order, config, _unconfirmed(parsed_args)
        )
        if parsed_args.dry_run:
            return _dry(chosen)
        self._confirm(parsed_args, chosen, order.action)
        advancer = fleets.create(chosen, limits, order, config)
        operation = following.follow(
            self, parsed_args, advancer, page=parsed_args.output
        )
        return operation_columns.shown(operation, fleets.now())

    def _confirm(
        self,
        parsed_args: argparse.Namespace,
        chosen: fleet_targets.Chosen,
        action: str,
    ) -> None:
        number = len(chosen.targets)
        if number <= _CONFIRMED or parsed_args.yes:
            return
        lines = [
            f'  {target.root.name} {target.server_name or target.path}'
            for target in chosen.targets[:_SHOWN]
        ]
        if number > _SHOWN:
            lines.append(f'  and {number - _SHOWN} more; --dry-run lists all')
        variants = len(set(chosen.variants))
        if variants > 1:
            lines.append(f'They run {variants} different configs for {action}')
        lines += [
            f'  left out: {left.stack} {left.resource}: {left.reason}'
            for left in chosen.left_out[:_SHOWN]
        ]
        question = f'Run {action} on these {number} targets?'
        ordering.confirm(self, lines, question, 'Nothing was started')


def _unconfirmed(parsed_args: argparse.Namespace) -> int | None:
    """Return the most targets to run on if no user can be asked."""
    if parsed_args.yes or parsed_args.dry_run or sys.stdin.isatty():
        return None
    return _CONFIRMED


def _tell(line: str) -> None:
    sys.stderr.write(foreign.line(line) + '\n')


def _parse(
    parse: abc.Callable[..., argparse.Namespace],
    args: abc.Sequence[str] | None = None,
    namespace: argparse.Namespace | None = None,
) -> argparse.Namespace:
    """Parse a command line; what follows ``--`` is a command for servers."""
    words = sys.argv[1:] if args is None else list(args)
    command = None
    if '--' in words:
        place = words.index('--')
        words, command = words[:place], words[place + 1 :]
    parsed = parse(words, namespace)
    parsed.command = command
    return parsed


def _warn_of_options(parsed_args: argparse.Namespace) -> None:
    """Say that a script has options that look like those of the targets."""
    options = [
        word
        for word in parsed_args.command or ()
        if word.partition('=')[0] in _TARGETS
    ]
    if options:
        _tell(
            f'Note: {options[0]} stands after "--", so it belongs to the '
            'script and chooses no targets'
        )


def _add_targets(add: command_line.Adder) -> None:
    group = add.titled('targets')
    group.several(
        '--stack',
        '<stack>',
        'Name or ID of a stack (repeat option for several)',
        dest='stacks',
    )
    group.several(
        '--stack-tag',
        '<tag>',
        'All stacks with a tag (repeat option for several)',
        dest='tags',
    )
    group.several(
        '--resource',
        '<path>',
        'Only a resource and those inside it: path in nested stacks '
        '(parent.child), or a pattern, such as "db*" (repeat option for '
        'several)',
        dest='resources',
    )
    group.several(
        '--server-metadata',
        '<key>=<value>',
        'Only servers whose metadata have this value (repeat option to '
        'require several)',
        dest='metadata',
        type=_pair,
    )


def _add_limits(add: command_line.Adder) -> None:
    group = add.titled('limits')
    group.value(
        '--max-concurrent',
        '<number or percentage>',
        'Maximum number of targets at a time, such as 10 or 25%% (default: '
        f'{operations.CONCURRENT})',
        type=_share,
        default=operations.CONCURRENT,
    )
    group.value(
        '--max-errors',
        '<number or percentage>',
        'Number of failures to allow, such as 3 or 10%%; after more, no '
        'further run starts (default: 0)',
        type=_share,
        default=operations.Share(0),
    )
    group.value(
        '--canary',
        '<number>',
        'Number of targets to run on first; the others start only if all of '
        'these succeed',
        type=_count,
        default=0,
    )
    group.flag(
        '--approve-after-canary',
        'Wait for "operation resume" after the canaries',
    )
    group.value(
        '--pause',
        '<seconds>',
        'Seconds between two batches of --max-concurrent targets; without '
        '--pause, a run starts as soon as another ends',
        type=_count,
        default=0,
    )
    group.number(
        '--deadline',
        '<seconds>',
        'Seconds until the whole operation ends and withdraws its runs',
    )
    ordering.add_if_running(group)


def _share(text: str) -> operations.Share:
    try:
        return operations.Share.parse(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError('must be a number, 0 or more')
    return int(text)


def _pair(text: str) -> tuple[str, str]:
    name, separator, value = text.partition('=')
    if not separator or not name:
        raise argparse.ArgumentTypeError('expected <key>=<value>')
    return name, value


def _wanted(parsed_args: argparse.Namespace) -> fleet_targets.Wanted:
    return fleet_targets.Wanted(
        stacks=parsed_args.stacks,
        tags=parsed_args.tags,
        resources=parsed_args.resources,
        metadata=dict(parsed_args.metadata),
    )


def _limits(parsed_args: argparse.Namespace) -> operations.OperationLimits:
    if parsed_args.approve_after_canary and not parsed_args.canary:
        raise exceptions.CommandError('--approve-after-canary needs --canary')
    return operations.OperationLimits(
        max_concurrent=parsed_args.max_concurrent,
        max_errors=parsed_args.max_errors,
        canary=parsed_args.canary,
        approve_after_canary=parsed_args.approve_after_canary,
        pause=parsed_args.pause,
        timeout=parsed_args.timeout,
        delivery_timeout=parsed_args.delivery_timeout,
        deadline=parsed_args.deadline,
        if_running=parsed_args.if_running,
    )


def _config(
    parsed_args: argparse.Namespace, inputs: abc.Mapping[str, Any]
) -> heat_values.Config | None:
    """Return the script to run; None for an action of the stacks."""
    sources = (
        parsed_args.action,
        parsed_args.config_file,
        parsed_args.command,
    )
    if sum(bool(source) for source in sources) != 1:
        raise exceptions.CommandError(
            'Name an action, or give --config-file, or a command after "--"'
        )
    if parsed_args.config_file:
        text = common.read_text(parsed_args.config_file)
        return config_of(text, parsed_args.group, inputs)
    if parsed_args.command:
        text = f'#!/bin/sh\nexec {shlex.join(parsed_args.command)}\n'
        return config_of(text, 'script', inputs)
    return None


def _dry(chosen: fleet_targets.Chosen) -> common.Shown:
    rows = [
        {
            'stack': target.root.name,
            'resource': target.path,
            'server': target.server_name or target.deployment.server_id,
            'is_target': True,
            'variant': variant,
            'reason': '',
        }
        for target, variant in zip(
            chosen.targets, chosen.variants, strict=True
        )
    ]
    rows += [
        {
            'stack': target.stack,
            'resource': target.resource,
            'server': '',
            'is_target': False,
            'variant': '',
            'reason': target.reason,
        }
        for target in chosen.left_out
    ]
    return _LISTED, common.Many(rows, _LISTED)
