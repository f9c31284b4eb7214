# SPDX-License-Identifier: Apache-2.0
"""The runs of operations, shown as runs of their stacks.

They are read from the operations' records and never changed here: who leads
an operation sees to its runs. One of them can be repeated, so its records are
proved, see `binding`; those of a list are only shown.
"""

from collections import abc
import itertools
import threading
import time
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.objectstore import stores
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import books
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.follow import logs
from heat_plugins.signals import live

LOG = foreign.logger(__name__)

# The most operations whose records one list of runs reads.
_READ = 500

# Seconds for which a listing of what servers print holds, and after which a
# run whose output no reader has asked for is left out of it.
_FRESH, _FORGOTTEN = 0.9, 60.0

# Objects that such a listing has of all runs together, but at least of each.
_MOST, _LEAST = 100_000, 20


class OperationRuns:
    """The runs of the operations of one project.

    :param seal_of: returns what proves the records of an operation.
    """

    def __init__(
        self,
        book: books.Book,
        seal_of: abc.Callable[[str], binding.Seal],
        monotonic: abc.Callable[[], float] = time.monotonic,
    ) -> None:
        self._book = book
        self._seal_of = seal_of
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
        heads = (
            head
            for head in self._book.heads.newest()
            if stack_id in head.stack_ids
            and action in (None, head.action)
            and (since or 0) <= (head.ended_at or float('inf'))
        )
        found: list[runs.Run] = []
        for head in itertools.islice(heads, _READ):
            if limit is not None and len(found) >= limit:
                break
            found += filter(matches, self._of(head.id, stack_id))
        return found

    def _of(self, operation_id: str, stack_id: str) -> list[runs.Run]:
        try:
            found = self._book.show(
                binding.Unchecked(operation_id=operation_id)
            )
        except errors.Unavailable:
            raise
        except errors.NotFound:
            # It is being deleted; its head goes last.
            return []
        except errors.Error as exc:
            LOG.warning('%s', exc)
            return []
        return [run for run in every(found) if run.stack_id == stack_id]

    def find(self, run_id: str) -> runs.Run:
        """Return a run.

        :param run_id: its id; of the operation's part, the beginning or the
            end does.
        :raises errors.NotFound: there is none.
        :raises errors.Unreadable: its records are invalid, or were changed.
        """
        try:
            operation_id, member, number = layout.attempt_of(run_id)
            seal = self._seal_of(self._book.find(operation_id))
            found = self._book.show(seal)
            found = found.with_attempt(member, number)
            if not _is_run(found.attempts[member]):
                raise IndexError
        except (ValueError, IndexError):
            raise errors.NotFound(
                f'There is no run {bounds.shortened(run_id)}'
            ) from None
        return run_of(found, member)

    def outputs(self, run: runs.Run) -> abc.Mapping[str, Any]:
        """Return the outputs of a run, long ones whole."""
        return self._book.objects(*layout.attempt_of(run.id)).outputs(run)

    def log(self, run: runs.Run) -> logs.Reader:
        """Return what reads the output of a run until it ends."""
        operation_id = layout.attempt_of(run.id)[0]
        source = self._logs.setdefault(
            operation_id, _Logs(self._book, operation_id, self._monotonic)
        )
        return logs.Reader(source, run.id)


class _Logs:
    """What the servers of an operation print.

    One listing tells of all runs that a reader follows. Each has a part of it
    alone: a run with more objects, such as one whose server PUTs junk, is
    skipped there, and has a listing of its own.
    """

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
        # By folder: what it has, as far as the listing tells of it; and when
        # it was asked for last.
        self._entries: dict[str, list[stores.Entry]] = {}
        self._asked: dict[str, float] = {}

    def log(self, run_id: str) -> list[stores.Entry]:
        folder = layout.log_folder(*layout.attempt_of(run_id))
        with self._lock:
            now = self._monotonic()
            self._asked[folder] = now
            if now >= self._fresh_until:
                self._list(now)
            entries = self._entries.get(folder)
        if entries is None:
            listed = self._iterate(folder)
            entries = list(itertools.islice(listed, live.MOST))
        return entries

    def fetch(self, name: str, limit: int) -> stores.Fetched:
        return self._book.store.fetch(self._book.container, name, limit)

    def _iterate(
        self, prefix: str, after: str = ''
    ) -> abc.Iterator[stores.Entry]:
        store = self._book.store
        return store.iterate(self._book.container, prefix, after)

    def _list(self, now: float) -> None:
        self._asked = {
            folder: at
            for folder, at in self._asked.items()
            if now - at < _FORGOTTEN
        }
        folders = sorted(self._asked)
        most = min(live.MOST, max(_LEAST, _MOST // len(folders)))
        prefix = self._prefix if len(folders) > 1 else folders[0]
        self._entries = {folder: [] for folder in folders}
        while folders:
            folders = self._list_some(prefix, folders, most)
        self._entries = {
            folder: entries
            for folder, entries in self._entries.items()
            if len(entries) < most
        }
        self._fresh_until = self._monotonic() + _FRESH

    def _list_some(
        self, prefix: str, folders: list[str], most: int
    ) -> list[str]:
        """List folders, until a page has nothing of use.

        :returns: those that are still to be listed.
        """
        place, useless = 0, 0
        for entry in self._iterate(prefix, folders[0]):
            while not (is_within := entry.name.startswith(folders[place])):
                if entry.name < folders[place]:
                    break
                place += 1
                if place == len(folders):
                    return []
            entries = self._entries[folders[place]]
            if is_within and len(entries) < most:
                entries.append(entry)
                useless = 0
                continue
            useless += 1
            if useless >= stores.PAGE:
                return folders[place + is_within :]
        return []


def of(
    found: operations.Operation, *, skipped: bool = False
) -> list[runs.Run]:
    """Return the last attempt on each member that has one, as runs.

    :param skipped: whether to return the members that got none, too.
    """
    return [
        run_of(found, n)
        for n, one in enumerate(found.attempts)
        if _is_run(one) or (skipped and one.state is runs.State.SKIPPED)
    ]


def every(found: operations.Operation) -> list[runs.Run]:
    """Return the attempts on each member as runs, the first one first."""
    return [
        run_of(found.attempted({n: vars(one)}), n)
        for n, last in enumerate(found.attempts)
        for one in last.every
        if _is_run(one)
    ]


def _is_run(attempt: operations.Attempt) -> bool:
    return attempt.state not in (None, runs.State.SKIPPED)


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
        timeout=found.timeout(member),
        delivery_timeout=found.delivery_timeout(member),
        inputs=order.inputs,
        row_id=attempt.row_id,
        config_id=attempt.config_id,
        reported_at=attempt.reported_at,
        ended_at=attempt.ended_at,
        outputs=attempt.outputs,
        cut=attempt.cut,
        cancelled_by=attempt.cancelled_by
        or (found.control.stopped_by if is_cancelled else None),
        standalone=order.config is not None,
    )
