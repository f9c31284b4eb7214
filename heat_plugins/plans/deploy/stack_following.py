# SPDX-License-Identifier: Apache-2.0
"""Following a deployment to its end, by the stack's events."""

from collections import abc
import dataclasses
import datetime
import time

from heat_plugins import retrying
from heat_plugins.plans.deploy import plan_stacks

_PAGE = 200

# Seconds between two looks, at first and at most.
_LEAST, _MOST = 1.0, 5.0

# Seconds between two looks at all resources, which is a large answer.
_COUNT = 10.0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a deployment is.

    :ivar status: of the stack; '' when it is gone.
    :ivar since: when it has started, in seconds since 1970.
    :ivar done: resources that this action is through with.
    :ivar total: resources that there are, as far as is known; None for an
        update, as it leaves out what stays as it is.
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


class Follower:
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
        sleep: abc.Callable[[float], None] = time.sleep,
    ) -> None:
        self._stacks = stacks
        self._stack_id = stack_id
        self._before = before
        self._event = after_event
        self._mask = mask
        self._clock = clock
        self._sleep = sleep
        self._done: set[str] = set()
        self._under_way = ''
        self._failures: list[str] = []
        self._total: int | None = None
        self._counted_at: float | None = None

    def look(self) -> Progress:
        """Return how far the deployment is now.

        :raises errors.ServiceError: Heat does not say.
        """
        stack = self._stacks.find(self._stack_id)
        found = judge(stack, self._before)
        if stack is None:
            return found
        self._read(stack)
        if stack.action == 'CREATE':
            self._count(stack, found.ended)
        return dataclasses.replace(
            found,
            reason=self._mask(found.reason),
            done=len(self._done),
            total=self._total,
            under_way=self._under_way,
            failures=tuple(self._failures),
        )

    def follow(
        self,
        tell: abc.Callable[[Progress], None],
        interval: float = _LEAST,
    ) -> Progress:
        """Look until the deployment has ended; return how."""

        def look() -> Progress:
            found = self.look()
            tell(found)
            return found

        return retrying.follow(
            look,
            lambda found: found.ended,
            interval=interval,
            growth=1.2,
            most=_MOST,
            sleep=self._sleep,
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
            return
        if event.status.endswith('_IN_PROGRESS'):
            self._done.discard(event.place)
            self._under_way = f'{event.resource} {event.status}'
        elif event.status.endswith(('_COMPLETE', '_FAILED')):
            self._done.add(event.place)
        if event.status.endswith('_FAILED'):
            reason = self._mask(event.reason)
            self._failures.append(f'{event.resource} {event.status}: {reason}')

    def _count(self, stack: plan_stacks.Stack, ended: bool) -> None:
        now = self._clock()
        last = self._counted_at
        if last is not None and now - last < _COUNT and not ended:
            return
        self._counted_at = now
        self._total = len(self._stacks.statuses(stack))


def judge(stack: plan_stacks.Stack | None, before: str) -> Progress:
    """Say how a stack stands; its reason is as Heat has it.

    :param stack: None if it is gone.
    :param before: when the action before this one began.
    """
    if stack is None:
        return Progress(
            status='', reason='The stack has been deleted', ended=True
        )
    # Heat may agree to an update before it begins.
    begun = stack.action != 'INIT' and stack.changed_at != before
    return Progress(
        status=stack.status,
        reason=stack.reason,
        since=datetime.datetime.fromisoformat(stack.changed_at).timestamp(),
        ended=begun and not stack.in_progress,
    )
