# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow with a real Mistral."""

import json
import subprocess

import pytest

from tests.functional import base
from tests.functional import flows

# What the examples say ----------------------------------------------------


@pytest.mark.quick
def test_definition_runs_by_signals_of_every_kind(cloud, made, mistral):
    stack = made(flows.example('definition'))
    prefix = f'{stack.name}.workflow'
    assert stack.outputs['workflows'] == {
        'greet': f'{prefix}.greet',
        'compose': f'{prefix}.compose',
    }
    stack.signal('workflow', {'workflow': 'greet', 'description': 'why'})
    ran = flows.finished(stack)
    assert ran['output'] == {'said': 'Hello, world'}
    assert ran['input'] == {'who': 'world'}
    assert ran['workflow_name'] == f'{prefix}.greet'
    assert flows.signalled(stack)['execution_id'] == ran['id']
    # Who repeats a request, as its answer was lost, starts nothing twice.
    began = mistral.states()
    assert mistral.start(f'{prefix}.greet', execution=ran['id']) == ran['id']
    assert mistral.states() == began
    said = f'Signal: execution {ran["id"]} of {prefix}.greet has started'
    assert flows.events(stack) == [('SIGNAL_COMPLETE', said)]
    # By the command.
    data = json.dumps({'input': {'who': 'you'}})
    arguments = ('resource', 'signal', stack.name, 'workflow')
    cloud.openstack('stack', *arguments, '--data', data)
    assert flows.finished(stack, count=2)['output'] == {'said': 'Hello, you'}
    # By nothing but HTTP.
    url = stack.outputs['webhook']
    assert flows.post(url, {'input': {'who': 'web'}}) == 200
    assert flows.finished(stack, count=3)['output'] == {'said': 'Hello, web'}
    assert flows.post(url) == 200
    assert flows.finished(stack, count=4)['output'] == {'said': 'Hello, world'}
    subprocess.run(
        ['curl', '--noproxy', '*', '-sf', '-X', 'POST', url],
        env=base.curl_environment(cloud),
        check=True,
    )
    assert flows.finished(stack, count=5)['output'] == {'said': 'Hello, world'}
    # An execution that has vanished spoils nothing.
    mistral.session.delete(flows.MISTRAL, f'/executions/{ran["id"]}')
    shown = stack.outputs['executions']
    assert len(shown) == 4
    assert [one['created_at'] for one in shown] == sorted(
        (one['created_at'] for one in shown), reverse=True
    )


def test_alarm_runs_a_workflow_with_what_aodh_says(made):
    content = flows.example('alarm')
    content['resources']['alarm']['type'] = 'OS::Heat::None'
    stack = made(content)
    assert flows.post(stack.outputs['alarm_url'], flows.ALARM) == 200
    assert flows.finished(stack)['output'] == {
        'said': 'cpu_high was ok and is alarm'
    }


@pytest.mark.quick
def test_workflow_in_properties_runs_and_reports_what_failed(made):
    stack = made(flows.example('structured'))
    stack.signal('workflow', {})
    ran = flows.finished(stack)
    assert ran['output'] == {'report': 'all is well on 2 hosts'}, ran
    body = {'input': {'hosts': ['192.0.2.9'], 'probe': 'std.fail'}}
    stack.signal('workflow', body)
    ran = flows.finished(stack, count=2)
    assert ran['output'] == {'report': 'something is wrong on 1 hosts'}, ran


#: As one was written in 2014.
OLD = """\
test:
  type: direct
  tasks:
    hello:
      action: std.echo output='Hello'
      publish:
        result: $
"""


@pytest.mark.quick
def test_definition_comes_from_a_file_and_is_run_by_the_clock(made, mistral):
    content = flows.example('schedule')
    properties = content['resources']['workflow']['properties']
    file = flows.EXAMPLES / properties['definition']['get_file']
    properties['definition'] = file.read_text()
    content['resources']['old'] = {
        'type': 'OS::Mistral::Workflow',
        'properties': {'definition': OLD},
    }
    stack = made(content)
    (trigger,) = mistral.triggers()
    name = f'{stack.name}.workflow.create_vm'
    assert trigger['workflow_name'] == name
    # The trigger's runs get what the stack says, and so does anybody's.
    assert 'vm_name: test' in mistral.definitions(stack)[name].replace('"', '')
    stack.signal('old', {})
    began = flows.signalled(stack, 'old')
    assert began['workflow'] == f'{stack.name}.old.test'
    base.until(lambda: mistral.state(began['execution_id']) == 'SUCCESS')


# Life ---------------------------------------------------------------------


@pytest.mark.quick
def test_update_changes_adds_and_drops_in_place(made, mistral):
    definition = (
        f'{flows.SLOW}other:\n  {flows.NOOP}\nthird:\n  {flows.NOOP}\n'
    )
    stack = made(flows.template(definition))
    prefix = f'{stack.name}.workflow'
    stack.signal('workflow', {'workflow': 'slow'})
    running = flows.signalled(stack)['execution_id']
    base.until(lambda: mistral.state(running) == 'PAUSED')
    stack.updated(flows.template(flows.ECHO))
    assert stack.outputs['available_workflows'] == {'echo': f'{prefix}.echo'}
    # What runs may yet call the others.
    assert f'{prefix}.other' in mistral.names()
    mistral.set_state(running, 'RUNNING')
    base.until(lambda: mistral.state(running) == 'SUCCESS')
    stack.signal('workflow', {'input': {'text': 'new'}})
    assert flows.finished(stack, count=2)['output'] == {'said': 'new'}
    stack.updated(flows.template(flows.ECHO, input={'text': 'default'}))
    ours = {one for one in mistral.names() if one.startswith(prefix)}
    assert ours == {f'{prefix}.echo'}
    stack.signal('workflow', {})
    assert flows.finished(stack, count=3)['output'] == {'said': 'default'}
    # What is missing is found, and made again.
    mistral.session.delete(flows.MISTRAL, f'/workflows/{prefix}.echo')
    stack.acts('FAILED', check=None)
    assert f'{prefix}.echo' in stack.reason
    stack.updated(flows.template(flows.ECHO, input={'text': 'default'}))
    assert f'{prefix}.echo' in mistral.names()
