# SPDX-License-Identifier: Apache-2.0
"""A deployment's life, with the real agent at the other end, and cancels."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers

COMPONENT = running.component(
    {
        action: f'#!/bin/sh\necho {verb} $who | tee {verb}\n'
        for action, verb in {
            'CREATE': 'install',
            'UPDATE': 'upgrade',
            'DELETE': 'remove',
            'BACKUP': 'save',
        }.items()
    },
    {'who': ''},
)


@pytest.mark.quick
def test_agent_signals_every_action_that_there_is_something_for(cloud, stacks):
    template = base.software(
        actions=['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE']
    )
    deployment = template['resources']['deployment']
    template['resources'] |= {
        'verbs': COMPONENT,
        'component': {
            **deployment,
            'properties': {
                **deployment['properties'],
                'name': 'component',
                'config': {'get_resource': 'verbs'},
                'actions': ['CREATE', 'UPDATE', 'DELETE'],
            },
        },
    }
    template['outputs']['component'] = {
        'value': {'get_attr': ['component', 'deploy_stdout']}
    }
    stack = stacks(template)

    def said(action):
        stack.wait(f'{action}_COMPLETE')
        outputs = stack.outputs
        stdout = outputs['deployment_deploy_stdout'].strip()
        assert stdout.startswith(f'{action} for ')
        return outputs['deployment_greeting'], outputs['component'].strip()

    with servers.agent(cloud, stack) as agent:
        assert said('CREATE') == ('hello world', 'install world')
        shown = stack.resource('verbs', 'actions')['attributes']
        assert shown['actions'] == ['CREATE', 'UPDATE', 'DELETE', 'BACKUP']
        stack.update(template, who='moon')
        assert said('UPDATE') == ('hello moon', 'upgrade moon')
        stack.action(suspend=None)
        assert said('SUSPEND') == ('hello moon', 'upgrade moon')
        stack.action(resume=None)
        assert said('RESUME') == ('hello moon', 'upgrade moon')
        stack.remove()
    puts = servers.signals(cloud, stack)
    assert [one['status'] for one in puts] == [201] * 8
    assert not any(one['token'] for one in puts)
    assert all(one['agent'].startswith('python-requests') for one in puts)
    assert len({one['path'] for one in puts}) == 8
    ran = {path.name for path in (agent.path / 'var/script').iterdir()}
    assert {'install', 'upgrade', 'remove'} <= ran
    assert 'save' not in ran


def test_stack_goes_on_with_the_credentials_of_who_updates_it(cloud, stacks):
    template = base.software(timeout=60)
    stack = stacks(template)
    stack.waiting().answer()
    stack.wait('CREATE_COMPLETE')
    roles = 'member', 'heat_stack_owner'
    with base.in_demo(cloud, 'other', *roles) as member:
        # Heat stores theirs, and ends the trust of those before them.
        for session, who in ((member, 'moon'), (cloud.session(), 'sun')):
            stack.acting_as(session).update(template, who=who)
            waiting = stack.waiting(action='UPDATE')
            waiting.answer(greeting=f'hello {who}')
            stack.wait('UPDATE_COMPLETE')
            assert stack.outputs['deployment_greeting'] == f'hello {who}'
        stack.acting_as(member).remove()


@pytest.mark.quick
def test_check_and_updates_repeat_in_place_what_is_gone_or_failed(
    cloud, stacks
):
    template = base.software()
    stack = stacks(template)

    def answered(action, status='COMPLETE', **outputs):
        waiting = stack.waiting(action=action)
        waiting.answer(**outputs)
        stack.wait(f'{action}_{status}')
        return waiting

    created = answered('CREATE')
    # A check runs nothing, and notices what is gone.
    stack.acts(check=None)
    assert stack.deployment().config == created.config
    assert stack.deployment().status == 'COMPLETE'
    path = f'/software_deployments/{created.id}'
    assert cloud.session().delete('orchestration', path).ok
    stack.action(check=None)
    base.until(lambda: stack.status == 'CHECK_FAILED')
    assert f'Deployment {created.id} no longer exists' in stack.reason
    stack.update(template)
    again = answered('UPDATE')
    stack.acts(check=None)
    # A failed update is repeated without a change.
    stack.update(template, who='moon')
    failing = answered('UPDATE', 'FAILED', deploy_status_code=7)
    assert 'exit status (deploy_status_code) is 7' in stack.reason
    stack.update(template, who='moon')
    repeated = stack.waiting(action='UPDATE')
    assert repeated.id == again.id
    assert repeated.config['id'] != failing.config['id']
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello moon'


@pytest.mark.quick
def test_what_is_cancelled_or_late_is_never_run_and_the_next_works(
    cloud, stacks
):
    template = base.software(actions=['CREATE', 'UPDATE', 'DELETE'])
    # The server is given another deployment, that waits for nothing.
    bystander = base.software()['resources']['deployment']
    bystander['properties'].update(
        signal_transport='NO_SIGNAL', name='bystander', input_values={}
    )
    template['resources']['bystander'] = bystander
    stack = stacks(template)
    agent = servers.agent(cloud, stack)
    withdrawn = set()

    def given():
        return {one['id'] for one in stack.metadata()}

    def is_taken_back(waiting):
        config_id = waiting.config['id']
        base.until(lambda: config_id not in given(), 20)
        # Too late: it is no result, and changes nothing.
        waiting.answer(greeting='late')
        withdrawn.add(config_id)

    def ends(status, greeting):
        with agent:
            stack.wait(status)
        assert stack.outputs['deployment_greeting'] == greeting

    created = stack.waiting()
    stack.action(cancel_without_rollback=None)
    is_taken_back(created)
    stack.wait('CREATE_FAILED')
    with agent:
        base.until(lambda: servers.has_run(agent) >= given())
    assert stack.status == 'CREATE_FAILED'
    stack.update(template)
    ends('UPDATE_COMPLETE', 'hello world')
    # A cancelled update is rolled back.
    stack.update(template, who='moon')
    waiting = stack.waiting(action='UPDATE')
    stack.action(cancel_update=None)
    is_taken_back(waiting)
    ends('ROLLBACK_COMPLETE', 'hello world')
    # An action ends at its own time limit.
    properties = template['resources']['deployment']['properties']
    properties['timeout'] = 3
    stack.update(template, who='mars')
    waiting = stack.waiting(action='UPDATE')
    stack.wait('UPDATE_FAILED')
    failures = cloud.openstack('stack', 'failures', 'list', stack.name)
    assert 'has not signalled UPDATE within' in failures
    assert 'property "timeout"' in failures
    is_taken_back(waiting)
    properties['timeout'] = 10
    stack.update(template, who='mars')
    ends('UPDATE_COMPLETE', 'hello mars')
    # So does a DELETE if the server is gone.
    stack.delete()
    waiting = stack.waiting(action='DELETE')
    stack.wait('DELETE_FAILED')
    assert 'has not signalled DELETE within' in stack.reason
    is_taken_back(waiting)
    with agent:
        stack.delete()
        base.until(lambda: stack.status == 'DELETE_COMPLETE')
    assert not servers.has_run(agent) & withdrawn


@pytest.mark.quick
def test_a_deployment_is_deleted_while_it_waits_or_after_it_failed(stacks):
    """That nothing stays behind is what the fixture ``stacks`` holds."""
    waits, failed = stacks(base.software()), stacks(base.software())
    waiting = waits.waiting()
    failed.waiting().answer(deploy_status_code=1)
    failed.wait('CREATE_FAILED')
    for stack in (waits, failed):
        stack.remove()
    # Without the container there is no key, or no access at all.
    assert waiting.put(base.body()) == conftest.REFUSED
