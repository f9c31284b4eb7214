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


def test_delete_while_it_is_updated(stacks):
    stack = _created(stacks)
    stack.update(base.software(), who='moon')
    stack.waiting(action='UPDATE')
    _delete(stack)


def test_delete_while_it_is_suspended(stacks):
    stack = _created(stacks)
    stack.action(suspend=None)
    stack.wait('SUSPEND_COMPLETE')
    _delete(stack)


def test_delete_after_it_was_created_and_signalled_again(stacks):
    stack = _created(stacks)
    found = stack.deployment()
    # It lies in the container now, and nobody has taken it.
    assert found.put(servers.body()) == 201
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


def test_delete_is_left_out_if_nobody_can_answer_it(cloud, stacks):
    stack = _created(stacks, actions=['CREATE', 'DELETE'])
    container = f'/heat-plugins-{stack.id}'
    # An engine that has no URL at hand.
    cloud.restart('heat')
    refused = {'user_agent': 'keystoneauth', 'status': 403}
    with cloud.faults([{**refused, 'path': f'.*{container}.*'}]):
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    log = cloud.log('heat').read_text('utf-8', 'replace')
    assert 'DELETE was not run on server' in log
    # It could not be deleted either, as the log says.
    assert f'{container[1:]}, which may remain' in log
    answer = cloud.session().delete('object-store', container)
    assert answer.status == 204


@pytest.mark.quick
def test_groups_share_the_container_of_their_root(cloud, stacks, members):
    template = base.software()
    template['resources']['group'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'properties': {
            'servers': {'one': {'get_resource': 'server'}},
            'config': {'get_resource': 'config'},
            'signal_transport': 'TEMP_URL_POLL',
            'name': 'member',
            'members': members,
        },
    }
    stack = stacks(template)
    configs = base.until(lambda: len(found := stack.metadata()) == 2 and found)
    urls = [base.signal_url(config) for config in configs]
    assert all(f'/heat-plugins-{stack.id}/' in url for url in urls)
    containers = cloud.session().get('object-store', '?format=json').json()
    names = [one['name'] for one in containers]
    assert names.count(f'heat-plugins-{stack.id}') == 1
    # A member goes, and the root's own deployment still waits.
    assert base.put(_url(configs, 'member'), servers.body()) == 201
    base.until(
        lambda: stack.resource('group')['resource_status'] == 'CREATE_COMPLETE'
    )
    assert base.put(_url(configs, 'deployment'), servers.body()) == 201
    stack.wait('CREATE_COMPLETE')


def _url(configs, name):
    return base.signal_url(next(one for one in configs if one['name'] == name))


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
