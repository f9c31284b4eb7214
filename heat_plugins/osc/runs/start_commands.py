# SPDX-License-Identifier: Apache-2.0
"""The command that starts runs, and the lists of what can be started."""

import argparse
from collections import abc
import functools
import json
import shlex
import sys
from typing import Any
import uuid

from osc_lib import exceptions
from osc_lib import utils

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.clients import runs as client
from heat_plugins.configs import actions
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import run_columns
from heat_plugins.runs import run_records

# More targets than these are confirmed, and some of them are shown first.
_CONFIRMED, _SHOWN = 10, 40

_NOTHING = 'Nothing was started'

_OF_TARGETS = ('--stack', '--stack-tag', '--resource', '--server-metadata')

_LISTED = ('stack', 'resource', 'server', 'is_target', 'variant', 'reason')

# What a list has of an action; the name stands in for the server in tables.
_ACTIONS = ('Resource', 'Action', 'Tool', 'Server', 'Inputs')
_ACTION_KEYS = (*_ACTIONS, 'Server name')

_LOG_LIMIT = 'HEAT_PLUGINS_RUN_LOG_LIMIT'


def _inputs(declared: abc.Iterable[abc.Mapping[str, Any]]) -> str:
    """Return declared inputs in words, with types and defaults."""
    return '\n'.join(
        columns.text(
            f'{each["name"]}: {each.get("type") or "String"}'
            + (
                f' = {json.dumps(each["default"])}'
                if each.get('default') is not None
                else ''
            )
        )
        for each in declared
    )


def _parse(
    parse: abc.Callable[..., argparse.Namespace],
    args: abc.Sequence[str] | None = None,
    namespace: argparse.Namespace | None = None,
) -> argparse.Namespace:
    """Parse a command line; words after ``--`` are a command for servers."""
    words = sys.argv[1:] if args is None else list(args)
    place = words.index('--') if '--' in words else len(words)
    parsed = parse(words[:place], namespace)
    parsed.command = words[place + 1 :] if place < len(words) else None
    return parsed


def _share(text: str) -> str:
    """Check a number or a percentage on the command line."""
    try:
        return str(run_records.Share.parse(text))
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


_count = functools.partial(command_line.whole, least=0)

# A script of the user's own.
_SCRIPT = (
    command_line.either(
        command_line.value(
            '--config', '<id>', 'ID of a software config in Heat'
        ),
        command_line.value(
            '--config-file', '<file>', 'A file, such as a script'
        ),
    ),
    command_line.value(
        '--group',
        '<hook>',
        'The hook for --config-file (default: script)',
        default='script',
    ),
    command_line.several(
        '--script-output',
        '<name>',
        'An output of --config-file (repeat option for several)',
        dest='outputs',
    ),
)

_TARGETS = command_line.titled(
    'targets',
    command_line.several(
        '--stack',
        '<stack>',
        'Name or ID of a stack (repeat option for several)',
        dest='stacks',
    ),
    command_line.several(
        '--stack-tag',
        '<tag>',
        'All stacks with a tag (repeat option for several)',
        dest='tags',
    ),
    command_line.several(
        '--resource',
        '<path>',
        'Only a resource and those inside it: path in nested stacks '
        '(parent.child), or a pattern, such as "db*" (repeat option for '
        'several)',
        dest='resources',
    ),
    command_line.several(
        '--server-metadata',
        '<key>=<value>',
        'Only servers whose metadata have this value (repeat option to '
        'require several)',
        dest='metadata',
        type=command_line.Input,
    ),
)

_LIMITS = command_line.titled(
    'limits',
    command_line.value(
        '--max-concurrent',
        '<number or percentage>',
        'Maximum number of targets at a time, such as 10 or 25%% (default: '
        f'{run_records.CONCURRENT})',
        type=_share,
    ),
    command_line.value(
        '--max-errors',
        '<number or percentage>',
        'Number of failures to allow, such as 3 or 10%%; after more, no '
        'further target starts (default: 0)',
        type=_share,
    ),
    command_line.value(
        '--canary',
        '<number>',
        'Number of targets to run on first; the others start only if all of '
        'these succeed',
        type=_count,
    ),
    command_line.flag(
        '--approve-after-canary',
        'Wait for "run resume" after the canaries',
    ),
    command_line.value(
        '--pause',
        '<seconds>',
        'Seconds between two batches of --max-concurrent targets; without '
        '--pause, a target starts as soon as another ends',
        type=_count,
    ),
    command_line.number(
        '--deadline',
        '<seconds>',
        'Seconds until the whole run ends, and is withdrawn from the servers',
    ),
    command_line.number(
        '--cut-off',
        '<seconds>',
        'Seconds after which no further target starts; those in progress '
        'continue',
    ),
    command_line.choice(
        '--if-running',
        (run_records.SKIP, run_records.WAIT),
        'What to do with a target on which the action already runs: skip '
        '(default), or wait for the end of that run',
    ),
)

