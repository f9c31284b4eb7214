# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution, Environment and Action with a real Mistral."""

import pytest

from tests.functional import base
from tests.functional import conftest

MISTRAL = 'workflowv2'

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
break:
  tasks:
    first:
      action: std.noop
      on-success: second
    second:
      action: std.fail
wait:
  tasks:
    wait:
      action: std.noop
      wait-before: 300
external:
  output:
    resource_id: outside
  tasks:
    make:
      action: std.noop
"""

NAMES = ('build', 'break', 'wait', 'external')


@pytest.fixture(scope='module')
def session(cloud):
    found = cloud.session('demo')
    answer = found.post(
        MISTRAL,
        '/workflows',
        WORKFLOWS.encode(),
        headers={'Content-Type': 'text/plain'},
    )
    assert answer.ok, answer
    yield found
    for name in NAMES:
        found.delete(MISTRAL, f'/workflows/{name}')


@pytest.fixture
def executions(session):
    """Returns the executions; holds that none stays behind."""

    def listed():
        rows = session.get(MISTRAL, '/executions').json()['executions']
        return {row['id']: row['state'] for row in rows}

    before = listed()

    def found():
        return {k: v for k, v in listed().items() if k not in before}

    return found


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


def deleted(stack):
    stack.delete()
    stack.wait('DELETE_COMPLETE')


@pytest.mark.quick
def test_it_runs_on_create_on_a_changed_input_and_on_delete(
    stacks, executions
):
    actions = ['CREATE', 'UPDATE', 'DELETE']
    stack = stacks(template(input={'what': 'one'}, actions=actions))
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs == {
        'output': {'built': 'one', 'why': 'CREATE', 'where': 'nowhere'},
        'published': {'built': 'one', 'by': 'somebody'},
        'state': 'SUCCESS',
        'state_info': None,
    }
    stack.update(template(input={'what': 'two'}, actions=actions))
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['output']['built'] == 'two'
    assert stack.outputs['output']['why'] == 'UPDATE'
    assert list(executions().values()) == ['SUCCESS', 'SUCCESS']
    deleted(stack)
    assert executions() == {}


@pytest.mark.quick
def test_an_action_and_an_environment_of_the_stack(stacks, session):
    def made(greeting):
        return {
            'greet': {
                'type': 'OS::Mistral::Action',
                'properties': {
                    'base': 'std.echo',
                    'base_input': {
                        'output': f'{greeting} <% $.output %>',
                    },
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
                'env': {
                    'where': {'get_attr': ['env', 'variables', 'where']},
                }
            },
        )

    stack = stacks(whole('hello'))
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['output']['built'] == 'hello world'
    assert stack.outputs['output']['where'] == 'hello'
    names = {
        name: stack.resource(name)['physical_resource_id']
        for name in ('greet', 'env')
    }
    stack.update(whole('goodbye'))
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['output']['built'] == 'goodbye world'
    paths = {
        'greet': f'/actions/{names["greet"]}',
        'env': f'/environments/{names["env"]}',
    }
    for name, path in paths.items():
        assert stack.resource(name)['physical_resource_id'] == names[name]
        assert session.get(MISTRAL, path).ok
    deleted(stack)
    for path in paths.values():
        assert session.get(MISTRAL, path).status == 404


def test_a_cancelled_or_deleted_stack_cancels_the_run(stacks, executions):
    stack = stacks(template(workflow='wait'))
    base.until(lambda: list(executions().values()) == ['RUNNING'], 30)
    stack.action(cancel_without_rollback=None)
    base.until(lambda: list(executions().values()) == ['CANCELLED'], 30)
    deleted(stack)
    assert executions() == {}
    stack = stacks(template(workflow='wait'))
    base.until(lambda: list(executions().values()) == ['RUNNING'], 30)
    deleted(stack)
    assert executions() == {}


def test_the_example_does_what_it_says(stacks, executions):
    text = (
        base.ROOT / 'contrib/examples/workflows/execution.yaml'
    ).read_text()
    stack = stacks(text)
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs == {'said': 'Good evening, world!', 'when': 'CREATE'}
    stack.update(text, name='moon')
    stack.wait('UPDATE_COMPLETE')
    assert stack.outputs == {'said': 'Good evening, moon!', 'when': 'UPDATE'}
    deleted(stack)
    assert executions() == {}


@conftest.counted
@pytest.mark.usefixtures('session')
def test_the_external_resource_of_heat_works_beside(stacks, cloud):
    classes = cloud.resource_classes()
    name = 'OS::Mistral::ExternalResource'
    assert classes[name].startswith('heat.engine.')
    stack = stacks(
        {
            'heat_template_version': '2021-04-16',
            'resources': {
                'it': {
                    'type': name,
                    'properties': {
                        'actions': {'CREATE': {'workflow': 'external'}}
                    },
                }
            },
        }
    )
    stack.wait('CREATE_COMPLETE')
    assert stack.resource('it')['physical_resource_id'] == 'outside'
    deleted(stack)
