# SPDX-License-Identifier: Apache-2.0
"""The elements of a drawing and their style, for light and dark schemes."""

# Writes XML and parses none.
from xml.etree import ElementTree as etree  # nosec B405

from heat_plugins import foreign

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
.hatch { fill: url(#hatch); }
.stripes { fill: url(#stripes); }
.on { fill: #ffffff; }
text.waiting, text.starting { fill: #59636e; stroke: none; }
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
  text.waiting, text.starting { fill: #9198a1; }
  text.running { fill: #58a6ff; }
  text.complete { fill: #3fb950; }
  text.failed { fill: #ff7b72; }
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
    """Add a bar, or a part of it.

    :param css_class: see `STYLE`.
    """
    width = max(right - left, 1.0)
    given = {'class': f'bar {css_class}'}
    add(
        parent,
        'rect',
        **given,
        x=left,
        y=y,
        width=width,
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
