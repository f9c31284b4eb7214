# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation …``, but for ``run``."""

import argparse
import functools
from typing import Any, Final

from heat_plugins import pools
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import run_commands
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.start import targets
from heat_plugins.timeline import operation_page

# What a list has of an operation; JSON and YAML have all.
_LISTED = (
    'id',
    'action',
    'state',
    'stacks',
    'targets',
    'failed',
    'percent',
    'created_at',
    'duration',
    'reason',
)
_KEYS = (
    *_LISTED,
    'script',
    'counts',
    'created_by',
    'ended_at',
)


ATTEMPT: Final = command_line.number(
    '--attempt',
    '<number>',
    'Show the attempt of this number on each target that had one (default: '
    'the last)',
)

#: The page of an operation.
PAGE: Final = command_line.value(
    '--output',
    '<file>',
    'Write a page (.html) with all targets and their outputs; it refreshes '
    'itself while the command waits',
    type=command_line.file_of('.html'),
)


def operation_id(**more: Any) -> command_line.Argument:
    """Return the operation, or the operations, that a command is about."""
    text = 'ID of the operation, or its beginning or end'
    return command_line.value('operation', '<operation>', text, **more)


class OperationCommand(common.Report):
    """A command about operations of the project."""

    @functools.cached_property
    def fleets(self) -> fleets.Fleets:
        return common.fleets(self.app.client_manager)