# Inputs, time limits and waiting.
_OPTIONS = (
    command_line.several(
        '--input',
        '<name>=<value>',
        'Override the value of an input (repeat option for several). Other '
        'users of this machine can see command lines: give secrets with '
        '--inputs-file',
        dest='inputs',
        type=command_line.Input,
    ),
    command_line.value(
        '--inputs-file',
        '<file>',
        'Read inputs from a map in YAML or JSON; - for standard input. '
        '--input overrides it',
    ),
    command_line.number(
        '--timeout',
        '<seconds>',
        'Seconds until the run is withdrawn from a server (default: the '
        'property "timeout" of the deployment, or '
        f'{run_records.DEFAULT_TIMEOUT})',
    ),
    command_line.number(
        '--delivery-timeout',
        '<seconds>',
        'Seconds until the server must report the start; only for servers '
        'with heat-config-supervisor, or actions that report progress',
    ),
    command_line.flag(
        '--wait', 'Wait until the run has ended, and show its outputs'
    ),
    command_line.flag(
        '--follow',
        'Wait, and show on standard error what the script prints. A server '
        'without heat-config-supervisor sends that only at the end',
    ),
    command_line.number(
        '--log-limit',
        '<bytes>',
        'Bytes of live output to keep of each target; of a longer one the '
        f'beginning and the end are kept (Env: {_LOG_LIMIT})',
        default=utils.env(_LOG_LIMIT, default=None),
    ),
)


