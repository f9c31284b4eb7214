# SPDX-License-Identifier: Apache-2.0
"""What a leader writes of its operation, and when.

It records a run before it starts it, and a run's end before it deletes the
result. The rest may wait, since the next leader finds it out.
"""

from collections import abc

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.objectstore import lease
from heat_plugins.runs import services
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import binding

# Seconds between two heads, and until what may wait is written.
_HEAD, _FLUSH = 10.0, 15.0

# Results that are deleted together, or after seconds.
_USED, _TIDY = 50, 30.0


# The states of members while the first runs of a round start.
_FIRST = {
    None,
    operations.State.STARTING,
    operations.State.WAITING,
    operations.State.RUNNING,
}


class Journal:
    """The records of one operation, in the hands of its leader."""

    def __init__(
        self,
        tools: services.Services,
        order: operations.OperationOrder,
        seal: binding.Seal,
        leadership: lease.Lease,
    ) -> None:
        self._records = tools.records
        self._order = order
        self._seal = seal
        self._lease = leadership
        self._monotonic = tools.monotonic
        # The operation as it was written last, and when something about it
        # changed that may wait.
        self._written: operations.Operation | None = None
        self._dirty_since: float | None = None
        self._head: operations.Head | None = None
        self._next_head = self._next_tidy = 0.0
        # Objects to be deleted once the record is written.
        self._used: list[str] = []

    def begin(self, operation: operations.Operation) -> None:
        """Write a new operation; what a list shows comes last."""
        self._records.write_order(self._order)
        self.write(operation)
        self._write_head(operation, force=True)

    def load(self) -> operations.Operation:
        """Return the operation as it is recorded, in our epoch from now on."""
        epoch = self._lease.epoch or 0
        operation, written = self._records.operation(
            self._order, epoch, self._seal
        )
        self._written = operation if written == epoch else None
        self._used = []
        if self._written is None:
            # The copy of a former epoch.
            self.write(operation)
        return operation

    def use(self, *names: str) -> None:
        """Delete objects soon after the next record."""
        self._used += [name for name in names if name not in self._used]

    def given(
        self, operation: operations.Operation, members: abc.Iterable[int]
    ) -> None:
        """Let the record say that members were given their run."""
        written = self._written
        if written is not None and any(
            written.attempts[n].state is operations.State.STARTING
            and operation.attempts[n].state is not operations.State.STARTING
            for n in members
        ):
            self.write(operation)

    def record(self, operation: operations.Operation) -> None:
        """Write what must be known before anything is done."""
        now = self._monotonic()
        written = self._written
        if written is None or _is_urgent(written, operation):
            self.write(operation)
        elif operation != written:
            if self._dirty_since is None:
                self._dirty_since = now
            is_due = now - self._dirty_since >= _FLUSH
            # A command waits for the first runs of a round to have started.
            has_started = _begins(written) and not _begins(operation)
            if is_due or has_started:
                self.write(operation)
        self._write_head(operation, force=operation.ended)
        self._tidy()

    def write(self, operation: operations.Operation) -> None:
        """Write an operation.

        :raises lease.Lost: we do not lead it.
        """
        if self._lease.epoch is None:
            raise lease.Lost
        self._records.write(
            operation, self._lease.epoch, self._written, self._seal
        )
        if self._written is not None:
            _count_ends(self._written, operation)
        self._written = operation
        self._dirty_since = None

    def _tidy(self) -> None:
        """Delete what has been read, many objects with one request."""
        now = self._monotonic()
        if len(self._used) < _USED and now < self._next_tidy:
            return
        self._next_tidy = now + _TIDY
        try:
            # What another leader has not recorded yet must stay.
            self._lease.check()
            self._records.discard(self._used)
        except errors.Unavailable:
            return
        self._used = []

    def _write_head(
        self, operation: operations.Operation, *, force: bool = False
    ) -> None:
        """Write what a list shows, from time to time."""
        head = overview.head(operation)
        now = self._monotonic()
        # Others do not look further at what has ended.
        former = None if self._head is None else self._head.state
        force = force or (former is not None and former.ended)
        if head == self._head or not (force or now >= self._next_head):
            return
        self._records.heads.write(head)
        self._head, self._next_head = head, now + _HEAD


def _count_ends(
    before: operations.Operation, after: operations.Operation
) -> None:
    """Count runs that have ended, for metrics; each is recorded once."""
    for old, new in zip(before.attempts, after.attempts, strict=True):
        if old.is_live and not new.is_live and new.state is not None:
            metrics.count(metrics.RUNS, new.state.value)


def _begins(operation: operations.Operation) -> bool:
    """Say whether the first runs of a round are recorded as starting."""
    states = {
        each.state
        for each in operation.attempts
        if each.round == operation.control.round
    }
    return operations.State.STARTING in states and states <= _FIRST


def _is_urgent(
    before: operations.Operation, after: operations.Operation
) -> bool:
    """Say whether a record must be written before anything else is done."""
    return before.control != after.control or any(
        _weight(old) != _weight(new)
        for old, new in zip(before.attempts, after.attempts, strict=True)
    )


def _weight(attempt: operations.Attempt) -> tuple[object, ...]:
    given = attempt.state in (
        operations.State.WAITING,
        operations.State.RUNNING,
    )
    state = operations.State.STARTING if given else attempt.state
    # The object of a result is deleted once it is noted, a late one's, too.
    return attempt.number, state, attempt.late is None
