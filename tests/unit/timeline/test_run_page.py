# SPDX-License-Identifier: Apache-2.0
"""The page of a run."""

import base64
import collections
import hashlib
import re

from heat_plugins.clients import runs
from heat_plugins.timeline import run_page

NOW = 1_800_000_000.0
BEGUN, ENDED = '2027-01-15T07:58:00Z', '2027-01-15T07:59:05Z'


def target(number, state='complete', **values):
    server = {'server': 'an-id', 'server_name': f'server{number}'}
    what = {'stack': 'shop', 'resource': f'db{number}', **server}
    times = {'started_at': BEGUN, 'ended_at': ENDED}
    its = {**what, **times, **values}
    return runs.Target(number=number, state=state, **its)


def page(*targets, state='complete', **values):
    run = runs.Run(
        id='r1',
        action='BACKUP',
        state=state,
        stacks=['shop'],
        targets=len(targets),
        counts=collections.Counter(each.state for each in targets),
        created_at=BEGUN,
        created_by='ann',
        inputs=['password'],
        **values,
    )
    return run_page.draw(run, targets, NOW)


def test_it_says_how_a_run_stands():
    drawn = page(
        target(0),
        target(1, 'pending', started_at=None, ended_at=None),
        state='running',
        percent=50,
        targets_from='stack shop',
        estimated_end=ENDED,
    )
    assert 'BACKUP on shop' in drawn
    assert (
        f'Run r1: running, 50% of 2 targets. Started by ann at {BEGUN} for '
        f'stack shop. Likely to end at {ENDED}.'
    ) in drawn
    assert '1 complete, 1 pending' in drawn
    assert 'is-pending">pending<' in drawn
    assert '1 min 5 s' in drawn
    assert '<svg' in drawn


def test_a_browser_runs_its_script_and_no_other():
    outputs = {'deploy_stdout': '<script>alert(1)</script>', 'none': None}
    drawn = page(target(0, outputs=outputs))
    assert '<script>alert' not in drawn
    assert '&lt;script&gt;alert(1)' in drawn
    (policy,) = re.findall(r"script-src '([^;]*)'", drawn)
    (script,) = re.findall('<script>(.*?)</script>', drawn, re.DOTALL)
    digest = hashlib.sha256(script.encode()).digest()
    assert policy == f'sha256-{base64.b64encode(digest).decode()}'
    assert 'onsubmit' not in drawn


def test_failures_have_a_line_for_each_reason():
    failed = [target(n, 'failed', reason='disk full') for n in range(6)]
    drawn = page(target(9), *failed, state='failed', reason='It is over')
    rows = drawn.partition('<tbody>')[2]
    assert rows.index('server1<') < rows.index('server9<')
    (listed,) = re.findall('<ul class="failures">(.*?)</ul>', drawn)
    assert listed.count('<li>') == 1
    assert '6 servers (shop server0, shop server1, shop se' in listed
    # The reason has the colour of its state.
    assert '<p class="reason of-failed">It is over<' in drawn
    assert '.reason.of-failed { border-color: var(--failed)' in drawn
    assert '<ul class="failures">' not in page(target(0))
