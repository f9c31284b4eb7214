# SPDX-License-Identifier: Apache-2.0
"""What all commands take that start runs."""

import argparse
from typing import Any

from osc_lib import utils

from heat_plugins.osc import common
from heat_plugins.osc.runs import run_following
from heat_plugins.osc.runs import run_output
from heat_plugins.runs import run as runs
from heat_plugins.runs import run_service as services
from heat_plugins.runs.records import retention
from heat_plugins.runs.start import starting
from heat_plugins.signals import live

# How many finished runs to keep, where no option says so.
_NUMBER, _DAYS = 'HEAT_PLUGINS_KEEP_RUNS', 'HEAT_PLUGINS_KEEP_DAYS'
_LOG_LIMIT = 'HEAT_PLUGINS_RUN_LOG_LIMIT'


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add inputs, time limits, waiting and what is kept."""
    parser.add_argument(
        '--input',
        dest='inputs',
        metavar='<name>=<value>',
        type=common.Input,
        action='append',
        default=[],
        help='Give an input another value (repeat option to set several). '
        'What is on a command line can be seen by others on this machine: '
        'give secrets with --inputs-file',
    )
    parser.add_argument(
        '--inputs-file',
        metavar='<file>',
        help='Read inputs from a map in YAML or JSON; - for standard input. '
        '--input goes over it',
    )
    parser.add_argument(
        '--timeout',
        metavar='<seconds>',
        type=common.positive,
        help='The most that the run may take from now on; then it is '
        "withdrawn from the server (default: the deployment's property "
        f'"timeout", or {starting.DEFAULT_TIMEOUT}; or that of the run that '
        'is repeated)',
    )
    parser.add_argument(
        '--delivery-timeout',
        metavar='<seconds>',
        type=common.positive,
        help='The most until the server reports that it has begun; only for '
        'actions that report (see the documentation)',
    )
    parser.add_argument(
        '--wait',
        action='store_true',
        help='Wait until it has ended, and show its outputs',
    )
    parser.add_argument(
        '--follow',
        action='store_true',
        help='Wait, and show on standard error what it prints. A server '
        'without heat-config-supervisor reports at the end only',
    )
    default = retention.Retention()
    parser.add_argument(
        '--keep-runs',
        metavar='<number>',
        type=common.positive,
        default=utils.env(_NUMBER, default=str(default.number)),
        help='Finished runs of the action on the deployment to keep; older '
        f'ones are forgotten (default: {default.number}, Env: {_NUMBER})',
    )
    parser.add_argument(
        '--keep-days',
        metavar='<days>',
        type=common.positive,
        default=utils.env(_DAYS, default=str(default.days)),
        help='Forget finished runs that are older '
        f'(default: {default.days}, Env: {_DAYS})',
    )
    parser.add_argument(
        '--log-limit',
        metavar='<bytes>',
        type=_log_limit,
        default=utils.env(_LOG_LIMIT, default=str(default.log_limit)),
        help='Keep so much of what it prints while it runs: of more the '
        f'beginning and the end (default: {default.log_limit}, '
        f'Env: {_LOG_LIMIT})',
    )


def _log_limit(text: str) -> int:
    found = common.positive(text)
    least, most = 2 * live.SLOT, (live.MOST - 1) * live.SLOT
    if not least <= found <= most:
        raise argparse.ArgumentTypeError(
            f'{text} is not between {least} and {most}'
        )
    return found


def waits(parsed_args: argparse.Namespace) -> bool:
    """Say whether a command waits until its runs have ended."""
    return bool(parsed_args.wait or parsed_args.follow)


def follower(
    command: common.Command,
    service: services.Runs,
    parsed_args: argparse.Namespace,
    *,
    several: bool = False,
) -> run_following.Follower:
    """Return what follows the runs that a command starts.

    :param several: whether lines of output need a name before them.
    """
    display = command.progress

    def lines(run: runs.Run) -> run_output.Lines:
        name = run.server_name or run.resource
        return run_output.Lines(display, f'{name}: ' if several else '')

    output = None
    if parsed_args.follow:
        output = run_output.Output(service, display, lines)
    return run_following.Follower(
        command, service, parsed_args.stack, output=output
    )


def service(manager: Any, parsed_args: argparse.Namespace) -> services.Runs:
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
) -> starting.Order:
    """Return what was ordered.

    :param former: the run that is repeated.
    """
    timeout = delivery_timeout = None
    if former is not None:
        timeout, delivery_timeout = former.timeout, former.delivery_timeout
    return starting.Order(
        action=action,
        inputs=inputs(parsed_args),
        timeout=parsed_args.timeout or timeout,
        delivery_timeout=parsed_args.delivery_timeout or delivery_timeout,
    )


def inputs(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the inputs that were given."""
    found = {}
    if parsed_args.inputs_file:
        found = common.read_map(parsed_args.inputs_file)
    return found | {one.name: one.value for one in parsed_args.inputs}
