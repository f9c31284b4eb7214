# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack get one, so that Heat's own classes know them.

An update of their stack does it, with its template and parameters as they are:
only the environment gets one more parameter default, of which other resources
know nothing. heat-engine then runs nothing on the servers.
"""

from collections import abc
import dataclasses
import time

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import retrying
from heat_plugins.runs import orchestration
from heat_plugins.runs.targets import stack_tree
from heat_plugins.signals import signal_names

# Seconds after which an update has ended that no poll has met in progress.
_BEGINNING = 60.0

# Seconds between two requests for the state of a stack.
_PAUSE = 2.0

NESTED = 'nested'


@dataclasses.dataclass(frozen=True, kw_only=True)
class SingleGroups:
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
        """Why the stack cannot be updated for them now; empty if it can."""
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


def find(
    heat: orchestration.Orchestration, names: abc.Sequence[str] = ()
) -> list[SingleGroups]:
    """Return the stacks that have such groups.

    :param names: of stacks, or their ids; all of the project if none.
    """
    with_groups = []
    for name in names or heat.stack_ids():
        try:
            stack = heat.stack(name)
            groups = _single(heat, stack)
        except errors.NotFound:
            if names:
                raise
            # It has just gone.
            continue
        if groups.paths:
            with_groups.append(groups)
    return with_groups


def _single(
    heat: orchestration.Orchestration, stack: heat_values.Stack
) -> SingleGroups:
    places = stack_tree.find(heat, stack)
    return SingleGroups(
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


def nest(
    heat: orchestration.Orchestration,
    stack: heat_values.Stack,
    note: abc.Callable[[str], object],
    *,
    clock: abc.Callable[[], float] = time.monotonic,
    sleep: abc.Callable[[float], None] = time.sleep,
) -> str:
    """Update a stack, so that its groups get nested stacks.

    :param note: called with a sentence for people when an outage begins.
    :returns: why they have none now; empty if they have.
    :raises errors.Unavailable: Heat has been unavailable for too long.
    """
    defaults = {signal_names.GROUP_MEMBERS: NESTED}
    heat.update_environment(stack, {'parameter_defaults': defaults})
    outage = retrying.OutageBudget(note, clock=clock)
    # A stack is complete for a moment before its update begins.
    begun_at = clock() + _BEGINNING
    while True:
        with outage.ridden_out():
            found = heat.stack(stack.id)
            status = found.status
            if status.endswith('_FAILED'):
                return f'The stack is {status}; see its events'
            if not status.endswith('_COMPLETE'):
                begun_at = 0.0
            elif not (paths := _single(heat, found).paths):
                return ''
            elif clock() >= begun_at:
                return (
                    f'The stack is {status}, and these groups still have no '
                    f'nested stack: {bounds.listed(paths)}; see its events'
                )
        sleep(_PAUSE)
