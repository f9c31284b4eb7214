# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan capability|parameter|role …``."""

import argparse
from collections import abc
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins import stored
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import local_way
from heat_plugins.osc.plans import plan_common
from heat_plugins.plans.parameters import parameters

# Capabilities


class ListCapabilities(plan_common.PlanCommand):
    """List what can be chosen in a plan, and what is."""

    example = 'overcloud --enabled'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--enabled',
            action='store_true',
            help='Only the environments that are enabled',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        found = way.call('plan.get_capabilities', plan=parsed_args.plan)
        self.warn(found['warnings'])
        rows = [
            (
                topic['title'],
                group['title'] or group['name'],
                one['path'],
                one['title'],
                one['enabled'],
                columns.Names(one['requires']),
                group['mutually_exclusive'],
            )
            for topic in found['topics']
            for group in topic['groups']
            for one in group['environments']
            if one['enabled'] or not parsed_args.enabled
        ]
        headers = (
            'Topic',
            'Group',
            'Environment',
            'Title',
            'Enabled',
            'Requires',
            'Exclusive',
        )
        return headers, rows


class SetCapabilities(plan_common.PlanCommand):
    """Enable and disable environments of a plan, all of them or none."""

    example = 'overcloud --enable environments/ceph.yaml'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name in ('enable', 'disable'):
            parser.add_argument(
                f'--{name}',
                metavar='<environment>',
                action='append',
                default=[],
                help=f'Path of an environment to {name} (repeat option for '
                'several)',
            )
        parser.add_argument(
            '--with-requirements',
            action='store_true',
            help='Enable what is required, too',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        choices = dict.fromkeys(parsed_args.enable, True)
        both = choices.keys() & set(parsed_args.disable)
        if both:
            raise exceptions.CommandError(
                f'{sorted(both)[0]} cannot be both enabled and disabled'
            )
        choices.update(dict.fromkeys(parsed_args.disable, False))
        if not choices:
            raise exceptions.CommandError('Give --enable or --disable')
        found = self.way(parsed_args).call(
            'plan.update_capabilities',
            plan=parsed_args.plan,
            choices=choices,
            requirements=parsed_args.with_requirements,
        )
        return ('Environment',), [(one,) for one in found['environments']]


# Parameters


class ListParameters(plan_common.PlanCommand):
    """List the parameters of a plan with the values that count.

    Hidden values are masked. The first time after a change Heat is asked,
    which takes a while for a large plan.
    """

    example = 'overcloud --role Compute'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--role',
            metavar='<role>',
            help='Only those of a role',
        )
        parser.add_argument(
            '--nested',
            action='store_true',
            help='List them for each nested template, also those that the '
            'template around it hands down',
        )
        parser.add_argument(
            '--long',
            action='store_true',
            help='Include defaults, constraints and places',
        )
        parser.add_argument(
            '--refresh',
            action='store_true',
            help='Ask Heat also where nothing has changed',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        found = way.call(
            'plan.get_parameters',
            plan=parsed_args.plan,
            refresh=parsed_args.refresh,
        )
        self.warn(found['warnings'])
        root = stored.read(parameters.Template, found['root'])
        listed: list[tuple[parameters.Parameter, tuple[str, ...]]]
        if parsed_args.nested:
            listed = [
                (parameter, (template.path,))
                for template in root.walk()
                for parameter in template.parameters
            ]
        else:
            listed = [
                (one.parameter, one.paths)
                for one in parameters.effective(root).values()
            ]
        role = parsed_args.role
        if role is not None:
            listed = [
                (parameter, paths)
                for parameter, paths in listed
                if parameters.is_of_role(parameter, paths, role)
            ]
            if not listed:
                _require_role(way, parsed_args.plan, role)
        headers = ['Name', 'Type', 'Value', 'Origin', 'Description']
        if parsed_args.long or parsed_args.nested:
            headers += ['Places']
        if parsed_args.long:
            headers += ['Default', 'Constraints', 'Hidden']
        rows = [_parameter(*one)[: len(headers)] for one in listed]
        return headers, rows


def _require_role(way: local_way.Local, plan: str, role: str) -> None:
    known = [one['name'] for one in way.call('plan.list_roles', plan=plan)]
    if role not in known:
        raise exceptions.CommandError(
            f'Plan {plan} has no role {role}, and no parameter of one'
            + bounds.did_you_mean(role, known)
        )


def _parameter(
    parameter: parameters.Parameter, paths: abc.Iterable[str]
) -> tuple[Any, ...]:
    return (
        parameter.name,
        parameter.type,
        columns.Value(parameter.value),
        parameter.origin.value,
        columns.Value(parameter.description),
        columns.Names(path or '.' for path in paths),
        columns.Value(parameter.default),
        columns.Value(dict(parameter.constraints) or None),
        parameter.hidden,
    )


class _ChangeParameters(plan_common.PlanCommand):
    """A command that changes parameters."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--role',
            metavar='<role>',
            help='Change them for one role: Count stands for <role>Count '
            'then, and others for entries of <role>Parameters',
        )
        return parser

    def change(
        self,
        parsed_args: argparse.Namespace,
        values: abc.Mapping[str, Any],
        unset: abc.Sequence[str],
    ) -> common.Shown:
        found = self.way(parsed_args).update_parameters(
            plan=parsed_args.plan,
            values=values,
            unset=unset,
            role=parsed_args.role,
        )
        return ('Parameter',), [(one,) for one in found['parameters']]


class SetParameters(_ChangeParameters):
    """Set parameters of a plan, all of them or none; list what is set.

    Heat has to take the plan with them, and each value has to fit.
    """

    example = 'overcloud --role Compute Count=4'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'values',
            metavar='<name>=<value>',
            type=common.Input,
            nargs='*',
            help='A parameter and its value, lists and maps in YAML or JSON; '
            'a name and a key with a dot between them for one entry of a '
            'map. What is on a command line can be seen by others on this '
            'machine: give secrets with --file',
        )
        parser.add_argument(
            '--file',
            metavar='<file>',
            help='Read them from a map in YAML or JSON, or from the '
            'parameter_defaults in it; - for standard input',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        values = {}
        if parsed_args.file:
            values = common.read_map(parsed_args.file)
            values = values.get('parameter_defaults', values)
        values |= {one.name: one.value for one in parsed_args.values}
        if not values:
            raise exceptions.CommandError('Give <name>=<value> or --file')
        return self.change(parsed_args, values, [])


class UnsetParameters(_ChangeParameters):
    """Unset parameters of a plan; list those that are still set."""

    example = 'overcloud ComputeCount'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'names',
            metavar='<name>',
            nargs='+',
            help='A parameter, or a name and a key with a dot between them',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return self.change(parsed_args, {}, parsed_args.names)


# Roles


class ListRoles(plan_common.PlanCommand):
    """List the roles of a plan's servers."""

    example = 'overcloud'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        rows = [
            (
                one['name'],
                one['count'],
                one['description'],
                columns.Names(one['tags']),
                columns.Names(one['networks']),
                len(one['services']),
            )
            for one in self.way(parsed_args).call(
                'plan.list_roles', plan=parsed_args.plan
            )
        ]
        headers = (
            'Name',
            'Count',
            'Description',
            'Tags',
            'Networks',
            'Services',
        )
        return headers, rows
