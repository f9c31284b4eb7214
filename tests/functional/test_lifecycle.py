# SPDX-License-Identifier: Apache-2.0
"""A deployment's life, with the real agent at the other end."""

from tests.functional import base


def test_agent_signals_create_update_and_delete(cloud, stacks):
    template = base.software(actions=['CREATE', 'UPDATE', 'DELETE'])
    stack = stacks(template)
    with cloud.agent(stack.name, stack=stack.name, resource='server'):
        stack.wait('CREATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'hello world'
        stack.update(template, who='moon')
        stack.wait('UPDATE_COMPLETE')
        assert stack.outputs['deployment_greeting'] == 'hello moon'
        stack.delete()
        stack.wait('DELETE_COMPLETE')
