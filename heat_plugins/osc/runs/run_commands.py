# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment run …``."""

import argparse
from collections import abc
import time
from typing import Any

from osc_lib import exceptions

from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc.runs import ordering
from heat_plugins.osc.runs import run_following
from heat_plugins.osc.runs import run_output
from heat_plugins.runs import run as runs
from heat_plugins.runs import run_service as services

# Seconds for a server to stop what it has begun: it asks every 2 s, and a
# script that ignores SIGTERM has 5 s.
_REACTION = 20


class _RunCommand(common.Report):
    """A command about runs of a stack."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_stack(parser, deleted=True)
        return parser

    def service(self) -> services.Runs:
        return common.service(self.app.client_manager)

    def each(
        self,
        do: abc.Callable[[str, str], Any],
        parsed_args: argparse.Namespace,
        wanted: abc.Collection[str],
    ) -> list[Any]:
        """Do something with runs; one that refuses does not stop the rest.

        :param do: called with the stack and a run.
        """
        found = []
        for run_id in wanted:
            try:
                found.append(do(parsed_args.stack, run_id))
            except errors.Error as exc:
                if len(wanted) == 1:
                    raise
                self.log.error('%s', exc)
                self.exit_code = 1
        return found


def _add_run(parser: argparse.ArgumentParser, **more: Any) -> None:
    parser.add_argument(
        'run',
        metavar='<run>',
        help='ID of the run, or how it begins or ends',
        **more,
    )


class ListRuns(_RunCommand):
    """List the runs of a stack, the newest first.

    None is no error, but a resource, server or action that does not exist is.
    """

    example = 'shop --failed --since 12h'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--resource',
            metavar='<resource>',
            help='Only those of a deployment, or in a nested stack (path)',
        )
        parser.add_argument(
            '--action', metavar='<action>', help='Only those of an action'
        )
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            '--state',
            choices=[state.value for state in runs.State],
            help='Only those in a state',
        )
        group.add_argument(
            '--failed',
            action='store_true',
            help='Only those that failed or timed out',
        )
        parser.add_argument(
            '--server',
            metavar='<server>',
            help='Only those on a server: path of its resource, or its ID',
        )
        common.add_since(parser)
        parser.add_argument(
            '--limit',
            metavar='<number>',
            type=common.positive,
            default=50,
            help='The most to list (default: 50)',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        state = parsed_args.state
        found = self.service().history(
            parsed_args.stack,
            services.Filter(
                resource=parsed_args.resource,
                server=parsed_args.server,
                action=parsed_args.action,
                state=runs.State(state) if state else None,
                failed=parsed_args.failed,
                since=parsed_args.since,
                limit=parsed_args.limit,
            ),
        )
        return columns.many(found)


class ShowRun(_RunCommand):
    """Show what is known of a run."""

    example = 'shop 00f2c40a --watch'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser)
        parser.add_argument(
            '--watch',
            action='store_true',
            help='Follow it until it has ended',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.service()
        run = service.show(parsed_args.stack, parsed_args.run)
        if parsed_args.watch:
            follower = run_following.Follower(self, service, parsed_args.stack)
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

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser, nargs='*')
        parser.add_argument(
            '--timeout',
            metavar='<seconds>',
            type=common.positive,
            help='Stop waiting after that time; the run goes on',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.service()
        stack = parsed_args.stack
        if parsed_args.run:
            found = [service.show(stack, one) for one in parsed_args.run]
        else:
            every = service.history(stack, services.Filter())
            found = [run for run in every if not run.ended]
        follower = run_following.Follower(
            self, service, stack, limit=parsed_args.timeout
        )
        ended = follower.wait(found)
        return columns.many(ended, single=True)


class ShowOutput(_RunCommand):
    """Show the outputs of a run."""

    example = 'shop 00f2c40a deploy_stdout --whole'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser)
        parser.add_argument(
            'output',
            metavar='<output>',
            nargs='?',
            help='One of them (default: all)',
        )
        parser.add_argument(
            '--whole',
            action='store_true',
            help='Show all of a long output, not only its end',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.service()
        run = service.show(parsed_args.stack, parsed_args.run)
        found = service.outputs(run) if parsed_args.whole else run.outputs
        wanted = parsed_args.output
        if wanted is not None and wanted not in found:
            names = ', '.join(found) or 'none'
            raise exceptions.CommandError(
                f'Run {run.id} ({run.state.value}) has no output {wanted}; '
                f'there are: {names}'
            )
        shown = dict(found) if wanted is None else {wanted: found[wanted]}
        for name in shown:
            if name in run.cut and not parsed_args.whole:
                self.log.warning(
                    'The last %(tail)d of %(all)d characters of %(name)s; '
                    '--whole shows all',
                    {'tail': runs.TAIL, 'all': run.cut[name], 'name': name},
                )
        return tuple(shown), common.One(shown.values())


class ShowLogs(common.Command):
    """Show what a run has printed so far, byte for byte.

    Both streams are shown in the order in which they came. A server without
    heat-config-supervisor sends them when the run has ended.
    """

    example = 'shop 00f2c40a --follow'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_stack(parser, deleted=True)
        _add_run(parser)
        parser.add_argument(
            '-f',
            '--follow',
            action='store_true',
            help='Go on until the run has ended; the exit code is that of '
            '"software deployment run wait"',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        service = common.service(self.app.client_manager)
        stack = parsed_args.stack
        run = service.show(stack, parsed_args.run)
        output = run_output.Output(
            service,
            self.progress,
            lambda run: run_output.Raw(self.app.stdout),
        )
        # It would be in the way of the output.
        self.progress.stop()
        output.add(run)
        if run.ended:
            output.finish(run)
        elif parsed_args.follow:
            follower = run_following.Follower(
                self, service, stack, output=output
            )
            follower.wait([run])
        else:
            output.poll()


class CancelRun(_RunCommand):
    """Take runs back from their servers.

    A server that has not fetched the run never runs it. One that has stops
    it if it has heat-config-supervisor; any other runs it to its end, and
    nothing else until then. What the server sends is shown as late result.

    Exit codes with --wait: 0 stopped or ended, 6 the server has not reacted.
    """

    example = 'shop 00f2c40a'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser, nargs='+')
        parser.add_argument(
            '--wait',
            action='store_true',
            help='Wait until the server has stopped what it had begun, '
            f'{_REACTION} s at most',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.service()
        found = self.each(service.cancel, parsed_args, parsed_args.run)
        if not parsed_args.wait:
            self.log.warning(
                'A server that has begun the script stops it if it has '
                'heat-config-supervisor, and --wait waits for that. Any other '
                'server runs it to its end, and nothing else until then'
            )
            return columns.many(found)
        end = time.monotonic() + _REACTION
        waited = []
        for run in found:
            left = max(1.0, end - time.monotonic())
            waited.append(service.await_stop(run, left))
            self._say(waited[-1])
        return columns.many(waited)

    def _say(self, run: runs.Run) -> None:
        if run.late is not None:
            self.progress.say(f'Run {run.id}: {run.reason}')
            return
        self.exit_code = common.STILL_RUNNING
        self.progress.say(
            f'Run {run.id}: the server has not reacted. If it had begun the '
            'script, it has no heat-config-supervisor, or is away: the '
            'script goes on, and the server runs nothing else until its end'
        )


class RepeatRun(_RunCommand):
    """Run an action once more, with the same inputs or others."""

    example = 'shop 00f2c40a --input level=9 --wait'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser)
        ordering.add_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = ordering.service(self.app.client_manager, parsed_args)
        former = service.show(parsed_args.stack, parsed_args.run)
        order = ordering.order(parsed_args, former.action, former)
        follower = ordering.follower(self, service, parsed_args)
        run = service.repeat(former, order)
        follower.started(run)
        if ordering.waits(parsed_args):
            (run,) = follower.wait([run])
        return columns.one(run)


class DeleteRun(_RunCommand):
    """Forget runs that have ended.

    So is, by its ID, a run whose record cannot be read; it is taken from its
    server first, as it may go on.
    """

    example = 'shop --all'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_run(parser, nargs='*')
        parser.add_argument(
            '--all', action='store_true', help='All that have ended'
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        if bool(parsed_args.run) == parsed_args.all:
            raise exceptions.CommandError('Name a run, or give --all')
        service = self.service()
        wanted = parsed_args.run
        if parsed_args.all:
            every = service.history(parsed_args.stack, services.Filter())
            wanted = [run.id for run in every if run.ended]
        deleted = self.each(service.delete, parsed_args, wanted)
        return columns.many(run for run in deleted if run is not None)
