# SPDX-License-Identifier: Apache-2.0
"""The stacks of Heat, as plans use them.

The real one is `heat_plugins.clients.heat_plans`, over REST; the strict fake
is in ``tests/unit/plans/fake_heat.py``.
"""

from collections import abc
import dataclasses
import datetime
from typing import Any, Protocol

from heat_plugins import heat_values
from heat_plugins.plans.content import references


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackServer:
    """A server of a stack.

    :ivar path: names of the resources from the stack down to it.
    :ivar address: '' if it has none.
    """

    path: tuple[str, ...]
    name: str = ''
    address: str = ''


class Stacks(Protocol):
    """Heat's stacks, of one project.

    Each method may raise `errors.Denied`, `errors.Unavailable` or another
    `errors.ServiceError`. Where Heat refuses a content, its message may quote
    values of it.
    """

    def find(self, name: str) -> heat_values.Stack | None:
        """Return a stack by its name or id; None if it is gone."""

    def create(
        self,
        name: str,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> str:
        """Begin to create a stack; return its id.

        :param timeout: the most minutes that it may take.
        """

    def replace(
        self,
        stack: heat_values.Stack,
        content: references.Resolved,
        *,
        tags: abc.Sequence[str],
        timeout: int | None,
    ) -> None:
        """Begin to update a stack so that it is this content alone."""

    def cancel(self, stack: heat_values.Stack) -> None:
        """Stop a create or update without a rollback."""

    def validate(self, content: references.Resolved) -> abc.Mapping[str, Any]:
        """Return the result of Heat's validation, nested templates included.

        It does not check the values of parameters.
        """

    def preview(self, name: str, content: references.Resolved) -> None:
        """Let Heat check a content, values too, as for a new stack."""

    def preview_replace(
        self, stack: heat_values.Stack, content: references.Resolved
    ) -> abc.Mapping[str, tuple[str, ...]]:
        """Let Heat check a content as for an update.

        :return: names of resources: unchanged, updated, replaced, added
            and deleted.
        """

    def content(
        self, stack: heat_values.Stack
    ) -> tuple[abc.Mapping[str, Any], abc.Mapping[str, Any], dict[str, str]]:
        """Return the template, merged environment and files of a stack."""

    def events(
        self, stack: heat_values.Stack, after: str | None, limit: int
    ) -> list[heat_values.Event]:
        """Return events of a stack and those nested in it, oldest first.

        :param after: the id of an event; None for the beginning.
        """

    def output(self, stack: str, name: str) -> Any:
        """Return the value of an output; None where there is none.

        :raises errors.NotFound: there is no such stack.
        """

    def servers(self, stack: str) -> list[StackServer]:
        """Return the servers of a stack and of those nested in it."""

    def last_event(self, stack: heat_values.Stack) -> str | None:
        """Return the id of the latest event."""


_PAGE = 200


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackProgress:
    """The progress of a deployment.

    :ivar status: of the stack; '' when it is gone.
    :ivar since: its start, in seconds since 1970.
    :ivar done: the number of resources that have ended.
    :ivar under_way: the resource that started last, with its status.
    :ivar failures: a line each.
    """

    status: str
    reason: str = ''
    since: float = 0
    done: int = 0
    under_way: str = ''
    failures: tuple[str, ...] = ()
    ended: bool = False

    @property
    def success(self) -> bool:
        return self.ended and self.status.endswith('_COMPLETE')


class StackFollower:
    """A reader of the new events of a stack, which keeps counts.

    :param before: the start of the former action; see `deploying.Started`.
    :param after_event: the last event that is not of this action.
    :param mask: masks secrets in Heat's reasons.
    """

    def __init__(
        self,
        stacks: Stacks,
        stack_id: str,
        *,
        before: str = '',
        after_event: str | None = None,
        mask: abc.Callable[[str], str],
    ) -> None:
        self._stacks = stacks
        self._stack_id = stack_id
        self._before = before
        self._event = after_event
        self._mask = mask
        self._done: set[str] = set()
        self._under_way = ''
        self._failures: list[str] = []

    def look(self) -> StackProgress:
        """Return the progress of the deployment.

        :raises errors.ServiceError: Heat cannot be read.
        """
        stack = self._stacks.find(self._stack_id)
        progress = judge(stack, self._before)
        if stack is None:
            return progress
        while True:
            page = self._stacks.events(stack, self._event, _PAGE)
            for event in page:
                self._take(event)
            if len(page) < _PAGE:
                break
        return dataclasses.replace(
            progress,
            reason=self._mask(progress.reason),
            done=len(self._done),
            under_way=self._under_way,
            failures=tuple(self._failures),
        )

    def _take(self, event: heat_values.Event) -> None:
        """Count an event."""
        self._event = event.id
        begins = event.status.endswith('_IN_PROGRESS')
        if event.of_stack:
            if begins and event.physical_id == self._stack_id:
                # The events read until now belong to another action.
                self._done.clear()
                self._failures.clear()
            return
        if begins:
            self._done.discard(event.place)
            self._under_way = f'{event.resource} {event.status}'
        elif event.status.endswith(('_COMPLETE', '_FAILED')):
            self._done.add(event.place)
        if event.status.endswith('_FAILED'):
            reason = self._mask(event.reason)
            self._failures.append(f'{event.resource} {event.status}: {reason}')


def judge(stack: heat_values.Stack | None, before: str) -> StackProgress:
    """Return the progress of a stack, with Heat's reason for a failure.

    :param stack: None if it is gone.
    :param before: the start of the former action.
    """
    if stack is None:
        return StackProgress(
            status='', reason='The stack has been deleted', ended=True
        )
    # Heat may accept an update before it begins.
    begun = stack.action != 'INIT' and stack.changed_at != before
    return StackProgress(
        status=stack.status,
        reason=stack.reason if stack.status.endswith('_FAILED') else '',
        since=datetime.datetime.fromisoformat(stack.changed_at).timestamp(),
        ended=begun and not stack.in_progress,
    )