class ListOperations(OperationCommand):
    """List the operations of the project, the newest first."""

    example = '--stack shop --since 7d'

    arguments = (
        command_line.choice(
            '--state',
            [phase.value for phase in operations.Phase],
            'Only entries in a state',
        ),
        command_line.value(
            '--stack',
            '<stack>',
            'Only operations with targets in a stack (name, or ID); it may '
            'be deleted',
        ),
        *command_line.entries(100),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        heads = self.fleets.history(
            fleets.Filter(
                state=parsed_args.state,
                action=parsed_args.action,
                stack=parsed_args.stack,
                since=parsed_args.since,
                limit=parsed_args.limit,
            )
        )
        wanted = parsed_args.stack
        if wanted and not heads and not self.fleets.has_stack(wanted):
            # Refuses a stack that does not exist.
            heat = common.orchestration(self.app.client_manager)
            targets.Finder(heat).stack(wanted)
        rows = [
            columns.cells(overview.of_head(head), operation_columns.KINDS)
            for head in heads
        ]
        return _KEYS, common.Many(rows, _LISTED)


class ShowOperation(OperationCommand):
    """Show the state of an operation."""

    example = '00f2c40a --failed'

    arguments = (
        operation_id(),
        command_line.flag('--targets', 'List its targets'),
        command_line.choice(
            '--state',
            overview.COUNTED,
            'With --targets: only targets in a state',
        ),
        command_line.flag(
            '--failed', 'List the targets that failed or timed out'
        ),
        ATTEMPT,
        PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        operation = self.fleets.show(parsed_args.operation)
        following.write_page(parsed_args.output, operation)
        number = parsed_args.attempt
        if not (parsed_args.targets or parsed_args.failed or number):
            error = self.fleets.notify_error(operation)
            return operation_columns.shown(
                operation, self.fleets.now(), notify_error=error
            )
        if number:
            operation = operation.at_attempt(number)
        members = [
            member
            for member, attempt in enumerate(operation.attempts)
            if (attempt.is_run or not number)
            and parsed_args.state in (None, overview.state(operation, member))
            and (attempt.has_failed or not parsed_args.failed)
        ]
        return overview.TARGET_KEYS, operation_columns.rows(operation, members)


class WaitOperation(OperationCommand):
    """Wait until an operation has ended, and advance it meanwhile.

    Exit codes: 0 success, 3 failed, 4 timed out, 5 cancelled, 6 not ended
    when --timeout had passed, 130 interrupted.
    """

    example = '00f2c40a --output run.html'

    arguments = (
        operation_id(),
        command_line.number(
            '--timeout',
            '<seconds>',
            'Stop waiting after this many seconds; the operation continues',
        ),
        PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        limit = parsed_args.timeout
        advancer = common.read_first(
            self.progress,
            lambda: self.fleets.advancer(parsed_args.operation),
            limit,
        )
        follower = following.OperationFollower(
            self, limit=limit, page=parsed_args.output
        )
        return operation_columns.shown(
            follower.follow(advancer), self.fleets.now()
        )


class _Request(OperationCommand):
    """A command that asks an operation for something."""

    what = ''

    arguments: command_line.Arguments = (operation_id(),)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        advancer = self.fleets.request(parsed_args.operation, self.what)
        try:
            return operation_columns.shown(
                advancer.operation, self.fleets.now()
            )
        finally:
            advancer.release()


class PauseOperation(_Request):
    """Start no further runs of an operation; those in progress continue."""

    example = '00f2c40a'
    what = fleet_requests.PAUSE


class ResumeOperation(_Request):
    """Resume an operation that is paused or waits for approval."""

    example = '00f2c40a'
    what = fleet_requests.RESUME


class CancelOperation(_Request):
    """Cancel an operation, and withdraw its runs from the servers.

    A server that has not fetched its run never runs it. A server that has
    started it stops it if it has heat-config-supervisor; any other runs it to
    its end.
    """

    example = '00f2c40a --wait'
    what = fleet_requests.CANCEL

    arguments = (
        *_Request.arguments,
        run_commands.WAIT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        shown = super().take_action(parsed_args)
        if parsed_args.wait:
            operation = self.fleets.show(parsed_args.operation)
            run_commands.await_stop(
                self,
                [
                    run
                    for run in overview.runs_of(operation)
                    if run.is_unanswered and run.reported_at is not None
                ],
            )
        return shown


class RetryOperation(OperationCommand):
    """Run an operation again where it failed, timed out or did not start.

    Exit codes with --wait are those of "operation wait".
    """

    example = '00f2c40a --wait'

    arguments = (
        operation_id(),
        command_line.value(
            '--only',
            '<state or name>',
            'Retry only targets in a state (failed, timed-out, not-started, '
            'cancelled, skipped), or those of a server or resource',
        ),
        command_line.flag('--wait', 'Wait until the operation has ended'),
        command_line.flag(
            '--follow',
            "Wait, and print the servers' output on standard error",
        ),
        PAGE,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        advancer = self.fleets.request(
            parsed_args.operation, fleet_requests.RETRY, parsed_args.only
        )
        operation = following.follow(
            self, parsed_args, advancer, page=parsed_args.output
        )
        return operation_columns.shown(operation, self.fleets.now())


class DeleteOperation(OperationCommand):
    """Delete operations that have ended, with the outputs of their runs."""

    example = '00f2c40a'

    arguments = (
        operation_id(nargs='+'),
        command_line.flag(
            '--force', 'Delete also an operation with an unreadable record'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        deleted = self.each(
            lambda each: self.fleets.delete(each, force=parsed_args.force),
            parsed_args.operation,
            pools.Pool(workers=1),
        )
        return ('id',), common.Many(
            ({'id': each} for each in deleted), ('id',)
        )


class ShareOperation(OperationCommand):
    """Copy results of an operation for colleagues who may only read.

    The copy has the targets with their states and outputs, but no inputs and
    no script. All users with a role in the project can read it. Look at the
    outputs first: what a script prints may be a secret.
    """

    example = '00f2c40a --days 1'

    arguments = (
        operation_id(),
        command_line.number(
            '--days',
            '<days>',
            'Days after which the object store deletes the copy (default: '
            '%(default)s)',
            default=7,
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        operation = self.fleets.show(parsed_args.operation)
        page = operation_page.draw(operation, self.fleets.now())
        shared = self.fleets.share(operation, page, parsed_args.days)
        self.progress.say(
            'Your colleagues read it by:',
            *(
                f'  openstack object save {shared["container"]} {name}'
                for name in shared['objects']
            ),
        )
        shown = {
            'id': operation.id,
            'container': shared['container'],
            'objects': columns.NamesCell(shared['objects']),
            'expires_at': summary.time(shared['expires_at']),
        }
        return tuple(shown), common.One(shown.values())
