# SPDX-License-Identifier: Apache-2.0
"""A chart as a drawing: a self-contained SVG, or a page with it.

It follows the reader's light or dark scheme. Colour and pattern show a state,
and so do words, for tooltips and screen readers.
"""

import datetime
import html
import itertools
import math
import textwrap
from xml.etree import ElementTree as etree  # nosec B405

from rich import cells

from heat_plugins import foreign
from heat_plugins.runs import summary
from heat_plugins.timeline import chart
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import scales

# Writes XML and parses none.


# What distinguishes the bars of some states without a colour.
_PATTERNS = {'failed': 'hatch', 'timed-out': 'hatch', 'running': 'stripes'}

#: The height of a bar.
BAR = 16

#: The style of the drawing, by the classes of its elements.
STYLE = """
svg { background: #ffffff; font: 12px system-ui, sans-serif;
  max-width: 100%; min-width: 640px; height: auto; }
text { fill: #1f2328; }
.title { font-size: 17px; font-weight: 600; }
.quiet { fill: #59636e; }
.stack { font-weight: 600; }
.grid { stroke: #d1d9e0; stroke-width: 1; }
.band { fill: #f1f4f7; }
.cut { fill: #eaeef2; }
.now { stroke: #0969da; stroke-width: 1; stroke-dasharray: 2 3; }
.bar { stroke-width: 1; }
.waiting, .starting { fill: #e4e8ec; stroke: #59636e; stroke-dasharray: 3 2; }
.running { fill: #0969da; stroke: #0969da; }
.complete { fill: #1a7f37; stroke: #1a7f37; }
.failed { fill: #cf222e; stroke: #cf222e; }
.timed-out { fill: #9a6700; stroke: #9a6700; }
.cancelled { fill: #6e4db8; stroke: #6e4db8; }
.skipped { fill: #ffffff; stroke: #cf222e; stroke-dasharray: 3 2; }
.hatch { fill: url(#hatch); }
.stripes { fill: url(#stripes); }
.on { fill: #ffffff; }
text.waiting, text.starting { fill: #59636e; stroke: none; }
text.skipped { fill: #cf222e; stroke: none; }
text.running, text.complete, text.failed, text.timed-out, text.cancelled {
  stroke: none; }
.on.waiting, .on.starting { fill: #1f2328; }
.on.running, .on.complete, .on.failed, .on.timed-out, .on.cancelled {
  fill: #ffffff; }
text.on.failed { stroke: #cf222e; stroke-width: 4; paint-order: stroke; }
text.on.timed-out { stroke: #9a6700; stroke-width: 4; paint-order: stroke; }
text.on.running { stroke: #0969da; stroke-width: 4; paint-order: stroke; }
@media (prefers-color-scheme: dark) {
  svg { background: #0d1117; }
  text { fill: #e6edf3; }
  .quiet { fill: #9198a1; }
  .grid { stroke: #2f3742; }
  .band { fill: #151b23; }
  .cut { fill: #212830; }
  .now { stroke: #58a6ff; }
  .waiting, .starting { fill: #2a313c; stroke: #9198a1; }
  .complete { fill: #238636; stroke: #238636; }
  .failed { fill: #da3633; stroke: #da3633; }
  .skipped { fill: #0d1117; stroke: #ff7b72; }
  text.waiting, text.starting { fill: #9198a1; }
  text.running { fill: #58a6ff; }
  text.complete { fill: #3fb950; }
  text.failed, text.skipped { fill: #ff7b72; }
  text.timed-out { fill: #d29922; }
  text.cancelled { fill: #b083f0; }
  .on.waiting, .on.starting { fill: #e6edf3; }
  .on.running, .on.complete, .on.failed, .on.timed-out, .on.cancelled {
    fill: #ffffff; }
  text.on.failed { stroke: #da3633; }
}
"""

