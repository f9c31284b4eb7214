# SPDX-License-Identifier: Apache-2.0
"""An operation as it is shown to people and programs, and its runs.

The runs of operations are shown as runs of their stacks. They are read from
the operations' records, which never change here: who leads an operation sees
to its runs. One of them can be repeated, so its records are proved, see
`binding`; those of a list are only shown.
"""

from collections import abc
import dataclasses
import itertools
import math
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.runs import orchestration
from heat_plugins.runs import runs
from heat_plugins.runs import summary
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records

#: The state of an operation whose record is unreadable.
UNREADABLE = 'unreadable'

#: What stands for a member on which nothing has started: it may yet, or the
#: operation has ended.
PENDING, NOT_STARTED = 'pending', 'not-started'

#: The states of targets, in the order of an operation's life.
COUNTED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in operations.State),
)

_UNFINISHED = (
    PENDING,
    NOT_STARTED,
    *(each.value for each in operations.State if not each.ended),
)

#: Keys of what is shown of a target.
TARGET_KEYS = (
    'stack',
    'resource',
    'server',
    'server_name',
    'state',
    'reason',
    'attempt',
    'started_at',
    'ended_at',
    'duration',
    'outputs',
    'cut',
    'attempts',
)


def state(operation: operations.Operation, member: int) -> str:
    """Return the state of a target."""
    attempt = operation.attempts[member]
    if attempt.state is not None:
        return attempt.state.value
    is_pending = (
        not operation.ended and attempt.round == operation.control.round
    )
    return PENDING if is_pending else NOT_STARTED


def counts(operation: operations.Operation) -> dict[str, int]:
    """Return how many targets are in which state; zeros are left out."""
    result = dict.fromkeys(COUNTED, 0)
    for member in range(len(operation.attempts)):
        result[state(operation, member)] += 1
    return {name: number for name, number in result.items() if number}


def done(operation: operations.Operation) -> int:
    """Return how many targets have ended."""
    return _done(len(operation.attempts), counts(operation))


def _done(targets: int, counts: abc.Mapping[str, int]) -> int:
    return targets - sum(counts.get(name, 0) for name in _UNFINISHED)


def percent(operation: operations.Operation) -> int:
    """Return how many percent of the targets have ended."""
    total = len(operation.attempts)
    return 100 * done(operation) // max(1, total)


def estimated_end(operation: operations.Operation, now: float) -> int | None:
    """Return when an operation is likely to end; None if unknown.

    This assumes that runs take as long as the average of this round, and
    counts no time in which it waited for a user.
    """
    control, limits = operation.control, operation.order.limits
    if operation.ended or control.phase is not operations.Phase.RUNNING:
        return None
    average = _average(operation)
    if average is None:
        return None
    starts = [
        operation.attempts[member].started_at for member in operation.live
    ]
    rest = [start + average - now for start in starts if start is not None]
    concurrent = limits.concurrent(len(operation.attempts))
    waves = math.ceil(len(operation.pending) / concurrent)
    seconds = max([0, *rest]) + waves * (average + limits.pause)
    return int(now + seconds)


def _average(operation: operations.Operation) -> float | None:
    """Return how many seconds a run of this round has taken on average."""
    taken = [
        attempt.duration
        for attempt in operation.attempts
        if attempt.round == operation.control.round
        and attempt.duration is not None
    ]
    return sum(taken) / len(taken) if taken else None


def failures(
    operation: operations.Operation, members: abc.Iterable[int]
) -> list[wording.Failure]:
    """Return targets that have failed, for people."""
    return [
        wording.Failure(
            name=_name(operation.order.members[member]),
            also=tuple(
                filter(
                    None,
                    (
                        operation.order.members[member].server_name,
                        operation.order.members[member].resource,
                    ),
                )
            ),
            reason=f'{state(operation, member)}: '
            f'{operation.attempts[member].reason}',
        )
        for member in members
    ]


def _name(member: runs.RunTarget) -> str:
    return f'{member.stack_name} {member.server_name or member.resource}'


