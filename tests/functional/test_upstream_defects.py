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

#: Both know this name.
TRANSPORT = 'TEMP_URL_SIGNAL'

#: Where signals lie: in a container for each root stack, or each stack.
OBJECTS = '/v1/[^/]+/[^/]+/.+'
CONTAINERS = '/v1/[^/]+/[^/]+'


def _template(**properties):
    return base.software(signal_transport=TRANSPORT, **properties)


def _stays(stack, status, seconds=3.5):
    """Hold that a stack does not leave a state, for three looks or so."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert stack.status == status
        time.sleep(0.2)


def test_1_update_does_not_end_on_the_signal_of_create(either):
    _, stacks = either
    template = _template()
    stack = stacks(template)
    before = stack.waiting()
    assert before.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    after = stack.waiting(action='UPDATE', seconds=10)
    # Swift's clock has whole seconds.
    time.sleep(1.1)
    assert before.put(servers.body(greeting='late')) == 201
    _stays(stack, 'UPDATE_IN_PROGRESS')
    assert after.put(servers.body(greeting='hello moon')) == 201
    stack.wait('UPDATE_COMPLETE')


def test_2_signal_is_not_lost_when_the_row_is_newer(either):
    cloud, stacks = either
    stack = stacks(_template())
    waiting = stack.waiting()
    # As on a cluster where it takes a while until a new object is seen.
    rules = [
        {'method': 'GET|HEAD', 'path': OBJECTS, 'status': 404},
        {'method': 'GET', 'path': CONTAINERS, 'hide_from_listing': '.'},
    ]
    with cloud.faults(rules):
        assert waiting.put(servers.body()) == 201
        # Swift's clock rounds up.
        time.sleep(1.1)
        answer = cloud.session().put(
            'orchestration',
            f'/software_deployments/{waiting.id}',
            {'status_reason': 'Getting on with it'},
        )
        assert answer.ok, answer
    stack.wait('CREATE_COMPLETE', 10)


@pytest.mark.parametrize('body', [b'oops', b'[1, 2]'])
def test_3_body_that_is_no_result_fails_one_deployment(either, body):
    _, stacks = either
    stack = stacks(_template())
    assert stack.waiting().put(body) == 201
    stack.wait('CREATE_FAILED')
    # It can be looked at, and says what is wrong.
    found = stack.deployment()
    assert found.status == 'FAILED'
    assert 'signal cannot be used' in found.reason


def test_4_deployment_rides_out_a_passing_error(either):
    cloud, stacks = either
    stack = stacks(_template())
    waiting = stack.waiting()
    begun = time.time()
    # What the client that Heat uses does not itself try again, as it does
    # after 503 for half a minute.
    with cloud.faults([{'method': 'GET|HEAD', 'status': 403}]):
        base.until(
            lambda: [
                one
                for one in cloud.swift_requests(begun)
                if one['status'] == 403
            ]
        )
    assert waiting.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')


def test_5_cancelled_action_is_taken_from_the_server(either):
    _, stacks = either
    stack = stacks(_template())
    waiting = stack.waiting()
    stack.action(cancel_without_rollback=None)
    base.until(
        lambda: (
            waiting.config['id'] not in [one['id'] for one in stack.metadata()]
        ),
        15,
    )


def test_6_outputs_are_those_of_the_last_action(either):
    _, stacks = either
    template = _template()
    stack = stacks(template)
    assert stack.waiting().put(servers.body(greeting='hello world')) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    waiting = stack.waiting(action='UPDATE')
    # Swift's clock has whole seconds.
    time.sleep(1.1)
    assert waiting.put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] is None


def test_7_delete_waits_for_a_deployed_server(either):
    _, stacks = either
    stack = stacks(_template(actions=['DELETE']))
    stack.wait('CREATE_COMPLETE')
    stack.delete()
    waiting = stack.waiting(action='DELETE', seconds=5)
    assert waiting.put(servers.body()) == 201
    stack.wait('DELETE_COMPLETE')


def test_8_container_that_is_not_yet_empty_does_not_stop_a_delete(either):
    cloud, stacks = either
    stack = stacks(_template())
    assert stack.waiting().put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    rule = {'method': 'DELETE', 'path': CONTAINERS, 'status': 409, 'count': 1}
    with cloud.faults([rule]):
        stack.delete()
        stack.wait('DELETE_COMPLETE')


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


def test_13_empty_error_output_is_no_error(either):
    _, stacks = either
    outputs = [{'name': 'greeting', 'error_output': True}]
    stack = stacks(_template(outputs=outputs))
    assert stack.waiting().put(servers.body(greeting='')) == 201
    stack.wait('CREATE_COMPLETE')


def test_15_deployment_without_a_config_has_attributes(either):
    _, stacks = either
    template = _template()
    deployment = template['resources']['deployment']['properties']
    deployment['signal_transport'] = 'NO_SIGNAL'
    del deployment['config']
    template['outputs'] = {
        'stdout': {'value': {'get_attr': ['deployment', 'deploy_stdout']}}
    }
    stack = stacks(template)
    stack.wait('CREATE_COMPLETE')
    (output,) = stack.show()['outputs']
    assert 'output_error' not in output
    assert output['output_value'] is None


def test_16_url_does_not_outlive_its_action_by_years(either):
    _, stacks = either
    stack = stacks(_template())
    url = stack.waiting().signal_url
    expires = int(re.search(r'temp_url_expires=(\d+)', url)[1])
    # The stack's five minutes, and an hour.
    assert expires <= time.time() + 300 + 3600
