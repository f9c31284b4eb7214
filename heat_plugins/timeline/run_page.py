# SPDX-License-Identifier: Apache-2.0
"""A run as a self-contained page of HTML.

It refreshes itself until the run has ended. The address holds the filter
and the unfolded rows, and so outlives a refresh. The page shows what servers
sent as plain text, and no inputs.
"""

import base64
from collections import abc
import hashlib
import html
import json
from typing import TYPE_CHECKING

from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import wording
from heat_plugins.runs import run_records
from heat_plugins.runs import summary
from heat_plugins.timeline import chart
from heat_plugins.timeline import svg

if TYPE_CHECKING:
    from heat_plugins.clients import runs

#: Seconds between two refreshes.
REFRESH = 5

# Characters of an output on the page; the end of it.
_OUTPUT = 4096

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'sha256-{script_hash}'">
{refresh}<title>{title}</title>
<style>{style}</style>
</head>
<body>
<h1>{title}</h1>
<p class="about">{about}</p>
<div class="track" role="img" aria-label="{told}">{track}</div>
<p>{told}</p>
{reason}
{failures}
<form role="search">
<label>Filter <input id="filter" type="search" autocomplete="off"
placeholder="server, stack or reason"></label>
<label>State <select id="state"><option value="">all</option>{states}</select>
</label>
<span id="count" role="status"></span>
</form>
<table>
<thead><tr><th>Stack</th><th>Server</th><th>Resource</th><th>State</th>
<th>Duration</th><th>Result</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
<details id="chart"><summary>Bar chart</summary>
{chart}
</details>
<footer>Drawn at {drawn}.</footer>
<script>{script}</script>
</body>
</html>
"""

# What stands in the track and in the table, in this order: what went wrong,
# and what is in progress, before the rest.
_ORDER = (
    'failed',
    'timed-out',
    'cancelled',
    'skipped',
    'running',
    'waiting',
    'starting',
    'pending',
    'not-started',
    'complete',
)

_TRACK = ('complete', *_ORDER[:-1])

# Colours of states that are too pale to be read.
_INKS = dict.fromkeys(
    ('skipped', 'waiting', 'starting', 'pending', 'not-started'), 'quiet'
)

_STYLE = (
    """
