# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment operation output``."""

import argparse
from collections import abc
import json
import logging
import pathlib
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.osc.runs import following
from heat_plugins.osc.runs import operation_columns
from heat_plugins.osc.runs import operation_commands
from heat_plugins.runs import run_service
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.signals import body

_LISTED = ('stack', 'resource', 'server', 'state', 'outputs')

# Files that could not be written and are named, each with the reason.
_NAMED = 10


class ShowOperationOutput(operation_commands.OperationCommand):
    """Show what each server of an operation printed."""

    example = '00f2c40a --output-dir backup-logs'

    arguments = (
        operation_commands.operation_id(),
        command_line.flag('--failed', 'Only runs that failed or timed out'),
        command_line.value(
            '--stack', '<stack>', 'Only targets in a stack (name or ID)'
        ),
        command_line.value(
            '--server',
            '<server>',
            'Only the output of a server: name of its resource, or its ID; '
            'if several stacks have one of that name, give --stack as well',
        ),
        command_line.either(
            operation_commands.ATTEMPT,
            command_line.flag(
                '--follow',
                "Follow until the operation has ended: print the servers' "
                'output on standard error, each line with the name of its '
                'server. The exit code is that of "operation wait"',
            ),
        ),
        command_line.value(
            '--output-dir',
            '<folder>',
            'Write each complete output to a file '
            '<folder>/<stack>/<resource>/<output> that only you can read, '
            'and show how many were written',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        advancer = common.read_first(
            self.progress,
            lambda: self.fleets.advancer(parsed_args.operation),
            None if parsed_args.follow else 0,
        )
        chosen = _chosen(advancer.operation.order, parsed_args)

        def is_wanted(operation: operations.Operation, member: int) -> bool:
            return member in chosen and (
                not parsed_args.failed or operation.attempts[member].has_failed
            )

        if parsed_args.follow:
            follower = following.OperationFollower(
                self,
                output=following.output(self),
                wanted=is_wanted,
            )
            operation = follower.follow(advancer)
        else:
            operation = self.fleets.show(parsed_args.operation)
        if parsed_args.attempt:
            operation = operation.at_attempt(parsed_args.attempt)
        members = [
            member
            for member in chosen
            if is_wanted(operation, member)
            and (operation.attempts[member].is_run or not parsed_args.attempt)
        ]
        if parsed_args.output_dir:
            return self._save(parsed_args.output_dir, operation, members)
        rows = operation_columns.rows(operation, members)
        for row, member in zip(rows, members, strict=True):
            row['outputs'] = _Outputs(operation.attempts[member].outputs)
        return overview.TARGET_KEYS, common.Many(rows, _LISTED)

    def _save(
        self,
        folder: str,
        operation: operations.Operation,
        members: abc.Sequence[int],
    ) -> common.Shown:
        with common.access('write', folder):
            tree = private_files.Tree(pathlib.Path(folder))
        service = common.service(self.app.client_manager)
        saver = _Saver(tree, service, self.log)
        for member in members:
            saver.save(overview.run_of(operation, member))
        if saver.refused:
            self.exit_code = 1
        if saver.refused > _NAMED:
            self.log.error('Cannot write %d more', saver.refused - _NAMED)
        return ('folder', 'targets', 'files', 'not_written'), common.One(
            (folder, len(members), saver.files, saver.refused)
        )


class _Saver:
    """Writes outputs; one that cannot be written does not stop the rest.

    :ivar files: how many files it has written.
    :ivar refused: how many it could not write.
    """

    def __init__(
        self,
        tree: private_files.Tree,
        service: run_service.Runs,
        log: logging.Logger,
    ) -> None:
        self._tree = tree
        self._service = service
        self._log = log
        self.files = 0
        self.refused = 0

    def save(self, run: runs.Run) -> None:
        """Write the outputs of a run, each to a file."""
        place = run.stack_name, run.resource
        try:
            texts = _texts(self._service.outputs(run))
        except errors.Error as exc:
            self._refuse('/'.join(place), exc)
            return
        for name, text in texts.items():
            path = '/'.join((*place, name))
            if run.cut.get(name, 0) > len(text):
                self._log.warning('Only the end of %s is kept', path)
            try:
                self._tree.write(place, name, text)
                self.files += 1
            except OSError as exc:
                self._refuse(path, exc.strerror)

    def _refuse(self, path: str, reason: object) -> None:
        self.refused += 1
        if self.refused <= _NAMED:
            self._log.error('Cannot write %s: %s', path, reason)


class _Outputs(columns.Outputs):
    """The outputs of one of many servers: without the usual exit status."""

    def human_readable(self) -> str:
        outputs = self.machine_readable()
        if str(outputs.get(body.STATUS_CODE)) == '0':
            del outputs[body.STATUS_CODE]
        return columns.Outputs(outputs).human_readable()


def _texts(outputs: abc.Mapping[str, Any]) -> dict[str, str]:
    """Return what to write, by the names of the outputs."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in outputs.items()
        if value not in (None, '')
    }


def _chosen(
    order: operations.OperationOrder, parsed_args: argparse.Namespace
) -> dict[int, runs.RunTarget]:
    """Return the members that the command line names.

    :raises exceptions.CommandError: it names none, or servers of several
        stacks by one name.
    """
    chosen = dict(enumerate(order.members))
    if parsed_args.stack is not None:
        in_stack = {
            n: (member.stack_name, member.stack_id)
            for n, member in chosen.items()
        }
        named = _named(order, 'in stack', parsed_args.stack, in_stack)
        chosen = {n: chosen[n] for n in named}
    if parsed_args.server is None:
        return chosen
    on_server = {
        n: (member.server_name or '', member.server_id)
        for n, member in chosen.items()
    }
    named = _named(order, 'on server', parsed_args.server, on_server)
    servers = {chosen[n].server_id: chosen[n] for n in named}
    if len(servers) > 1:
        places = bounds.listed(
            f'{member.stack_name} (server ID {member.server_id})'
            for member in servers.values()
        )
        raise exceptions.CommandError(
            f'Several stacks have a server {parsed_args.server}: {places}. '
            'Give --stack, or the ID of the server'
        )
    return {n: chosen[n] for n in named}


def _named(
    order: operations.OperationOrder,
    where: str,
    name: str,
    known: abc.Mapping[int, tuple[str, str]],
) -> list[int]:
    """Return the members of which a name or an ID is known."""
    named = [member for member, names in known.items() if name in names]
    if not named:
        every = {each for names in known.values() for each in names if each}
        raise exceptions.CommandError(
            f'Operation {order.id} has no target {where} {name}'
            + bounds.did_you_mean(name, every)
        )
    return named
