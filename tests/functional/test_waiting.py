# SPDX-License-Identifier: Apache-2.0
"""What waiting costs."""

import time

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

COUNT = 20


@conftest.counted
def test_waiting_costs_a_shared_listing_and_no_rpc(cloud, stacks):
    template = base.software(deployments=COUNT)
    stack = stacks(template)
    base.until(lambda: len(stack.metadata()) == COUNT)
    # What this test has asked for, and what follows after the last was
    # handed over.
    time.sleep(1)
    begun = time.time()
    # A direct look at an object comes seldom: here, 10 s after it is waited
    # for, which is after its URL was made.
    made = cloud.swift_requests(method='PUT', path=servers.container(stack))
    ended = min(made[0]['time'] + 9.5, begun + 5)
    assert ended > begun + 2, 'handing them over has taken too long'
    time.sleep(ended - begun)
    samples = [
        one for one in cloud.heat_counters(begun) if one['time'] < ended
    ]
    first, last = samples[0], samples[-1]
    assert last['rpc'] == first['rpc']
    seconds = last['time'] - first['time']
    assert seconds > 0
    assert last['db_total'] - first['db_total'] < 2 * seconds + 8
    seen = [one for one in cloud.swift_requests(begun) if one['time'] < ended]
    # It is little more than the first half minute, in which polls are fast.
    assert 1 <= len(seen) <= 4 * (ended - begun) + 1
    for one in seen:
        assert one['method'] == 'GET'
        assert one['path'].endswith(f'/heat-plugins-{stack.id}')
        assert 'prefix=signals' in one['query']
    for config in stack.metadata():
        url = next(
            one['value']
            for one in config['inputs']
            if one['name'] == 'deploy_signal_id'
        )
        assert base.put(url, servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
