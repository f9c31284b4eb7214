# SPDX-License-Identifier: Apache-2.0
"""When the webhook of a run is told something; see `notifying`.

A run has something to tell when it has failed, or exceeded its time; when it
is complete after one of these was told; and when it has not ended some time
after its round began. What a user has cancelled is not told. Everything here
is pure.
"""

import dataclasses

from heat_plugins import stored
from heat_plugins.runs import notifying
from heat_plugins.runs import run_records

_Event = notifying.NoticeEvent
_Run = run_records.RunRecord

_OF_PHASE = {
    run_records.Phase.FAILED: _Event.FAILURE,
    run_records.Phase.TIMED_OUT: _Event.TIMEOUT,
    run_records.Phase.COMPLETE: _Event.RECOVERY,
}


def wanted(run: _Run) -> notifying.NoticeOrder | None:
    """Return the webhook of a run; None if it has none."""
    webhook = run.order.webhook
    if webhook is None:
        return None
    return stored.read(notifying.NoticeOrder, webhook)


def due_at(run: _Run) -> int | None:
    """Return when something is due, at the latest; None for never."""
    order, control = wanted(run), run.control
    if order is None:
        return None
    notices = control.notices
    times = [each.next_try for each in notices.book.notices[:1]]
    if run.ended:
        if notices.ended != control.ended_at:
            times.append(control.ended_at or 0)
    elif order.waits and notices.book.waited != control.began_at:
        times.append(control.began_at + order.waits)
    return min(times, default=None)


def noted(run: _Run, now: float) -> _Run:
    """Return a run whose book has all notices that are due."""
    order, control = wanted(run), run.control
    if order is None:
        return run
    notices, began = control.notices, control.began_at
    book = notices.book
    if run.ended and notices.ended != control.ended_at:
        event = _OF_PHASE.get(control.phase)
        if event is not None:
            notice = notifying.Notice(
                event=event, tick=control.ended_at or 0, number=1
            )
            book = book.with_notice(order, notice)
        notices = dataclasses.replace(notices, ended=control.ended_at)
    is_waited_for = not run.ended and order.waits and book.waited != began
    if is_waited_for and now >= began + order.waits:
        notice = notifying.Notice(event=_Event.WAITING, tick=began)
        book = book.with_notice(order, notice)
        book = dataclasses.replace(book, waited=began)
    return run.changed(notices=dataclasses.replace(notices, book=book))


def tried(run: _Run, now: float) -> tuple[_Run, notifying.Notice | None]:
    """Return a run before its next notice is sent, and that notice."""
    notices = run.control.notices
    first = notices.book.due(now)
    if first is None:
        return run, None
    notice = first.tried(int(now))
    book = notices.book.replaced(first, notice)
    return run.changed(notices=dataclasses.replace(notices, book=book)), notice


def servers(run: _Run, event: _Event) -> list[dict[str, str]]:
    """Return the servers that a notice is about."""
    members = run.failures
    if event is _Event.WAITING:
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


def told(run: _Run, notice: notifying.Notice, why: str, now: float) -> _Run:
    """Return a run after an attempt to send a notice.

    :param why: it has failed; empty if it has not.
    """
    return run.changed(notices=run.control.notices.told(notice, why, now))
