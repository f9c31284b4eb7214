# SPDX-License-Identifier: Apache-2.0
"""How soon a run ends once its server has answered heat-api-cfn."""

import statistics
import time

from tests.bench import engine_state
from tests.bench import figures
from tests.functional import base
from tests.functional import running

#: Runs, each on one server; and the most seconds in the median.
COUNT, GOAL = 50, 0.5

_LIMIT = 300


def measure(say):
    """Return a table: seconds from the POST until the run is complete.

    Two services of heat-engine with two processes each serve a cloud whose
    catalogue has no object store.
    """
    cloud = base.Cloud('bench-answering')
    cloud.down(purge=True)
    cloud.up(profile='production', plugin=base.ROOT)
    try:
        with base.no_store(cloud):
            seconds = sorted(_seconds(cloud))
    finally:
        cloud.down(purge=True)
    say(f'from the POST to the end, s: {[round(each, 2) for each in seconds]}')
    what = 'from the POST to the end of the run, s: '
    return figures.measured(
        [
            (f'{what}median', COUNT, statistics.median(seconds), GOAL),
            (f'{what}95 of 100', COUNT, seconds[COUNT * 95 // 100 - 1], None),
        ]
    )


def _seconds(cloud):
    """Start the runs; answer one after another; return how long each took."""
    user = running.client(cloud)
    stack = base.Stack(cloud.session(), running.fleet(COUNT), timeout_mins=30)
    stack.wait('CREATE_COMPLETE', _LIMIT)
    begun = [
        user.start('BACKUP', stacks=[stack.name], resources=[f'db{number}']).id
        for number in range(COUNT)
    ]
    found = []
    for number, run_id in enumerate(begun):
        configs = engine_state.until(
            lambda number=number: running.configs(stack, f'server{number}'),
            _LIMIT,
            f'run {run_id}',
        )
        url = base.signal_url(configs[0])
        sent = time.monotonic()
        assert base.post(url, base.body()) == 200
        engine_state.until(
            lambda run_id=run_id: user.show(run_id).ended, _LIMIT, run_id
        )
        found.append(time.monotonic() - sent)
    return found
