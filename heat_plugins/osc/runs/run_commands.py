# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run …``."""

import argparse
from collections import abc
import functools
import time
from typing import Any, Final

from osc_lib import exceptions

from heat_plugins import pools
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.runs import run_service
from heat_plugins.runs import runs

# Seconds for a server to stop what it has started: it asks every 2 s, and a
# script that ignores SIGTERM has 5 s.
_REACTION = 20


#: How long a command waits for servers to stop runs.
WAIT: Final = command_line.flag(
    '--wait',
    f'Wait until the server has stopped the script, for at most {_REACTION} s',
)


def run_id(**more: Any) -> command_line.Argument:
    """Return the run, or the runs, that a command is about."""
    text = 'ID of the run, or its beginning or end'
    return command_line.value('run', '<run>', text, **more)


class _RunCommand(common.Report):
    """A command about runs of a stack."""

    arguments: command_line.Arguments = (command_line.PAST_STACK,)

    @functools.cached_property
    def service(self) -> run_service.Runs:
        return common.service(self.app.client_manager)


class ListRuns(_RunCommand):
    """List the runs of a stack, or of all stacks, the newest first.

    An empty list is no error; a resource, server or action that does not exist
    in the stack is one.
    """

    example = 'shop --failed --since 12h'

    arguments = (
        command_line.value(
            'stack',
            '<stack>',
            'Name or ID of the stack; for a deleted stack, its ID (default: '
            'all stacks of the project)',
            nargs='?',
        ),
        command_line.value(
            '--resource',
            '<resource>',
            'Only runs of a deployment, or in a nested stack (path)',
        ),
        command_line.either(
            command_line.choice(
                '--state',
                [state.value for state in runs.State],
                'Only entries in a state',
            ),
            command_line.flag(
                '--failed', 'Only runs that failed or timed out'
            ),
        ),
        command_line.several(
            '--server',
            '<server>',
            'Only runs on a server: path of its resource, or its ID (repeat '
            'option for several)',
            dest='servers',
        ),
        *command_line.entries(50),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        state = parsed_args.state
        listed = self.service.history(
            parsed_args.stack,
            run_service.Filter(
                resource=parsed_args.resource,
                servers=parsed_args.servers,
                action=parsed_args.action,
                state=runs.State(state) if state else None,
                failed=parsed_args.failed,
                since=parsed_args.since,
                limit=parsed_args.limit,
            ),
        )
        return columns.many(listed, stacks=parsed_args.stack is None)


class ShowRun(_RunCommand):
    """Show a run."""

    example = 'shop 00f2c40a --watch'

    arguments = (
        *_RunCommand.arguments,
        run_id(),
        command_line.flag('--watch', 'Follow the run until it has ended'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        run = common.read_first(
            self.progress,
            lambda: self.service.show(parsed_args.stack, parsed_args.run),
            None if parsed_args.watch else 0,
        )
        if parsed_args.watch:
            follower = following.RunFollower(
                self, self.service, parsed_args.stack
            )
            (run,) = follower.wait([run])
            if self.exit_code != common.INTERRUPTED:
                # The question was what it does, not whether it succeeds.
                self.exit_code = 0
        return columns.one(run)


class WaitRun(_RunCommand):
    """Wait until runs have ended.

    Exit codes: 0 success, 3 failed, 4 timed out, 5 cancelled, 6 not ended
    when --timeout had passed, 130 interrupted; of several runs the largest.
    """

    example = 'shop --timeout 600'

    arguments = (
        *_RunCommand.arguments,
        run_id(nargs='*'),
        command_line.number(
            '--timeout',
            '<seconds>',
            'Stop waiting after this many seconds; the runs continue',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        stack = parsed_args.stack

        def read() -> list[runs.Run]:
            if parsed_args.run:
                return [
                    self.service.show(stack, each) for each in parsed_args.run
                ]
            every = self.service.history(
                stack, run_service.Filter(single=True)
            )
            return [run for run in every if not run.ended]

        waiting = common.read_first(self.progress, read, parsed_args.timeout)
        follower = following.RunFollower(
            self, self.service, stack, limit=parsed_args.timeout
        )
        ended = follower.wait(waiting)
        return columns.many(ended, single=True)


class ShowOutput(_RunCommand):
    """Show the outputs of a run."""

    example = 'shop 00f2c40a deploy_stdout --whole'

    arguments = (
        *_RunCommand.arguments,
        run_id(),
        command_line.value(
            'output', '<output>', 'Only this output (default: all)', nargs='?'
        ),
        command_line.flag(
            '--whole', 'Show a long output completely, not only its end'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        run = self.service.show(parsed_args.stack, parsed_args.run)
        outputs = (
            self.service.outputs(run) if parsed_args.whole else run.outputs
        )
        wanted = parsed_args.output
        if wanted is not None and wanted not in outputs:
            names = ', '.join(outputs) or 'none'
            raise exceptions.CommandError(
                f'Run {run.id} ({run.state.value}) has no output {wanted}; '
                f'there are: {names}'
            )
        shown = dict(outputs) if wanted is None else {wanted: outputs[wanted]}
        for name in shown:
            if name in run.cut and not parsed_args.whole:
                self.log.warning(
                    'The last %(tail)d of %(all)d characters of %(name)s; '
                    '--whole shows all',
                    {'tail': runs.TAIL, 'all': run.cut[name], 'name': name},
                )
        return tuple(shown), common.One(shown.values())


class ShowLogs(common.Command):
    """Show what a run has printed until now, byte for byte.

    Standard output and standard error are mixed in the order of the server. A
    server without heat-config-supervisor sends them when the run has ended.
    """

    example = 'shop 00f2c40a --follow'

    arguments = (
        command_line.PAST_STACK,
        run_id(),
        command_line.flag(
            '--follow',
            'Continue until the run has ended; the exit code is that of '
            '"software deployment run wait"',
            '-f',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        service = common.service(self.app.client_manager)
        stack = parsed_args.stack
        run = common.read_first(
            self.progress,
            lambda: service.show(stack, parsed_args.run),
            None if parsed_args.follow else 0,
        )
        output = following.Output(
            service,
            self.progress,
            lambda run: following.Raw(self.app.stdout),
        )
        # It would be in the way of the output.
        self.progress.stop()
        output.add(run)
        if run.ended:
            output.finish(run)
        elif parsed_args.follow:
            follower = following.RunFollower(
                self, service, stack, output=output
            )
            follower.wait([run])
        else:
            output.finish(run, waits=False)


class CancelRun(_RunCommand):
    """Withdraw runs from their servers.

    A server that has not fetched the run never runs it. A server that has
    started it stops it if it has heat-config-supervisor; any other runs it to
    its end, and nothing else until then. A later result is kept as
    late_result.

    Exit codes with --wait: 0 stopped or ended, 6 the server has not reacted.
    """

    example = 'shop 00f2c40a'

    arguments = (
        *_RunCommand.arguments,
        run_id(nargs='+'),
        WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        cancelled = self.each(
            lambda run: self.service.cancel(parsed_args.stack, run),
            parsed_args.run,
        )
        if not parsed_args.wait:
            self.log.warning(
                'A server with heat-config-supervisor stops a started '
                'script, and --wait waits for that. Any other server runs '
                'the script to its end, and nothing else until then'
            )
            return columns.many(cancelled)
        return columns.many(await_stop(self, cancelled))


def await_stop(
    command: common.Command, cancelled: abc.Sequence[runs.Run]
) -> list[runs.Run]:
    """Wait until servers have stopped runs; return these as they stand then.

    The exit code says whether all servers have reacted.
    """
    service = common.service(command.app.client_manager)
    end = time.monotonic() + _REACTION
    stopped = pools.Pool().each(
        lambda run: service.await_stop(run, max(1.0, end - time.monotonic())),
        cancelled,
    )
    for run in stopped:
        if run.late is not None:
            command.progress.say(f'Run {run.id}: {run.reason}')
            continue
        command.exit_code = common.STILL_RUNNING
        command.progress.say(
            f'Run {run.id}: the server has not reacted. It is unreachable, '
            'or has no heat-config-supervisor. If the script has started, it '
            'continues, and the server runs nothing else until it ends'
        )
    return stopped


class DeleteRun(_RunCommand):
    """Delete runs that have ended.

    A run with an unreadable record can be deleted by its ID; the command
    withdraws it from its server first, as it may not have ended.
    """

    example = 'shop --all'

    arguments = (
        *_RunCommand.arguments,
        run_id(nargs='*'),
        command_line.flag('--all', 'Delete all ended runs'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if bool(parsed_args.run) == parsed_args.all:
            raise exceptions.CommandError('Name a run, or give --all')
        wanted = parsed_args.run
        if parsed_args.all:
            every = self.service.history(
                parsed_args.stack, run_service.Filter(single=True)
            )
            wanted = [run.id for run in every if run.ended]
        deleted = self.each(
            lambda run: self.service.delete(parsed_args.stack, run), wanted
        )
        return columns.many(run for run in deleted if run is not None)
