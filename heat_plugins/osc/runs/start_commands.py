# SPDX-License-Identifier: Apache-2.0
"""The commands that start runs, and the list of what can be started.

``run start`` is the one that the pages teach. The older names are the same
code: they name targets in their own terms, and show what has started as they
always did.
"""

import argparse
from collections import abc
import functools
import json
import shlex
import sys
from typing import Any, cast

from osc_lib import exceptions
from osc_lib import utils

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.clients import webhooks
from heat_plugins.configs import actions
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import operation_commands
from heat_plugins.osc.runs import run_commands
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import notice_orders
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from heat_plugins.signals import live

# More targets than these are confirmed, and some of them are shown first.
_CONFIRMED, _SHOWN = 10, 40

_APPLY = 'APPLY'

_OF_TARGETS = ('--stack', '--stack-tag', '--resource', '--server-metadata')

_LISTED = ('stack', 'resource', 'server', 'is_target', 'variant', 'reason')

# What a list has of an action; the name stands in for the server in tables.
_ACTIONS = ('Resource', 'Action', 'Tool', 'Server', 'Inputs')
_ACTION_KEYS = (*_ACTIONS, 'Server name')

# How many finished runs to keep, where no option says so.
_NUMBER, _DAYS = 'HEAT_PLUGINS_KEEP_RUNS', 'HEAT_PLUGINS_KEEP_DAYS'
_LOG_LIMIT = 'HEAT_PLUGINS_RUN_LOG_LIMIT'

# What older names do not offer.
_FIXED = {
    'command': None,
    'config': None,
    'config_file': None,
    'dry_run': False,
    'notify': None,
    'output': None,
    'yes': True,
}


# What the argument <resource> takes.
_RESOURCE = (
    'A deployment, or a resource that has some, such as a group: name, path '
    'in nested stacks (parent.child) or physical ID'
)


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


def _share(text: str) -> operations.Share:
    try:
        return operations.Share.parse(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(str(exc)) from exc


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError('must be a number, 0 or more')
    return int(text)


def _log_limit(text: str) -> int:
    limit = command_line.positive(text)
    least, most = 2 * live.SLOT, (live.MOST - 1) * live.SLOT
    if not least <= limit <= most:
        raise argparse.ArgumentTypeError(
            f'{text} is not between {least} and {most}'
        )
    return limit


def _takes_command(parser: argparse.ArgumentParser) -> None:
    """Let a parser take a command for servers; see `_parse`."""
    vars(parser)['parse_args'] = functools.partial(_parse, parser.parse_args)


def _retained(parser: Any) -> None:
    """Add how much of finished runs is kept, by default as in the environment.

    :param parser: or a group of one.
    """
    default = record_names.Retention()
    options = (
        command_line.number(
            '--keep-runs',
            '<number>',
            'Ended runs of the action on the deployment to keep; older ones '
            'are deleted. Runs on several targets are kept with their '
            f'operation (default: {default.number}, Env: {_NUMBER})',
            default=utils.env(_NUMBER, default=str(default.number)),
        ),
        command_line.number(
            '--keep-days',
            '<days>',
            'Days to keep such runs; older ones are deleted (default: '
            f'{default.days}, Env: {_DAYS})',
            default=utils.env(_DAYS, default=str(default.days)),
        ),
        command_line.value(
            '--log-limit',
            '<bytes>',
            'Bytes of live output to keep; of a longer one the beginning and '
            f'the end are kept (default: {default.log_limit}, Env: '
            f'{_LOG_LIMIT})',
            type=_log_limit,
            default=utils.env(_LOG_LIMIT, default=str(default.log_limit)),
        ),
    )
    command_line.add(parser, options)


def _script(output: str, *, required: bool) -> command_line.Arguments:
    """Return options for a script of the user's own.

    :param output: the option that names its outputs.
    """
    return (
        command_line.either(
            command_line.value(
                '--config', '<id>', 'Name or ID of a software config in Heat'
            ),
            command_line.value(
                '--config-file', '<file>', 'A file, such as a script'
            ),
            required=required,
        ),
        command_line.value(
            '--group',
            '<hook>',
            'The hook for --config-file (default: script)',
            default='script',
        ),
        command_line.several(
            output,
            '<name>',
            'An output of --config-file (repeat option for several)',
            dest='outputs',
        ),
    )


_IF_RUNNING = command_line.choice(
    '--if-running',
    (operations.SKIP, operations.WAIT),
    'What an operation does with a target on which the action already runs: '
    'skip (default), or wait for the end of that run',
    default=operations.SKIP,
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
        f'{operations.CONCURRENT})',
        type=_share,
        default=operations.CONCURRENT,
    ),
    command_line.value(
        '--max-errors',
        '<number or percentage>',
        'Number of failures to allow, such as 3 or 10%%; after more, no '
        'further run starts (default: 0)',
        type=_share,
        default=operations.Share(0),
    ),
    command_line.value(
        '--canary',
        '<number>',
        'Number of targets to run on first; the others start only if all of '
        'these succeed',
        type=_count,
        default=0,
    ),
    command_line.flag(
        '--approve-after-canary',
        'Wait for "operation resume" after the canaries',
    ),
    command_line.value(
        '--pause',
        '<seconds>',
        'Seconds between two batches of --max-concurrent targets; without '
        '--pause, a run starts as soon as another ends',
        type=_count,
        default=0,
    ),
    command_line.number(
        '--deadline',
        '<seconds>',
        'Seconds until the whole operation ends and withdraws its runs',
    ),
    command_line.number(
        '--cut-off',
        '<seconds>',
        'Seconds after which no further run starts; those in progress '
        'continue',
    ),
    _IF_RUNNING,
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
        'Seconds until the run is withdrawn from the server (default: the '
        'property "timeout" of the deployment, or '
        f'{runs.DEFAULT_TIMEOUT}; for a rerun, that of the former run)',
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
    _retained,
)


