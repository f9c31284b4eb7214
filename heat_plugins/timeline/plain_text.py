# SPDX-License-Identifier: Apache-2.0
"""A chart for a terminal, with or without colours."""

from collections import abc
import dataclasses
import datetime

from rich import cells
from rich import text as rich_text

from heat_plugins import foreign
from heat_plugins.timeline import chart
from heat_plugins.timeline import scales

# The fewest cells of a useful chart.
_LEAST = 60

# The largest share of a line for names, and for states.
_NAMES = 0.35

_STYLES = {
    chart.State.WAITING: 'bright_black',
    chart.State.STARTING: 'bright_black',
    chart.State.RUNNING: 'blue',
    chart.State.COMPLETE: 'green',
    chart.State.FAILED: 'red',
    chart.State.TIMED_OUT: 'yellow',
    chart.State.CANCELLED: 'magenta',
    chart.State.SKIPPED: 'red',
}


@dataclasses.dataclass(frozen=True)
class Glyphs:
    """The characters of bars; each state differs without a colour, too.

    :ivar fills: by the states, in the order of `_STYLES`.
    """

    fills: str
    cut: str
    now: str
    ellipsis: str

    def of(self, state: chart.State) -> str:
        """Return the character of a state."""
        return self.fills[[*_STYLES].index(state)]


BLOCKS = Glyphs('░░▒█✗⧖─╌', '┊', '▸', '…')
ASCII = Glyphs('..~#x?-_', ':', '>', '~')


def draw(
    drawn: chart.Chart,
    width: int,
    glyphs: Glyphs = BLOCKS,
    *,
    local: bool = False,
) -> list[rich_text.Text]:
    """Return the lines of a chart.

    :param width: the most cells of a line; lines are longer where that is too
        narrow to show anything.
    :param local: whether times are those of this machine's zone.
    """
    width = max(width, _LEAST)
    head = rich_text.Text(f'{foreign.line(drawn.stack)} {drawn.status}')
    head.stylize('bold', 0, len(head.plain))
    zone = drawn.zone or (None if local else datetime.UTC)
    named = str(drawn.zone or ('local time' if local else 'UTC'))
    head.append(f'   times in {named}', 'bright_black')
    lines = [head]
    if not drawn.bars:
        lines.append(rich_text.Text('No events are known.'))
    else:
        lines += _TextDrawing(drawn, width, glyphs, zone).lines()
    return lines + [rich_text.Text(note, 'yellow') for note in drawn.noted()]


def fitted(text: str, width: int, ellipsis: str = '…') -> str:
    """Return a text in a number of cells, shortened in the middle.

    Long names often differ in their ends only.
    """
    text = foreign.line(text)
    if cells.cell_len(text) > width:
        kept = width - cells.cell_len(ellipsis)
        end = text
        while cells.cell_len(end) > kept // 2:
            end = end[1:]
        start = text
        while cells.cell_len(start) > kept - cells.cell_len(end):
            start = start[:-1]
        text = f'{start}{ellipsis}{end}'
    return text + ' ' * (width - cells.cell_len(text))


class _TextDrawing:
    def __init__(
        self,
        drawn: chart.Chart,
        width: int,
        glyphs: Glyphs,
        zone: datetime.tzinfo | None,
    ) -> None:
        self._chart = drawn
        self._zone = zone
        self._glyphs = glyphs
        ends = [row.last_state(drawn.now) for row in drawn.rows]
        widest = min(max(map(cells.cell_len, ends)), int(width * _NAMES))
        self._ends = [fitted(end, widest, glyphs.ellipsis) for end in ends]
        self._names = min(
            max(cells.cell_len(_named(row)) for row in drawn.rows),
            int(width * _NAMES),
        )
        self._plot = width - self._names - widest - 3
        self._scale = scales.Scale(
            (bar.start, bar.until(drawn.now)) for bar in drawn.bars
        )

    def lines(self) -> abc.Iterator[rich_text.Text]:
        """Yield the lines of the chart: axis, rows, legend."""
        axis = ''
        for label in self._scale.labels(self._plot, self._zone):
            axis = f'{axis.ljust(self._column(label.position))}{label.text}'
        yield rich_text.Text(
            f'{"":{self._names}} {axis}'.rstrip(), 'bright_black'
        )
        for row, end in zip(self._chart.rows, self._ends, strict=True):
            yield from self._row(row, end)
        legend = rich_text.Text(f'{"":{self._names}}')
        for state, words in self._chart.legend().items():
            legend.append(f' {self._glyphs.of(state)}', _STYLES[state])
            legend.append(f' {words}', 'bright_black')
        if self._scale.cuts:
            cut = f' {self._glyphs.cut} nothing happens'
            legend.append(cut, 'bright_black')
        yield legend
        for state, line in self._chart.troubles():
            yield rich_text.Text(line, _STYLES[state])

    def _row(
        self, row: chart.ChartRow, end: str
    ) -> abc.Iterator[rich_text.Text]:
        """Yield the lines of one row of the chart."""
        name = fitted(_named(row), self._names, self._glyphs.ellipsis)
        state = row.last.state if row.last else chart.State.COMPLETE
        for lane in row.lanes(self._chart.now):
            line = rich_text.Text(f'{name} ')
            if row.kind is chart.RowKind.STACK:
                line.stylize('bold')
            for glyph, style in self._lane(lane):
                line.append(glyph, style)
            line.append(f'  {end}', _STYLES[state])
            line.rstrip()
            yield line
            # Further lanes are of the same row.
            name, end = ' ' * self._names, ''

    def _lane(self, lane: list[chart.Bar]) -> list[tuple[str, str]]:
        """Return the cells of a line, each with its colour."""
        drawn_cells = [(' ', '')] * self._plot
        for cut in self._scale.cuts:
            middle = self._column((cut.left + cut.right) / 2)
            drawn_cells[middle] = (self._glyphs.cut, 'bright_black')
        for bar in lane:
            first = self._column(self._scale.position(bar.start))
            until = bar.until(self._chart.now)
            last = self._column(self._scale.position(until))
            since = (
                bar.start if bar.working_since is None else bar.working_since
            )
            working = self._column(self._scale.position(since))
            for column in range(first, last + 1):
                waits = column < working
                state = chart.State.WAITING if waits else bar.state
                drawn_cells[column] = self._glyphs.of(state), _STYLES[state]
            if bar.end is None:
                drawn_cells[last] = (self._glyphs.now, _STYLES[bar.state])
        return drawn_cells

    def _column(self, position: float) -> int:
        """Return the column of a position from 0 to 1."""
        return min(int(position * self._plot), self._plot - 1)


def _named(row: chart.ChartRow) -> str:
    """Return the indented name of a row."""
    return '  ' * row.depth + foreign.line(row.title)
