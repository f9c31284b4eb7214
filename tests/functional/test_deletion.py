# SPDX-License-Identifier: Apache-2.0
"""A deployment goes, from whatever state; and stacks that only let it go.

That nothing stays behind is what the fixture ``stacks`` holds.
"""

import time

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers


def _delete(stack):
    stack.delete()
    stack.wait('DELETE_COMPLETE')


def _created(stacks, **properties):
    stack = stacks(base.software(**properties))
    assert stack.waiting().put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    return stack


@pytest.mark.quick
def test_delete_while_it_is_created(stacks):
    stack = stacks(base.software())
    waiting = stack.waiting()
    _delete(stack)
    # Without the container there is no key, or no access at all.
    assert waiting.put(servers.body()) == conftest.REFUSED


@pytest.mark.quick
def test_delete_after_it_has_failed(stacks):
    stack = stacks(base.software())
    assert stack.waiting().put(servers.body(deploy_status_code=1)) == 201
    stack.wait('CREATE_FAILED')
    _delete(stack)


def test_delete_ends_at_the_limit_if_the_server_is_gone(cloud, stacks):
    stack = _created(stacks, actions=['CREATE', 'DELETE'], timeout=8)
    stack.delete()
    stack.wait('DELETE_FAILED')
    assert 'has not signalled DELETE within' in stack.reason
    assert stack.metadata() == []
    # The server is back.
    with servers.agent(cloud, stack):
        stack.delete()
        base.until(lambda: stack.status == 'DELETE_COMPLETE')
    assert len(servers.signals(cloud, stack)) == 2


@pytest.fixture
def apart(stacks):
    """A template whose server is another stack's.

    Heat itself cannot delete a server that it has adopted: the stack's new
    user may not delete the server's old credentials.
    """
    template = base.software(deployments=0)
    del template['resources']['config']
    template['outputs'] = {'id': {'value': {'get_resource': 'server'}}}
    stack = stacks(template)
    stack.wait('CREATE_COMPLETE')
    template = base.software()
    del template['resources']['server']
    del template['resources']['config']['depends_on']
    properties = template['resources']['deployment']['properties']
    properties['server'] = stack.outputs['id']
    return template


def test_abandoned_stack_looks_for_nothing(cloud, stacks, apart):
    stack = stacks(apart)
    waiting = stack.waiting()
    data = stack.abandon()
    begun = time.time()
    time.sleep(3)
    assert not cloud.swift_requests(begun, path=servers.container(stack))
    # What it has left is nobody's, until somebody adopts it.
    adopted = stacks(apart, adopt=data)
    adopted.wait('ADOPT_FAILED')
    assert f'Cannot adopt deployment {waiting.id}' in adopted.reason


@pytest.mark.parametrize('status', ['COMPLETE', 'FAILED'])
def test_adopting_takes_over_what_is_complete(stacks, apart, status):
    stack = stacks(apart)
    waiting = stack.waiting()
    code = 0 if status == 'COMPLETE' else 1
    sent = servers.body(greeting='hello', deploy_status_code=code)
    assert waiting.put(sent) == 201
    stack.wait(f'CREATE_{status}')
    data = stack.abandon()
    adopted = stacks(apart, adopt=data)
    adopted.wait(f'ADOPT_{status}')
    if status == 'COMPLETE':
        assert adopted.deployment().id == waiting.id
        assert adopted.deployment().config == waiting.config
        assert adopted.outputs['deployment_greeting'] == 'hello'
    else:
        assert 'must be COMPLETE' in adopted.reason
