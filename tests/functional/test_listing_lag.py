# SPDX-License-Identifier: Apache-2.0
"""A listing that shows only after a minute what has arrived."""

import time

import pytest

from tests.functional import base
from tests.functional import servers

#: In seconds.
LAG = 60


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_listing_that_lags_a_minute_loses_nothing_and_leaves_nothing(
    cloud, stacks
):
    goes = stacks(base.software())
    stack = stacks(base.software(deployments=2))
    unheard = goes.waiting()
    early, late = (stack.waiting(f'deployment{n}') for n in range(2))
    until = time.time() + LAG
    hidden = {
        'method': 'GET',
        'hide_from_listing': '^signals/',
        'until': until,
    }
    with cloud.faults(
        [{**hidden, 'path': servers.container(one)} for one in (goes, stack)]
    ):
        # The engine looks past the listing 10 s after it has handed out a
        # deployment, after 30 s, and not again before 70 s.
        assert early.put(servers.body(greeting='early')) == 201
        base.until(
            lambda: stack.deployment('deployment0').status == 'COMPLETE'
        )
        assert time.time() < until - LAG / 2
        # From here on the listing is faster. And what is hidden keeps its
        # container from going, for less than Swift's errors are ridden out.
        time.sleep(max(0, until - 20 - time.time()))
        assert late.put(servers.body(greeting='late')) == 201
        assert unheard.put(servers.body()) == 201
        goes.delete()
        stack.wait('CREATE_COMPLETE')
        goes.wait('DELETE_COMPLETE')
    assert stack.outputs['deployment0_greeting'] == 'early'
    assert stack.outputs['deployment1_greeting'] == 'late'
