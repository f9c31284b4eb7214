# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation …``, but for ``run``."""

import argparse
from collections import abc
import functools
import json
import pathlib
from typing import Any

from osc_lib import exceptions

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc.runs import operation_following
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operation as operations
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
_TARGETS = (
    'stack',
    'resource',
    'server',
    'state',
    'started_at',
    'duration',
    'reason',
)


class Counts(columns.Column):
    """Numbers by name, those that are not 0."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{number} {name}' for name, number in self._value.items()
        )

    def machine_readable(self) -> Any:
        return dict(self._value)


class Failures(columns.Column):
    """The targets that failed, each with the reason."""

    def human_readable(self) -> str:
        return '\n'.join(
            foreign.line(
                f'{one["stack"]} {one["server_name"] or one["resource"]}: '
                f'{one["state"]}: {one["reason"]}'
            )
            for one in self._value
        )

    def machine_readable(self) -> Any:
        return list(self._value)


class Limits(columns.Column):
    """The limits, those that are set."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{name.replace("_", "-")} {value}'
            for name, value in self._value.items()
            if value not in (None, False) and value != 0
        )

    def machine_readable(self) -> Any:
        return dict(self._value)


def shown(found: operations.Operation, now: float) -> common.Shown:
    """Return columns and values of one operation."""
    values = overview.of(found, now)
    values['stacks'] = columns.Names(values['stacks'])
    values['inputs'] = columns.Names(values['inputs'])
    values['counts'] = Counts(values['counts'])
    values['limits'] = Limits(values['limits'])
    values['failures'] = Failures(values['failures'])
    values['duration'] = columns.Seconds(values['duration'])
    return tuple(values), common.One(values.values())


def _rows(
    found: operations.Operation, members: abc.Iterable[int]
) -> common.Many:
    rows = []
    for member in members:
        row = overview.target(found, member)
        row['server'] = columns.Server(row['server'], row['server_name'])
        row['duration'] = columns.Seconds(row['duration'])
        row['outputs'] = columns.Outputs(row['outputs'])
        row['cut'] = columns.Outputs(row['cut'])
        rows.append(row)
    return common.Many(rows, _TARGETS)


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


def add_operation(parser: argparse.ArgumentParser, **more: Any) -> None:
    parser.add_argument(
        'operation',
        metavar='<operation>',
        help='ID of the operation, or how it begins or ends',
        **more,
    )


class ListOperations(_Command):
    """List the operations of the project, the newest first."""

    example = '--stack shop --since 7d'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--state',
            choices=[phase.value for phase in operations.Phase],
            help='Only those in a state',
        )
        parser.add_argument(
            '--action', metavar='<action>', help='Only those of an action'
        )
        parser.add_argument(
            '--stack',
            metavar='<stack>',
            help='Only those with targets in a stack (name)',
        )
        common.add_since(parser)
        parser.add_argument(
            '--limit',
            metavar='<number>',
            type=common.positive,
            default=100,
            help='The most to list (default: 100)',
        )
        return parser

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
            row['counts'] = Counts(row['counts'])
            row['duration'] = columns.Seconds(row['duration'])
            rows.append(row)
        return _KEYS, common.Many(rows, _LISTED)


