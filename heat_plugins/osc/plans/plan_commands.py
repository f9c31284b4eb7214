# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan create|list|show|set|delete|export``."""

import argparse
from collections import abc
import functools
import pathlib
import tempfile
from typing import Any

from heat_plugins import bounds
from heat_plugins.osc import columns
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.osc.plans import plan_common


def _shown(plan: abc.Mapping[str, Any]) -> common.Shown:
    """Return a plan for a table."""
    lists = ('environments', 'parameters', 'secrets', 'post_deployment')
    shown = {
        name: columns.NamesCell(value) if name in lists else value
        for name, value in plan.items()
    }
    return common.one(shown)


class CreatePlan(plan_common.PlanCommand):
    """Create a plan from files.

    A creation that fails is undone. If two users create a plan of the same
    name at once, one gets an error.
    """

    example = 'shop --from templates/'

    arguments = (
        plan_common.source(
            command_line.value(
                '--container',
                '<container>',
                'A container of the object store to copy',
            ),
            required=True,
        ),
        command_line.value(
            '--template',
            '<path>',
            'The root template (default: the one in plan-environment.yaml)',
        ),
        command_line.value('--description', '<text>', 'Purpose of the plan'),
        command_line.flag(
            '--render', 'Render Jinja templates (.j2) into the plan'
        ),
        command_line.flag(
            '--resume', 'Resume an interrupted creation of the plan'
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plan = parsed_args.plan
        shown = self.plans().create(
            plan,
            parsed_args.container or '',
            template=parsed_args.template,
            description=parsed_args.description,
            render=parsed_args.render,
            resume=parsed_args.resume,
            content=plan_common.content(parsed_args),
            progress=functools.partial(self.progress.show, f'Making {plan}'),
        )
        return _shown(shown)


class SetPlan(plan_common.PlanCommand):
    """Add files to a plan, and remove others.

    Enabled environments and set parameters stay.
    """

    example = 'shop --from templates/ --prune'

    arguments = (
        plan_common.source(),
        command_line.several(
            '--remove', '<path>', 'Remove a file (repeat option for several)'
        ),
        command_line.flag('--prune', 'Remove all other files'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plans, plan = self.plans(), parsed_args.plan
        folders = plans.plans.load(plan).folders
        changed = plans.update(
            plan,
            delete=parsed_args.remove,
            prune=parsed_args.prune,
            content=plan_common.content(parsed_args, folders),
            progress=functools.partial(self.progress.show, f'Changing {plan}'),
        )
        return _shown(changed)


class ListPlans(plan_common.PlanCommand):
    """List the plans of the project.

    A plan that is not ready is being created or deleted, or that was
    interrupted: then create it with --resume, or delete it.
    """

    example = '-f value -c Name'

    shared = plan_common.PlanCommand.shared[1:]

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return common.table(
            self.plans().list(),
            {
                'Name': 'name',
                'State': 'state',
                'Description': 'description',
                'Created': 'created_at',
            },
        )


class ShowPlan(plan_common.PlanCommand):
    """Show a plan; of passwords and parameters only the names."""

    example = 'shop'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        return _shown(self.plans().show(parsed_args.plan))


class DeletePlan(plan_common.PlanCommand):
    """Delete a plan that has no stack, with all its files."""

    example = 'shop'

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        plan = parsed_args.plan
        show = functools.partial(self.progress.show, f'Deleting {plan}')
        self.plans().delete(plan, progress=show)
        return (), []

    def produce_output(
        self,
        parsed_args: argparse.Namespace,
        column_names: abc.Sequence[str],
        data: Any,
    ) -> int:
        """Print nothing for a plan that was deleted."""
        return 0


class ExportPlan(plan_common.PlanCommand):
    """Write a plan as a tarball (gzip)."""

    example = 'shop shop.tar.gz'

    arguments = (
        command_line.value('file', '<file>', 'The tarball to write'),
        command_line.flag(
            '--secrets',
            'Include generated passwords and the values of secret '
            'parameters; without them, a plan created from the tarball gets '
            'new passwords. The files of the plan are always exported '
            'unchanged',
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        service = self.plans().plans
        path = pathlib.Path(parsed_args.file)
        # The file appears when it is complete, and only its user can read it.
        with (
            common.access('write', parsed_args.file),
            tempfile.TemporaryDirectory(
                dir=path.absolute().parent, prefix='.plan-'
            ) as folder,
        ):
            part = pathlib.Path(folder, 'plan.tar.gz')
            with part.open('xb') as file:
                part.chmod(0o600)
                left_out = service.export(
                    parsed_args.plan, file, secrets=parsed_args.secrets
                )
            size = part.stat().st_size
            part.replace(path)
        secret = [*left_out.values]
        if left_out.passwords:
            secret.append(f'generated passwords ({left_out.passwords})')
        if secret:
            self.log.warning(
                'Left out: %s. They are secret, or no template has them. Set '
                'them again in a plan created from the tarball, which gets '
                'new passwords; or export with --secrets',
                bounds.listed(secret),
            )
        if left_out.files:
            self.log.warning(
                'Files of the plan are exported unchanged, with the secrets '
                'that they set: %s',
                bounds.listed(left_out.files),
            )
        return common.one({'file': parsed_args.file, 'bytes': size})
