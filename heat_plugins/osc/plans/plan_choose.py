# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan capability|parameter|role …``."""

import argparse
from collections import abc
from typing import Any

from osc_lib import exceptions

from heat_plugins import stored
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.plans import plan_common
from heat_plugins.plans.parameters import parameters

# Capabilities


class ListCapabilities(plan_common.PlanCommand):
    """List the choices of a plan, and which are enabled."""

    example = 'shop --enabled'

    arguments = (
        command_line.flag('--enabled', 'List only enabled environments'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        capabilities = self.plans().get_capabilities(parsed_args.plan)
        self.warn(capabilities['warnings'])
        return common.table(
            [
                {**choice, 'topic': topic['title'], 'group': group}
                for topic in capabilities['topics']
                for group in topic['groups']
                for choice in group['environments']
                if choice['enabled'] or not parsed_args.enabled
            ],
            {
                'Topic': 'topic',
                'Group': lambda row: (
                    row['group']['title'] or row['group']['name']
                ),
                'Environment': 'path',
                'Title': 'title',
                'Enabled': 'enabled',
                'Requires': columns.of(columns.NamesCell, 'requires'),
                'Exclusive': lambda row: row['group']['mutually_exclusive'],
            },
        )


class SetCapabilities(plan_common.PlanCommand):
    """Enable and disable environments of a plan, all of them or none."""

    example = 'shop --enable environments/french.yaml'

    arguments = (
        command_line.several(
            '--enable',
            '<environment>',
            'Path of an environment to enable (repeat option for several)',
        ),
        command_line.several(
            '--disable',
            '<environment>',
            'Path of an environment to disable (repeat option for several)',
        ),
        command_line.flag(
            '--with-requirements',
            'Also enable the environments that these require',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        choices = dict.fromkeys(parsed_args.enable, True)
        choices.update(dict.fromkeys(parsed_args.disable, False))
        if not choices:
            raise exceptions.CommandError('Give --enable or --disable')
        changed = self.plans().update_capabilities(
            parsed_args.plan,
            choices,
            requirements=parsed_args.with_requirements,
        )
        return ('Environment',), [(path,) for path in changed['environments']]


# Parameters


class ListParameters(plan_common.PlanCommand):
    """List the parameters of a plan with their effective values.

    Secret values are masked. After a change the first list asks Heat, which
    takes some seconds for a large plan.
    """

    example = 'shop --role Web'

    arguments = (
        command_line.value('--role', '<role>', 'Only parameters of a role'),
        command_line.flag(
            '--nested',
            'List the parameters of each nested template, also those that '
            'its parent passes to it',
        ),
        command_line.flag(
            '--long',
            'Include defaults, constraints and the templates that have each '
            'parameter',
        ),
        command_line.flag(
            '--refresh', 'Ask Heat again, even if the plan has not changed'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        answer = self.plans().get_parameters(
            parsed_args.plan, refresh=parsed_args.refresh
        )
        self.warn(answer['warnings'])
        root = stored.read(parameters.TemplateParameters, answer['root'])
        listed = [*parameters.effective(root).values()]
        if parsed_args.nested:
            listed = [
                (parameter, (template.path,))
                for template in root.walk()
                for parameter in template.parameters
            ]
        role = parsed_args.role
        if role is not None:
            listed = [
                (parameter, paths)
                for parameter, paths in listed
                if parameters.is_of_role(parameter, paths, role)
            ]
        headers = ['Name', 'Type', 'Value', 'Origin', 'Description']
        if parsed_args.long or parsed_args.nested:
            headers += ['Places']
        if parsed_args.long:
            headers += ['Default', 'Constraints', 'Hidden']
        rows = [
            (
                parameter.name,
                parameter.type,
                columns.Value(parameter.value),
                parameter.origin.value,
                columns.Value(parameter.description),
                columns.NamesCell(path or '.' for path in paths),
                columns.Value(parameter.default),
                columns.Value(dict(parameter.constraints) or None),
                parameter.hidden,
            )[: len(headers)]
            for parameter, paths in listed
        ]
        return headers, rows


class _ChangeParameters(plan_common.PlanCommand):
    """A command that changes parameters."""

    shared = (
        *plan_common.PlanCommand.shared,
        command_line.value(
            '--role',
            '<role>',
            'Change parameters of one role: Count means <role>Count, and '
            'other names are entries of <role>Parameters',
        ),
    )

    def change(
        self,
        parsed_args: argparse.Namespace,
        values: abc.Mapping[str, Any],
        unset: abc.Sequence[str],
    ) -> common.Shown:
        """Set and unset parameters of a plan; list those that changed."""
        changed = self.plans().update_parameters(
            parsed_args.plan, values, unset, parsed_args.role
        )
        return ('Parameter',), [(name,) for name in changed['parameters']]


class SetParameters(_ChangeParameters):
    """Set parameters of a plan, all or none; list all set parameters.

    Each value must match its type and constraints, and Heat must accept the
    plan with all of them.
    """

    example = 'shop WebCount=4'

    arguments = (
        command_line.value(
            'values',
            '<name>=<value>',
            'A parameter and its value, lists and maps in YAML or JSON; '
            '<name>.<key>=<value> sets one entry of a map. Other users of '
            'this machine can see command lines: give secrets with --file',
            type=command_line.Input,
            nargs='*',
        ),
        command_line.value(
            '--file',
            '<file>',
            'Read parameters from a map in YAML or JSON, or from its '
            'parameter_defaults; - for standard input',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        values = {}
        if parsed_args.file:
            values = common.read_map(parsed_args.file)
            values = values.get('parameter_defaults', values)
        values |= {value.name: value.value for value in parsed_args.values}
        if not values:
            raise exceptions.CommandError('Give <name>=<value> or --file')
        return self.change(parsed_args, values, [])


class UnsetParameters(_ChangeParameters):
    """Unset parameters of a plan; list the parameters that remain set."""

    example = 'shop WebCount'

    arguments = (
        command_line.value(
            'names',
            '<name>',
            'A parameter, or <name>.<key> for one entry of a map',
            nargs='+',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return self.change(parsed_args, {}, parsed_args.names)


# Roles


class ListRoles(plan_common.PlanCommand):
    """List the roles of a plan's servers."""

    example = 'shop'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return common.table(
            self.plans().list_roles(parsed_args.plan),
            {
                'Name': 'name',
                'Count': 'count',
                'Description': 'description',
                'Tags': columns.of(columns.NamesCell, 'tags'),
                'Networks': columns.of(columns.NamesCell, 'networks'),
                'Services': columns.of(len, 'services'),
            },
        )
