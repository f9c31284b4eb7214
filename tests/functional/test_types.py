# SPDX-License-Identifier: Apache-2.0
"""Structured deployments and groups, on real agents."""

import pytest

from tests.functional import base
from tests.functional import servers

GROUPS = {
    'OS::Heat::SoftwareDeploymentGroup': 'config',
    'OS::Heat::SoftwareDeployments': 'config',
    'OS::Heat::StructuredDeploymentGroup': 'structured',
    'OS::Heat::StructuredDeployments': 'structured',
}


def _structured(config):
    return {
        'type': 'OS::Heat::StructuredConfig',
        'properties': {
            'group': 'script',
            'inputs': [{'name': 'who'}, {'name': 'script'}],
            'outputs': [{'name': 'greeting'}],
            'config': config,
        },
    }


def _groups():
    """Return a template: two servers, and each kind of group over them."""
    template = base.software(deployments=0)
    template['outputs'] = {}
    resources = template['resources']
    resources['two'] = {
        'type': 'OS::Heat::DeployedServer',
        'depends_on': ['server'],
    }
    # All of the config is an input, so that it is a text in the end: what
    # the script hook can run.
    resources['structured'] = {
        **_structured({'get_input': 'script'}),
        'depends_on': ['server'],
    }
    for number, (kind, config) in enumerate(GROUPS.items()):
        name = f'group{number}'
        resources[name] = {
            'type': kind,
            'properties': {
                'servers': {
                    'one': {'get_resource': 'server'},
                    'two': {'get_resource': 'two'},
                },
                'config': {'get_resource': config},
                'signal_transport': 'TEMP_URL_POLL',
                'input_values': {'who': name, 'script': base.SCRIPT},
                'name': name,
                'members': ('single', 'nested')[number % 2],
            },
        }
        for output in ('greeting', 'deploy_stdouts', 'deploy_status_codes'):
            template['outputs'][f'{name}_{output}'] = {
                'value': {'get_attr': [name, output]}
            }
    return template


@pytest.mark.quick
def test_groups_deploy_to_each_of_their_servers(cloud, stacks):
    stack = stacks(_groups())
    with servers.agent(cloud, stack), servers.agent(cloud, stack, 'two'):
        stack.wait('CREATE_COMPLETE')
    outputs = stack.outputs
    for number in range(len(GROUPS)):
        name = f'group{number}'
        for output, value in {
            'greeting': f'hello {name}',
            'deploy_stdouts': f'CREATE for {name}\n',
            'deploy_status_codes': 0,
        }.items():
            found = outputs[f'{name}_{output}']
            assert found == {'one': value, 'two': value}
    puts = servers.signals(cloud, stack)
    assert [one['status'] for one in puts] == [201] * 8
    assert not any(one['token'] for one in puts)


@pytest.mark.quick
def test_inputs_are_put_into_a_structured_config(cloud, stacks):
    config = _structured({'greet': [{'get_input': 'who'}, {'and': ['all']}]})
    template = base.software(config=config)
    template['resources']['deployment']['type'] = (
        'OS::Heat::StructuredDeployment'
    )
    stack = stacks(template)
    handed = stack.waiting()
    assert handed.config['config'] == {'greet': ['world', {'and': ['all']}]}
    assert handed.put(servers.body(greeting='hello')) == 201
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello'
    template['resources']['config']['properties']['config'] = {
        'get_input': 'script'
    }
    values = template['resources']['deployment']['properties']['input_values']
    values['script'] = base.SCRIPT
    stack.update(template, who='moon')
    with servers.agent(cloud, stack):
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['deployment_greeting'] == 'hello moon'
