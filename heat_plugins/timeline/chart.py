# SPDX-License-Identifier: Apache-2.0
"""The content of a timeline: rows of bars.

Times are seconds since the epoch.
"""

import collections
from collections import abc
import dataclasses
import datetime
import enum
import itertools

from heat_plugins import foreign
from heat_plugins.configs import actions
from heat_plugins.runs import run_records
from heat_plugins.runs import summary

#: The states of a bar, in the words for people.
State = run_records.State


class RowKind(enum.Enum):
    """The subject of a row."""

    STACK = 'stack'
    NESTED = 'nested stack'
    DEPLOYMENT = 'deployment'
    RUN = 'run'
    EXECUTION = 'workflow execution'
    RESOURCE = 'resource'
    DAY = 'day'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """A period in which something runs.

    :ivar label: its name, such as that of an action.
    :ivar end: None until it ends.
    :ivar working_since: the end of the wait before it, if known.
    :ivar reason: why it ended in its state, if known.
    :ivar hint: what may keep it from starting.
    :ivar status: its state in words, if that is no state of a run.
    :ivar aside: whether it does not change the state of its row, such as a
        signal that was refused.
    """

    label: str
    state: State
    start: float
    end: float | None
    working_since: float | None = None
    reason: str = ''
    hint: str = ''
    status: str = ''
    aside: bool = False

    @property
    def word(self) -> str:
        """The state, for people."""
        return self.status or self.state.value

    def until(self, now: float) -> float:
        """Return its end, on a chart that ends now."""
        return now if self.end is None else max(self.start, self.end)

    def duration(self, now: float) -> str:
        """Return how long it took, or has taken until now, for people."""
        return summary.spell(round(self.until(now) - self.start))

    def explanation(self, now: float) -> str:
        """Return its reason, or the hint if it has waited for long."""
        waits = self.end is None and self.working_since is None
        if self.hint and waits and now - self.start >= actions.HOOK_PATIENCE:
            return self.hint
        return self.reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChartRow:
    """Bars that share a name.

    :ivar path: of the resource, from the root stack.
    :ivar name: its name within the enclosing row.
    :ivar what: what distinguishes it from other rows of the resource; or ''.
    :ivar depth: how many stacks enclose it.
    :ivar folded: how many rows it hides.
    """

    kind: RowKind
    path: str
    name: str
    bars: tuple[Bar, ...]
    what: str = ''
    depth: int = 0
    folded: int = 0

    @property
    def title(self) -> str:
        """Its name in a list of rows."""
        hidden = f'(+{self.folded})' if self.folded else ''
        return ' '.join(filter(None, (self.name, self.what, hidden)))

    @property
    def last(self) -> Bar | None:
        """The bar that tells its state."""
        return max(
            (bar for bar in self.bars if not bar.aside),
            key=lambda bar: bar.start,
            default=None,
        )

    def last_state(self, now: float) -> str:
        """Return the state and duration of its last bar, for people."""
        if self.last is None:
            return ''
        end = f'{self.last.word} {self.last.duration(now)}'
        is_named = self.last.label == self.what
        return foreign.line(end if is_named else f'{self.last.label} {end}')

    def lanes(self, now: float) -> list[list[Bar]]:
        """Distribute bars that overlap over lanes without overlaps."""
        lanes: list[list[Bar]] = []
        for bar in sorted(self.bars, key=lambda bar: bar.start):
            for lane in lanes:
                if lane[-1].until(now) <= bar.start:
                    lane.append(bar)
                    break
            else:
                lanes.append([bar])
        return lanes or [[]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chart:
    """A stack's life, until now.

    :ivar status: of the stack; '' if it is deleted.
    :ivar notes: what could not be read.
    :ivar zone: of the times; None for UTC, or as the reader wants.
    """

    stack: str
    status: str
    now: float
    rows: abc.Sequence[ChartRow]
    notes: abc.Sequence[str] = ()
    zone: datetime.tzinfo | None = None

    @property
    def bars(self) -> list[Bar]:
        return [bar for row in self.rows for bar in row.bars]

    def legend(self) -> dict[State, str]:
        """Return the words for the drawn states, and for the waits before."""
        words: dict[State, set[str]] = {}
        for bar in self.bars:
            words.setdefault(bar.state, set()).add(bar.word)
        if any(bar.working_since is not None for bar in self.bars):
            words.setdefault(State.WAITING, {State.WAITING.value})
        return {
            state: ' or '.join(sorted(words[state]))
            for state in State
            if state in words
        }

    def troubles(self) -> abc.Iterator[tuple[State, str]]:
        """Yield the reasons of failed rows, and of signals refused last."""
        for row in self.rows:
            refused = [bar for bar in row.bars if bar.aside][-1:]
            for bar in filter(None, (row.last, *refused)):
                explanation = bar.explanation(self.now)
                is_bad = bar.state in (State.FAILED, State.TIMED_OUT)
                if explanation and (is_bad or explanation == bar.hint):
                    name = f'{row.path or row.name} {bar.label} {bar.word}'
                    yield bar.state, foreign.line(f'{name}: {explanation}')

    def noted(self) -> list[str]:
        """Return the notes as lines."""
        return [f'Note: {foreign.line(note)}' for note in self.notes]

    def counts(self) -> dict[State, int]:
        """Return how many bars are in each state, without the stack's."""
        counted = collections.Counter(
            bar.state
            for row in self.rows
            if row.kind is not RowKind.STACK
            for bar in row.bars
            if not bar.aside
        )
        return {state: counted[state] for state in State if state in counted}


_OVER_DEPLOYMENTS = (RowKind.RUN, RowKind.EXECUTION)

# The worst first.
_WORST = (
    State.FAILED,
    State.TIMED_OUT,
    State.CANCELLED,
    State.COMPLETE,
)


def fold(
    own: ChartRow, inside: abc.Sequence[ChartRow], now: float
) -> list[ChartRow]:
    """Return the rows that replace those of a nested stack.

    :param own: the row of the resource that the nested stack is.
    :param inside: the rows of its content.
    :param now: the end of bars that are running.
    """
    hidden = len({row.path for row in inside})
    rows = [dataclasses.replace(own, folded=hidden)] if own.bars else []
    named = sorted(
        (row for row in inside if row.kind in _OVER_DEPLOYMENTS),
        key=lambda row: (row.kind.value, row.what),
    )
    for _, same in itertools.groupby(
        named, key=lambda row: (row.kind.value, row.what)
    ):
        group = list(same)
        together: list[list[Bar]] = []
        end = 0.0
        for bar in sorted(
            (bar for row in group for bar in row.bars),
            key=lambda bar: bar.start,
        ):
            if not together or bar.start >= end:
                together.append([])
            together[-1].append(bar)
            end = max(end, bar.until(now))
        rows.append(
            dataclasses.replace(
                own,
                kind=group[0].kind,
                what=group[0].what,
                bars=tuple(map(_joined, together)),
                folded=len(group),
            )
        )
    return rows


def _joined(bars: list[Bar]) -> Bar:
    """Return one bar for several: running while one runs, then the worst."""
    if len(bars) == 1:
        return bars[0]
    states = [bar.state for bar in bars]
    counts = ', '.join(
        f'{states.count(state)} {state.value}'
        for state in State
        if state in states
    )
    ends = [bar.end for bar in bars if bar.end is not None]
    goes_on = len(ends) < len(bars)
    begun = [bar.working_since for bar in bars if bar.working_since]
    order = (State.RUNNING, State.WAITING) if goes_on else _WORST
    state = next((each for each in order if each in states), State.WAITING)
    return Bar(
        label=f'{len(bars)} x {bars[0].label}',
        state=state,
        start=bars[0].start,
        end=None if goes_on else max(ends),
        working_since=min(begun, default=None),
        reason=counts,
    )
