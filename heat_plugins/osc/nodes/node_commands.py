# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan node register|list|introspect|provide``."""

import argparse
import contextlib
import functools
import json
import pathlib
import time
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins import yaml_reading
from heat_plugins.clients import ironic
from heat_plugins.clients import swift
from heat_plugins.nodes import moving
from heat_plugins.nodes import node_operations
from heat_plugins.nodes import registering
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import private_files
from heat_plugins.osc import progress
from heat_plugins.osc.plans import plan_common

# Seconds between two polls of Ironic, at most.
_MOST = 5.0

# How often to poll, a second each, whether an inspection can be aborted.
_ABORTING = 30

_NODES = (
    command_line.value('nodes', '<node>', 'UUIDs or names', nargs='*'),
    command_line.flag('--all', 'All manageable nodes'),
)
_TIMEOUT = command_line.number(
    '--timeout',
    '<seconds>',
    'Seconds for each node, with all attempts (default: %(default)s)',
    default=moving.TIMEOUT,
)


def operations(manager: Any) -> node_operations.NodeOperations:
    """Return the operations on nodes, with the session of a command."""
    cloud = common.cloud(manager)
    return node_operations.NodeOperations(
        ironic.BaremetalAPI(cloud), swift.connect(cloud)
    )


def load_nodes(text: str) -> Any:
    """Read a file of nodes.

    :raises errors.Invalid: it is neither JSON nor YAML, or too large; the
        message quotes no password.
    """
    with contextlib.suppress(ValueError):
        return bounds.read_json(text)
    try:
        return yaml_reading.load(text)
    except yaml_reading.UnreadableYAML as exc:
        raise errors.Invalid(
            f'The file of nodes is not JSON, and it {exc}'
        ) from None


class NodeCommand(common.Report):
    """A command about nodes.

    It polls Ironic as the workflows do: both take the steps of
    `node_operations.NodeJob`.
    """

    shared = (plan_common.NO_LONGER_NEEDED,)

    @functools.cached_property
    def core(self) -> node_operations.NodeOperations:
        """The operations on nodes."""
        return operations(self.app.client_manager)

    def done(self, kind: str, **arguments: Any) -> node_operations.Report:
        """Return the report of work on nodes, and set the exit code for it.

        :param kind: see `node_operations.begin`, which takes `arguments`.
        """
        show = progress.Nodes(self.progress)
        inspected: list[str] = []

        def tell(step: node_operations.Step) -> None:
            for move in step.state.moves[-1:]:
                show.changed(move)
                if move.verb == 'inspect':
                    inspected[:] = [member.uuid for member in move.members]

        job, state = node_operations.begin(self.core, kind, arguments)
        try:
            step = jobs.drive(
                job,
                state,
                tell=tell,
                note=show.note,
                most=_MOST,
                sleep=time.sleep,
            )
        except KeyboardInterrupt:
            self.log.error('Interrupted; run the command again to continue')
            self.exit_code = common.INTERRUPTED
            # A node that was just sent cannot be aborted at once.
            for _ in range(_ABORTING):
                if not self.core.abort(inspected)['moving']:
                    break
                time.sleep(1)
            return {'nodes': [], 'moved': [], 'found': []}
        if step.reason:
            self.log.error('%s', step.reason)
            self.exit_code = common.FAILED
        return job.output(step.state)


