# SPDX-License-Identifier: Apache-2.0
"""A deployment's life, with the real agent at the other end."""

import copy
import time

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

COMPONENT = {
    'type': 'OS::Heat::SoftwareComponent',
    'properties': {
        'inputs': [{'name': 'who'}],
        'outputs': [{'name': 'greeting'}],
        'configs': [
            {
                'actions': [action],
                'tool': 'script',
                'config': f'#!/bin/sh\necho {verb} $who | tee {verb}\n',
            }
            for action, verb in {
                'CREATE': 'install',
                'UPDATE': 'upgrade',
                'DELETE': 'remove',
                'BACKUP': 'save',
            }.items()
        ],
    },
}


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
        stack.delete()
        stack.wait('DELETE_COMPLETE')
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
        stack.update(template, who='moon')
        stack.wait('UPDATE_COMPLETE')
        found = stack.outputs['deployment_deploy_stdout']
        assert found == 'upgrade moon\n'
        # There is nothing to run, and nothing to wait for.
        stack.action(suspend=None)
        stack.wait('SUSPEND_COMPLETE')
        stack.action(resume=None)
        stack.wait('RESUME_COMPLETE')
        stack.delete()
        stack.wait('DELETE_COMPLETE')
    assert len(servers.signals(cloud, stack)) == 3
    ran = {path.name for path in (agent.path / 'var/script').iterdir()}
    assert {'install', 'upgrade', 'remove'} <= ran
    assert 'save' not in ran


@pytest.mark.quick
def test_update_keeps_the_deployment_and_makes_a_config(stacks):
    template = base.software()
    stack = stacks(template)
    before = stack.waiting()
    assert before.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    after = stack.waiting(action='UPDATE')
    assert after.id == before.id
    assert after.config['id'] != before.config['id']
    assert after.inputs['who'] == 'moon'
    assert [one['id'] for one in stack.metadata()] == [after.config['id']]
    assert after.put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')


def test_it_is_shown_while_it_waits_and_the_object_store_hangs(cloud, stacks):
    template = base.software()
    stack = stacks(template)
    assert stack.waiting().put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    after = stack.waiting(action='UPDATE')

    def shown():
        attributes = stack.resource('deployment', 'runs')['attributes']
        return attributes, attributes.pop('runs')

    # Without another attribute, it is as Heat's API shows the deployment.
    path = f'/software_deployments/{after.id}'
    answer = cloud.session().get('orchestration', path).json()
    assert shown() == (answer['software_deployment'], [])
    with cloud.frozen('swift'):
        begun = time.monotonic()
        assert shown() == (answer['software_deployment'], [])
        # Runs are in Heat's database.
        assert time.monotonic() - begun < 3
    assert after.put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')
    config_id = stack.resource('config')['physical_resource_id']
    answer = cloud.session().get(
        'orchestration', f'/software_configs/{config_id}'
    )
    config = stack.resource('config')['attributes']
    assert config == answer.json()['software_config']


@pytest.mark.quick
def test_input_that_replaces_on_change_makes_another_deployment(stacks):
    template = base.software()
    config = template['resources']['config']['properties']
    config['inputs'] = [{'name': 'who', 'replace_on_change': True}]
    stack = stacks(template)
    before = stack.waiting()
    assert before.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    after = stack.waiting()
    assert after.id != before.id
    assert after.put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')
    assert [one['id'] for one in stack.metadata()] == [after.config['id']]


def test_update_removes_one_deployment_while_another_waits(stacks):
    stack = stacks(base.software(deployments=2))
    for name in ('deployment0', 'deployment1'):
        assert stack.waiting(name).put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    template = base.software(deployments=2)
    del template['resources']['deployment0']
    for output in ('greeting', 'deploy_stdout'):
        del template['outputs'][f'deployment0_{output}']
    stack.update(template, who='moon')
    waiting = stack.waiting('deployment1', 'UPDATE')
    base.until(lambda: stack.deployment('deployment0') is None)
    assert stack.resource('deployment1')['resource_status'] == (
        'UPDATE_IN_PROGRESS'
    )
    assert waiting.put(servers.body(greeting='hello moon')) == 201
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment1_greeting'] == 'hello moon'


@pytest.fixture
def member(cloud):
    """A session of one more member of the project."""
    admin, demo, other = (
        cloud.session(user) for user in ('admin', 'demo', 'other')
    )
    granted = []
    for name in ('member', 'heat_stack_owner'):
        roles = admin.get('identity', f'/roles?name={name}').json()['roles']
        granted.append(
            f'/projects/{demo.project_id}/users/{other.user_id}'
            f'/roles/{roles[0]["id"]}'
        )
        assert admin.put('identity', granted[-1]).ok
    answer = other.post(
        'identity',
        '/auth/tokens',
        {
            'auth': {
                'identity': {
                    'methods': ['token'],
                    'token': {'id': other.token},
                },
                'scope': {'project': {'id': demo.project_id}},
            }
        },
    )
    assert answer.ok, answer
    found = copy.copy(demo)
    found._client = copy.copy(demo._client)
    found._client.token = answer.headers['X-Subject-Token']
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


