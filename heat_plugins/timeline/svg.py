# SPDX-License-Identifier: Apache-2.0
"""A chart as a drawing: a self-contained SVG, or a page with it.

It follows the reader's light or dark scheme. Colour and pattern show a state,
and so do words, for tooltips and screen readers.
"""

from collections import abc
import datetime
import html
import itertools
import math
import textwrap

from rich import cells

from heat_plugins import foreign
from heat_plugins.runs import summary
from heat_plugins.timeline import chart
from heat_plugins.timeline import plain_text
from heat_plugins.timeline import scales

# The patterns that tell the bars of some states apart without a colour.
_OF_STATES = {'failed': 'hatch', 'timed-out': 'hatch', 'running': 'stripes'}

# The style of the drawing, by the classes of its elements.
_STYLE = """
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

# A page of HTML around the drawing; for `str.format`.
_PAGE = """\
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


# The drawing; its title and description are for screen readers, too.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" \
viewBox="0 0 {width} {height}" role="list" \
aria-labelledby="title description">\
<title id="title">{title}</title><desc id="description">{description}</desc>\
<style>{style}</style><defs>{patterns}</defs>{parts}</svg>"""

# The colour of a bar shines through its pattern.
_PATTERN = (
    '<pattern id="{}" width="8" height="8" patternUnits="userSpaceOnUse">'
    '<path d="{}" stroke="#ffffff" stroke-opacity="0.35" stroke-width="2"/>'
    '</pattern>'
)
_PATTERNS = _PATTERN.format(
    'hatch', 'M-2 2 L2 -2 M0 8 L8 0 M6 10 L10 6'
) + _PATTERN.format('stripes', 'M4 0 L4 8')

_WIDTH = 1200
_MARGIN = 16

# The least and the most width of the columns with names, and with states: as
# wide as the longest text needs.
_NAMES = 120, 440
_ENDS = 120, 260

_LANE = 24
_BAR = 16
_HEAD = 58
_AXIS = 22

# The width of a bar that takes no time.
_LEAST_BAR = 3

# Pixels of a character, as wide as most of one that is 12 px high are.
_CHARACTER = 7.1
_INDENT = 14

# The characters of a line below the chart.
_FOOT = int((_WIDTH - 2 * _MARGIN) / _CHARACTER)


def draw(drawn: chart.Chart) -> str:
    """Return an SVG document."""
    return _Drawing(drawn).svg()


def page(drawn: chart.Chart) -> str:
    """Return an HTML document with the drawing in it."""
    drawing = _Drawing(drawn)
    return _PAGE.format(title=safe(drawing.title), svg=drawing.svg())


class _Drawing:
    """The layout of a chart, and its parts as SVG."""

    def __init__(self, drawn: chart.Chart) -> None:
        self._chart = drawn
        self.title = f'Timeline of stack {drawn.stack} {drawn.status}'.rstrip()
        self._scale = scales.Scale(
            (bar.start, bar.until(drawn.now)) for bar in drawn.bars
        )
        # The most characters that a name and a state may have.
        self._name_room, names = _column(
            [(_INDENT * row.depth + 6, row.title) for row in drawn.rows],
            _NAMES,
        )
        self._end_room, self._ends = _column(
            [(0, row.last_state(drawn.now)) for row in drawn.rows], _ENDS
        )
        self._left = _MARGIN + names
        self._plot = _WIDTH - self._left - self._ends - 2 * _MARGIN
        self._lanes = [row.lanes(drawn.now) for row in drawn.rows]
        heights = (_LANE * len(lanes) for lanes in self._lanes)
        self._tops = [*itertools.accumulate(heights, initial=_HEAD + _AXIS)]
        self._bottom = self._tops[-1]

    def svg(self) -> str:
        """Return the document: head, rows, legend, and reasons below."""
        drawn = self._chart
        description = _summary(drawn)
        below = (
            *((state.value, line) for state, line in drawn.troubles()),
            *(('timed-out', line) for line in drawn.noted()),
        )
        foot = [
            (style, part)
            for style, line in below
            for part in textwrap.wrap(line, _FOOT)
        ]
        parts = [
            _text(_MARGIN, 26, self.title, 'title'),
            _text(_MARGIN, 46, description, 'quiet'),
        ]
        for top, bottom in [*itertools.pairwise(self._tops)][::2]:
            width = _WIDTH - 2 * _MARGIN
            parts.append(_rect('band', _MARGIN, top, width, bottom - top))
        if drawn.bars:
            parts += self._grid()
        parts += map(self._row, drawn.rows, self._lanes, self._tops)
        if drawn.bars:
            # The colours of the states with their names.
            x, y = float(self._left), self._bottom + 14
            names = {
                state.value: name for state, name in drawn.legend().items()
            }
            if self._scale.cuts:
                names['cut'] = 'nothing happens'
            for css_class, name in names.items():
                parts.append(_box(css_class, x, x + 14, y, height=12))
                parts.append(_text(x + 20, y + 10, name, 'quiet'))
                x += 36 + _CHARACTER * len(name)
        for number, (style, line) in enumerate(foot):
            below_chart = self._bottom + 44 + 18 * number
            parts.append(_text(_MARGIN, below_chart, line, style))
        return _SVG.format(
            width=_WIDTH,
            height=self._bottom + 40 + 18 * len(foot),
            title=safe(self.title),
            description=safe(description),
            style=_STYLE,
            patterns=_PATTERNS,
            parts=''.join(parts),
        )

    def _grid(self) -> abc.Iterator[str]:
        """Yield idle times that are cut short, times, and the present."""
        top, now = _HEAD + _AXIS, self._chart.now
        for cut in self._scale.cuts:
            left, right = self._x(cut.left), self._x(cut.right)
            quiet = summary.spell(round(cut.seconds))
            height = self._bottom - top + 4
            yield _group(
                f'Nothing happens for {quiet}',
                _rect('cut', left, top - 2, right - left, height),
            )
        upright = (
            f'<line class="{{}}" x1="{{x:.1f}}" x2="{{x:.1f}}" y1="{top - 4}" '
            f'y2="{self._bottom}"/>'
        )
        zone = self._chart.zone or datetime.UTC
        for label in self._scale.labels(int(self._plot / _CHARACTER), zone):
            x = self._x(label.position)
            yield upright.format('grid', x=x)
            yield _text(x, top - 8, label.text, 'quiet')
        if any(bar.until(now) >= now for bar in self._chart.bars):
            line = upright.format('now', x=self._at(now))
            yield _group(f'Drawn at {_clock(now)}', line)

    def _row(
        self, row: chart.ChartRow, lanes: list[list[chart.Bar]], top: float
    ) -> str:
        """Return a row: its name, bars and state."""
        now, middle = self._chart.now, top + _LANE / 2 + 4
        indent = _INDENT * row.depth
        room = self._name_room - int(indent / _CHARACTER)
        parts = [
            _group(
                f'{row.kind.value} {row.path or row.name} {row.what}'.strip(),
                _text(
                    _MARGIN + 6 + indent,
                    middle,
                    plain_text.fitted(row.title, room).rstrip(),
                    'stack' if row.kind is chart.RowKind.STACK else '',
                ),
            )
        ]
        for number, lane in enumerate(lanes):
            ends = [self._at(bar.start) for bar in lane[1:]]
            ends.append(self._left + self._plot)
            for bar, end in zip(lane, ends, strict=False):
                parts.append(self._bar(bar, top + _LANE * number, end))
        if row.last is not None:
            state = plain_text.fitted(row.last_state(now), self._end_room)
            x = _WIDTH - _MARGIN - self._ends
            parts.append(
                _text(x, middle, state.rstrip(), row.last.state.value)
            )
        described = '; '.join(_described(bar, now) for bar in row.bars)
        label = safe(
            f'{row.kind.value} {row.title}: {described or "no times known"}'
        )
        return f'<g role="listitem" aria-label="{label}">{"".join(parts)}</g>'

    def _bar(self, bar: chart.Bar, top: float, free: float) -> str:
        """Return a bar with its label: in it, or else to its right.

        :param free: the end of the room to its right.
        """
        now, state = self._chart.now, bar.state.value
        left = self._at(bar.start)
        right = max(self._at(bar.until(now)), left + _LEAST_BAR)
        since = bar.start if bar.working_since is None else bar.working_since
        working = min(max(self._at(since), left), right)
        y = top + (_LANE - _BAR) / 2
        # The wait ends where the work begins.
        wait = _box('waiting', left, working, y) if working > left else ''
        label = foreign.line(f'{bar.label} {bar.duration(now)}')
        width = cells.cell_len(label) * _CHARACTER + 10
        text = ''
        if width < right - working:
            text = _text(working + 6, y + 12, label, f'on {state}')
        elif width < free - right:
            text = _text(right + 5, y + 12, label, state)
        work = _box(state, working, right, y)
        return _group(_described(bar, now), wait + work + text)

    def _x(self, position: float) -> float:
        """Return the x of a position from 0 to 1."""
        return self._left + position * self._plot

    def _at(self, time: float) -> float:
        """Return the x of a time."""
        return self._x(self._scale.position(time))


def safe(text: str) -> str:
    """Return a text as XML and HTML take it."""
    return html.escape(foreign.line(text))


def _group(title: str, content: str) -> str:
    """Return parts with a tooltip."""
    return f'<g><title>{safe(title)}</title>{content}</g>'


def _text(x: float, y: float, text: str, css_class: str) -> str:
    """Return an SVG element with text."""
    return (
        f'<text class="{css_class}" x="{x:.1f}" y="{y:.1f}">{safe(text)}'
        '</text>'
    )


def _rect(
    css_class: str, x: float, y: float, width: float, height: float
) -> str:
    """Return an SVG element that is a bar."""
    return (
        f'<rect class="{css_class}" x="{x:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{height:g}" rx="2"/>'
    )


def _box(
    state: str, left: float, right: float, y: float, height: float = _BAR
) -> str:
    """Return a bar, or a part of it, with the pattern of its state."""
    return ''.join(
        _rect(f'bar {name}', left, y, max(right - left, 1.0), height)
        for name in (state, _OF_STATES.get(state))
        if name
    )


def _column(
    texts: list[tuple[int, str]], bounds: tuple[int, int]
) -> tuple[int, int]:
    """Return the characters and the width of a column.

    :param texts: its texts, each after its indent.
    :param bounds: the least and the most width.
    """
    widths = [
        indent + cells.cell_len(foreign.line(text)) * _CHARACTER + _MARGIN
        for indent, text in texts
    ]
    widest = math.ceil(max(widths, default=0))
    width = min(max(widest, bounds[0]), bounds[1])
    return int((width - _MARGIN) / _CHARACTER), width


def _clock(time: float) -> str:
    """Return a time in UTC for people."""
    when = datetime.datetime.fromtimestamp(time, datetime.UTC)
    return f'{when:%Y-%m-%d %H:%M:%S} UTC'


def _described(bar: chart.Bar, now: float) -> str:
    """Describe a bar, for its tooltip and for screen readers."""
    verb = 'for' if bar.end is None or bar.status else 'after'
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
    """Describe a chart: its time, and the number of bars in each state."""
    if not drawn.bars:
        return 'No events are known.'
    words = drawn.legend()
    counts = ', '.join(
        f'{count} {words[state]}' for state, count in drawn.counts().items()
    )
    first = min(bar.start for bar in drawn.bars)
    last = max(bar.until(drawn.now) for bar in drawn.bars)
    span = f'{_clock(first)} to {_clock(last)}'
    return f'{span}: {counts or "only the stack itself"}'
