# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation run``."""

import argparse
from collections import abc
import functools
import shlex
import sys
from typing import Any

from osc_lib import exceptions

from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import action_commands
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import ordering
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import operations

# More targets than these are confirmed, and some of them are shown first.
_CONFIRMED, _SHOWN = 10, 40

_APPLY = 'APPLY'

_TARGETS = ('--stack', '--stack-tag', '--resource', '--server-metadata')

_LISTED = ('stack', 'resource', 'server', 'is_target', 'variant', 'reason')


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
        return action_commands.config_of(text, parsed_args.group, inputs)
    if parsed_args.command:
        text = f'#!/bin/sh\nexec {shlex.join(parsed_args.command)}\n'
        return action_commands.config_of(text, 'script', inputs)
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
