# SPDX-License-Identifier: Apache-2.0
"""Groups of both kinds, one resource or a nested stack, and of each type."""

import pytest

from tests.functional import base
from tests.functional import servers

NAMES = ('one', 'two', 'three')

ALL = ['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE']

BAD = {'deploy_status_code': 1, 'deploy_stderr': 'boom'}

#: By type: what is a group, and the config that it takes.
TYPES = {
    'OS::Heat::SoftwareDeploymentGroup': 'config',
    'OS::Heat::SoftwareDeployments': 'config',
    'OS::Heat::StructuredDeploymentGroup': 'structured',
    'OS::Heat::StructuredDeployments': 'structured',
}

OUTPUTS = ('greeting', 'deploy_stdouts', 'deploy_status_codes')


def template(names=NAMES, **properties):
    """Return a group with some servers, each of which greets."""
    properties = {
        'signal_transport': 'TEMP_URL_POLL',
        'servers': {name: {'get_resource': name} for name in names},
        **properties,
    }
    whole = base.group(0, **properties)
    server = whole['resources'].pop('server')
    whole['resources']['config'].pop('depends_on')
    whole['resources'] |= dict.fromkeys(names, server)
    whole['outputs'] = {
        name: {'value': {'get_attr': ['group', name]}}
        for name in ('greeting', 'members')
    }
    return whole


@pytest.mark.quick
@pytest.mark.long
def test_each_type_deploys_to_servers_that_come_and_go(cloud, stacks):
    whole = template(NAMES[:2], actions=['CREATE', 'UPDATE', 'DELETE'])
    resources = whole['resources']
    group = resources.pop('group')['properties']
    group['input_values']['script'] = base.SCRIPT
    # All of the config is an input, so that it is a text in the end: what
    # the script hook can run.
    resources['structured'] = {
        'type': 'OS::Heat::StructuredConfig',
        'properties': {
            **resources['config']['properties'],
            'inputs': [{'name': 'who'}, {'name': 'script'}],
            'config': {'get_input': 'script'},
        },
    }
    names = {f'group{number}': kind for number, kind in enumerate(TYPES)}
    for number, (name, kind) in enumerate(names.items()):
        properties = {
            **group,
            'servers': {**group['servers']},
            'config': {'get_resource': TYPES[kind]},
            'members': ('single', 'nested')[number % 2],
        }
        resources[name] = {'type': kind, 'properties': properties}
    single = {**properties, 'server': {'get_resource': 'one'}}
    del single['servers'], single['members']
    resources['alone'] = {
        'type': 'OS::Heat::StructuredDeployment',
        'properties': single,
    }
    whole['outputs'] = {
        f'{name}_{output}': {'value': {'get_attr': [name, output]}}
        for name in names
        for output in OUTPUTS
    }
    whole['outputs']['alone'] = {'value': {'get_attr': ['alone', 'greeting']}}
    stack = stacks(whole)

    def greet(action, who, servers):
        expected = f'hello {who}', f'{action} for {who}\n', 0
        for name in names:
            for output, value in zip(OUTPUTS, expected, strict=True):
                found = stack.outputs[f'{name}_{output}']
                assert found == dict.fromkeys(servers, value), name
        assert stack.outputs['alone'] == f'hello {who}'

    with (
        servers.agent(cloud, stack, 'one'),
        servers.agent(cloud, stack, 'two'),
    ):
        stack.wait('CREATE_COMPLETE')
        greet('CREATE', 'world', NAMES[:2])
        puts = servers.signals(cloud, stack)
        assert [one['status'] for one in puts] == [201] * 9
        assert not any(one['token'] for one in puts)
        for name in names:
            del resources[name]['properties']['servers']['one']
        stack.updated(whole, who='moon')
        greet('UPDATE', 'moon', ['two'])
        stack.remove()


class Servers:
    """Servers that the test answers for: no agent runs anything."""

    def __init__(self, stack):
        self._stack = stack
        #: The configs that were answered, by member.
        self.ran = {name: [] for name in NAMES}

    def configs(self, action):
        """Return what servers must run for an action, unless answered."""
        return {
            name: config
            for name in NAMES
            for config in self._stack.metadata(name)
            if base.value(config, 'deploy_action') == action
            and config['id'] not in self.ran[name]
        }

    def waiting(self, action, count):
        """Wait until `count` servers have an action; return their configs."""
        return base.until(
            lambda: len(found := self.configs(action)) == count and found, 120
        )

    def answer(self, action, count, **outputs):
        """Answer for `count` servers; with success where there is none."""
        for name, config in self.waiting(action, count).items():
            given = {'greeting': f'hello {name}', **outputs.get(name, {})}
            base.answer(config, **given)
            self.ran[name].append(config['id'])


@pytest.mark.long
@pytest.mark.parametrize(
    'members', [pytest.param('single', marks=pytest.mark.quick), 'nested']
)
def test_the_whole_life_of_a_group(stacks, members):
    whole = template(actions=ALL, members=members)
    stack = stacks(whole)
    fleet = Servers(stack)

    def act(action, status='COMPLETE', **begin):
        stack.action(**begin)
        if action:
            fleet.answer(action, 3)
        stack.wait(f'{next(iter(begin)).upper()}_{status}')

    def kept():
        return str(stack.resource('group')['physical_resource_id'])

    fleet.answer('CREATE', 3, two=BAD)
    stack.wait('CREATE_FAILED')
    assert 'boom' in stack.reason
    assert bool(stack.members('group')) == (members == 'nested')
    # The failed one alone is repeated.
    stack.update(whole)
    fleet.answer('CREATE', 1)
    stack.wait('UPDATE_COMPLETE')
    ran = {name: len(found) for name, found in fleet.ran.items()}
    assert ran == {'one': 1, 'two': 2, 'three': 1}
    assert stack.outputs['greeting'] == {
        name: f'hello {name}' for name in NAMES
    }
    states = stack.outputs['members'].values()
    assert {one['status'] for one in states} == {'COMPLETE'}
    # A cancelled update is rolled back.
    stack.update(whole, who='moon')
    fleet.waiting('UPDATE', 3)
    stack.action(cancel_update=None)
    base.until(
        lambda: (
            [
                base.value(config, 'who')
                for config in fleet.configs('UPDATE').values()
            ]
            == ['world'] * 3
        ),
        120,
    )
    fleet.answer('UPDATE', 3)
    stack.wait('ROLLBACK_COMPLETE')
    act('SUSPEND', suspend=None)
    act('RESUME', resume=None)
    act('', check=None)
    # One that is marked unhealthy runs again, once, and keeps its kind until
    # the template names the other one.
    made = kept()
    stack.mark('group')
    stack.update(whole)
    fleet.answer('UPDATE', 3)
    stack.wait('UPDATE_COMPLETE')
    properties = whole['resources']['group']['properties']
    del properties['members']
    stack.updated(whole)
    assert kept() == made
    properties['members'] = {'single': 'nested', 'nested': 'single'}[members]
    assert 'group' in stack.preview(whole)['replaced']
    stack.update(whole)
    fleet.answer('CREATE', 3)
    fleet.answer('DELETE', 3)
    stack.wait('UPDATE_COMPLETE')
    assert kept() != made
    assert bool(stack.members('group')) == (members == 'single')
    stack.delete()
    fleet.answer('DELETE', 3)
    stack.wait('DELETE_COMPLETE')