def head(operation: operations.Operation) -> operations.Head:
    """Return what a list shows."""
    order, control = operation.order, operation.control
    return operations.Head(
        id=order.id,
        action=order.action,
        state=control.phase,
        reason=control.reason,
        stacks=order.stacks,
        stack_ids=order.stack_ids,
        targets=len(order.members),
        counts=counts(operation),
        percent=percent(operation),
        created_at=order.created_at,
        created_by=order.created_by,
        ended_at=control.ended_at,
        script=_first_line(order.script),
    )


def _first_line(script: str) -> str:
    """Return the first line of a script that does something."""
    lines = [each for each in script.splitlines() if each and each[0] != '#']
    return bounds.shortened(lines[0]) if lines else ''


def of_head(head: operations.Head) -> dict[str, Any]:
    """Return a head as it is shown; times are texts in UTC."""
    created, ended = head.created_at, head.ended_at
    counts, total = dict(head.counts), head.targets
    if ended is not None and PENDING in counts:
        # As an earlier release wrote it.
        counts[NOT_STARTED] = counts.pop(PENDING)
    return {
        **dataclasses.asdict(head),
        'state': head.state.value if head.state else UNREADABLE,
        'counts': counts,
        'percent': 100 * _done(total, counts) // max(1, total),
        'failed': sum(
            counts.get(each.value, 0)
            for each in (operations.State.FAILED, operations.State.TIMED_OUT)
        ),
        'created_at': summary.time(created),
        'ended_at': summary.time(ended),
        'duration': None if ended is None else ended - created,
    }


def of(operation: operations.Operation, now: float) -> dict[str, Any]:
    """Return all that may be shown of an operation, without its targets.

    Of the inputs only the names are there: the values may be secrets.
    """
    order = operation.order
    shown = of_head(head(operation))
    del shown['counts']
    return {
        **shown,
        'counts': counts(operation),
        'estimated_end': summary.time(estimated_end(operation, now)),
        'round': operation.control.round + 1,
        'targets_from': order.targets,
        'limits': order.limits.shown(),
        'inputs': sorted(order.inputs),
        'script': order.script,
        'requests': [
            {**vars(request), 'at': summary.time(request.at)}
            for request in operation.control.requests
        ],
        'failures': [target(operation, n) for n in operation.failures],
        **({'notify': order.notify} if order.notify else {}),
    }


def target(operation: operations.Operation, member: int) -> dict[str, Any]:
    """Return what may be shown of a target: `TARGET_KEYS` with values."""
    its, attempt = operation.order.members[member], operation.attempts[member]
    return {
        'stack': its.stack_name,
        'resource': its.resource,
        'server': its.server_id,
        'server_name': its.server_name,
        'state': state(operation, member),
        'reason': attempt.reason,
        'attempt': attempt.number,
        'started_at': summary.time(attempt.started_at),
        'ended_at': summary.time(attempt.ended_at),
        'duration': attempt.duration,
        'outputs': dict(attempt.outputs),
        'cut': dict(attempt.cut),
        'attempts': [
            {
                'attempt': each.number,
                'state': each.state.value,
                'reason': each.reason,
                'started_at': summary.time(each.started_at),
                'ended_at': summary.time(each.ended_at),
            }
            for each in attempt.every
            if each.state is not None and not each.deleted
        ],
    }


LOG = foreign.logger(__name__)

# The most operations whose records one list of runs reads.
_READ = 500


class OperationRuns:
    """The runs of the operations of one project.

    :param heat: has what proves the records of an operation.
    """

    def __init__(
        self,
        records: operation_records.OperationRecords,
        heat: orchestration.Deploying,
    ) -> None:
        self._records = records
        self._heat = heat

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
            run
            for run in every_run(operation)
            if stack_id in (None, run.stack_id)
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
            whole_id = self._records.find(operation_id)
            seal = binding.seal_of(self._heat, whole_id)
            operation = self._records.show(seal)
            operation = operation.with_attempt(member, number)
        except (ValueError, IndexError):
            raise errors.NotFound(
                f'There is no run {bounds.shortened(run_id)}'
            ) from None
        return operation, member


def runs_of(
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


def every_run(operation: operations.Operation) -> list[runs.Run]:
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
