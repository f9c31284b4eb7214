# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment group nest``."""

import argparse
from collections import abc
import time

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.runs import orchestration
from heat_plugins.runs import single_groups

_COLUMNS = ('stack', 'groups', 'state', 'reason')


class NestGroups(common.Report):
    """Give groups nested stacks, which Heat's own classes can serve.

    Run it before you remove heat-plugins from heat-engine, or return to a
    release before 0.2. It updates each stack of the project that has a group
    without nested stack: the template and the parameters stay, the members
    keep their results, and their servers run nothing. The environment gets
    the parameter default heat_plugins_group_members, so that new groups of
    these stacks are nested, too.

    Exit codes: 0 success, 3 some stacks were not changed, 1 another error,
    130 interrupted.
    """

    example = '--dry-run'

    arguments = (
        command_line.several(
            '--stack',
            '<stack>',
            'Name or ID of a stack (repeat option for several; default: all '
            'stacks of the project)',
            dest='stacks',
        ),
        command_line.flag(
            '--dry-run', 'List the groups without changing anything'
        ),
        command_line.flag('--yes', 'Do not ask for confirmation'),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> common.Shown:
        heat = common.orchestration(self.app.client_manager)
        self.progress.show('finding the groups')
        stacks = single_groups.find(heat, parsed_args.stacks)
        if parsed_args.dry_run or not stacks:
            return _shown(stacks, {})
        if not parsed_args.yes:
            lines = [
                f'  {each.stack.name}: {", ".join(each.paths)}'
                for each in stacks
            ]
            question = f'Update {wording.counted(len(stacks), "stack")}?'
            self.confirm(lines, question, 'Nothing was changed')
        outcomes: dict[str, str] = {}
        try:
            for number, each in enumerate(stacks, 1):
                self.progress.show(
                    f'updating stack {number} of {len(stacks)}: '
                    f'{each.stack.name}'
                )
                outcomes[each.stack.id] = self._nest(heat, each)
        except KeyboardInterrupt:
            self.progress.say(
                'Stopped waiting; heat-engine continues the update of stack '
                f'{each.stack.name}. Repeat the command for the others'
            )
            self.exit_code = common.INTERRUPTED
        else:
            if any(outcomes.values()):
                self.exit_code = common.FAILED
        return _shown(stacks, outcomes)

    def _nest(
        self,
        heat: orchestration.Orchestration,
        groups: single_groups.SingleGroups,
    ) -> str:
        """Update a stack; return why it is not changed, or ''."""
        if groups.obstacle:
            return groups.obstacle
        try:
            return single_groups.nest(
                heat,
                groups.stack,
                self.progress.say,
                clock=time.monotonic,
                sleep=time.sleep,
            )
        except errors.ServiceError as exc:
            return str(exc)


def _shown(
    groups: abc.Iterable[single_groups.SingleGroups],
    outcomes: abc.Mapping[str, str],
) -> common.Shown:
    rows = []
    for each in groups:
        reason = outcomes.get(each.stack.id)
        state = 'failed' if reason else 'nested'
        if reason is None:
            reason = each.obstacle
            state = 'blocked' if reason else 'single'
        rows.append(
            {
                'stack': each.stack.name,
                'groups': ', '.join(each.paths),
                'state': state,
                'reason': reason,
            }
        )
    return _COLUMNS, common.Many(rows, _COLUMNS)
