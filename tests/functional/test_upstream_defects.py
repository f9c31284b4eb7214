# SPDX-License-Identifier: Apache-2.0
"""What Heat's own classes get wrong, and ours must not.

Each test runs on both. Where Heat's own begins to pass, upstream has mended
it, and the test belongs among the others.
"""

import re
import time

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

# What ours do, the unit tests and other journeys show each time.
pytestmark = pytest.mark.heats_classes

#: Both know this name.
TRANSPORT = 'TEMP_URL_SIGNAL'

CONTAINERS = '/v1/[^/]+/[^/]+'


def _template(**properties):
    return base.software(signal_transport=TRANSPORT, **properties)


def test_8_container_that_is_not_yet_empty_does_not_stop_a_delete(either):
    cloud, stacks = either
    stack = stacks(_template())
    assert stack.waiting().put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    rule = {'method': 'DELETE', 'path': CONTAINERS, 'status': 409, 'count': 1}
    with cloud.faults([rule]):
        stack.remove()


@conftest.counted
def test_9_waiting_makes_no_rpc(either):
    cloud, stacks = either
    stack = stacks(_template())
    stack.waiting()
    time.sleep(0.5)
    begun = time.time()
    samples = base.until(
        lambda: len(found := cloud.heat_counters(begun)) >= 4 and found
    )
    assert samples[-1]['rpc'] == samples[0]['rpc']


def test_10_url_is_made_without_the_accounts_key(either):
    cloud, stacks = either
    begun = time.time()
    stack = stacks(_template())
    stack.waiting()
    account = '/v1/[^/]+/?'
    assert not cloud.swift_requests(begun, 'HEAD|POST', account)


def test_12_huge_body_is_not_read(either):
    _, stacks = either
    stack = stacks(_template())
    huge = servers.body(greeting='x' * 5_000_000)
    assert stack.waiting().put(huge) == 201
    stack.wait('CREATE_FAILED')
    assert stack.deployment().reason.endswith('larger than 1000000 bytes')


def test_12_reason_quotes_no_values(either):
    _, stacks = either
    outputs = [{'name': 'greeting', 'error_output': True}]
    stack = stacks(_template(outputs=outputs))
    sent = servers.body(greeting='sesame', deploy_status_code=2)
    assert stack.waiting().put(sent) == 201
    stack.wait('CREATE_FAILED')
    assert 'greeting' in stack.reason
    assert 'sesame' not in stack.reason


def test_16_url_does_not_outlive_its_action_by_years(either):
    _, stacks = either
    stack = stacks(_template())
    url = stack.waiting().signal_url
    expires = int(re.search(r'temp_url_expires=(\d+)', url)[1])
    # The stack's five minutes, and an hour.
    assert expires <= time.time() + 300 + 3600
