# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan node register|list|introspect|provide``."""

import argparse
from collections import abc
import json
import pathlib
from typing import Any

from osc_lib import exceptions

from heat_plugins.nodes import files
from heat_plugins.nodes import leading
from heat_plugins.nodes import node_operations
from heat_plugins.nodes import registering
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import local_way
from heat_plugins.osc.plans import plan_common


class NodeCommand(plan_common.PlanCommand):
    """A command about nodes."""

    named = False

    # The last line of progress.
    _shown = ''

    def done(
        self,
        work: abc.Callable[..., local_way.Report],
        *arguments: Any,
        **options: Any,
    ) -> local_way.Report:
        """Return what an operation of a way has done, if need be in part."""
        try:
            return work(*arguments, self._show, **options)
        except leading.Failed as exc:
            self.log.error('%s', exc)
            self.exit_code = common.FAILED
            return exc.found
        except KeyboardInterrupt:
            self.log.error('Interrupted; done again, it goes on')
            self.exit_code = common.INTERRUPTED
            return {'nodes': [], 'moved': [], 'found': []}

    def _show(self, report: local_way.Report) -> None:
        if execution_id := report.get('execution'):
            self.progress.say(f'Execution {execution_id}')
            return
        phases = [one['phase'] for one in report['convoy']['members']]
        counted = ', '.join(
            f'{phases.count(phase)} {phase}'
            for phase in dict.fromkeys(sorted(phases))
        )
        line = f'{report["convoy"]["verb"]}: {counted or "no nodes"}'
        self.progress.show(line)
        if line != self._shown and not self.progress.live:
            self.progress.say(line)
        self._shown = line


