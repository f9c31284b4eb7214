# SPDX-License-Identifier: Apache-2.0
"""How operations look: columns for every command that shows some."""

from collections import abc
import textwrap
from typing import Any

from heat_plugins import foreign
from heat_plugins import wording
from heat_plugins.osc import columns
from heat_plugins.osc import common
from heat_plugins.osc import progress
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview

# Characters of a line of reasons.
_WIDTH = 120

_TARGETS = (
    'stack',
    'resource',
    'server',
    'state',
    'started_at',
    'duration',
    'reason',
)


class Counts(columns.Column):
    """Numbers by name, those that are not 0."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{number} {name}' for name, number in self._value.items()
        )


class Failures(columns.Column):
    """The targets that failed; for people a line for each reason.

    :param lines: those lines.
    """

    def __init__(self, value: abc.Sequence[Any], lines: list[str]) -> None:
        super().__init__(value)
        self._lines = lines

    def human_readable(self) -> str:
        return '\n'.join(
            textwrap.fill(
                foreign.line(line),
                _WIDTH,
                subsequent_indent='  ',
                break_long_words=False,
                break_on_hyphens=False,
            )
            for line in self._lines
        )


class Ids(columns.Column):
    """What programs alone read."""

    def human_readable(self) -> str:
        return ''


class Limits(columns.Column):
    """The limits, those that are set."""

    def human_readable(self) -> str:
        return ', '.join(
            f'{name.replace("_", "-")} {value}'
            for name, value in self._value.items()
            if value not in (None, False, operations.SKIP) and value != 0
        )


class Requests(columns.Column):
    """What users have asked for, a line for each."""

    def human_readable(self) -> str:
        return '\n'.join(
            f'{each["at"]}: '
            + ' '.join(filter(None, (each['do'], each['only'])))
            + f' by {foreign.line(str(each["who"]))}'
            for each in self._value
        )


#: Cells of what is shown of an operation, by the keys.
KINDS = {
    **columns.KINDS,
    'counts': Counts,
    'limits': Limits,
    'script': columns.Value,
    'requests': Requests,
}


def shown(
    operation: operations.Operation, now: float, notify_error: str = ''
) -> common.Shown:
    """Return columns and values of one operation.

    :param notify_error: why its last notice was given up.
    """
    lines = wording.lines(
        overview.failures(operation, operation.failures), rest(operation)
    )
    values = columns.cells(
        overview.of(operation, now)
        | ({'notify_error': notify_error} if notify_error else {}),
        {
            **KINDS,
            'stack_ids': Ids,
            'failures': lambda failures: Failures(failures, lines),
        },
    )
    return tuple(values), common.One(values.values())


def rest(operation: operations.Operation) -> str:
    """Return the command that lists all targets that have failed."""
    return (
        f'openstack software deployment operation show {operation.id} --failed'
    )


def rows(
    operation: operations.Operation, members: abc.Iterable[int]
) -> common.Many:
    targets = [overview.target(operation, member) for member in members]
    rows = [
        {**columns.with_server(each), 'attempts': Ids(each['attempts'])}
        for each in targets
    ]
    return common.Many(rows, _TARGETS)


class OperationProgress:
    """Shows an operation."""

    def __init__(self, display: progress.Display) -> None:
        self._display = display
        self._phase: operations.Phase | None = None
        self._batch = 0
        self._done = 0
        #: Members and attempts that have failed, and the reasons shown.
        self._failed: set[tuple[int, int]] = set()
        self._reasons: set[str] = set()

    def changed(self, operation: operations.Operation) -> None:
        """Show how an operation stands now."""
        done, total = overview.done(operation), len(operation.attempts)
        control, order = operation.control, operation.order
        counts = overview.counts(operation)
        counted = ', '.join(
            f'{number} {name}' for name, number in counts.items()
        )
        if self._phase is None:
            self._display.say(
                f'Operation {operation.id}: {order.action} on '
                f'{wording.counted(total, "target")}, '
                f'at most {order.limits.concurrent(total)} at a time'
            )
        self._name_failures(operation)
        if control.phase is not self._phase:
            self._phase = control.phase
            if control.reason:
                self._display.say(f'{control.phase.value}: {control.reason}')
        size = order.limits.concurrent(total)
        if done - self._done >= size or (
            operation.ended and done > self._done
        ):
            self._batch += 1
            self._done = done
            self._display.say(
                f'Batch {self._batch}: {done} of {total} done: {counted}'
            )
        self._done = min(self._done, done)
        self._display.show(
            f'{order.action}: {counted}', done, total, since=control.began_at
        )

    def _name_failures(self, operation: operations.Operation) -> None:
        """Say why targets fail, each reason once; the result counts them."""
        new = {
            (member, operation.attempts[member].number)
            for member in operation.failures
        } - self._failed
        self._failed |= new
        members = sorted(member for member, _ in new)
        for group in wording.grouped(overview.failures(operation, members)):
            # The last line says where all of them are.
            room = wording.LINES - len(self._reasons)
            if group.pattern in self._reasons or room < 1:
                continue
            self._reasons.add(group.pattern)
            further = f'Further failures: {rest(operation)}'
            self._display.say(group.line() if room > 1 else further)