class ListActions(common.Report):
    """List the actions that you can run on the servers of a stack."""

    example = 'shop'

    arguments = (
        command_line.STACK,
        command_line.value(
            'resource',
            '<resource>',
            'A deployment, or a resource that has some, such as a group: '
            'name, path in nested stacks (parent.child) or physical ID '
            '(default: all)',
            nargs='?',
        ),
        command_line.flag(
            '--lifecycle',
            'Include actions that Heat runs by itself, such as CREATE',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        offers = common.runs(self.app.client_manager).actions(
            parsed_args.stack, parsed_args.resource
        )
        rows = [
            {
                'Resource': offer.resource,
                'Action': name,
                'Tool': tool,
                'Server': columns.server(offer.server, offer.server_name),
                'Server name': offer.server_name,
                'Inputs': columns.Said([*offer.inputs], _inputs),
            }
            for offer in offers
            for name, tool in offer.actions.items()
            if parsed_args.lifecycle or name not in actions.LIFECYCLE
        ]
        return _ACTION_KEYS, common.Many(rows, _ACTIONS)


class ListFeatures(common.Report):
    """List what this cloud has services for.

    Any user can ask: the catalogue of the token says which services there
    are. Whether they work, "heat-plugins-status feature list" checks on a
    host of heat-engine.
    """

    example = '-f json'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        reached = common.cloud(self.app.client_manager)
        lacking = {
            part: wording.no_service(*names)
            for part, names in wording.SERVICES.items()
            if not any(map(reached.has, names))
        }
        reasons = {
            feature: next((lacking[p] for p in parts if p in lacking), '')
            for feature, parts in wording.FEATURES.items()
        }
        return ('Feature', 'Has services', 'Reason'), [
            (feature, 'no' if reason else 'yes', reason)
            for feature, reason in reasons.items()
        ]


class StartRun(common.Report):
    """Run an action, or a script of your own, on one server or on many.

    heat-engine selects the targets and leads the run, which continues without
    this command; see "run show".

    Exit codes with --wait: 0 success, 3 failed, 4 timed out, 5 cancelled, 1
    not started or another error, 130 interrupted.
    """

    example = 'BACKUP --stack shop --resource db --wait'

    # What runs, where, and with which limits.
    arguments: command_line.Arguments = (
        # What follows "--" is a command for servers.
        lambda parser: parser.__dict__.update(
            parse_args=functools.partial(_parse, parser.parse_args)
        ),
        command_line.value(
            'action',
            '<action>',
            'The action, such as BACKUP. Instead, you can give a script '
            '(--config-file, --config), or a command after "--", such as: -- '
            'uptime. With a script, its action in the records (default: '
            'APPLY)',
            nargs='?',
        ),
        *_SCRIPT,
        _TARGETS,
        _LIMITS,
        following.PAGE,
        command_line.value(
            '--notify',
            '<file>',
            'Let heat-engine tell a webhook when the run fails, times out or '
            'waits too long, and when a retry of it is complete. The file, or '
            '- for standard input, is a map in YAML or JSON with url, secret, '
            'and perhaps events and waits',
        ),
        command_line.flag(
            '--dry-run',
            'List the targets, their differences, and which servers are left '
            'out and why, without starting anything',
        ),
        command_line.flag(
            '--yes',
            f'Do not ask for confirmation above {_CONFIRMED} targets; give '
            'this in a pipeline, whatever the number is now',
        ),
        *_OPTIONS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if parsed_args.approve_after_canary and not parsed_args.canary:
            raise exceptions.CommandError(
                '--approve-after-canary needs --canary'
            )
        if parsed_args.notify == parsed_args.inputs_file == '-':
            raise exceptions.CommandError(
                '--notify and --inputs-file cannot both read standard input'
            )
        scripts = parsed_args.config, parsed_args.config_file
        if any((parsed_args.action, *scripts)) == bool(parsed_args.command):
            raise exceptions.CommandError(
                'Name an action, or give --config-file, or a command after '
                '"--"'
            )
        for word in parsed_args.command or ():
            if word.partition('=')[0] in _OF_TARGETS:
                self.progress.say(
                    f'Note: {word} stands after "--", so it belongs to the '
                    'script and chooses no targets'
                )
        order = _order(parsed_args)
        door = common.runs(self.app.client_manager)
        if parsed_args.follow:
            # Before anything starts.
            common.live_store(self.app.client_manager)
        self.progress.show('finding the targets')
        if parsed_args.dry_run:
            selected = door.select(**order)
            if selected.more:
                self.log.warning(
                    '%d further rows are not shown', selected.more
                )
            return _LISTED, common.Many(selected.rows, _LISTED)
        most = None if parsed_args.yes else _CONFIRMED
        run_id = str(uuid.uuid4())
        try:
            run = self._send(door, run_id, order, confirm_above=most)
        except client.Unconfirmed as exc:
            self._confirm(exc.selection, parsed_args.action or 'the script')
            expected = exc.selection.targets
            run = self._send(door, run_id, order, expected=expected)
        is_followed = parsed_args.wait or parsed_args.follow
        if not is_followed:
            run_columns.RunProgress(self.progress, tuple).changed(run)
        run = following.follow(self, parsed_args, door, run)
        if run.counts.keys() == {run_records.State.SKIPPED.value}:
            self.exit_code = common.NOT_STARTED
        # Else nothing is known of its targets yet.
        return (
            following.shown(door, run) if is_followed else run_columns.one(run)
        )

    def _send(
        self,
        door: client.Runs,
        run_id: str,
        order: abc.Mapping[str, Any],
        **more: Any,
    ) -> client.Run:
        """Start a run.

        :raises exceptions.CommandError: it says whether something may run.
        """
        doubt = (
            f'Run {run_id} may have started; check with: openstack software '
            f'deployment run show {run_id}'
        )
        try:
            return door.start(run_id=run_id, **order, **more)
        except KeyboardInterrupt:
            self.progress.say(doubt)
            raise
        except (client.Unconfirmed, client.NoDoor):
            # The second may come after an order whose answer was lost.
            raise
        except errors.Unavailable as exc:
            message = f'{exc}. {doubt}'
        except errors.Error as exc:
            message = str(exc)
            if _NOTHING.lower() not in message.lower():
                end = '' if message.endswith('?') else '.'
                message = f'{message}{end} {_NOTHING}'
        raise exceptions.CommandError(message)

    def _confirm(self, selected: client.Selection, what: str) -> None:
        """Show the selected targets, and ask the user whether to start."""
        chosen = [each for each in selected.rows if each['is_target']]
        lines = [
            f'  {each["stack"]} {each["server"] or each["resource"]}'
            for each in chosen[:_SHOWN]
        ]
        if selected.targets > _SHOWN:
            rest = selected.targets - _SHOWN
            lines.append(f'  and {rest} more; --dry-run lists all')
        variants = len({each['variant'] for each in chosen})
        if variants > 1:
            lines.append(f'They run {variants} different configs for {what}')
        left_out = [e for e in selected.rows if not e['is_target']][:_SHOWN]
        lines += [
            f'  left out: {each["stack"]} {each["resource"]}: {each["reason"]}'
            for each in left_out
        ]
        question = f'Run {what} on these {selected.targets} targets?'
        self.confirm(lines, question, _NOTHING)


def _order(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the order of a command line, as `ordering.Start` has it."""
    inputs, path = {}, parsed_args.inputs_file
    if path:
        inputs = common.read_map(path)
    inputs |= {each.name: each.value for each in parsed_args.inputs}
    limits = {
        name: value
        for name in run_records.LIMIT_NAMES
        if (value := getattr(parsed_args, name))
    }
    group, outputs, text = parsed_args.group, parsed_args.outputs, None
    if parsed_args.command:
        text = f'#!/bin/sh\nexec {shlex.join(parsed_args.command)}\n'
        group, outputs = 'script', []
    elif parsed_args.config_file:
        text = common.read_text(parsed_args.config_file)
    # A script of the user's own takes all inputs.
    config = {
        'config': text,
        'group': group,
        'inputs': [
            {
                'name': name,
                'type': 'Json'
                if isinstance(value, (dict, list))
                else 'String',
            }
            for name, value in inputs.items()
        ],
        'outputs': [{'name': name, 'type': 'String'} for name in outputs],
    }
    notify = parsed_args.notify
    return {
        'action': parsed_args.action or '',
        'stacks': parsed_args.stacks,
        'tags': parsed_args.tags,
        'resources': parsed_args.resources,
        'metadata': {each.name: each.value for each in parsed_args.metadata},
        'inputs': inputs,
        'config': None if text is None else config,
        'config_id': parsed_args.config,
        'limits': limits,
        'log_limit': parsed_args.log_limit,
        'notify': None if notify is None else common.read_map(notify),
    }