:root { --ink: #1f2328; --quiet: #59636e; --ground: #fff; --line: #d1d9e0;
  --pending: #d1d9e0; --not-started: #d1d9e0; --skipped: #a9b4c0;
  --waiting: #a9b4c0;
  --starting: #a9b4c0; --paused: #9a6700; --stopping: #9a6700;
  --waiting-for-approval: #9a6700;
  --running: #0969da;
  --complete: #1a7f37; --failed: #cf222e; --timed-out: #9a6700;
  --cancelled: #6e4db8; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3;
  --quiet: #9198a1; --ground: #0d1117; --line: #2f3742; --pending: #2a313c;
  --not-started: #2a313c; --skipped: #59636e; --waiting: #59636e;
  --starting: #59636e;
  --paused: #d29922; --stopping: #d29922; --waiting-for-approval: #d29922;
  --running: #58a6ff;
  --complete: #3fb950; --failed: #ff7b72; --timed-out: #d29922;
  --cancelled: #b083f0; } }
body { margin: 2rem auto; max-width: 1200px; padding: 0 1rem;
  background: var(--ground); color: var(--ink);
  font: 14px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; }
.about, footer, #count { color: var(--quiet); }
.track { display: flex; height: 14px; border-radius: 7px; overflow: hidden;
  background: var(--pending); }
.reason { border-left: 4px solid var(--pending); padding-left: .8rem; }
.failures { padding-left: 1.2rem; overflow-wrap: anywhere; }
form { display: flex; gap: 1.5rem; align-items: center; margin: 1rem 0;
  flex-wrap: wrap; }
input, select { font: inherit; padding: .2rem .5rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem;
  border-bottom: 1px solid var(--line); }
td { max-width: 16rem; overflow-wrap: break-word; }
td:last-child { max-width: none; overflow-wrap: anywhere; width: 50%; }
td.state, td.time { white-space: nowrap; }
td.state { font-weight: 600; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0;
  max-height: 24rem; overflow: auto; }
details#chart { margin: 1.5rem 0; overflow-x: auto; }
@media (max-width: 720px) {
  body { margin: 1rem auto; }
  thead { display: none; }
  table, tbody { display: block; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  tr[hidden] { display: none; }
  td { border: 0; padding: 0; max-width: 100%; overflow-wrap: anywhere; }
  td:last-child { width: 100%; }
}
"""
    + ''.join(
        f'.is-{name} {{ color: var(--{_INKS.get(name, name)}); }} '
        f'.on-{name} {{ background: var(--{name}); }}\n'
        for name in _ORDER
    )
    + ''.join(
        f'.reason.of-{phase.value} {{ border-color: var(--{phase.value}); }}\n'
        for phase in run_records.Phase
    )
)

_SCRIPT = """
const filter = document.getElementById('filter');
const state = document.getElementById('state');
const rows = [...document.querySelectorAll('tbody tr')];
const folds = [...document.querySelectorAll('details[id]')];
const kept = new URLSearchParams(location.hash.slice(1));
filter.value = kept.get('filter') || '';
state.value = kept.get('state') || '';
for (const id of (kept.get('open') || '').split(' '))
  if (id && document.getElementById(id))
    document.getElementById(id).open = true;
function keep() {
  const wanted = new URLSearchParams();
  if (filter.value) wanted.set('filter', filter.value);
  if (state.value) wanted.set('state', state.value);
  const open = folds.filter(one => one.open).map(one => one.id).join(' ');
  if (open) wanted.set('open', open);
  history.replaceState(null, '', '#' + wanted);
}
function show() {
  const text = filter.value.toLowerCase();
  let count = 0;
  for (const row of rows) {
    row.hidden = !(row.dataset.text.includes(text)
      && (!state.value || row.dataset.state === state.value));
    count += !row.hidden;
  }
  document.getElementById('count').textContent =
    count + ' of ' + rows.length
    + (rows.length === 1 ? ' server' : ' servers');
  keep();
}
document.querySelector('form').addEventListener(
  'submit', event => event.preventDefault());
filter.addEventListener('input', show);
state.addEventListener('input', show);
for (const one of folds) one.addEventListener('toggle', keep);
show();
"""

# A browser runs this script and no other.
_SCRIPT_HASH = base64.b64encode(
    hashlib.sha256(_SCRIPT.encode()).digest()
).decode()


def draw(
    run: 'runs.Run', targets: abc.Sequence['runs.Target'], now: float
) -> str:
    """Return the page.

    :param targets: all of the run, with their outputs.
    :param now: seconds since the epoch.
    """
    counts = dict(run.counts)
    counted = ', '.join(f'{count} {name}' for name, count in counts.items())
    # Failures come first in the table.
    shown = sorted(targets, key=lambda each: _ORDER.index(each.state))
    faults = [
        each.fault for each in targets if each.state in ('failed', 'timed-out')
    ]
    items = ''.join(
        f'<li>{svg.safe(line)}</li>'
        for line in wording.lines(faults, 'see the table')
    )
    track = (
        f'<div class="on-{name}" '
        f'style="width: {100 * counts[name] / run.targets:.2f}%"></div>'
        for name in sorted(counts, key=_TRACK.index)
    )
    stacks = ', '.join(run.stacks[:5])
    about = (
        f'Run {run.id}: {run.state}, {run.percent}% of '
        f'{wording.counted(run.targets, "target")}. '
        f'Started by {run.created_by} at {run.created_at}'
        + (f' for {run.targets_from}.' if run.targets_from else '.')
    )
    if run.estimated_end is not None:
        about += f' Likely to end at {run.estimated_end}.'
    refresh = f'<meta http-equiv="refresh" content="{REFRESH}">\n'
    rows = []
    for target in targets:
        begun = _moment(target.started_at)
        bars: tuple[chart.Bar, ...] = ()
        if begun is not None:
            last = target.attempts[-1] if target.attempts else {}
            bars = (
                chart.Bar(
                    label=run.action,
                    state=chart.State(target.state),
                    start=begun,
                    end=_moment(target.ended_at),
                    working_since=_moment(last.get('reported_at')),
                    reason=target.reason,
                ),
            )
        rows.append(
            chart.ChartRow(
                kind=chart.RowKind.RUN,
                path=f'{target.stack} {target.resource}',
                name=target.fault.name,
                bars=bars,
            )
        )
    return _PAGE.format(
        refresh='' if run.ended else refresh,
        title=svg.safe(f'{run.action} on {stacks}'),
        style=_STYLE,
        about=svg.safe(about),
        told=svg.safe(counted),
        track=''.join(track),
        reason=(
            f'<p class="reason of-{run.state}">{svg.safe(run.reason)}</p>'
            if run.reason
            else ''
        ),
        failures=f'<ul class="failures">{items}</ul>' if items else '',
        states=''.join(
            f'<option>{svg.safe(name)}</option>' for name in counts
        ),
        rows='\n'.join(_row(each, now) for each in shown),
        chart=svg.draw(
            chart.Chart(
                stack=stacks,
                status=run.state,
                rows=tuple(rows),
                now=now,
            )
        ),
        drawn=svg.safe(summary.time(int(now)) or ''),
        script=_SCRIPT,
        script_hash=_SCRIPT_HASH,
    )


def _row(target: 'runs.Target', now: float) -> str:
    """Return a target's row in the page, as HTML."""
    begun, ended = _moment(target.started_at), _moment(target.ended_at)
    took = None
    if begun is not None:
        took = int(now if ended is None else ended) - begun
    server = target.server_name or target.server
    searched = ' '.join(
        (target.stack, server, target.resource, target.reason)
    ).lower()
    texts = {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in (target.outputs or {}).items()
        if value not in (None, '')
    }
    outputs = ''.join(
        f'<b>{svg.safe(name)}</b><pre>'
        f'{html.escape(foreign.block(text[-_OUTPUT:].rstrip()))}</pre>'
        for name, text in texts.items()
    )
    result = svg.safe(target.reason)
    if outputs:
        result = (
            f'<details id="t{target.number}"><summary>{result or "outputs"}'
            f'</summary>{outputs}</details>'
        )
    state = target.state
    return (
        f'<tr data-state="{state}" data-text="{svg.safe(searched)}">'
        f'<td>{svg.safe(target.stack)}</td><td>{svg.safe(server)}</td>'
        f'<td>{svg.safe(target.resource)}</td>'
        f'<td class="state is-{state}">{state}</td>'
        f'<td class="time">{svg.safe(summary.spell(took))}</td>'
        f'<td>{result}</td></tr>'
    )


def _moment(text: str | None) -> float | None:
    return None if text is None else heat_values.moment(text)