class ListActions(common.Report):
    """List the actions that you can run on the servers of a stack."""

    example = 'shop'

    arguments = (
        command_line.STACK,
        command_line.value(
            'resource',
            '<resource>',
            f'{_RESOURCE} (default: all)',
            nargs='?',
        ),
        command_line.flag(
            '--lifecycle',
            'Include actions that Heat runs by itself, such as CREATE',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = common.service(self.app.client_manager)
        targets_there = service.find(parsed_args.stack, parsed_args.resource)
        rows = [
            {
                'Resource': target.resource,
                'Action': name,
                'Tool': actions.hook_for(
                    target.config.group, target.config.config, name
                ),
                'Server': columns.ServerCell(
                    target.server_id, target.server_name
                ),
                'Server name': target.server_name,
                'Inputs': Inputs(target.inputs),
            }
            for target in targets_there
            for name in (
                target.actions if parsed_args.lifecycle else target.offered
            )
        ]
        return _ACTION_KEYS, common.Many(rows, _ACTIONS)


class StartRun(operation_commands.OperationCommand):
    """Run an action, or a script of your own, on one server or on many.

    On one target it is a run, see "run show"; on several an operation, which
    continues without this command, see "operation show". --deadline,
    --if-running wait and --output make an operation of one target, too.

    Exit codes with --wait: 0 success, 3 failed, 4 timed out, 5 cancelled, 1
    not started or another error, 130 interrupted.
    """

    example = 'BACKUP --stack shop --resource db --wait'

    # What runs, where, and with which limits.
    shared = (
        _takes_command,
        command_line.value(
            'action',
            '<action>',
            'The action, such as BACKUP. Instead, you can give a script '
            '(--config-file, --config), or a command after "--", such as: -- '
            'uptime. With a script, its action in the records (default: '
            'APPLY)',
            nargs='?',
        ),
        *_script('--script-output', required=False),
        _TARGETS,
        _LIMITS,
        operation_commands.PAGE,
        command_line.value(
            '--notify',
            '<file>',
            'Let heat-engine tell a webhook when the operation fails, times '
            'out or waits too long, and when a retry of it is complete. The '
            'file, or - for standard input, is a map in YAML or JSON with '
            'url, secret, and perhaps events and waits',
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
    )
    arguments = _OPTIONS

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        _check(parsed_args)
        service = common.service(
            self.app.client_manager, keep=_retention(parsed_args)
        )
        notify = _notify(parsed_args)
        order = _order(parsed_args, parsed_args.action or _APPLY)
        config = _config(parsed_args, service, order.inputs)
        self.progress.show('finding the targets')
        chosen = self.choose(parsed_args, service, order, config)
        if parsed_args.dry_run:
            return _dry(chosen)
        self._confirm(parsed_args, chosen, order.action)
        limits = _limits(parsed_args, len(chosen.targets))
        if self.is_operation(parsed_args, chosen, limits):
            limit = parsed_args.log_limit
            advancer = self.fleets.create(
                chosen,
                limits,
                order,
                config,
                # The default is for one run; of many, each may have to do
                # with less.
                log_limit=None if limit == live.LIMIT else limit,
                notify=notify,
            )
            return self.shown_operation(
                following.follow(
                    self, parsed_args, advancer, page=parsed_args.output
                )
            )
        (target,) = chosen.targets
        return self.shown_run(
            _run(
                self,
                service,
                parsed_args,
                target.stack_name,
                lambda: service.start(target, order),
            )
        )

    def choose(
        self,
        parsed_args: argparse.Namespace,
        service: run_service.Runs,
        order: orders.RunOrder,
        config: heat_values.Config | None,
    ) -> fleet_targets.Chosen:
        """Return the targets."""
        chooser = fleet_targets.Chooser(
            common.orchestration(self.app.client_manager), self.fleets.pool
        )
        wanted = fleet_targets.Wanted(
            stacks=parsed_args.stacks,
            tags=parsed_args.tags,
            resources=parsed_args.resources,
            metadata={each.name: each.value for each in parsed_args.metadata},
        )
        return chooser.choose(wanted, order, config)

    def is_operation(
        self,
        parsed_args: argparse.Namespace,
        chosen: fleet_targets.Chosen,
        limits: operations.OperationLimits,
    ) -> bool:
        """Say whether an operation starts, and not a single run."""
        is_followed = parsed_args.output is not None or parsed_args.notify
        return is_followed or chosen.needs_operation(limits)

    def shown_run(self, run: runs.Run) -> common.Shown:
        """Return columns and values of the single run that has started."""
        return columns.one(run)

    def shown_operation(self, operation: operations.Operation) -> common.Shown:
        """Return columns and values of the operation that has started."""
        self.refuse_skipped(operation)
        return operation_columns.shown(operation, self.fleets.now())

    def refuse_skipped(self, operation: operations.Operation) -> None:
        """End as if a run was refused, if the action runs on all targets."""
        states = {attempt.state for attempt in operation.attempts}
        if states == {runs.State.SKIPPED}:
            self.exit_code = common.NOT_STARTED

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
            f'  {target.stack_name} {target.server_name or target.resource}'
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
        self.confirm(lines, question, 'Nothing was started')


class RunOperation(StartRun):
    """Run an action, or a script of your own, as an operation.

    This is "software deployment run start", but also one target is an
    operation. Exit codes with --wait: 0 success, 3 failed, 4 timed out, 5
    cancelled, 1 not started or another error, 130 interrupted.
    """

    example = 'BACKUP --stack-tag production --max-concurrent 10 --wait'

    def is_operation(self, *order: object) -> bool:
        return True

    def refuse_skipped(self, operation: operations.Operation) -> None:
        """Leave the exit code to how the operation has ended."""


class Trigger(StartRun):
    """Run an action on a server of a stack, or on several.

    This is "software deployment run start" for one stack; a failure does not
    keep the others from starting, and all that has started is listed. Exit
    codes with --wait: 0 success, 3 failed, 4 timed out, 5 cancelled, 1 not
    started or another error, 130 interrupted.
    """

    example = 'shop --all BACKUP --wait --max-concurrent 10'

    shared = (
        command_line.STACK,
        command_line.value(
            'resources',
            '<resource>',
            f'{_RESOURCE}; repeat for several',
            nargs='*',
        ),
        command_line.value('action', '<action>', 'The action, such as BACKUP'),
        command_line.flag(
            '--all',
            'Run the action on every deployment of the stack that has it',
        ),
        command_line.value(
            '--max-concurrent',
            '<number>',
            'Maximum number of servers at a time (default: all)',
            type=lambda text: operations.Share(command_line.positive(text)),
        ),
        _IF_RUNNING,
        command_line.defaults(
            **_FIXED, max_errors=operations.Share(100, is_percent=True)
        ),
    )

    def choose(
        self,
        parsed_args: argparse.Namespace,
        service: run_service.Runs,
        order: orders.RunOrder,
        config: heat_values.Config | None,
    ) -> fleet_targets.Chosen:
        if bool(parsed_args.resources) == parsed_args.all:
            raise exceptions.CommandError('Name a resource, or give --all')
        wanted = parsed_args.action
        there = service.find(parsed_args.stack, *parsed_args.resources)
        chosen = [
            target
            for target in there
            if wanted in target.actions or not parsed_args.all
        ]
        if not chosen:
            known = dict.fromkeys(
                name for target in there for name in target.actions
            )
            raise errors.NotFound(
                f'No deployment of stack {parsed_args.stack} has an action '
                f'{wanted}' + bounds.did_you_mean(wanted, known)
            )
        for target in chosen:
            orders.check(target, order)
        return fleet_targets.Chosen(
            targets=chosen, description=f'stack {parsed_args.stack}'
        )

    def shown_run(self, run: runs.Run) -> common.Shown:
        return columns.many([run], single=True)

    def shown_operation(self, operation: operations.Operation) -> common.Shown:
        self.refuse_skipped(operation)
        return columns.many(overview.runs_of(operation, skipped=True))


class Apply(StartRun):
    """Run a config of your own on a server of a stack.

    This is "software deployment run start" for a script on one server. The
    command creates a config, a deployment and a URL for the result, which are
    deleted when the run has ended. Exit codes are those of "software
    deployment trigger".
    """

    example = 'shop db_server --config-file fix.sh --wait'

    shared = (
        command_line.STACK,
        command_line.value(
            'server',
            '<server>',
            'The server, a resource of the stack: name, path in nested '
            'stacks (parent.child) or physical ID',
        ),
        *_script('--output', required=True),
        command_line.value(
            '--action',
            '<action>',
            'The action: which config of a component runs, and the name in '
            'the records (default: APPLY)',
            default=_APPLY,
        ),
        command_line.defaults(**_FIXED),
    )

    def choose(
        self,
        parsed_args: argparse.Namespace,
        service: run_service.Runs,
        order: orders.RunOrder,
        config: heat_values.Config | None,
    ) -> fleet_targets.Chosen:
        # Its parser requires one.
        script = cast('heat_values.Config', config)
        target = service.server(parsed_args.stack, parsed_args.server, script)
        return fleet_targets.Chosen(targets=[target])


class RepeatRun(common.Report):
    """Run an action again, with the same inputs or others."""

    example = 'shop 00f2c40a --input level=9 --wait'

    arguments = (
        command_line.PAST_STACK,
        run_commands.run_id(),
        *_OPTIONS,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = common.service(
            self.app.client_manager, keep=_retention(parsed_args)
        )
        former = service.show(parsed_args.stack, parsed_args.run)
        order = _order(parsed_args, former.action, former)
        run = _run(
            self,
            service,
            parsed_args,
            parsed_args.stack,
            lambda: service.repeat(former, order),
        )
        return columns.one(run)


def _check(parsed_args: argparse.Namespace) -> None:
    """Refuse, or warn of, options that do not fit each other."""
    given = vars(parsed_args)
    if given.get('approve_after_canary') and not given['canary']:
        raise exceptions.CommandError('--approve-after-canary needs --canary')
    options = [
        word
        for word in parsed_args.command or ()
        if word.partition('=')[0] in _OF_TARGETS
    ]
    if options:
        line = (
            f'Note: {options[0]} stands after "--", so it belongs to the '
            'script and chooses no targets'
        )
        sys.stderr.write(foreign.line(line) + '\n')


def _limits(
    parsed_args: argparse.Namespace, total: int
) -> operations.OperationLimits:
    """Return the limits of an operation on `total` targets."""
    given = {
        name: value
        for name, value in vars(parsed_args).items()
        if name in operations.LIMIT_NAMES
    }
    if given.get('max_concurrent') is None:
        given['max_concurrent'] = operations.Share(total)
    return operations.OperationLimits(**given)


def _retention(parsed_args: argparse.Namespace) -> record_names.Retention:
    return record_names.Retention(
        number=parsed_args.keep_runs,
        days=parsed_args.keep_days,
        log_limit=parsed_args.log_limit,
    )


def _order(
    parsed_args: argparse.Namespace,
    action: str,
    former: runs.Run | None = None,
) -> orders.RunOrder:
    """Return what was ordered.

    :param former: the run that is repeated.
    """
    timeout = delivery_timeout = None
    if former is not None:
        timeout, delivery_timeout = former.timeout, former.delivery_timeout
    inputs = {}
    if parsed_args.inputs_file:
        inputs = common.read_map(parsed_args.inputs_file)
    return orders.RunOrder(
        action=action,
        inputs=inputs | {each.name: each.value for each in parsed_args.inputs},
        timeout=parsed_args.timeout or timeout,
        delivery_timeout=parsed_args.delivery_timeout or delivery_timeout,
    )


def _notify(
    parsed_args: argparse.Namespace,
) -> notice_orders.NoticeOrder | None:
    """Return whom to tell of the end, whose secrets are in no argument."""
    if parsed_args.notify is None:
        return None
    if parsed_args.notify == parsed_args.inputs_file == '-':
        raise exceptions.CommandError(
            '--notify and --inputs-file cannot both read standard input'
        )
    values = common.read_map(parsed_args.notify)
    webhook = webhooks.Webhook.parse(str(values.get('url', '')))
    return notice_orders.asked(values, webhook.shown)


def _config(
    parsed_args: argparse.Namespace,
    service: run_service.Runs,
    inputs: abc.Mapping[str, Any],
) -> heat_values.Config | None:
    """Return the script to run; None for an action of the stacks."""
    named = parsed_args.action, parsed_args.config, parsed_args.config_file
    if any(named) == bool(parsed_args.command):
        raise exceptions.CommandError(
            'Name an action, or give --config-file, or a command after "--"'
        )
    if parsed_args.config:
        return service.config(parsed_args.config)
    if parsed_args.config_file:
        text = common.read_text(parsed_args.config_file)
        return config_of(text, parsed_args.group, inputs, parsed_args.outputs)
    if parsed_args.command:
        text = f'#!/bin/sh\nexec {shlex.join(parsed_args.command)}\n'
        return config_of(text, 'script', inputs)
    return None


def _run(
    command: common.Command,
    service: run_service.Runs,
    parsed_args: argparse.Namespace,
    stack: str,
    start: abc.Callable[[], runs.Run],
) -> runs.Run:
    """Start a run; wait and show its output as far as asked for.

    :param stack: the name or ID by which messages name its stack.
    """
    display = command.progress
    output = None
    if parsed_args.follow:
        output = following.Output(
            service, display, lambda run: following.Lines(display)
        )
    follower = following.RunFollower(command, service, stack, output=output)
    started = start()
    follower.started(started)
    if parsed_args.wait or parsed_args.follow:
        (started,) = follower.wait([started])
    return started


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


def _dry(chosen: fleet_targets.Chosen) -> common.Shown:
    rows = [
        {
            'stack': target.stack_name,
            'resource': target.resource,
            'server': target.server_name or target.server_id,
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
