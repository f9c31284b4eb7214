# SPDX-License-Identifier: Apache-2.0
"""Actions that are taken back: by a cancel, a time limit or a deletion."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers


def _runs_nothing_of(cloud, stack, configs):
    """Switch the server on for a moment; it must not run these configs.

    It does run what else it is given, so it has looked.
    """
    agent = servers.agent(cloud, stack)
    with agent:
        ran = base.until(lambda: servers.has_run(agent))
        handed = {one['id'] for one in stack.metadata()}
        base.until(lambda: handed <= servers.has_run(agent))
        ran = servers.has_run(agent)
    assert not ran & set(configs)


def _with_bystander(**properties):
    """Return a template with another deployment, that waits for nothing."""
    template = base.software(**properties)
    bystander = base.software()['resources']['deployment']
    bystander['properties'].update(
        signal_transport='NO_SIGNAL', name='bystander', input_values={}
    )
    template['resources']['bystander'] = bystander
    return template


@pytest.mark.quick
def test_what_is_cancelled_is_never_run_and_the_next_works(cloud, stacks):
    template = _with_bystander()
    stack = stacks(template)
    created = stack.waiting()
    stack.action(cancel_without_rollback=None)
    base.until(
        lambda: (
            created.config['id'] not in [one['id'] for one in stack.metadata()]
        ),
        20,
    )
    stack.wait('CREATE_FAILED')
    # Too late: it is no result, and changes nothing.
    assert created.put(servers.body(greeting='late')) == 201
    _runs_nothing_of(cloud, stack, [created.config['id']])
    assert stack.status == 'CREATE_FAILED'
    stack.update(template)
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    # A cancelled update is rolled back.
    stack.update(template, who='moon')
    waiting = stack.waiting(action='UPDATE')
    stack.action(cancel_update=None)

    def rolling_back():
        found = stack.deployment()
        if found is None or found.config['id'] == waiting.config['id']:
            return None
        return found

    assert base.until(rolling_back).inputs['who'] == 'world'
    assert waiting.put(servers.body(greeting='late')) == 201
    with servers.agent(cloud, stack) as agent:
        stack.wait('ROLLBACK_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'hello world'
        stack.updated(template, who='mars')
        assert stack.outputs['deployment_greeting'] == 'hello mars'
        assert waiting.config['id'] not in servers.has_run(agent)


@pytest.mark.quick
def test_action_ends_at_its_own_time_limit(cloud, stacks):
    template = _with_bystander(
        actions=['CREATE', 'UPDATE', 'DELETE'], timeout=3
    )
    stack = stacks(template)
    waiting = stack.waiting()
    stack.wait('CREATE_FAILED')
    failures = cloud.openstack('stack', 'failures', 'list', stack.name)
    assert 'has not signalled CREATE within' in failures
    assert 'property "timeout"' in failures
    assert waiting.config['id'] not in [one['id'] for one in stack.metadata()]
    assert waiting.put(servers.body(greeting='late')) == 201
    _runs_nothing_of(cloud, stack, [waiting.config['id']])
    template['resources']['deployment']['properties']['timeout'] = 10
    stack.update(template)
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello world'
    # So does a DELETE if the server is gone.
    stack.delete()
    withdrawn = stack.waiting(action='DELETE')
    stack.wait('DELETE_FAILED')
    assert 'has not signalled DELETE within' in stack.reason
    assert withdrawn.config['id'] not in [
        one['id'] for one in stack.metadata()
    ]
    with servers.agent(cloud, stack):
        stack.delete()
        base.until(lambda: stack.status == 'DELETE_COMPLETE')


@pytest.mark.quick
def test_a_deployment_is_deleted_while_it_waits_or_after_it_failed(stacks):
    """That nothing stays behind is what the fixture ``stacks`` holds."""
    waits, failed = stacks(base.software()), stacks(base.software())
    waiting = waits.waiting()
    assert failed.waiting().put(servers.body(deploy_status_code=1)) == 201
    failed.wait('CREATE_FAILED')
    for stack in (waits, failed):
        stack.remove()
    # Without the container there is no key, or no access at all.
    assert waiting.put(servers.body()) == conftest.REFUSED
