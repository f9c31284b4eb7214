# SPDX-License-Identifier: Apache-2.0
"""The progress of a deployment, by the stack's events."""

from collections import abc
import dataclasses
import datetime
import time

from heat_plugins.plans.deploy import plan_stacks

_PAGE = 200

# Seconds between two looks at all resources, which is a large answer.
_COUNT = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackProgress:
    """How far a deployment is.

    :ivar status: of the stack; '' when it is gone.
    :ivar since: when it has started, in seconds since 1970.
    :ivar done: resources that this action is through with.
    :ivar total: resources of a stack that is being created, as far as is
        known; None for an update, as it leaves out what stays as it is.
    :ivar under_way: the resource that has started last, and what it does.
    :ivar failures: what has gone wrong, a line each.
    """

    status: str
    reason: str = ''
    since: float = 0
    done: int = 0
    total: int | None = None
    under_way: str = ''
    failures: tuple[str, ...] = ()
    ended: bool = False

    @property
    def success(self) -> bool:
        return self.ended and self.status.endswith('_COMPLETE')


class StackFollower:
    """Reads what is new of a stack; keeps nothing but counts.

    :param before: when the action before this one began; see
        `deploying.Started`.
    :param after_event: the last event that is not of this action.
    :param mask: what takes secrets out of Heat's reasons.
    """

    def __init__(
        self,
        stacks: plan_stacks.Stacks,
        stack_id: str,
        *,
        before: str = '',
        after_event: str | None = None,
        mask: abc.Callable[[str], str],
        clock: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._stacks = stacks
        self._stack_id = stack_id
        self._before = before
        self._event = after_event
        self._mask = mask
        self._clock = clock
        self._done: set[str] = set()
        self._under_way = ''
        self._failures: list[str] = []
        self._total: int | None = None
        self._counted_at: float | None = None

    def look(self) -> StackProgress:
        """Return how far the deployment is now.

        :raises errors.ServiceError: Heat does not say.
        """
        stack = self._stacks.find(self._stack_id)
        progress = judge(stack, self._before)
        if stack is None:
            return progress
        self._read(stack)
        return dataclasses.replace(
            progress,
            reason=self._mask(progress.reason),
            done=len(self._done),
            total=self._count(stack, progress.ended),
            under_way=self._under_way,
            failures=tuple(self._failures),
        )

    def _read(self, stack: plan_stacks.Stack) -> None:
        while True:
            page = self._stacks.events(stack, self._event, _PAGE)
            for event in page:
                self._take(event)
            if len(page) < _PAGE:
                return

    def _take(self, event: plan_stacks.Event) -> None:
        self._event = event.id
        if event.of_stack:
            if self._starts_an_action(event):
                # What came before is of another action.
                self._done.clear()
                self._failures.clear()
            return
        if event.status.endswith('_IN_PROGRESS'):
            self._done.discard(event.place)
            self._under_way = f'{event.resource} {event.status}'
        elif event.status.endswith(('_COMPLETE', '_FAILED')):
            self._done.add(event.place)
        if event.status.endswith('_FAILED'):
            reason = self._mask(event.reason)
            self._failures.append(f'{event.resource} {event.status}: {reason}')

    def _starts_an_action(self, event: plan_stacks.Event) -> bool:
        own = event.physical_id == self._stack_id
        return own and event.status.endswith('_IN_PROGRESS')

    def _count(self, stack: plan_stacks.Stack, ended: bool) -> int | None:
        """Return how many resources a stack is created with.

        A create has no action before it. So what an update follows is none,
        also while Heat still shows the create that has failed.
        """
        if stack.action != 'CREATE' or self._before:
            return None
        now = self._clock()
        last, done = self._counted_at, len(self._done)
        # Nested stacks bring more of them between two counts.
        grown = self._total is not None and done > self._total
        if last is None or now - last >= _COUNT or ended or grown:
            self._counted_at = now
            self._total = len(self._stacks.statuses(stack))
        # What is deleted again, as a replaced resource, is in no count.
        return None if self._total is None else max(self._total, done)


def judge(stack: plan_stacks.Stack | None, before: str) -> StackProgress:
    """Say how a stack stands; its reason is as Heat has it.

    :param stack: None if it is gone.
    :param before: when the action before this one began.
    """
    if stack is None:
        return StackProgress(
            status='', reason='The stack has been deleted', ended=True
        )
    # Heat may agree to an update before it begins.
    begun = stack.action != 'INIT' and stack.changed_at != before
    return StackProgress(
        status=stack.status,
        reason=stack.reason,
        since=datetime.datetime.fromisoformat(stack.changed_at).timestamp(),
        ended=begun and not stack.in_progress,
    )
