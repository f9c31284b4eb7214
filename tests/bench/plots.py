# SPDX-License-Identifier: Apache-2.0
"""Plots of the figures, as SVG."""

from collections.abc import Sequence
import pathlib
import statistics

import matplotlib

matplotlib.use('svg')

from matplotlib import pyplot

from tests.bench import figures
from tests.bench import lab
from tests.bench import pacing
from tests.bench import rounds

matplotlib.rcParams.update(
    {
        'svg.hashsalt': 'heat-plugins',
        'svg.fonttype': 'none',
        'axes.spines.top': False,
        'axes.spines.right': False,
        'font.size': 9,
    }
)

_STYLES = {'ours': 'o-', 'heats': 's--'}


def by_count(
    found: Sequence[rounds.Round],
    shown: Sequence[figures.Figure],
    file: pathlib.Path,
) -> None:
    """Draw how figures grow with the number of deployments in a stack."""
    columns = 2
    rows = -(-len(shown) // columns)
    drawing, axes = pyplot.subplots(
        rows, columns, figsize=(8, 2.6 * rows), layout='constrained'
    )
    for axis, figure in zip(axes.flat, shown, strict=False):
        for side in lab.SIDES.values():
            points = _points(found, figure, side.name)
            if points:
                axis.plot(
                    *zip(*points, strict=True),
                    _STYLES[side.name],
                    markersize=4,
                    label=side.title,
                )
        axis.set_title(figure.title)
        axis.set_xlabel('deployments')
        if figure in figures.RATES:
            # Down to 0, where ours often are.
            axis.set_yscale('symlog', linthresh=0.1)
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
    for axis in axes.flat[len(shown) :]:
        axis.remove()
    axes.flat[0].legend(frameon=False)
    save(drawing, file)


def paces(
    measured: Sequence[pacing.Measured],
    computed: Sequence[pacing.Computed],
    file: pathlib.Path,
) -> None:
    """Draw latency against requests, for intervals and for their limits."""
    drawing, (near, far) = pyplot.subplots(
        1, 2, figsize=(8, 3.4), layout='constrained'
    )
    rates = [one.listings_per_second for one in measured]
    for label, value in (('median', statistics.median), ('worst', max)):
        near.plot(
            rates,
            [value(one.latencies) for one in measured],
            'o-' if label == 'median' else 'v:',
            markersize=4,
            label=label,
        )
    for one, rate in zip(measured, rates, strict=True):
        near.annotate(
            f'{one.interval:g} s',
            (rate, statistics.median(one.latencies)),
            textcoords='offset points',
            xytext=(4, 4),
        )
    near.set_title('Interval, measured')
    near.set_xlabel('listings/s of a root stack')
    near.set_ylabel('PUT to COMPLETE, s')
    near.set_ylim(bottom=0)
    near.legend(frameon=False)
    for limit in sorted({one.limit for one in computed}):
        of_limit = [one for one in computed if one.limit == limit]
        far.plot(
            [one.listings for one in of_limit],
            [one.latency for one in of_limit],
            'o-',
            markersize=3,
            label=f'{limit:g} s',
        )
    far.set_title('Limit to which it grows, computed')
    far.set_xlabel('listings until the server answers')
    far.set_xscale('log')
    far.set_ylim(bottom=0)
    far.legend(frameon=False)
    save(drawing, file)


def save(drawing: pyplot.Figure, file: pathlib.Path) -> None:
    # Without a date the same figures make the same file.
    drawing.savefig(file, format='svg', metadata={'Date': None})
    pyplot.close(drawing)


def _points(
    found: Sequence[rounds.Round], figure: figures.Figure, side: str
) -> list[tuple[int, float]]:
    points = []
    for n in sorted({one.n for one in found if one.kind == 'stack of'}):
        of_side = figures.chosen(found, f'stack of {n}', side)
        value = figures.over(figure, of_side)
        if value is not None:
            points.append((n, value.middle))
    return points
