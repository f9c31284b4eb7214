# SPDX-License-Identifier: Apache-2.0
"""How soon a run ends once its server has answered heat-api-cfn."""

import statistics
import time

from tests.bench import engine_state
from tests.functional import base
from tests.functional import running

#: Runs, each on one server; and the processes of heat-engine.
COUNT, WORKERS = 50, 4

#: The most seconds in the median.
GOAL = 0.5

_LIMIT = 300


def measure(name, say):
    """Return a table: seconds from the POST until the run is complete.

    :param name: of a mini cloud for it, which two services of heat-engine
        with two processes each serve, and whose catalogue has no object store.
    """
    cloud = base.Cloud(f'{name}-answering')
    cloud.down(purge=True)
    cloud.up(profile='production', plugin=base.ROOT)
    try:
        with base.no_store(cloud):
            seconds = sorted(_seconds(cloud))
    finally:
        cloud.down(purge=True)
    say(f'from the POST to the end, s: {[round(each, 2) for each in seconds]}')
    median, most = statistics.median(seconds), seconds[COUNT * 95 // 100 - 1]
    return [
        ['from the POST to the end of the run, s', 'N', 'measured', 'goal'],
        ['the median', f'{COUNT}', f'{median:.2f}', f'{GOAL}'],
        ['95 of 100', f'{COUNT}', f'{most:.2f}', ''],
    ]


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
        status = base.post(url, base.body())
        if status != 200:
            raise RuntimeError(f'heat-api-cfn answers {status}')
        engine_state.until(
            lambda run_id=run_id: user.show(run_id).ended, _LIMIT, run_id
        )
        found.append(time.monotonic() - sent)
    return found
