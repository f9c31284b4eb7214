# SPDX-License-Identifier: Apache-2.0
"""The schedules of a project, as Heat's API shows them."""

from collections import abc
import time
from typing import Any, Final, TypeAlias

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import stored
from heat_plugins.runs import orchestration
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules
from heat_plugins.runs.targets import stack_tree

#: What is known of each.
KEYS: Final = (
    'stack',
    'schedule',
    'id',
    'when',
    'timezone',
    'next_at',
    'next_times',
    'last_at',
    'last_run',
    'last_outcome',
    'missed',
    'skipped',
    'paused',
    'reason',
    'backfill',
    'notify',
    'notify_error',
)

# Seconds to wait until an engine has followed a signal, and between two polls.
_PATIENCE, _POLL = 20.0, 0.5

# The root stack, and the schedule in it.
_Found: TypeAlias = tuple[heat_values.Stack, stack_tree.Place]


class Schedules:
    """The schedules of the stacks of a project.

    :param clock: seconds, monotonic.
    """

    def __init__(
        self,
        heat: orchestration.Orchestration,
        pool: pools.Pool,
        *,
        clock: abc.Callable[[], float] = time.monotonic,
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._heat = heat
        self._pool = pool
        self._clock = clock
        self._sleep = sleep

    def list(self, stack: str | None = None) -> abc.Sequence[dict[str, Any]]:
        """Return the schedules of a stack, or of all of the project.

        What cannot be read of a stack, or of a schedule, is the reason of a
        row and hides no other; a stack that is deleted meanwhile has none.

        :raises errors.NotFound: there is no such stack.
        """
        if stack is not None:
            return self._pool.each(self._try_to_show, self._of(stack))
        parts = self._pool.each(self._try_of, self._heat.stack_ids())
        return [row for part in parts for row in part]

    def _of(self, stack: str) -> abc.Sequence[_Found]:
        root = stack_tree.root(self._heat, stack)
        return [
            (root, place)
            for place in stack_tree.find(self._heat, root)
            if place.resource.type == schedules.TYPE
        ]

    def _try_of(self, stack: str) -> abc.Sequence[dict[str, Any]]:
        try:
            return [self._try_to_show(each) for each in self._of(stack)]
        except errors.NotFound:
            return []
        except errors.Error as exc:
            return [_unread(stack, None, exc)]

    def _try_to_show(self, found: _Found) -> dict[str, Any]:
        try:
            return self._shown(*found)
        except errors.Error as exc:
            return _unread(found[0].name, found[1].path, exc)

    def show(self, stack: str, path: str) -> dict[str, Any]:
        """Return a schedule of a stack.

        :raises errors.NotFound: there is none.
        """
        return self._shown(*self._find(stack, path))

    def times(self, stack: str, path: str) -> schedules.Schedule:
        """Return when a schedule is due, without what it does then.

        :raises errors.NotFound: there is none.
        :raises errors.Unavailable: heat-engine does not say that.
        """
        _, place = self._find(stack, path)
        try:
            return stored.read(schedules.Schedule, self._known(place)['times'])
        except (KeyError, TypeError, ValueError) as exc:
            raise errors.Unavailable(
                f'heat-engine does not say when {path} is due; upgrade '
                'heat-plugins there'
            ) from exc

    def signal(
        self, stack: str, path: str, wanted: schedule_signals.ScheduleSignal
    ) -> dict[str, Any]:
        """Pause, resume or run a schedule; return it as it is then.

        :raises errors.Refused: it makes no sense now.
        :raises errors.Failed: no engine has followed that, or it refuses it.
        """
        root, place = self._find(stack, path)
        wanted.check(self._shown(root, place))
        before = self._known(place).get('signals')
        self._heat.signal(place.resource, wanted.details())
        until = self._clock() + _PATIENCE
        while self._clock() < until:
            if self._known(place).get('signals') != before:
                return self._shown(root, place)
            self._sleep(_POLL)
        raise errors.Failed(
            f'heat-engine has not followed "{wanted.do}" within '
            f'{_PATIENCE:.0f} s. "openstack stack event list {root.name}" '
            'says why if it refuses that'
        )

    def _find(self, stack: str, path: str) -> _Found:
        listed = self._of(stack)
        for root, place in listed:
            if path in (place.path, place.resource.physical_id):
                return root, place
        known = [place.path for _, place in listed]
        raise errors.NotFound(
            f'Stack {stack_tree.root(self._heat, stack).name} has no schedule '
            f'{bounds.shortened(path)}; there are: '
            f'{bounds.listed(known) or "none"}'
            + bounds.did_you_mean(path, known)
        )

    def _known(self, place: stack_tree.Place) -> abc.Mapping[str, Any]:
        """Return what the attributes of a schedule say; {} for nothing."""
        shown = self._heat.attribute(place.resource, 'show')
        return shown if isinstance(shown, dict) else {}

    def _shown(
        self, stack: heat_values.Stack, place: stack_tree.Place
    ) -> dict[str, Any]:
        known = self._known(place)
        upcoming = known.get('next_times') or []
        return {
            **{key: known.get(key) for key in KEYS},
            'stack': stack.name,
            'schedule': place.path,
            'id': place.resource.physical_id,
            'next_at': upcoming[0] if upcoming else None,
            'last_at': known.get('last_time'),
        }


def _unread(
    stack: str, schedule: str | None, exc: errors.Error
) -> dict[str, Any]:
    """Return the row of what cannot be read."""
    row: dict[str, Any] = dict.fromkeys(KEYS)
    reason = f'Cannot read it: {exc}'
    return {**row, 'stack': stack, 'schedule': schedule, 'reason': reason}
