# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack, on real agents."""

import contextlib
from typing import Any

import pytest

from tests.functional import base
from tests.functional import servers

NAMES = ('one', 'two', 'three')


def template(**properties: Any) -> base.Template:
    """Return a group with three servers, each of which greets."""
    whole = base.software(deployments=0)
    server = whole['resources'].pop('server')
    whole['resources']['config'].pop('depends_on')
    whole['resources'] |= dict.fromkeys(NAMES, server)
    policy = properties.pop('update_policy', {})
    whole['resources']['group'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'update_policy': policy,
        'properties': {
            'members': 'single',
            'servers': {name: {'get_resource': name} for name in NAMES},
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
def agents(cloud: Any, stack: base.Stack) -> Any:
    """Be the agents of all servers of a stack."""
    with contextlib.ExitStack() as running:
        for name in NAMES:
            running.enter_context(servers.agent(cloud, stack, name))
        yield


@pytest.mark.quick
@pytest.mark.timeout(300)
def test_a_group_lives_without_a_nested_stack(cloud: Any, stacks: Any) -> None:
    whole = template(actions=['CREATE', 'UPDATE', 'DELETE'])
    stack = stacks(whole)
    with agents(cloud, stack):
        stack.wait('CREATE_COMPLETE')
        assert stack.outputs['greeting'] == dict.fromkeys(NAMES, 'hello world')
        assert not stack.members('group')
        states = stack.outputs['members']
        assert {one['status'] for one in states.values()} == {'COMPLETE'}
        del whole['resources']['group']['properties']['servers']['one']
        stack.update(whole, who='moon')
        stack.wait('UPDATE_COMPLETE')
        assert stack.outputs['greeting'] == dict.fromkeys(
            NAMES[1:], 'hello moon'
        )
        stack.delete()
        stack.wait('DELETE_COMPLETE')
