# SPDX-License-Identifier: Apache-2.0
"""The runs of operations, shown as runs of their stacks.

They are read from the operations' records and never changed here: who leads
an operation sees to its runs.
"""

from collections import abc
import itertools
import threading
import time
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import store as store_module
from heat_plugins.runs import run as runs
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.fleet.records import book as books
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.follow import logs
from heat_plugins.runs.start import starting
from heat_plugins.signals import body

LOG = foreign.logger(__name__)

# The most bytes of outputs.
_LIMIT = 16 * 1024 * 1024

# Seconds for which a listing of what servers print holds, and its most
# objects.
_FRESH, _MOST = 0.9, 100_000


class OperationRuns:
    """The runs of the operations of one project."""

    def __init__(
        self,
        book: books.Book,
        monotonic: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._book = book
        self._monotonic = monotonic
        self._logs: dict[str, _Logs] = {}

    def history(
        self,
        stack_id: str,
        matches: abc.Callable[[runs.Run], bool],
        *,
        action: str | None,
        since: float | None,
        limit: int | None,
    ) -> list[runs.Run]:
        """Return runs on a root stack, those of newer operations first.

        :param matches: says whether a run is wanted.
        :param action: see `run_service.Filter`, also for the others.
        """
        found: list[runs.Run] = []
        for head in self._book.heads.newest():
            if limit is not None and len(found) >= limit:
                break
            if (
                stack_id in head.get('stack_ids', ())
                and action in (None, head['action'])
                and (since or 0) <= (head['ended_at'] or float('inf'))
            ):
                found += filter(matches, self._of(head['id'], stack_id))
        return found

    def _of(self, operation_id: str, stack_id: str) -> list[runs.Run]:
        try:
            found = self._book.show(operation_id)
        except errors.Unavailable:
            raise
        except errors.Error as exc:
            LOG.warning('%s', exc)
            return []
        return [run for run in of(found) if run.stack_id == stack_id]

    def find(self, run_id: str) -> runs.Run:
        """Return a run.

        :param run_id: its id; of the operation's part, the beginning or the
            end does.
        :raises errors.NotFound: there is none.
        """
        try:
            operation_id, member, number = layout.attempt_of(run_id)
            found = self._book.show(self._book.find(operation_id))
            attempt = found.attempts[member]
            if attempt.state is None or attempt.number != number:
                raise IndexError
        except (ValueError, IndexError):
            raise errors.NotFound(
                f'There is no run {bounds.shortened(run_id)}'
            ) from None
        return run_of(found, member)

    def outputs(self, run: runs.Run) -> abc.Mapping[str, Any]:
        """Return the outputs of a run, long ones whole."""
        if not run.cut:
            return run.outputs
        name = layout.outputs(*layout.attempt_of(run.id))
        try:
            content = self._book.store.get_object(
                self._book.container, name, _LIMIT
            )
            return body.parse(content)
        except (errors.NoObject, errors.BadSignal):
            return run.outputs

    def log(self, run: runs.Run) -> logs.Reader:
        """Return what reads the output of a run until it ends."""
        operation_id = layout.attempt_of(run.id)[0]
        source = self._logs.setdefault(
            operation_id, _Logs(self._book, operation_id, self._monotonic)
        )
        return logs.Reader(source, run.id)


class _Logs:
    """What the servers of an operation print: one listing tells of all."""

    def __init__(
        self,
        book: books.Book,
        operation_id: str,
        monotonic: abc.Callable[[], float],
    ) -> None:
        self._book = book
        self._prefix = layout.logs(operation_id)
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._fresh_until = 0.0
        self._entries: dict[str, list[store_module.Entry]] = {}

    def log(self, run_id: str) -> list[store_module.Entry]:
        with self._lock:
            if self._monotonic() >= self._fresh_until:
                self._list()
        folder = layout.log_folder(*layout.attempt_of(run_id))
        return self._entries.get(folder, [])

    def fetch(self, name: str, limit: int) -> store_module.Fetched:
        return self._book.store.fetch(self._book.container, name, limit)

    def _list(self) -> None:
        self._entries = {}
        entries = self._book.store.iterate(self._book.container, self._prefix)
        for entry in itertools.islice(entries, _MOST):
            folder, slash, _ = entry.name.rpartition('/')
            self._entries.setdefault(folder + slash, []).append(entry)
        self._fresh_until = self._monotonic() + _FRESH


def of(found: operations.Operation) -> list[runs.Run]:
    """Return the last attempt on each member that has one, as runs."""
    return [
        run_of(found, n) for n, one in enumerate(found.attempts) if one.state
    ]


def run_of(found: operations.Operation, member: int) -> runs.Run:
    """Return the last attempt on a member as a run."""
    order, one = found.order, found.order.members[member]
    attempt = found.attempts[member]
    state = attempt.state or runs.State.STARTING
    is_cancelled = state is runs.State.CANCELLED
    return runs.Run(
        id=found.run_id(member),
        stack_id=one.stack_id,
        stack_name=one.stack_name,
        resource=one.resource,
        deployment_id=one.deployment_id,
        server_id=one.server_id,
        server_name=one.server_name,
        action=order.action,
        state=state,
        reason=attempt.reason or ('' if state.ended else runs.UNANSWERED),
        started_at=attempt.started_at or order.created_at,
        started_by=order.created_by,
        timeout=found.timeout(member, starting.DEFAULT_TIMEOUT),
        delivery_timeout=found.delivery_timeout(member),
        inputs=order.inputs,
        row_id=attempt.row_id,
        config_id=attempt.config_id,
        reported_at=attempt.reported_at,
        ended_at=attempt.ended_at,
        outputs=attempt.outputs,
        cut=attempt.cut,
        cancelled_by=found.control.stopped_by if is_cancelled else None,
        standalone=order.config is not None,
    )