class RegisterNodes(NodeCommand):
    """Register the nodes of a file with Ironic, and make them manageable.

    The uuid, a MAC address, or the address of the BMC identifies a node. A
    repeated command updates changed nodes, and finishes an interrupted one.
    Exit codes: 0 success, 3 some nodes failed.
    """

    example = 'nodes.yaml --dry-run'

    arguments = (
        command_line.value(
            'file',
            '<file>',
            'The nodes, in JSON or YAML; - for standard input',
        ),
        command_line.flag(
            '--dry-run', 'Show what would change, and change nothing'
        ),
        command_line.flag(
            '--remove',
            'Also delete nodes that the file does not name, but never one in '
            'use',
        ),
        command_line.either(
            command_line.flag('--provide', 'Make the nodes available'),
            command_line.flag(
                '--no-manage',
                'Leave new nodes enrolled; do not make them manageable',
            ),
        ),
        _TIMEOUT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        report = self.done(
            'register',
            nodes=load_nodes(common.read_text(parsed_args.file)),
            remove=parsed_args.remove,
            dry_run=parsed_args.dry_run,
            manage=not parsed_args.no_manage,
            provide=parsed_args.provide,
            timeout=parsed_args.timeout,
        )
        for entry in report['nodes']:
            for warning in entry['warnings']:
                self.log.warning('%s: %s', entry['name'], warning)
        # The last move of a node has its final state.
        moved = {move['uuid']: move for move in report['moved']}
        return ('Name', 'UUID', 'Action', 'Changes', 'Reason'), [
            (
                entry['name'],
                entry['uuid'],
                f'would be {entry["action"]}'
                if parsed_args.dry_run
                and registering.NodeAction(entry['action'])
                in registering.CHANGES
                else str(entry['action']),
                columns.SentencesCell(entry['changes']),
                columns.Value(
                    entry['reason']
                    or moved.get(entry['uuid'], {}).get('reason')
                    or ''
                ),
            )
            for entry in report['nodes']
        ]


class ListNodes(NodeCommand):
    """List the nodes in Ironic that the project may see."""

    example = '-c Name -c State'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return common.table(
            self.core.list(),
            {
                'Name': 'name',
                'UUID': 'uuid',
                'Driver': 'driver',
                'State': 'provision_state',
                'Power': 'power_state',
                'Maintenance': 'maintenance',
                'Instance': 'instance_uuid',
                'Last error': 'last_error',
            },
        )


class IntrospectNodes(NodeCommand):
    """Let Ironic inspect nodes, and show what it finds.

    A failed inspection is retried, an aborted one is not. Ctrl-C aborts the
    inspections. Exit codes: 0 success, 3 some inspections failed.
    """

    example = '--all --provide'

    arguments = (
        *_NODES,
        command_line.flag('--provide', 'Make the inspected nodes available'),
        command_line.number(
            '--concurrency',
            '<number>',
            'Maximum number of inspections at a time (default: %(default)s)',
            default=moving.CONCURRENCY,
        ),
        command_line.number(
            '--attempts',
            '<number>',
            'Maximum number of attempts for each node (default: %(default)s)',
            default=moving.ATTEMPTS,
        ),
        _TIMEOUT,
        command_line.value(
            '--save',
            '<directory>',
            'Write all inspected data of each node to a file in this folder',
        ),
        command_line.flag(
            '--abort',
            'Abort the inspections of these nodes, including those that '
            'other users started',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        nodes = _nodes(parsed_args)
        if parsed_args.abort:
            stopped = self.core.abort(nodes)['nodes']
            return ('UUID',), [(uuid,) for uuid in stopped]
        report = self.done(
            'introspect',
            nodes=nodes,
            concurrency=parsed_args.concurrency,
            attempts=parsed_args.attempts,
            timeout=parsed_args.timeout,
            provide=parsed_args.provide,
        )
        if parsed_args.save:
            with common.access('write', parsed_args.save):
                path = private_files.folder(pathlib.Path(parsed_args.save))
                for machine in report['found']:
                    inventory = self.core.inventory(machine['uuid'])
                    name = machine['name'] or machine['uuid']
                    file = private_files.file_name(f'{name}.json')
                    text = json.dumps(inventory, indent=2) + '\n'
                    private_files.write(path / file, text)
        machines = {machine['uuid']: machine for machine in report['found']}
        return common.table(
            [
                {**member, **machines.get(member['uuid'], {})}
                for member in report['nodes']
            ],
            {
                'Name': 'name',
                'UUID': 'uuid',
                'State': 'phase',
                'Attempts': 'attempts',
                'CPUs': lambda row: row.get('cpus'),
                'Memory MB': lambda row: row.get('memory_mb'),
                'Disks GB': lambda row: columns.NamesCell(
                    map(str, row.get('disks_gb', ()))
                ),
                'MACs': lambda row: columns.NamesCell(row.get('macs', ())),
                'Reason': columns.of(columns.Value, 'reason'),
            },
        )


class ProvideNodes(NodeCommand):
    """Make manageable nodes available for instances.

    Exit codes: 0 success, 3 some nodes failed.
    """

    example = 'node-1 node-2'

    arguments = (
        *_NODES,
        _TIMEOUT,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        report = self.done(
            'move',
            verb='provide',
            nodes=_nodes(parsed_args),
            timeout=parsed_args.timeout,
        )
        return common.table(
            report['nodes'],
            {
                'Name': 'name',
                'UUID': 'uuid',
                'State': 'phase',
                'Reason': columns.of(columns.Value, 'reason'),
            },
        )


def _nodes(parsed_args: argparse.Namespace) -> list[str] | None:
    """Return the nodes that were named; None for all."""
    if bool(parsed_args.nodes) == parsed_args.all:
        raise exceptions.CommandError('Name nodes, or give --all')
    return parsed_args.nodes or None
