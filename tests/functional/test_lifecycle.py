# SPDX-License-Identifier: Apache-2.0
"""A deployment's life, with the real agent at the other end."""

import copy

import pytest

from tests.functional import base
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
    ('greeting',),
)


@pytest.mark.quick
def test_agent_signals_every_action(cloud, stacks):
    template = base.software(
        actions=['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE']
    )
    stack = stacks(template)

    def outputs(action):
        stack.wait(f'{action}_COMPLETE')
        return [
            stack.outputs['deployment_greeting'],
            stack.outputs['deployment_deploy_stdout'],
        ]

    with servers.agent(cloud, stack):
        assert outputs('CREATE') == ['hello world', 'CREATE for world\n']
        stack.update(template, who='moon')
        assert outputs('UPDATE') == ['hello moon', 'UPDATE for moon\n']
        stack.action(suspend=None)
        assert outputs('SUSPEND') == ['hello moon', 'SUSPEND for moon\n']
        stack.action(resume=None)
        assert outputs('RESUME') == ['hello moon', 'RESUME for moon\n']
        stack.remove()
    puts = servers.signals(cloud, stack)
    assert [one['status'] for one in puts] == [201] * 5
    assert not any(one['token'] for one in puts)
    assert all(one['agent'].startswith('python-requests') for one in puts)
    assert len({one['path'] for one in puts}) == 5


@pytest.mark.quick
def test_component_runs_what_it_has_for_each_action(cloud, stacks):
    template = base.software(config=COMPONENT)
    stack = stacks(template)
    with servers.agent(cloud, stack) as agent:
        stack.wait('CREATE_COMPLETE')
        found = stack.outputs['deployment_deploy_stdout']
        assert found == 'install world\n'
        shown = stack.resource('config', 'actions')['attributes']
        assert shown['actions'] == ['CREATE', 'UPDATE', 'DELETE', 'BACKUP']
        stack.updated(template, who='moon')
        found = stack.outputs['deployment_deploy_stdout']
        assert found == 'upgrade moon\n'
        # There is nothing to run, and nothing to wait for.
        stack.action(suspend=None)
        stack.wait('SUSPEND_COMPLETE')
        stack.action(resume=None)
        stack.wait('RESUME_COMPLETE')
        stack.remove()
    assert len(servers.signals(cloud, stack)) == 3
    ran = {path.name for path in (agent.path / 'var/script').iterdir()}
    assert {'install', 'upgrade', 'remove'} <= ran
    assert 'save' not in ran


@pytest.fixture
def member(cloud):
    """A session of one more member of the project."""
    admin, demo, other = map(cloud.session, ('admin', 'demo', 'other'))
    granted = []
    for name in ('member', 'heat_stack_owner'):
        roles = admin.get('identity', f'/roles?name={name}').json()['roles']
        granted.append(
            f'/projects/{demo.project_id}/users/{other.user_id}'
            f'/roles/{roles[0]["id"]}'
        )
        assert admin.put('identity', granted[-1]).ok
    user = {'id': other.user_id, 'password': cloud.env('other')['OS_PASSWORD']}
    found = copy.copy(demo)
    found._client = copy.copy(demo._client)
    found._client.token = base.token(
        admin.endpoint('identity'), user, demo.project_id
    )
    yield found
    for path in granted:
        assert admin.delete('identity', path).ok


def test_stack_goes_on_with_the_credentials_of_who_updates_it(
    cloud, stacks, member
):
    template = base.software(timeout=60)
    stack = stacks(template)
    assert stack.waiting().put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    # Heat stores theirs, and ends the trust of those before them.
    for session, who in ((member, 'moon'), (cloud.session(), 'sun')):
        stack.acting_as(session).update(template, who=who)
        waiting = stack.waiting(action='UPDATE')
        assert waiting.put(servers.body(greeting=f'hello {who}')) == 201
        stack.wait('UPDATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == f'hello {who}'
    stack.acting_as(member).delete()
    stack.wait('DELETE_COMPLETE')


@pytest.mark.quick
def test_check_and_updates_repeat_in_place_what_is_gone_or_failed(
    cloud, stacks
):
    template = base.software()
    stack = stacks(template)
    created = stack.waiting()
    assert created.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    # A check runs nothing, and notices what is gone.
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    assert stack.deployment().config == created.config
    assert stack.deployment().status == 'COMPLETE'
    path = f'/software_deployments/{created.id}'
    assert cloud.session().delete('orchestration', path).ok
    stack.action(check=None)
    base.until(lambda: stack.status == 'CHECK_FAILED')
    assert f'Deployment {created.id} no longer exists' in stack.reason
    stack.update(template)
    again = stack.waiting(action='UPDATE')
    assert again.put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    # A failed update is repeated without a change.
    stack.update(template, who='moon')
    failing = stack.waiting(action='UPDATE')
    assert failing.put(servers.body(deploy_status_code=7)) == 201
    stack.wait('UPDATE_FAILED')
    assert 'exit status (deploy_status_code) is 7' in stack.reason
    stack.update(template, who='moon')
    repeated = stack.waiting(action='UPDATE')
    assert repeated.id == again.id
    assert repeated.config['id'] != failing.config['id']
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello moon'
