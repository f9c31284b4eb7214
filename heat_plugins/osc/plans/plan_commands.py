# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan create|list|show|set|delete|export``."""

import argparse
from collections import abc
import pathlib
import tempfile
from typing import Any

from osc_lib import exceptions

from heat_plugins import bounds
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import local_way
from heat_plugins.osc.plans import plan_common
from heat_plugins.plans.content import plan as plans


def _shown(found: local_way.Report) -> common.Shown:
    lists = ('environments', 'parameters', 'secrets', 'post_deployment')
    shown = {
        name: columns.Names(value) if name in lists else value
        for name, value in found.items()
    }
    return plan_common.one(shown)


class CreatePlan(plan_common.PlanCommand):
    """Make a plan of files.

    If it fails, what was made of it is undone. Of two who make a plan of one
    name at once, one is told that the other has it.
    """

    example = 'overcloud --from templates/ --render'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        group = plan_common.add_source_options(parser, required=True)
        group.add_argument(
            '--container',
            metavar='<container>',
            help='A container of the object store; one of the name of the '
            'plan becomes its own',
        )
        parser.add_argument(
            '--template',
            metavar='<path>',
            help='The root template, over what the plan says',
        )
        parser.add_argument(
            '--description', metavar='<text>', help='What the plan is for'
        )
        parser.add_argument(
            '--render',
            action='store_true',
            help='Render Jinja templates (.j2) into the plan',
        )
        parser.add_argument(
            '--resume',
            action='store_true',
            help='Resume the creation of a plan that was broken off',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        options = {
            'template': parsed_args.template,
            'description': parsed_args.description,
            'render': parsed_args.render,
            'resume': parsed_args.resume,
        }
        plan = parsed_args.plan
        found = plan_common.content(parsed_args)
        told = self.files(f'Making {plan}')
        if found is not None:
            return _shown(way.create(plan, found, told, **options))
        container = parsed_args.container
        return _shown(
            way.create_from_container(plan, container, told, **options)
        )


class SetPlan(plan_common.PlanCommand):
    """Put files into a plan, and take others out.

    What is enabled and set in the plan stays.
    """

    example = 'overcloud --from templates/ --prune'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        plan_common.add_source_options(parser, required=False)
        parser.add_argument(
            '--remove',
            metavar='<path>',
            action='append',
            default=[],
            help='Take a file out (repeat option for several)',
        )
        parser.add_argument(
            '--prune',
            action='store_true',
            help='Take out all files that are not given',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        given = parsed_args.source or parsed_args.git
        if not given and parsed_args.prune:
            raise exceptions.CommandError('--prune needs --from or --git')
        if not given and not parsed_args.remove:
            raise exceptions.CommandError(
                'Nothing to do: give --from, --git or --remove'
            )
        folders = way.plans.plans.load(parsed_args.plan).folders
        found = plan_common.content(parsed_args, folders)
        changed = way.update(
            parsed_args.plan,
            found or {},
            self.files(f'Changing {parsed_args.plan}'),
            delete=parsed_args.remove,
            prune=parsed_args.prune,
        )
        return _shown(changed)


class ListPlans(plan_common.PlanCommand):
    """List the plans of the project.

    A plan that is not ready is being created or deleted, or that was broken
    off: then create it with --resume, or delete it.
    """

    example = '-f value -c Name'

    named = False

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        rows = [
            (
                one['name'],
                # Mistral's side may be of the release before.
                one.get('state', plans.UNKNOWN),
                one['description'],
                one['created_at'],
            )
            for one in self.way(parsed_args).call('plan.list')
        ]
        return ('Name', 'State', 'Description', 'Created'), rows


class ShowPlan(plan_common.PlanCommand):
    """Show what a plan is; of passwords and parameters only the names."""

    example = 'overcloud'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        way = self.way(parsed_args)
        return _shown(way.call('plan.show', plan=parsed_args.plan))


class DeletePlan(plan_common.PlanCommand):
    """Delete a plan that has no stack, with all its files."""

    example = 'overcloud'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plan = parsed_args.plan
        self.way(parsed_args).delete(plan, self.files(f'Deleting {plan}'))
        return (), []

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: abc.Sequence[str],
        data: Any,
    ) -> int:
        """Print nothing: it is gone."""
        return 0


class ExportPlan(plan_common.PlanCommand):
    """Write a plan as a tarball (gzip)."""

    example = 'overcloud overcloud.tar.gz'

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            'file', metavar='<file>', help='The tarball to write'
        )
        parser.add_argument(
            '--secrets',
            action='store_true',
            help='Include generated passwords and what is set for hidden '
            'parameters; without them, a plan made of the tarball gets other '
            'passwords. Files of the plan are written as they are',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.way(parsed_args).plans.plans
        path = pathlib.Path(parsed_args.file)
        try:
            # All of it or nothing, and readable by the user alone.
            with tempfile.TemporaryDirectory(
                dir=path.absolute().parent, prefix='.plan-'
            ) as folder:
                part = pathlib.Path(folder, 'plan.tar.gz')
                with part.open('xb') as file:
                    part.chmod(0o600)
                    left_out = service.export(
                        parsed_args.plan, file, secrets=parsed_args.secrets
                    )
                size = part.stat().st_size
                part.replace(path)
        except OSError as exc:
            raise exceptions.CommandError(
                f'{parsed_args.file} cannot be written: {exc.strerror}'
            ) from exc
        if left_out:
            self.log.warning(
                'Left out what is set for %s, which templates hide or do not '
                'have. Set it again in a plan made of the tarball, or export '
                'with --secrets',
                bounds.listed(left_out),
            )
        return ('file', 'bytes'), common.One((parsed_args.file, size))
