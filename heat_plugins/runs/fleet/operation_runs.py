# SPDX-License-Identifier: Apache-2.0
"""The runs of operations, shown as runs of their stacks.

They are read from the operations' records, which never change here: who leads
an operation sees to its runs. One of them can be repeated, so its records are
proved, see `binding`; those of a list are only shown.
"""

from collections import abc
import itertools

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records

LOG = foreign.logger(__name__)

# The most operations whose records one list of runs reads.
_READ = 500


class OperationRuns:
    """The runs of the operations of one project.

    :param seal_of: returns what proves the records of an operation.
    """

    def __init__(
        self,
        records: operation_records.OperationRecords,
        seal_of: abc.Callable[[str], binding.Seal],
    ) -> None:
        self._records = records
        self._seal_of = seal_of

    def history(
        self,
        stack_id: str | None,
        matches: abc.Callable[[runs.Run], bool],
        *,
        action: str | None,
        since: float | None,
        limit: int | None,
    ) -> list[runs.Run]:
        """Return runs on a root stack, those of newer operations first.

        :param stack_id: None for all stacks.
        :param matches: says whether a run is wanted.
        :param action: see `run_service.Filter`, also for the others.
        """
        heads = (
            head
            for head in self._records.heads.newest()
            if (stack_id is None or stack_id in head.stack_ids)
            and action in (None, head.action)
            and (since or 0) <= (head.ended_at or float('inf'))
        )
        wanted: list[runs.Run] = []
        for head in itertools.islice(heads, _READ):
            if limit is not None and len(wanted) >= limit:
                break
            wanted += filter(matches, self._of(head.id, stack_id))
        return wanted

    def _of(self, operation_id: str, stack_id: str | None) -> list[runs.Run]:
        try:
            operation = self._records.show(
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
        return [
            run for run in every(operation) if stack_id in (None, run.stack_id)
        ]

    def find(self, run_id: str) -> tuple[operations.Operation, int]:
        """Return an operation as a run was its last on a member, and that.

        :param run_id: its id; of the operation's part, the beginning or the
            end does.
        :raises errors.NotFound: there is none.
        :raises errors.Unreadable: its records are invalid, or were changed.
        """
        try:
            operation_id, member, number = layout.attempt_of(run_id)
            seal = self._seal_of(self._records.find(operation_id))
            operation = self._records.show(seal)
            operation = operation.with_attempt(member, number)
        except (ValueError, IndexError):
            raise errors.NotFound(
                f'There is no run {bounds.shortened(run_id)}'
            ) from None
        return operation, member


def of(
    operation: operations.Operation, *, skipped: bool = False
) -> list[runs.Run]:
    """Return the last attempt on each member that has one, as runs.

    :param skipped: whether to return the members that got none, too.
    """
    return [
        run_of(operation, n)
        for n, attempt in enumerate(operation.attempts)
        if attempt.is_run or (skipped and attempt.state is runs.State.SKIPPED)
    ]


def every(operation: operations.Operation) -> list[runs.Run]:
    """Return the attempts on each member as runs, the first one first."""
    return [
        run_of(operation.attempted({n: vars(attempt)}), n)
        for n, last in enumerate(operation.attempts)
        for attempt in last.every
        if attempt.is_run
    ]


def run_of(operation: operations.Operation, member: int) -> runs.Run:
    """Return the last attempt on a member as a run."""
    order, target = operation.order, operation.order.members[member]
    attempt = operation.attempts[member]
    state = attempt.state or runs.State.STARTING
    is_cancelled = state is runs.State.CANCELLED
    return runs.Run(
        **{
            **vars(target),
            **runs.shared(runs.RunAttempt, attempt),
            'state': state,
            'reason': attempt.reason
            or ('' if state.ended else runs.UNANSWERED),
            'started_at': attempt.started_at or order.created_at,
            'timeout': operation.timeout(member),
            'delivery_timeout': operation.delivery_timeout(member),
            'cancelled_by': attempt.cancelled_by
            or (operation.control.stopped_by if is_cancelled else None),
        },
        id=operation.run_id(member),
        action=order.action,
        started_by=order.created_by,
        inputs=order.inputs,
        standalone=order.config is not None,
    )