class RegisterNodes(NodeCommand):
    """Register the nodes of a file with Ironic, and make them manageable.

    A node is known by its uuid, a MAC address, or where its BMC is. Done
    again it changes what is different, and finishes what was broken off.
    Exit codes: 0 success, 3 something is wrong with some node.
    """

    example = 'nodes.yaml --dry-run'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'file',
            metavar='<file>',
            help='The nodes, in JSON or YAML; - for standard input',
        )
        parser.add_argument(
            '--dry-run',
            action='store_true',
            help='Show what would change, and change nothing',
        )
        parser.add_argument(
            '--remove',
            action='store_true',
            help='Also delete the nodes that the file does not name, but '
            'never one that is in use',
        )
        group = parser.add_mutually_exclusive_group()
        group.add_argument(
            '--provide',
            action='store_true',
            help='Make them available',
        )
        group.add_argument(
            '--no-manage',
            action='store_true',
            help='Leave new nodes as they are, enrolled',
        )
        _add_timeout(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.done(
            self.way(parsed_args).register,
            files.load(common.read_text(parsed_args.file)),
            remove=parsed_args.remove,
            dry_run=parsed_args.dry_run,
            manage=not parsed_args.no_manage,
            provide=parsed_args.provide,
            timeout=parsed_args.timeout,
        )
        self.warn(
            f'{one["name"]}: {warning}'
            for one in found['nodes']
            for warning in one['warnings']
        )
        # The last way of a node tells where it is.
        moved = {one['uuid']: one for one in found['moved']}
        return ('Name', 'UUID', 'Action', 'Changes', 'Reason'), [
            (
                one['name'],
                one['uuid'],
                _action(one, parsed_args.dry_run),
                columns.Lines(one['changes']),
                columns.Value(
                    one['reason']
                    or moved.get(one['uuid'], {}).get('reason')
                    or ''
                ),
            )
            for one in found['nodes']
        ]


class ListNodes(NodeCommand):
    """List the nodes of Ironic's that the project may see."""

    example = '-c Name -c State'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        shown = {
            'name': 'Name',
            'uuid': 'UUID',
            'driver': 'Driver',
            'provision_state': 'State',
            'power_state': 'Power',
            'maintenance': 'Maintenance',
            'instance_uuid': 'Instance',
            'last_error': 'Last error',
        }
        return tuple(shown.values()), [
            tuple(one[name] for name in shown)
            for one in self.way(parsed_args).call('nodes.list')
        ]


class IntrospectNodes(NodeCommand):
    """Let Ironic inspect nodes, and show what it finds.

    A failed inspection is retried, an aborted one is not. Ctrl-C aborts
    the inspections. Exit codes: 0 success, 3 not all were inspected.
    """

    example = '--all --provide'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_nodes(parser, 'manageable')
        parser.add_argument(
            '--provide',
            action='store_true',
            help='Make those available that were inspected',
        )
        parser.add_argument(
            '--concurrency',
            metavar='<number>',
            type=common.positive,
            default=node_operations.CONCURRENCY,
            help='The most inspections at a time (default: %(default)s)',
        )
        parser.add_argument(
            '--attempts',
            metavar='<number>',
            type=common.positive,
            default=node_operations.ATTEMPTS,
            help='How often to try a node (default: %(default)s)',
        )
        _add_timeout(parser)
        parser.add_argument(
            '--save',
            metavar='<directory>',
            help='Write all that was found to a file for each node there',
        )
        parser.add_argument(
            '--abort',
            action='store_true',
            help='Abort the inspections of these nodes, also those of others',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        nodes = _nodes(parsed_args)
        if parsed_args.abort:
            stopped = way.call('nodes.abort', nodes=nodes)['nodes']
            return ('UUID',), [(uuid,) for uuid in stopped]
        found = self.done(
            way.introspect,
            nodes,
            concurrency=parsed_args.concurrency,
            attempts=parsed_args.attempts,
            timeout=parsed_args.timeout,
            provide=parsed_args.provide,
        )
        if parsed_args.save:
            _save(way.nodes, parsed_args.save, found['found'])
        machines = {one['uuid']: one for one in found['found']}
        return (
            'Name',
            'UUID',
            'State',
            'Attempts',
            'CPUs',
            'Memory MB',
            'Disks GB',
            'MACs',
            'Reason',
        ), [
            _inspected(one, machines.get(one['uuid'], {}))
            for one in found['nodes']
        ]


class ProvideNodes(NodeCommand):
    """Let manageable nodes become available for instances.

    Exit codes: 0 success, 3 not all of them have.
    """

    example = 'node-1 node-2'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_nodes(parser, 'manageable')
        _add_timeout(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        found = self.done(
            self.way(parsed_args).provide,
            _nodes(parsed_args),
            timeout=parsed_args.timeout,
        )
        return ('Name', 'UUID', 'State', 'Reason'), [
            (
                one['name'],
                one['uuid'],
                one['phase'],
                columns.Value(one['reason']),
            )
            for one in found['nodes']
        ]


def _action(one: local_way.Report, dry_run: bool) -> str:
    action = registering.Action(one['action'])
    conditional = dry_run and action in registering.CHANGES
    return f'would be {action}' if conditional else str(action)


def _inspected(
    one: local_way.Report, machine: local_way.Report
) -> tuple[Any, ...]:
    return (
        one['name'],
        one['uuid'],
        one['phase'],
        one['attempts'],
        machine.get('cpus'),
        machine.get('memory_mb'),
        columns.Names(str(size) for size in machine.get('disks_gb', ())),
        columns.Names(machine.get('macs', ())),
        columns.Value(one['reason']),
    )


def _add_nodes(parser: argparse.ArgumentParser, state: str) -> None:
    parser.add_argument(
        'nodes', metavar='<node>', nargs='*', help='UUIDs or names'
    )
    parser.add_argument(
        '--all',
        action='store_true',
        help=f'All nodes that are {state}, in place of some by name',
    )


def _nodes(parsed_args: argparse.Namespace) -> list[str] | None:
    if bool(parsed_args.nodes) == parsed_args.all:
        raise exceptions.CommandError('Name nodes, or give --all')
    return parsed_args.nodes or None


def _add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--timeout',
        metavar='<seconds>',
        type=common.positive,
        default=node_operations.TIMEOUT,
        help='The most that a node may take, all in all (default: '
        '%(default)s)',
    )


def _save(
    core: node_operations.Operations,
    folder: str,
    machines: abc.Iterable[local_way.Report],
) -> None:
    path = pathlib.Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        for one in machines:
            text = json.dumps(core.inventory(one['uuid']), indent=2)
            file = path / f'{one["name"] or one["uuid"]}.json'
            file.write_text(text + '\n', encoding='utf-8')
    except OSError as exc:
        raise exceptions.CommandError(
            f'{folder} cannot be written: {exc.strerror}'
        ) from exc