def test_forty_at_once_in_a_new_project_are_all_signalled(cloud, stacks):
    other = cloud.session('other')
    stack = stacks(base.software(deployments=40), user='other')
    configs = base.until(
        lambda: len(found := stack.metadata()) == 40 and found
    )
    urls = {base.signal_url(config) for config in configs}
    assert len(urls) == 40
    answers = [base.put(url, servers.body(greeting='hi')) for url in urls]
    assert answers == [201] * 40
    stack.wait('CREATE_COMPLETE')
    greetings = [
        value for name, value in stack.outputs.items() if 'greeting' in name
    ]
    assert greetings == ['hi'] * 40
    account = other.request('HEAD', 'object-store')
    assert account.ok
    keys = [name for name in account.headers if 'temp-url-key' in name.lower()]
    # Ceph's gateway takes no other.
    assert bool(keys) == (conftest.STORE == 'rgw')


def test_update_right_after_create_never_ends_on_the_old_signal(cloud, stacks):
    names = [f'deployment{number}' for number in range(5)]
    template = base.software(deployments=5)
    stack = stacks(template)
    waiting = [stack.waiting(name) for name in names]
    for one in waiting:
        assert one.put(servers.body(greeting='CREATE')) == 201
    stack.wait('CREATE_COMPLETE')
    for number in range(4):
        stack.update(template, who=f'moon {number}')
        # As fast as can be, and again when the next action waits.
        late = [one.put(servers.body(greeting='late')) for one in waiting]
        before, waiting = (
            waiting,
            [stack.waiting(name, 'UPDATE') for name in names],
        )
        late += [one.put(servers.body(greeting='late')) for one in before]
        assert late == [201] * 10
        _two_more_listings(cloud, stack)
        for name in names:
            state = stack.resource(name)['resource_status']
            assert state == 'UPDATE_IN_PROGRESS'
        for one in waiting:
            assert one.put(servers.body(greeting=f'{number}')) == 201
        stack.wait('UPDATE_COMPLETE')
        found = {stack.outputs[f'{name}_greeting'] for name in names}
        assert found == {f'{number}'}


def _two_more_listings(cloud, stack):
    """Wait until the engine has looked twice."""

    def listings():
        return len(cloud.swift_requests(0, 'GET', servers.container(stack)))

    before = listings()
    base.until(lambda: listings() >= before + 2)


def test_signal_before_the_engine_looks_counts(cloud, stacks):
    rule = {'path': '.*/heat-plugins-[^/]+', 'hide_from_listing': '.'}
    with cloud.faults([rule]):
        stack = stacks(base.software())
        assert stack.waiting().put(servers.body(greeting='early')) == 201
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'early'


def test_second_signal_of_an_action_changes_nothing(stacks):
    stack = stacks(base.software())
    waiting = stack.waiting()
    assert waiting.put(servers.body(greeting='first')) == 201
    stack.wait('CREATE_COMPLETE')
    assert waiting.put(servers.body(greeting='second')) == 201
    found = stack.deployment()
    assert found.outputs['greeting'] == 'first'
    assert stack.outputs['deployment_greeting'] == 'first'
    # Nor does one that comes through Heat.
    stack.signal('deployment', {'greeting': 'third'})
    assert stack.deployment().outputs['greeting'] == 'first'


@pytest.mark.quick
def test_failed_update_is_repeated_in_place_without_a_change(cloud, stacks):
    template = base.software()
    stack = stacks(template)
    created = stack.waiting()
    assert created.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.update(template, who='moon')
    failing = stack.waiting(action='UPDATE')
    assert failing.put(servers.body(deploy_status_code=7)) == 201
    stack.wait('UPDATE_FAILED')
    assert 'exit status (deploy_status_code) is 7' in stack.reason
    stack.update(template, who='moon')
    again = stack.waiting(action='UPDATE')
    assert again.id == created.id
    assert again.config['id'] != failing.config['id']
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello moon'


def test_failed_create_that_is_repeated_is_not_undone_after_it(stacks):
    template = base.software(actions=['CREATE', 'DELETE'])
    stack = stacks(template)
    failing = stack.waiting()
    assert failing.put(servers.body(deploy_status_code=7)) == 201
    stack.wait('CREATE_FAILED')
    stack.update(template)
    again = stack.waiting(action='CREATE')
    assert again.id != failing.id
    assert again.put(servers.body(greeting='hello')) == 201
    # What failed goes now, and would wait for the answer to its DELETE.
    stack.wait('UPDATE_COMPLETE')
    assert stack.deployment().id == again.id
    stack.delete()
    assert stack.waiting(action='DELETE').put(servers.body()) == 201
    stack.wait('DELETE_COMPLETE')


@pytest.mark.quick
def test_check_runs_nothing_and_notices_what_is_gone(cloud, stacks):
    stack = stacks(base.software())
    waiting = stack.waiting()
    assert waiting.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    assert stack.deployment().config == waiting.config
    assert stack.deployment().status == 'COMPLETE'
    path = f'/software_deployments/{waiting.id}'
    assert cloud.session().delete('orchestration', path).ok
    stack.action(check=None)
    base.until(lambda: stack.status == 'CHECK_FAILED')
    assert f'Deployment {waiting.id} no longer exists' in stack.reason
    stack.update(base.software())
    assert stack.waiting(action='UPDATE').put(servers.body()) == 201
    stack.wait('UPDATE_COMPLETE')
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
