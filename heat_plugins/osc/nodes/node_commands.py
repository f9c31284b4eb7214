# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan node register|list|introspect|provide``."""

import argparse
from collections import abc
import json
import pathlib
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import yaml_reading
from heat_plugins.nodes import convoy
from heat_plugins.nodes import node_operations
from heat_plugins.nodes import registering
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc import drivers
from heat_plugins.osc import private_files
from heat_plugins.osc import progress
from heat_plugins.osc.plans import plan_common

_NULL = 'tag:yaml.org,2002:null'
_BOOL = 'tag:yaml.org,2002:bool'
_MERGE = 'tag:yaml.org,2002:merge'


# Numbers stay text. YAML has sixty as a base, so to it 52:54:00:12:34:56 is a
# number; and 0123, as a password, one of base eight.
_RESOLVERS = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        # Nor is yes, no, on or off anything but a word.
        if tag in (_NULL, _MERGE) or (tag == _BOOL and first in 'tTfF')
    ]
    for first, resolvers in yaml_reading.Loader.yaml_implicit_resolvers.items()
}


_NODES = (
    command_line.value('nodes', '<node>', 'UUIDs or names', nargs='*'),
    command_line.flag('--all', 'All manageable nodes'),
)
_TIMEOUT = command_line.number(
    '--timeout',
    '<seconds>',
    'Seconds for each node, with all attempts (default: %(default)s)',
    default=convoy.TIMEOUT,
)


class _PureLoader(yaml_reading.PureLoader):
    yaml_implicit_resolvers = _RESOLVERS


class _Loader(yaml_reading.Loader):
    yaml_implicit_resolvers = _RESOLVERS
    pure = _PureLoader


def load_nodes(text: str) -> Any:
    """Return what a file holds.

    :raises errors.Invalid: it is neither JSON nor YAML, or more than is
        read; passwords in it are not quoted.
    """
    if len(text) > yaml_reading.LARGEST:
        raise errors.Invalid(
            f'The file of nodes has more than {yaml_reading.LARGEST} '
            'characters; split it into several files'
        )
    try:
        return bounds.read_json(text)
    except ValueError:
        pass
    try:
        return yaml_reading.load(text, _Loader)
    except yaml_reading.UnreadableYAML as exc:
        raise errors.Invalid(
            f'The file of nodes is not JSON, and it {exc}'
        ) from None


class NodeCommand(plan_common.PlanCommand):
    """A command about nodes."""

    shared = (plan_common.LOCAL,)

    def done(
        self,
        parsed_args: argparse.Namespace,
        kind: str,
        **arguments: Any,
    ) -> drivers.Report:
        """Return the report of work on nodes, and set the exit code for it."""
        try:
            report = self.driver(parsed_args).work(
                kind, progress.Nodes(self.progress), **arguments
            )
        except KeyboardInterrupt:
            self.log.error('Interrupted; run the command again to continue')
            self.exit_code = common.INTERRUPTED
            return {'nodes': [], 'moved': [], 'found': []}
        if report['reason']:
            self.log.error('%s', report['reason'])
            self.exit_code = common.FAILED
        return report


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
            parsed_args,
            'register',
            nodes=load_nodes(common.read_text(parsed_args.file)),
            remove=parsed_args.remove,
            dry_run=parsed_args.dry_run,
            manage=not parsed_args.no_manage,
            provide=parsed_args.provide,
            timeout=parsed_args.timeout,
        )
        self.warn(
            f'{entry["name"]}: {warning}'
            for entry in report['nodes']
            for warning in entry['warnings']
        )
        # The last way of a node tells where it is.
        moved = {move['uuid']: move for move in report['moved']}
        return ('Name', 'UUID', 'Action', 'Changes', 'Reason'), [
            (
                entry['name'],
                entry['uuid'],
                _action(entry, parsed_args.dry_run),
                columns.Lines(entry['changes']),
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
            self.driver(parsed_args).call('nodes.list'),
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
            default=convoy.CONCURRENCY,
        ),
        command_line.number(
            '--attempts',
            '<number>',
            'Maximum number of attempts for each node (default: %(default)s)',
            default=convoy.ATTEMPTS,
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
        driver = self.driver(parsed_args)
        nodes = _nodes(parsed_args)
        if parsed_args.abort:
            stopped = driver.call('nodes.abort', nodes=nodes)['nodes']
            return ('UUID',), [(uuid,) for uuid in stopped]
        report = self.done(
            parsed_args,
            'introspect',
            nodes=nodes,
            concurrency=parsed_args.concurrency,
            attempts=parsed_args.attempts,
            timeout=parsed_args.timeout,
            provide=parsed_args.provide,
        )
        if parsed_args.save:
            _save(driver.nodes, parsed_args.save, report['found'])
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
            parsed_args,
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


def _action(entry: drivers.Report, dry_run: bool) -> str:
    action = registering.NodeAction(entry['action'])
    conditional = dry_run and action in registering.CHANGES
    return f'would be {action}' if conditional else str(action)


def _nodes(parsed_args: argparse.Namespace) -> list[str] | None:
    if bool(parsed_args.nodes) == parsed_args.all:
        raise exceptions.CommandError('Name nodes, or give --all')
    return parsed_args.nodes or None


def _save(
    core: node_operations.NodeOperations,
    folder: str,
    machines: abc.Iterable[drivers.Report],
) -> None:
    with common.access('write', folder):
        tree = private_files.Tree(pathlib.Path(folder))
        for machine in machines:
            text = json.dumps(core.inventory(machine['uuid']), indent=2)
            name = machine['name'] or machine['uuid']
            tree.write((), f'{name}.json', text + '\n')
