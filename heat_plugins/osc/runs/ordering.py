# SPDX-License-Identifier: Apache-2.0
"""What all commands take that start runs."""

import argparse
from collections import abc
import sys
from typing import Any

from osc_lib import exceptions
from osc_lib import utils

from heat_plugins import foreign
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import run_output
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.records import retention
from heat_plugins.runs.start import starting
from heat_plugins.signals import live

# How many finished runs to keep, where no option says so.
_NUMBER, _DAYS = 'HEAT_PLUGINS_KEEP_RUNS', 'HEAT_PLUGINS_KEEP_DAYS'
_LOG_LIMIT = 'HEAT_PLUGINS_RUN_LOG_LIMIT'


def add_options(add: command_line.Adder) -> None:
    """Add inputs, time limits and waiting."""
    add.several(
        '--input',
        '<name>=<value>',
        'Override the value of an input (repeat option for several). Other '
        'users of this machine can see command lines: give secrets with '
        '--inputs-file',
        dest='inputs',
        type=command_line.Input,
    )
    add.value(
        '--inputs-file',
        '<file>',
        'Read inputs from a map in YAML or JSON; - for standard input. '
        '--input overrides it',
    )
    add.number(
        '--timeout',
        '<seconds>',
        'Seconds until the run is withdrawn from the server (default: the '
        'property "timeout" of the deployment, or '
        f'{runs.DEFAULT_TIMEOUT}; for a rerun, that of the former run)',
    )
    add.number(
        '--delivery-timeout',
        '<seconds>',
        'Seconds until the server must report the start; only for servers '
        'with heat-config-supervisor, or actions that report progress',
    )
    add.flag('--wait', 'Wait until the run has ended, and show its outputs')
    add.flag(
        '--follow',
        'Wait, and show on standard error what the script prints. A server '
        'without heat-config-supervisor sends that only at the end',
    )


def add_retention(add: command_line.Adder) -> None:
    """Add how much of finished runs is kept."""
    default = retention.Retention()
    add.number(
        '--keep-runs',
        '<number>',
        'Ended runs of the action on the deployment to keep; older ones are '
        'deleted. Runs on several targets are kept with their operation '
        f'(default: {default.number}, Env: {_NUMBER})',
        default=utils.env(_NUMBER, default=str(default.number)),
    )
    add.number(
        '--keep-days',
        '<days>',
        'Days to keep such runs; older ones are deleted (default: '
        f'{default.days}, Env: {_DAYS})',
        default=utils.env(_DAYS, default=str(default.days)),
    )
    add.value(
        '--log-limit',
        '<bytes>',
        'Bytes of live output to keep; of a longer one the beginning and the '
        f'end are kept (default: {default.log_limit}, Env: {_LOG_LIMIT})',
        type=_log_limit,
        default=utils.env(_LOG_LIMIT, default=str(default.log_limit)),
    )


def _log_limit(text: str) -> int:
    limit = command_line.positive(text)
    least, most = 2 * live.SLOT, (live.MOST - 1) * live.SLOT
    if not least <= limit <= most:
        raise argparse.ArgumentTypeError(
            f'{text} is not between {least} and {most}'
        )
    return limit


def confirm(
    command: common.Command,
    lines: abc.Iterable[str],
    question: str,
    refusal: str,
) -> None:
    """Ask the user at the terminal.

    :param lines: what to show before that.
    :param refusal: the message if the answer is not yes.
    :raises exceptions.CommandError: it is not.
    """
    command.progress.stop()
    shown = ''.join(f'{foreign.line(line)}\n' for line in lines)
    sys.stderr.write(f'{shown}{question} [y/N] ')
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ('y', 'yes'):
        raise exceptions.CommandError(refusal)


def add_if_running(add: command_line.Adder) -> None:
    add.choice(
        '--if-running',
        (operations.SKIP, operations.WAIT),
        'What an operation does with a target on which the action already '
        'runs: skip (default), or wait for the end of that run',
        default=operations.SKIP,
    )


def run(
    command: common.Command,
    service: run_service.Runs,
    parsed_args: argparse.Namespace,
    start: abc.Callable[[], runs.Run],
) -> runs.Run:
    """Start a run; wait and show its output as far as asked for."""
    display = command.progress
    output = None
    if parsed_args.follow:
        output = run_output.Output(
            service, display, lambda run: run_output.Lines(display)
        )
    follower = following.RunFollower(
        command, service, parsed_args.stack, output=output
    )
    started = start()
    follower.started(started)
    if parsed_args.wait or parsed_args.follow:
        (started,) = follower.wait([started])
    return started


def service(manager: Any, parsed_args: argparse.Namespace) -> run_service.Runs:
    """Return the core, which keeps the number of runs that was asked for."""
    return common.service(
        manager,
        keep=retention.Retention(
            number=parsed_args.keep_runs,
            days=parsed_args.keep_days,
            log_limit=parsed_args.log_limit,
        ),
    )


def order(
    parsed_args: argparse.Namespace,
    action: str,
    former: runs.Run | None = None,
) -> starting.RunOrder:
    """Return what was ordered.

    :param former: the run that is repeated.
    """
    timeout = delivery_timeout = None
    if former is not None:
        timeout, delivery_timeout = former.timeout, former.delivery_timeout
    return starting.RunOrder(
        action=action,
        inputs=inputs(parsed_args),
        timeout=parsed_args.timeout or timeout,
        delivery_timeout=parsed_args.delivery_timeout or delivery_timeout,
    )


def inputs(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the inputs that were given."""
    values = {}
    if parsed_args.inputs_file:
        values = common.read_map(parsed_args.inputs_file)
    return values | {each.name: each.value for each in parsed_args.inputs}
