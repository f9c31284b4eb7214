# SPDX-License-Identifier: Apache-2.0
"""Telling webhooks how operations have ended.

An engine reads the operations with notices that have changed, decides what to
tell, and records that before it sends: of several engines one does so, and a
successor of one that dies repeats it.
"""

from collections import abc
import dataclasses
import datetime
from typing import Any

from heat.common import context as heat_context
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine.database import scans
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import notices
from heat_plugins.runs import notifying
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import notice_orders
from heat_plugins.runs.records import record_names

LOG = foreign.logger(__name__)

# Operations of a project that one look reads.
_READ = 200

_Record = notice_orders.NoticeRecord


def look(clock: abc.Callable[[], float]) -> None:
    """Tell what is due, each operation in a thread.

    :raises DBConnectionError: the database cannot be reached.
    """
    try:
        _look(clock)
    except db_exception.DBConnectionError:
        raise
    except Exception as exc:
        # Schedules do not depend on it.
        LOG.warning(
            'Cannot read which operations have something to tell; retrying: '
            '%s',
            foreign.brief(exc),
        )


def _look(clock: abc.Callable[[], float]) -> None:
    context = heat_context.get_admin_context()
    for row in fleet_watching.shuffled(scans.notices(context, _READ)):
        try:
            told = _Telling(
                row=row,
                order=notice_orders.read(row.order['config']),
                record=_Record.read(row.reason),
                clock=clock,
            )
        # A user may have written it.
        except (KeyError, TypeError, ValueError):
            continue
        if told.is_due and notices.PLACES.take(row.id, row.project_id):
            name = f'notice of operation {row.operation_id}'
            notices.PLACES.run(row.id, name, told.tell)


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Telling:
    """What there is to tell of an operation."""

    row: scans.NoticeRow
    order: notice_orders.NoticeOrder
    record: _Record
    clock: abc.Callable[[], float]

    @property
    def _waited(self) -> _Record:
        """The record with the notice that the operation waits too long."""
        if self.row.state != binding.IN_PROGRESS:
            return self.record
        begun = record_names.started_at(self.row.operation_id)
        return self.record.with_wait(self.order, begun, self.clock())

    @property
    def _has_ended(self) -> bool:
        """Whether the end of the operation was not read."""
        is_over = self.row.state != binding.IN_PROGRESS
        # Some databases have times in seconds.
        is_same = self.row.seen_at == self.row.changed_at
        return is_over and not (is_same and self.record.was_read)

    @property
    def is_due(self) -> bool:
        has_news = self._has_ended or self._waited != self.record
        return has_news or bool(self.record.book.due(self.clock()))

    def tell(self) -> None:
        """Decide what to tell, and send the first of that."""
        record, seen_at = self._waited, self.row.seen_at
        if self._has_ended:
            record, is_read = self._with_end(record)
            seen_at = self.row.changed_at if is_read else seen_at
        notice, now = record.book.due(self.clock()), self.clock()
        if notice is not None:
            notice, former = notice.tried(int(now)), notice
            record = record.with_book(record.book.replaced(former, notice))
        row = self._written(record, seen_at)
        if row is None:
            return
        if record.book.error != self.record.book.error:
            self._log_given_up('its end', record.book.error)
        if notice is None:
            return
        tried = notice
        why = notices.why_not(lambda: self._send(tried))
        book = record.book.told(tried, why, self.clock())
        if book == record.book:
            return
        told = dataclasses.replace(self, row=row)
        if told._written(record.with_book(book), seen_at) and why:
            self._log_given_up(tried.event.value, why)

    def _with_end(self, record: _Record) -> tuple[_Record, bool]:
        """Read how the operation has ended; say whether that is known."""
        try:
            stack = self._stack()
            door = _door(self.row, stack)
            control = door.outline(self.row.operation_id).control
        except errors.Error as exc:
            ended_at = self.row.changed_at.replace(tzinfo=datetime.UTC)
            if self.clock() < ended_at.timestamp() + notifying.HOUR:
                return record, False
            book = dataclasses.replace(record.book, error=str(exc))
            return dataclasses.replace(record, book=book, was_read=True), True
        return record.with_end(self.order, control), control.phase.ended

    def _log_given_up(self, what: str, why: str) -> None:
        notices.log_given_up(f'operation {self.row.operation_id}', what, why)

    def _stack(self) -> Any:
        stacks, project_id = self.order.stacks, self.row.project_id
        return fleet_watching.first_stack(stacks, project_id)

    def _written(
        self, record: _Record, seen_at: datetime.datetime
    ) -> scans.NoticeRow | None:
        """Record notices; None if another engine has done so."""
        is_over = self.row.state != binding.IN_PROGRESS
        is_told = seen_at == self.row.changed_at and not record.book.notices
        after = dataclasses.replace(
            self.row, reason=record.text(), seen_at=seen_at
        )
        status = (
            binding.COMPLETE if is_over and is_told else binding.IN_PROGRESS
        )
        context = heat_context.get_admin_context()
        is_ours = scans.record_notices(context, self.row, after, status)
        return after if is_ours else None

    def _send(self, notice: notifying.Notice) -> None:
        receiver = notices.Receiver(
            url=self.order.url, secret=self.order.secret
        )
        receiver.check()
        stack, operation_id = self._stack(), self.row.operation_id
        where = {
            'id': f'{operation_id}.{notice.event.value}.{notice.tick}',
            'project': self.row.project_id,
            'stack': {'id': stack.id, 'name': stack.name},
            'operation': operation_id,
        }
        receiver.send(
            notice, where, stack, lambda: _door(self.row, stack), self.clock
        )


def _door(row: scans.NoticeRow, stack: Any) -> fleets.Fleets:
    what = f'operation {row.operation_id}'
    return fleet_watching.door(
        stack, fleet_watching.budget_of(what, notices.BUDGET)
    )