class ShowOperation(_Command):
    """Show how an operation stands."""

    example = '00f2c40a --targets --state failed'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser)
        parser.add_argument(
            '--targets', action='store_true', help='List its targets'
        )
        parser.add_argument(
            '--state',
            choices=overview.COUNTED,
            help='With --targets: only those in a state',
        )
        operation_following.add_page(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.fleets.show(parsed_args.operation)
        operation_following.write_page(parsed_args.output, found)
        if not parsed_args.targets:
            return shown(found, self.fleets.now())
        members = [
            n
            for n, one in enumerate(found.attempts)
            if parsed_args.state
            in (None, one.state.value if one.state else overview.PENDING)
        ]
        return overview.TARGET_KEYS, _rows(found, members)


class WaitOperation(_Following):
    """Wait until an operation has ended, and advance it meanwhile.

    Exit codes: 0 success, 3 failed, 4 timed out, 5 cancelled, 6 not ended
    when --timeout had passed, 130 interrupted.
    """

    example = '00f2c40a --output run.html'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser)
        parser.add_argument(
            '--timeout',
            metavar='<seconds>',
            type=common.positive,
            help='Stop waiting after that time; the operation goes on',
        )
        operation_following.add_page(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.follow(parsed_args, parsed_args.operation)
        return shown(found, self.fleets.now())


class ShowOperationOutput(_Command):
    """Show what each server of an operation printed."""

    example = '00f2c40a --output-dir backup-logs'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser)
        parser.add_argument(
            '--failed',
            action='store_true',
            help='Only those that failed or timed out',
        )
        parser.add_argument(
            '--server',
            metavar='<server>',
            help='Only that of a server: name of its resource, or its ID',
        )
        parser.add_argument(
            '--output-dir',
            metavar='<folder>',
            help='Write each output, whole, into a file '
            '<folder>/<stack>/<resource>/<output>',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.fleets.show(parsed_args.operation)
        wanted = parsed_args.server
        members = [
            n
            for n, one in enumerate(found.order.members)
            if (not parsed_args.failed or found.attempts[n].has_failed)
            and wanted in (None, one.server_id, one.server_name)
        ]
        if parsed_args.output_dir:
            folder = pathlib.Path(parsed_args.output_dir)
            for member in members:
                self._write(folder, found, member)
        rows = _rows(found, members)
        listed = ('stack', 'resource', 'server', 'state', 'outputs')
        return overview.TARGET_KEYS, common.Many(rows, listed)

    def _write(
        self, folder: pathlib.Path, found: operations.Operation, member: int
    ) -> None:
        one = found.order.members[member]
        place = folder / _safe(one.stack_name) / _safe(one.resource)
        try:
            place.mkdir(parents=True, exist_ok=True)
            for name, value in self.fleets.outputs(found, member).items():
                if value in (None, ''):
                    continue
                text = value if isinstance(value, str) else json.dumps(value)
                path = place / _safe(name)
                path.write_text(text, encoding='utf-8')
        except OSError as exc:
            raise exceptions.CommandError(
                f'{place} cannot be written: {exc.strerror}'
            ) from exc


def _safe(name: str) -> str:
    """Return a name as that of a file, which leads nowhere else."""
    kept = ''.join(
        one if one.isalnum() or one in '._- ' else '_' for one in name
    )
    return kept.lstrip('.')[:200] or '_'


class _Request(_Following):
    """A command that asks an operation for something."""

    what = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        advancer = self.fleets.request(parsed_args.operation, self.what)
        try:
            return shown(advancer.operation, self.fleets.now())
        finally:
            advancer.release()


class PauseOperation(_Request):
    """Start no more runs of an operation; those that go on do so."""

    example = '00f2c40a'
    what = fleet_requests.PAUSE


class ResumeOperation(_Request):
    """Go on with an operation that was paused, or waits for approval."""

    example = '00f2c40a'
    what = fleet_requests.RESUME


class CancelOperation(_Request):
    """Cancel an operation, and take what goes on from the servers.

    A server that has not fetched its run never runs it. One that has is told
    to stop if it has the supervisor; else it comes to its end.
    """

    example = '00f2c40a'
    what = fleet_requests.CANCEL


class RetryOperation(_Following):
    """Run an operation again where it failed, timed out or did not start.

    Exit codes with --wait are those of "operation wait".
    """

    example = '00f2c40a --wait'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser)
        parser.add_argument(
            '--wait', action='store_true', help='Wait until it has ended'
        )
        operation_following.add_page(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        wanted = parsed_args.operation
        advancer = self.fleets.request(wanted, fleet_requests.RETRY)
        follower = operation_following.Follower(self, page=parsed_args.output)
        if parsed_args.wait:
            found = follower.follow(advancer)
        else:
            found = follower.start(advancer)
        return shown(found, self.fleets.now())


class DeleteOperation(_Command):
    """Forget operations that have ended, with the outputs of their runs."""

    example = '00f2c40a'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_operation(parser, nargs='+')
        parser.add_argument(
            '--force',
            action='store_true',
            help='Also one whose record cannot be read',
        )
        return parser

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
