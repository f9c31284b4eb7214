# SPDX-License-Identifier: Apache-2.0
"""The notices of a run for its webhook; see `notifying`.

A run has something to tell when it has failed, or exceeded its time; when it
is complete after one of these was told; and when it has not ended some time
after its round began. What a user has cancelled is not told. Everything here
is pure.
"""

import dataclasses
import math

from heat_plugins import stored
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records

_Run = run_records.RunRecord


def wanted(run: _Run) -> notifying.NoticeOrder | None:
    """Return the webhook of a run; None if it has none."""
    webhook = run.order.webhook
    if webhook is None:
        return None
    return stored.read(notifying.NoticeOrder, webhook)


def due_at(run: _Run) -> int | None:
    """Return the time of the next notice; None for never."""
    order, control = wanted(run), run.control
    if order is None:
        return None
    book, began = control.notices, control.began_at
    at = book.waits_until(order, began, began)
    if run.ended:
        is_new = book.ended != control.ended_at
        at = control.ended_at or 0 if is_new else math.inf
    at = min(at, book.next_try)
    return None if at == math.inf else int(at)


def noted(run: _Run, now: float) -> _Run:
    """Return a run with all notices that are due in its book."""
    order, control = wanted(run), run.control
    if order is None:
        return run
    book, began = control.notices, control.began_at
    if not run.ended:
        book = book.with_wait(order, began, began, now)
    elif book.ended != control.ended_at:
        ended_at = control.ended_at or 0
        book = book.with_end(order, control.phase.value, ended_at, 1)
        book = dataclasses.replace(book, ended=control.ended_at)
    return run.changed(notices=book)


def tried(run: _Run, now: float) -> tuple[_Run, notifying.Notice | None]:
    """Return a run before its next notice is sent, and that notice."""
    book = run.control.notices
    first = book.due(now)
    if first is None:
        return run, None
    notice = first.tried(int(now))
    return run.changed(notices=book.replaced(first, notice)), notice


def servers(run: _Run, event: notifying.NoticeEvent) -> list[dict[str, str]]:
    """Return the servers that a notice is about."""
    members = run.failures
    if event is notifying.NoticeEvent.WAITING:
        members = [*run.live, *run.pending]
    return [
        {
            'stack': target.stack_name,
            'resource': target.resource,
            'server': target.server_name or target.server_id,
            'state': state.value if state else 'pending',
        }
        for target, state in (
            (run.order.members[n], run.attempts[n].state) for n in members
        )
    ]
