# SPDX-License-Identifier: Apache-2.0
"""How a drawn chart looks, on light and on dark ground."""

#: For the drawing.
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
