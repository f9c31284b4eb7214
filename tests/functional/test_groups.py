# SPDX-License-Identifier: Apache-2.0
"""Groups of both kinds: one resource, or a nested stack."""

import contextlib

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

NAMES = ('one', 'two', 'three')

ALL = ['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE']


def template(names=NAMES, **properties):
    """Return a group with some servers, each of which greets."""
    whole = base.software(deployments=0)
    server = whole['resources'].pop('server')
    whole['resources']['config'].pop('depends_on')
    whole['resources'] |= dict.fromkeys(names, server)
    whole['resources']['group'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'properties': {
            'servers': {name: {'get_resource': name} for name in names},
            'config': {'get_resource': 'config'},
            'signal_transport': 'TEMP_URL_POLL',
            'input_values': {'who': {'get_param': 'who'}},
            'name': 'group',
            **properties,
        },
    }
    whole['outputs'] = {
        name: {'value': {'get_attr': ['group', name]}}
        for name in ('greeting', 'deploy_stdouts', 'members')
    }
    return whole


@contextlib.contextmanager
def agents(cloud, stack):
    """Be the agents of all servers of a stack."""
    with contextlib.ExitStack() as running:
        for name in NAMES:
            running.enter_context(servers.agent(cloud, stack, name))
        yield


class Servers:
    """Servers that the test answers for: no agent runs anything."""

    def __init__(self, stack):
        self._stack = stack
        #: The configs that were answered, by member.
        self.ran = {name: [] for name in NAMES}

    def configs(self, action):
        """Return what servers must run for an action, unless answered."""
        found = {}
        for name in NAMES:
            for config in self._stack.metadata(name):
                inputs = {
                    one['name']: one['value'] for one in config['inputs']
                }
                is_new = config['id'] not in self.ran[name]
                if inputs['deploy_action'] == action and is_new:
                    found[name] = config
        return found

    def waiting(self, action, count):
        """Wait until `count` servers have an action; return their configs."""

        def found():
            configs = self.configs(action)
            return configs if len(configs) == count else None

        return dict(base.until(found, 120))

    def answer(self, action, count, **bodies):
        """Answer for `count` servers; with success where there is no body."""
        for name, config in self.waiting(action, count).items():
            body = bodies.get(name, servers.body(greeting=f'hello {name}'))
            assert base.put(base.signal_url(config), body) == 201
            self.ran[name].append(config['id'])


BAD = servers.body(deploy_status_code=1, deploy_stderr='boom')


@pytest.mark.long
@conftest.single_is_quick
@pytest.mark.timeout(300)
def test_servers_come_and_go(cloud, stacks, members):
    whole = template(actions=['CREATE', 'UPDATE', 'DELETE'], members=members)
    stack = stacks(whole)
    with agents(cloud, stack):
        stack.wait('CREATE_COMPLETE')
        assert stack.outputs['greeting'] == dict.fromkeys(NAMES, 'hello world')
        assert bool(stack.members('group')) == (members == 'nested')
        states = stack.outputs['members']
        assert {one['status'] for one in states.values()} == {'COMPLETE'}
        del whole['resources']['group']['properties']['servers']['one']
        stack.updated(whole, who='moon')
        assert stack.outputs['greeting'] == dict.fromkeys(
            NAMES[1:], 'hello moon'
        )
        stack.remove()


@pytest.mark.long
@conftest.single_is_quick
@pytest.mark.timeout(300)
def test_the_whole_life_of_a_group(stacks, members):
    whole = template(actions=ALL, members=members)
    stack = stacks(whole)
    fleet = Servers(stack)
    fleet.answer('CREATE', 3, two=BAD)
    stack.wait('CREATE_FAILED')
    assert 'boom' in stack.reason
    base.until(
        lambda: stack.resource('group')['resource_status'] == 'CREATE_FAILED',
        60,
    )
    # The failed one alone is repeated.
    stack.update(whole)
    fleet.answer('CREATE', 1)
    stack.wait('UPDATE_COMPLETE')
    ran = {name: len(found) for name, found in fleet.ran.items()}
    assert ran == {'one': 1, 'two': 2, 'three': 1}
    assert stack.outputs['greeting'] == {
        name: f'hello {name}' for name in NAMES
    }
    # A cancelled update is rolled back.
    stack.update(whole, who='moon')
    before = ids(fleet.waiting('UPDATE', 3))
    stack.action(cancel_update=None)

    def back():
        found = fleet.configs('UPDATE')
        return len(found) == 3 and not before & ids(found)

    base.until(back, 120)
    found = fleet.configs('UPDATE').values()
    assert {base.value(config, 'who') for config in found} == {'world'}
    fleet.answer('UPDATE', 3)
    stack.wait('ROLLBACK_COMPLETE')
    stack.action(suspend=None)
    fleet.answer('SUSPEND', 3)
    stack.wait('SUSPEND_COMPLETE')
    stack.action(resume=None)
    fleet.answer('RESUME', 3)
    stack.wait('RESUME_COMPLETE')
    stack.action(check=None)
    stack.wait('CHECK_COMPLETE')
    stack.delete()
    fleet.answer('DELETE', 3)
    stack.wait('DELETE_COMPLETE')


@conftest.single_is_quick
def test_what_was_abandoned_is_adopted(stacks, members):
    apart = template()
    del apart['resources']['group'], apart['resources']['config']
    # Heat itself cannot delete a server that it has adopted.
    apart['outputs'] = {
        name: {'value': {'get_resource': name}} for name in NAMES
    }
    home = stacks(apart).created()
    whole = template(members=members)
    for name in NAMES:
        del whole['resources'][name]
    whole['resources']['group']['properties']['servers'] = home.outputs
    stack = stacks(whole)
    Servers(home).answer('CREATE', 3)
    stack.wait('CREATE_COMPLETE')
    before = stack.resource('group')['physical_resource_id']
    adopted = stacks(whole, adopt=stack.abandon())
    adopted.wait('ADOPT_COMPLETE')
    if members == 'single':
        after = adopted.resource('group')['physical_resource_id']
        assert after == before
    assert adopted.outputs['greeting'] == {
        name: f'hello {name}' for name in NAMES
    }


def ids(found):
    return {config['id'] for config in found.values()}


@conftest.single_is_quick
@pytest.mark.timeout(300)
def test_a_group_marked_unhealthy_runs_again_and_keeps_its_kind(
    stacks, members
):
    whole = template(signal_transport='NO_SIGNAL', members=members)
    stack = stacks(whole).created()

    def given():
        return {name: stack.metadata(name)[-1] for name in NAMES}

    def kept():
        return str(stack.resource('group')['physical_resource_id'])

    made, before = kept(), given()
    stack.mark('group')
    stack.updated(whole)
    after = given()
    actions = {base.value(one, 'deploy_action') for one in after.values()}
    assert actions == {'UPDATE'}
    assert not ids(before) & ids(after)
    # Once.
    stack.updated(whole)
    assert ids(given()) == ids(after)
    # Until the template names the other kind.
    properties = whole['resources']['group']['properties']
    del properties['members']
    stack.updated(whole, who='moon')
    assert kept() == made
    properties['members'] = {'single': 'nested', 'nested': 'single'}[members]
    assert 'group' in stack.preview(whole, who='moon')['replaced']
    stack.updated(whole, who='moon')
    assert kept() != made
    assert bool(stack.members('group')) == (members == 'single')
