# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of the pages from their sources, with Graphviz.

``render.py [--check]`` writes ``doc/source/pictures/NAME.svg`` for each
``NAME.dot`` here. A picture names the digest of its source, so that
``--check`` can tell without Graphviz whether it is up to date.
"""

import hashlib
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
PICTURES = HERE.parent / 'source' / 'pictures'

_DEFAULTS = (
    '-Gbgcolor=transparent',
    '-Gfontname=sans-serif',
    '-Gfontsize=12',
    '-Gnodesep=0.35',
    '-Granksep=0.6',
    '-Nfontname=sans-serif',
    '-Nfontsize=12',
    '-Nshape=box',
    '-Nstyle=rounded',
    '-Nmargin=0.15,0.08',
    '-Efontname=sans-serif',
    '-Efontsize=11',
    '-Earrowsize=0.7',
)

# Colours belong to classes, as those of a timeline do: a reader's dark scheme
# changes both.
_STYLE = """
svg { background: #ffffff; }
text { fill: #1f2328; stroke: none; }
.node path, .node polygon, .node ellipse { stroke: #59636e; fill: #ffffff; }
.cluster polygon, .cluster path { stroke: #d1d9e0; fill: #f6f8fa; }
.edge path { stroke: #59636e; }
.edge polygon { stroke: #59636e; fill: #59636e; }
.ours path, .ours polygon { stroke: #0969da; stroke-width: 2; }
.good path, .good polygon { stroke: #1a7f37; stroke-width: 2; }
.bad path, .bad polygon { stroke: #cf222e; stroke-width: 2; }
.quiet path, .quiet polygon { stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; }
text { fill: #e6edf3; }
.node path, .node polygon, .node ellipse { stroke: #9198a1; fill: #151b23; }
.cluster polygon, .cluster path { stroke: #3d444d; fill: #0d1117; }
.edge path { stroke: #9198a1; }
.edge polygon { stroke: #9198a1; fill: #9198a1; }
.ours path, .ours polygon { stroke: #4493f8; }
.good path, .good polygon { stroke: #3fb950; }
.bad path, .bad polygon { stroke: #f85149; }
}
"""


def digest(source: pathlib.Path) -> str:
    """Return what a picture names of its source and of how it is drawn."""
    text = source.read_bytes() + pathlib.Path(__file__).read_bytes()
    return f'<!-- source: sha256 {hashlib.sha256(text).hexdigest()} -->'


def draw(source: pathlib.Path) -> str:
    """Return the picture of a source, as SVG.

    :raises OSError: Graphviz is not installed.
    :raises subprocess.CalledProcessError: the source is not valid.
    """
    svg = subprocess.run(
        ['dot', '-Tsvg', *_DEFAULTS, str(source)],  # noqa: S607 (from PATH)
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    svg = svg[svg.index('<svg') :]
    # The colours that Graphviz writes would win over those of the classes.
    svg = re.sub(r' (?:fill|stroke)="(?!none)[^"]*"', '', svg)
    svg = re.sub(r'<!--.*?-->\n?', '', svg)
    first = svg.index('>') + 1
    return (
        f'{svg[:first]}\n{digest(source)}\n<style>{_STYLE}</style>'
        f'{svg[first:]}'
    )


def main(*, check: bool) -> int:
    """Draw the pictures, or name the stale ones; return the exit code."""
    stale = []
    for source in sorted(HERE.glob('*.dot')):
        picture = PICTURES / f'{source.stem}.svg'
        if picture.exists() and digest(source) in picture.read_text():
            continue
        if check:
            stale.append(str(picture))
        else:
            picture.write_text(draw(source))
            print(picture)
    for each in stale:
        print(f'{each} is out of date; run "make pictures"', file=sys.stderr)
    return int(bool(stale))


if __name__ == '__main__':
    sys.exit(main(check='--check' in sys.argv[1:]))
