# SPDX-License-Identifier: Apache-2.0
"""What a timeline shows: rows of bars.

Times are seconds since the epoch.
"""

from collections import abc
import dataclasses
import enum

from heat_plugins.configs import hooks
from heat_plugins.runs import run as runs
from heat_plugins.runs import summary

#: What people are told a state is, wherever there is one.
State = runs.State


class Kind(enum.Enum):
    """What a row is about."""

    STACK = 'stack'
    NESTED = 'nested stack'
    DEPLOYMENT = 'deployment'
    RUN = 'run'
    EXECUTION = 'workflow execution'
    RESOURCE = 'resource'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Bar:
    """Something that took its time, or still does.

    :ivar label: what it is, such as the name of an action.
    :ivar end: None until it ends.
    :ivar working_since: when the waiting was over, if that is known.
    :ivar reason: why it ended as it did, as far as that is told.
    :ivar hint: what may keep it from starting.
    :ivar aside: whether it says nothing of how its row stands, such as a
        signal that was refused.
    """

    label: str
    state: State
    start: float
    end: float | None
    working_since: float | None = None
    reason: str = ''
    hint: str = ''
    aside: bool = False

    def until(self, now: float) -> float:
        """Return where it ends, on a chart that ends now."""
        return now if self.end is None else max(self.start, self.end)

    def duration(self, now: float) -> str:
        """Return how long it took, or has taken until now, for people."""
        return summary.spell(round(self.until(now) - self.start))

    def told(self, now: float) -> str:
        """Return its reason, or the hint if it has waited for long."""
        waits = self.end is None and self.working_since is None
        if self.hint and waits and now - self.start >= hooks.PATIENCE:
            return self.hint
        return self.reason


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """Bars that share a name.

    :ivar path: of the resource, from the root stack.
    :ivar name: how it is called below what it is nested in.
    :ivar what: what tells it from other rows of the resource; or ''.
    :ivar depth: how many stacks it is nested in.
    :ivar folded: how many rows are inside of it and not shown.
    """

    kind: Kind
    path: str
    name: str
    bars: tuple[Bar, ...]
    what: str = ''
    depth: int = 0
    folded: int = 0

    @property
    def title(self) -> str:
        """What it is called in a list of rows."""
        hidden = f'(+{self.folded})' if self.folded else ''
        return ' '.join(filter(None, (self.name, self.what, hidden)))

    @property
    def last(self) -> Bar | None:
        """The bar that tells how it stands."""
        return max(
            (bar for bar in self.bars if not bar.aside),
            key=lambda bar: bar.start,
            default=None,
        )

    def lanes(self, now: float) -> list[list[Bar]]:
        """Part bars that overlap; within a lane none does."""
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
    """A stack's life, up to now.

    :ivar status: of the stack; '' where it is gone.
    :ivar notes: what could not be read.
    """

    stack: str
    status: str
    now: float
    rows: abc.Sequence[Row]
    notes: abc.Sequence[str] = ()

    @property
    def bars(self) -> list[Bar]:
        return [bar for row in self.rows for bar in row.bars]

    def counts(self) -> dict[State, int]:
        """Return how many bars there are in each state, but the stack's."""
        found = dict.fromkeys(State, 0)
        for row in self.rows:
            if row.kind is not Kind.STACK:
                for bar in row.bars:
                    found[bar.state] += not bar.aside
        return {state: count for state, count in found.items() if count}
