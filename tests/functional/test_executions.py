# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution, Environment and Action with a real Mistral."""

import pytest

from tests.functional import flows

WORKFLOWS = """\
version: '2.0'
build:
  input: [what, act: std.echo]
  output:
    built: <% $.built %>
    why: <% env().heat.action %>
    where: <% env().get(where, nowhere) %>
  tasks:
    build:
      action: <% $.act %> output=<% $.what %>
      publish:
        built: <% task().result %>
        by: somebody
"""


@pytest.fixture
def executions(mistral):
    """Returns the states of executions."""
    mistral.make(WORKFLOWS)
    yield lambda: list(mistral.states().values())
    mistral.session.delete(flows.MISTRAL, '/workflows/build')


def template(more=None, **properties):
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'run': {
                'type': 'OS::Mistral::Execution',
                'properties': {'workflow': 'build', **properties},
            },
            **(more or {}),
        },
        'outputs': {
            name: {'value': {'get_attr': ['run', name]}}
            for name in ('output', 'published', 'state', 'state_info')
        },
    }


def deleted(stack, executions):
    """Delete a stack, and hold that no execution stays behind."""
    stack.remove()
    assert executions() == []


@pytest.mark.quick
def test_it_runs_on_create_on_a_changed_input_and_on_delete(
    stacks, executions
):
    actions = ['CREATE', 'UPDATE', 'DELETE']
    stack = stacks(template(input={'what': 'one'}, actions=actions)).created()
    assert stack.outputs == {
        'output': {'built': 'one', 'why': 'CREATE', 'where': 'nowhere'},
        'published': {'built': 'one', 'by': 'somebody'},
        'state': 'SUCCESS',
        'state_info': None,
    }
    stack.updated(template(input={'what': 'two'}, actions=actions))
    assert stack.outputs['output']['built'] == 'two'
    assert stack.outputs['output']['why'] == 'UPDATE'
    assert executions() == ['SUCCESS', 'SUCCESS']
    deleted(stack, executions)


@pytest.mark.quick
def test_an_action_and_an_environment_of_the_stack(
    stacks, executions, mistral
):
    def made(greeting):
        return {
            'greet': {
                'type': 'OS::Mistral::Action',
                'properties': {
                    'base': 'std.echo',
                    'base_input': {'output': f'{greeting} <% $.output %>'},
                    'input': ['output'],
                },
            },
            'env': {
                'type': 'OS::Mistral::Environment',
                'properties': {'variables': {'where': greeting}},
            },
        }

    def whole(greeting):
        return template(
            made(greeting),
            input={'what': 'world', 'act': {'get_resource': 'greet'}},
            # One that changes, so that the update runs it again.
            params={
                'env': {'where': {'get_attr': ['env', 'variables', 'where']}}
            },
        )

    stack = stacks(whole('hello')).created()
    assert stack.outputs['output']['built'] == 'hello world'
    assert stack.outputs['output']['where'] == 'hello'
    names = {
        name: stack.resource(name)['physical_resource_id']
        for name in ('greet', 'env')
    }
    stack.updated(whole('goodbye'))
    assert stack.outputs['output']['built'] == 'goodbye world'
    paths = {
        'greet': f'/actions/{names["greet"]}',
        'env': f'/environments/{names["env"]}',
    }
    for name, path in paths.items():
        assert stack.resource(name)['physical_resource_id'] == names[name]
        assert mistral.session.get(flows.MISTRAL, path).ok
    deleted(stack, executions)
    for path in paths.values():
        assert mistral.session.get(flows.MISTRAL, path).status == 404


def test_the_example_does_what_it_says(stacks, executions):
    text = (flows.EXAMPLES / 'execution.yaml').read_text()
    stack = stacks(text).created()
    assert stack.outputs == {'said': 'Good evening, world!', 'when': 'CREATE'}
    stack.updated(text, name='moon')
    assert stack.outputs == {'said': 'Good evening, moon!', 'when': 'UPDATE'}
    deleted(stack, executions)
