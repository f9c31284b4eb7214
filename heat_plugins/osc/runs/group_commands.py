# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment group nest``.

Groups without nested stack get one, so that Heat's own classes know them. An
update of their stack does it, with its template and parameters as they are:
only the environment gets one more parameter default, of which other resources
know nothing. heat-engine then runs nothing on the servers.
"""

import argparse
from collections import abc
import dataclasses
import time

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import retrying
from heat_plugins import wording
from heat_plugins.osc import command_line
from heat_plugins.osc import common
from heat_plugins.runs.targets import stack_tree
from heat_plugins.signals import signal_names

_COLUMNS = ('stack', 'groups', 'state', 'reason')

# Seconds after which an update has ended that no poll has met in progress.
_BEGINNING = 60.0

# Seconds between two requests for the state of a stack.
_PAUSE = 2.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Groups:
    """The groups of a root stack that have no nested stack.

    :ivar paths: their names, after those of the stacks that they are in.
    :ivar failed: the members whose last action has not completed; a nested
        stack would repeat it.
    """

    stack: heat_values.Stack
    paths: abc.Sequence[str]
    failed: abc.Sequence[str] = ()

    @property
    def obstacle(self) -> str:
        """The reason not to update the stack for them now; empty for none."""
        status = self.stack.status
        if status.endswith('_IN_PROGRESS'):
            remedy = 'wait until that has ended'
        elif status == 'SUSPEND_COMPLETE':
            remedy = 'resume it'
        elif not status.endswith('_COMPLETE'):
            remedy = 'update it until it is complete'
        elif not self.failed:
            return ''
        else:
            return (
                f'Members {bounds.listed(self.failed)} have not completed '
                'their last action, and would run it again: remove them from '
                'the group, or update the stack until they are complete'
            )
        return f'The stack is {status}: {remedy}, then repeat this command'


def _single(
    heat: stack_tree.Orchestration, stack: heat_values.Stack
) -> _Groups:
    """Return the groups of a stack that have no nested stack."""
    places = stack_tree.find(heat, stack)
    return _Groups(
        stack=stack,
        paths=[
            place.path
            for place in places
            if place.member is None
            and signal_names.is_group(place.resource.physical_id)
        ],
        failed=[
            place.path
            for place in places
            if place.member is not None and place.member.status != 'COMPLETE'
        ],
    )


def _nest(
    heat: stack_tree.Orchestration,
    stack: heat_values.Stack,
    note: abc.Callable[[str], object],
) -> str:
    """Update a stack, so that its groups get nested stacks.

    :param note: called with a sentence for people when an outage begins.
    :returns: why they have none now; empty if they have.
    :raises errors.Unavailable: Heat has been unavailable for too long.
    """
    defaults = {signal_names.GROUP_MEMBERS: 'nested'}
    heat.update_environment(stack, {'parameter_defaults': defaults})
    outage = retrying.OutageBudget(note, clock=time.monotonic)
    # A stack is complete for a moment before its update begins.
    begun_at = time.monotonic() + _BEGINNING
    while True:
        with outage.ridden_out():
            current = heat.stack(stack.id)
            status = current.status
            if status.endswith('_FAILED'):
                return f'The stack is {status}; see its events'
            if not status.endswith('_COMPLETE'):
                begun_at = 0.0
            elif not (paths := _single(heat, current).paths):
                return ''
            elif time.monotonic() >= begun_at:
                return (
                    f'The stack is {status}, and these groups still have no '
                    f'nested stack: {bounds.listed(paths)}; see its events'
                )
        time.sleep(_PAUSE)


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
        stacks = []
        for name in parsed_args.stacks or heat.stack_ids():
            try:
                groups = _single(heat, heat.stack(name))
            except errors.NotFound:
                if parsed_args.stacks:
                    raise
                # It has just gone.
                continue
            if groups.paths:
                stacks.append(groups)
        if parsed_args.dry_run or not stacks:
            return _listed(stacks, {})
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
                try:
                    outcomes[each.stack.id] = each.obstacle or _nest(
                        heat, each.stack, self.progress.say
                    )
                except errors.ServiceError as exc:
                    outcomes[each.stack.id] = str(exc)
        except KeyboardInterrupt:
            self.progress.say(
                'Stopped waiting; heat-engine continues the update of stack '
                f'{each.stack.name}. Repeat the command for the others'
            )
            self.exit_code = common.INTERRUPTED
        else:
            if any(outcomes.values()):
                self.exit_code = common.FAILED
        return _listed(stacks, outcomes)


def _listed(
    groups: abc.Iterable[_Groups],
    outcomes: abc.Mapping[str, str],
) -> common.Shown:
    """Return the rows of groups, with the outcomes of their updates."""
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
