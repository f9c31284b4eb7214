# SPDX-License-Identifier: Apache-2.0
"""Charts to draw, in seconds after a noon."""

from heat_plugins.timeline import chart

NOON = 1_800_014_400.0  # 2027-01-15 12:00:00 UTC


def bar(label, start, length, state='complete', **more):
    """Return a bar; one that goes on has no length."""
    since = more.pop('working_after', None)
    return chart.Bar(
        label=label,
        state=chart.State(state),
        start=NOON + start,
        end=None if length is None else NOON + start + length,
        working_since=None if since is None else NOON + start + since,
        **more,
    )


def row(name, *bars, kind=chart.RowKind.DEPLOYMENT, **more):
    return chart.ChartRow(kind=kind, path=name, name=name, bars=bars, **more)


def stack(*rows, now=100, **more):
    return chart.Chart(
        **{'stack': 'shop', 'status': 'CREATE_COMPLETE', **more},
        now=NOON + now,
        rows=rows,
    )
