# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation …``, but for ``run``."""

import argparse
from collections import abc
import functools
import json
import pathlib
from typing import Any

from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import operation_following
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet import operation_runs
from heat_plugins.runs.fleet import overview

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
    'counts',
    'created_by',
    'ended_at',
)


class _Command(common.Report):
    """A command about operations of the project."""

    @functools.cached_property
    def fleets(self) -> fleets.Fleets:
        return common.fleets(self.app.client_manager)


class _Following(_Command):
    """A command that may wait for an operation."""

    def follow(
        self, parsed_args: argparse.Namespace, operation_id: str
    ) -> operations.Operation:
        follower = operation_following.Follower(
            self,
            limit=getattr(parsed_args, 'timeout', None),
            page=parsed_args.output,
        )
        return follower.follow(self.fleets.advancer(operation_id))


def add_operation(add: command_line.Adder, **more: Any) -> None:
    add.value(
        'operation',
        '<operation>',
        'ID of the operation, or its beginning or end',
        **more,
    )


class ListOperations(_Command):
    """List the operations of the project, the newest first."""

    example = '--stack shop --since 7d'

    def add_arguments(self, add: command_line.Adder) -> None:
        add.choice(
            '--state',
            [phase.value for phase in operations.Phase],
            'Only entries in a state',
        )
        add.value(
            '--stack',
            '<stack>',
            'Only operations with targets in a stack (name)',
        )
        add.entries(100)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.fleets.history(
            fleets.Filter(
                state=parsed_args.state,
                action=parsed_args.action,
                stack=parsed_args.stack,
                since=parsed_args.since,
                limit=parsed_args.limit,
            )
        )
        rows = []
        for head in found:
            row = overview.of_head(head)
            row['stacks'] = columns.Names(row['stacks'])
            row['counts'] = operation_columns.Counts(row['counts'])
            row['duration'] = columns.Seconds(row['duration'])
            rows.append(row)
        return _KEYS, common.Many(rows, _LISTED)


class ShowOperation(_Command):
    """Show the state of an operation."""

    example = '00f2c40a --targets --state failed'

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add)
        add.flag('--targets', 'List its targets')
        add.choice(
            '--state',
            overview.COUNTED,
            'With --targets: only targets in a state',
        )
        operation_following.add_page(add)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.fleets.show(parsed_args.operation)
        operation_following.write_page(parsed_args.output, found)
        if not parsed_args.targets:
            return operation_columns.shown(found, self.fleets.now())
        members = [
            n
            for n, one in enumerate(found.attempts)
            if parsed_args.state
            in (None, one.state.value if one.state else overview.PENDING)
        ]
        return overview.TARGET_KEYS, operation_columns.rows(found, members)


class WaitOperation(_Following):
    """Wait until an operation has ended, and advance it meanwhile.

    Exit codes: 0 success, 3 failed, 4 timed out, 5 cancelled, 6 not ended
    when --timeout had passed, 130 interrupted.
    """

    example = '00f2c40a --output run.html'

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add)
        add.number(
            '--timeout',
            '<seconds>',
            'Stop waiting after this many seconds; the operation continues',
        )
        operation_following.add_page(add)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.follow(parsed_args, parsed_args.operation)
        return operation_columns.shown(found, self.fleets.now())


class ShowOperationOutput(_Command):
    """Show what each server of an operation printed."""

    example = '00f2c40a --output-dir backup-logs'

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add)
        add.flag('--failed', 'Only runs that failed or timed out')
        add.value(
            '--server',
            '<server>',
            'Only the output of a server: name of its resource, or its ID',
        )
        add.flag(
            '--follow',
            "Follow until the operation has ended: print the servers' output "
            'on standard error, each line with the name of its server. The '
            'exit code is that of "operation wait"',
        )
        add.value(
            '--output-dir',
            '<folder>',
            'Write each complete output to a file '
            '<folder>/<stack>/<resource>/<output>',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        def is_wanted(found: operations.Operation, member: int) -> bool:
            one = found.order.members[member]
            return (
                not parsed_args.failed or found.attempts[member].has_failed
            ) and parsed_args.server in (None, one.server_id, one.server_name)

        if parsed_args.follow:
            follower = operation_following.Follower(
                self,
                output=operation_following.output(
                    self, common.service(self.app.client_manager)
                ),
                wanted=is_wanted,
            )
            found = follower.follow(
                self.fleets.advancer(parsed_args.operation)
            )
        else:
            found = self.fleets.show(parsed_args.operation)
        members = [
            n for n in range(len(found.attempts)) if is_wanted(found, n)
        ]
        if parsed_args.output_dir:
            folder = pathlib.Path(parsed_args.output_dir)
            for member in members:
                self._write(folder, found, member)
        rows = operation_columns.rows(found, members)
        listed = ('stack', 'resource', 'server', 'state', 'outputs')
        return overview.TARGET_KEYS, common.Many(rows, listed)

    def _write(
        self, folder: pathlib.Path, found: operations.Operation, member: int
    ) -> None:
        one = found.order.members[member]
        place = folder / _safe(one.stack_name) / _safe(one.resource)
        with common.access('write', place):
            place.mkdir(parents=True, exist_ok=True)
            for name, value in self._outputs(found, member).items():
                if value in (None, ''):
                    continue
                text = value if isinstance(value, str) else json.dumps(value)
                path = place / _safe(name)
                path.write_text(text, encoding='utf-8')

    def _outputs(
        self, found: operations.Operation, member: int
    ) -> abc.Mapping[str, Any]:
        service = common.service(self.app.client_manager)
        return service.outputs(operation_runs.run_of(found, member))


def _safe(name: str) -> str:
    """Return a name as that of a file, which leads nowhere else."""
    kept = ''.join(
        one if one.isalnum() or one in '._- ' else '_' for one in name
    )
    return kept.lstrip('.')[:200] or '_'


class _Request(_Following):
    """A command that asks an operation for something."""

    what = ''

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add)

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

    example = '00f2c40a'
    what = fleet_requests.CANCEL


class RetryOperation(_Following):
    """Run an operation again where it failed, timed out or did not start.

    Exit codes with --wait are those of "operation wait".
    """

    example = '00f2c40a --wait'

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add)
        add.flag('--wait', 'Wait until the operation has ended')
        operation_following.add_page(add)

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        wanted = parsed_args.operation
        advancer = self.fleets.request(wanted, fleet_requests.RETRY)
        follower = operation_following.Follower(self, page=parsed_args.output)
        if parsed_args.wait:
            found = follower.follow(advancer)
        else:
            found = follower.start(advancer)
        return operation_columns.shown(found, self.fleets.now())


class DeleteOperation(_Command):
    """Delete operations that have ended, with the outputs of their runs."""

    example = '00f2c40a'

    def add_arguments(self, add: command_line.Adder) -> None:
        add_operation(add, nargs='+')
        add.flag(
            '--force', 'Delete also an operation with an unreadable record'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        deleted = []
        for operation_id in parsed_args.operation:
            try:
                deleted.append(
                    self.fleets.delete(operation_id, force=parsed_args.force)
                )
            except errors.Error as exc:
                if len(parsed_args.operation) == 1:
                    raise
                self.log.error('%s', exc)
                self.exit_code = 1
        return ('id',), common.Many(({'id': one} for one in deleted), ('id',))