#: A page of HTML around the drawing; for `str.format`.
PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
body {{ margin: 0; background: #ffffff; }}
svg {{ display: block; margin: auto; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1117; }} }}
</style>
</head>
<body>
{svg}
</body>
</html>
"""


def add(parent: etree.Element, name: str, **given: object) -> etree.Element:
    """Add an element with some attributes, and return it."""
    shown = {
        key: f'{value:.1f}' if isinstance(value, float) else str(value)
        for key, value in given.items()
    }
    return etree.SubElement(parent, name, shown)


def add_text(
    parent: etree.Element, x: float, y: float, text: str, css_class: str = ''
) -> None:
    """Add a line of text.

    :param css_class: see `STYLE`.
    """
    given = {'class': css_class} if css_class else {}
    add(parent, 'text', x=x, y=y, **given).text = foreign.line(text)


def add_box(
    parent: etree.Element,
    left: float,
    right: float,
    y: float,
    css_class: str,
    height: float = BAR,
) -> None:
    """Add a bar, or a part of it, with the pattern of its state.

    :param css_class: see `STYLE`.
    """
    pattern = _PATTERNS.get(css_class)
    for name in filter(None, (css_class, pattern)):
        add(
            parent,
            'rect',
            **{'class': f'bar {name}'},
            x=left,
            y=y,
            width=max(right - left, 1.0),
            height=height,
            rx=2,
        )


def add_patterns(root: etree.Element) -> None:
    """Define the patterns of failed and of running bars."""
    parts = add(root, 'defs')
    # The colour of the bar shines through.
    for name, path in (
        ('hatch', 'M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6'),
        ('stripes', 'M4 0 L4 8'),
    ):
        pattern = add(
            parts,
            'pattern',
            id=name,
            width=8,
            height=8,
            patternUnits='userSpaceOnUse',
        )
        add(
            pattern,
            'path',
            d=path,
            stroke='#ffffff',
            **{'stroke-opacity': 0.35, 'stroke-width': 2},
        )


_WIDTH = 1200
_MARGIN = 16

# The widths of the columns with names, and with how rows stand: as wide as
# the longest text needs, within these.
_NAMES = 120, 440
_ENDS = 120, 260

_LANE = 24
_HEAD = 58
_AXIS = 22

# The least visible width, at which a pointer can aim.
_LEAST_BAR = 3.0

# Wider than most characters of a sans-serif 12 px high are.
_CHARACTER = 7.1
_INDENT = 14

# The characters of a line below the chart.
_FOOT = int((_WIDTH - 2 * _MARGIN) / _CHARACTER)


def draw(drawn: chart.Chart) -> str:
    """Return an SVG document."""
    return etree.tostring(_SVGDrawing(drawn).root, encoding='unicode')


def page(drawn: chart.Chart) -> str:
    """Return an HTML document with the drawing in it."""
    drawing = _SVGDrawing(drawn)
    return PAGE.format(
        title=html.escape(drawing.title, quote=False),
        svg=etree.tostring(drawing.root, encoding='unicode'),
    )


class _SVGDrawing:
    def __init__(self, drawn: chart.Chart) -> None:
        self._chart = drawn
        self.title = foreign.line(
            f'Timeline of stack {drawn.stack} {drawn.status}'.rstrip()
        )
        self._scale = scales.Scale(
            (bar.start, bar.until(drawn.now)) for bar in drawn.bars
        )
        # The most characters that a name and an end may have.
        self._name_room, names = _column(
            [
                (_INDENT * row.depth + 6, foreign.line(row.title))
                for row in drawn.rows
            ],
            _NAMES,
        )
        self._end_room, self._ends = _column(
            [(0, row.standing(drawn.now)) for row in drawn.rows], _ENDS
        )
        self._left = _MARGIN + names
        self._plot = _WIDTH - self._left - self._ends - 2 * _MARGIN
        lanes = [row.lanes(drawn.now) for row in drawn.rows]
        self._bottom = _HEAD + _AXIS + _LANE * sum(map(len, lanes))
        foot = [
            *((state.value, line) for state, line in drawn.troubles()),
            *(('timed-out', line) for line in drawn.noted()),
        ]
        self._foot = [
            (style, part)
            for style, line in foot
            for part in textwrap.wrap(line, _FOOT)
        ]
        height = self._bottom + 40 + 18 * len(self._foot)
        self.root = etree.Element(
            'svg',
            {
                'xmlns': 'http://www.w3.org/2000/svg',
                'width': str(_WIDTH),
                'height': str(height),
                'viewBox': f'0 0 {_WIDTH} {height}',
                'role': 'list',
                'aria-labelledby': 'title description',
            },
        )
        add(self.root, 'title', id='title').text = self.title
        description = _summary(drawn)
        add(self.root, 'desc', id='description').text = description
        add(self.root, 'style').text = STYLE
        add_patterns(self.root)
        add_text(self.root, _MARGIN, 26, self.title, 'title')
        add_text(self.root, _MARGIN, 46, description, 'quiet')
        tops = list(
            itertools.accumulate(
                (_LANE * len(parts) for parts in lanes), initial=_HEAD + _AXIS
            )
        )
        for top, bottom in list(itertools.pairwise(tops))[::2]:
            add(
                self.root,
                'rect',
                **{'class': 'band'},
                x=_MARGIN,
                y=top,
                width=_WIDTH - 2 * _MARGIN,
                height=bottom - top,
            )
        if drawn.bars:
            self._grid()
        for row, parts, top in zip(drawn.rows, lanes, tops, strict=False):
            self._row(row, parts, top)
        if drawn.bars:
            if any(bar.until(drawn.now) >= drawn.now for bar in drawn.bars):
                upright = self._upright(self._at(drawn.now), 'now')
                add(upright, 'title').text = f'Drawn at {_clock(drawn.now)}'
            self._legend()
        for number, (style, line) in enumerate(self._foot):
            y = self._bottom + 44 + 18 * number
            add_text(self.root, _MARGIN, y, line, style)

    def _grid(self) -> None:
        top = _HEAD + _AXIS
        for cut in self._scale.cuts:
            left = self._x(cut.left)
            group = add(self.root, 'g')
            quiet = summary.spell(round(cut.seconds))
            add(group, 'title').text = f'Nothing happens for {quiet}'
            add(
                group,
                'rect',
                **{'class': 'cut'},
                x=left,
                y=top - 2,
                width=self._x(cut.right) - left,
                height=self._bottom - top + 4,
            )
        characters = int(self._plot / _CHARACTER)
        zone = self._chart.zone or datetime.UTC
        for label in self._scale.labels(characters, zone):
            x = self._x(label.position)
            self._upright(x, 'grid')
            add_text(self.root, x, top - 8, label.text, 'quiet')

    def _upright(self, x: float, kind: str) -> etree.Element:
        """Draw a line across all rows."""
        return add(
            self.root,
            'line',
            **{'class': kind},
            x1=x,
            x2=x,
            y1=_HEAD + _AXIS - 4,
            y2=self._bottom,
        )

    def _row(
        self,
        row: chart.ChartRow,
        lanes: list[list[chart.Bar]],
        top: float,
    ) -> None:
        now = self._chart.now
        description = '; '.join(_described(bar, now) for bar in row.bars)
        group = add(
            self.root,
            'g',
            role='listitem',
            **{
                'aria-label': foreign.line(
                    f'{row.kind.value} {row.title}: '
                    f'{description or "no times known"}'
                )
            },
        )
        label = add(group, 'g')
        add(label, 'title').text = foreign.line(
            f'{row.kind.value} {row.path or row.name} {row.what}'.strip()
        )
        indent = _INDENT * row.depth
        room = self._name_room - int(indent / _CHARACTER)
        middle = top + _LANE / 2 + 4
        add_text(
            label,
            _MARGIN + 6 + indent,
            middle,
            plain_text.fitted(row.title, room).rstrip(),
            'stack' if row.kind is chart.RowKind.STACK else '',
        )
        for number, lane in enumerate(lanes):
            y = top + _LANE * number
            ends = [self._at(bar.start) for bar in lane[1:]]
            ends.append(self._left + self._plot)
            for bar, free in zip(lane, ends, strict=False):
                self._bar(group, bar, y, free)
        if row.last is not None:
            add_text(
                group,
                _WIDTH - _MARGIN - self._ends,
                middle,
                plain_text.fitted(row.standing(now), self._end_room).rstrip(),
                row.last.state.value,
            )

    def _bar(
        self, parent: etree.Element, bar: chart.Bar, top: float, free: float
    ) -> None:
        """Draw a bar with its label: in it, or else to its right.

        :param free: where the room to its right ends.
        """
        now = self._chart.now
        left = self._at(bar.start)
        right = max(self._at(bar.until(now)), left + _LEAST_BAR)
        since = bar.start if bar.working_since is None else bar.working_since
        working = min(max(self._at(since), left), right)
        group = add(parent, 'g')
        add(group, 'title').text = foreign.line(_described(bar, now))
        y = top + (_LANE - BAR) / 2
        # The wait ends where the work begins.
        if working > left:
            add_box(group, left, working, y, 'waiting')
        add_box(group, working, right, y, bar.state.value)
        label = foreign.line(f'{bar.label} {bar.duration(now)}')
        width = cells.cell_len(label) * _CHARACTER + 10
        if width < right - working:
            state = f'on {bar.state.value}'
            add_text(group, working + 6, y + 12, label, state)
        elif width < free - right:
            add_text(group, right + 5, y + 12, label, bar.state.value)

    def _x(self, position: float) -> float:
        return self._left + position * self._plot

    def _at(self, time: float) -> float:
        return self._x(self._scale.position(time))

    def _legend(self) -> None:
        group = add(self.root, 'g', **{'aria-hidden': 'true'})
        x = float(self._left)
        y = self._bottom + 14
        names = [
            (state.value, words)
            for state, words in self._chart.legend().items()
        ]
        if self._scale.cuts:
            names.append(('cut', 'nothing happens'))
        for css_class, name in names:
            add_box(group, x, x + 14, y, css_class, height=12)
            add_text(group, x + 20, y + 10, name, 'quiet')
            x += 36 + _CHARACTER * len(name)


def _column(
    texts: list[tuple[int, str]], bounds: tuple[int, int]
) -> tuple[int, int]:
    """Return the characters and the width of a column.

    :param texts: what stands in it, each after its indent.
    :param bounds: the least and the most width.
    """
    widest = max(
        (
            indent + cells.cell_len(text) * _CHARACTER + _MARGIN
            for indent, text in texts
        ),
        default=0,
    )
    width = min(max(math.ceil(widest), bounds[0]), bounds[1])
    return int((width - _MARGIN) / _CHARACTER), width


def _clock(time: float) -> str:
    when = datetime.datetime.fromtimestamp(time, datetime.UTC)
    return f'{when:%Y-%m-%d %H:%M:%S} UTC'


def _described(bar: chart.Bar, now: float) -> str:
    """Describe a bar, for its tooltip and for screen readers."""
    verb = 'for' if bar.end is None or bar.said else 'after'
    description = (
        f'{bar.label} {bar.word} {verb} {bar.duration(now)}, '
        f'begun {_clock(bar.start)}'
    )
    if bar.working_since is not None:
        waited = summary.spell(round(bar.working_since - bar.start))
        description += f', reported by the server after {waited}'
    explanation = bar.explanation(now)
    return f'{description}. {explanation}' if explanation else description


def _summary(drawn: chart.Chart) -> str:
    words = drawn.legend()
    counts = ', '.join(
        f'{count} {words[state]}' for state, count in drawn.counts().items()
    )
    if not drawn.bars:
        return 'No events are known.'
    first = min(bar.start for bar in drawn.bars)
    last = max(bar.until(drawn.now) for bar in drawn.bars)
    span = f'{_clock(first)} to {_clock(last)}'
    return f'{span}: {counts or "only the stack itself"}'
