# SPDX-License-Identifier: Apache-2.0
"""A real Mistral that fails on order, or is away."""

import contextlib

import pytest

from tests.functional import flows
from tests.functional import mistral_proxy

Fault = mistral_proxy.Fault


@contextlib.contextmanager
def passing(mistral, *calls):
    """Let each of these calls fail in passing; in the end all have.

    It is answered by 503, and then not at all; a call that changes something
    has its effect the second time.
    """
    faults = [
        Fault(*call.split(), done=status is None, status=status)
        for call in calls
        for status in (503, None)
    ]
    with mistral.failing(*faults):
        yield
    assert [one for one in faults if one.times] == []


@pytest.mark.quick
def test_workflow_rides_out_passing_errors(made, mistral):
    done = True
    with mistral.failing(
        Fault('GET', '/workflows', 1),
        Fault('POST', '/workflows\\?', 1, done),
        Fault('POST', '/executions', 1, done),
    ):
        stack = made(flows.template())
        stack.signal('workflow', {})
        assert flows.signalled(stack)['error'] is None
    assert flows.finished(stack)['state'] == 'SUCCESS'
    assert len(stack.outputs['executions']) == 1
    with mistral.failing(
        Fault('PUT', '/workflows', 1, done),
        Fault('POST', '/workflows\\?', 1, done),
    ):
        stack.update(flows.template(f'{flows.ECHO}more:\n  {flows.NOOP}\n'))
        stack.wait('UPDATE_COMPLETE')
    with mistral.failing(
        Fault('GET', '/executions', 1),
        Fault('DELETE', '/executions', 1, done),
        Fault('DELETE', '/workflows', 1, done),
    ):
        stack.delete()
        stack.wait('DELETE_COMPLETE')


# Triggers, executions, actions and environments ---------------------------

OTHERS = ('trigger', 'run', 'act', 'env')


def others(word, **changed):
    """Return one resource of each other type, which runs ``tidy``."""
    resources = {
        'trigger': {
            'type': 'OS::Mistral::CronTrigger',
            'properties': {
                'name': 'faulty',
                'pattern': flows.YEARLY,
                'workflow': {'name': 'tidy', 'input': {'text': word}},
            },
        },
        'run': {
            'type': 'OS::Mistral::Execution',
            'properties': {'workflow': 'tidy', 'input': {'text': word}},
        },
        'act': {
            'type': 'OS::Mistral::Action',
            'properties': {
                'base': 'std.echo',
                'base_input': {'output': word},
            },
        },
        'env': {
            'type': 'OS::Mistral::Environment',
            'properties': {'variables': {'word': word}},
        },
    }
    return {
        'heat_template_version': '2021-04-16',
        'resources': {name: resources[name] for name in OTHERS} | changed,
        'outputs': {'said': {'value': {'get_attr': ['run', 'output']}}},
    }


@pytest.fixture
def tidy(mistral):
    """A workflow that is there before any stack."""
    text = flows.ECHO.replace('echo:', 'tidy:', 1)
    mistral.make(text)
    yield
    mistral.session.delete(flows.MISTRAL, '/workflows/tidy')


def told(mistral):
    """Return what Mistral has been told to hold, in a form to compare."""
    (trigger,) = mistral.triggers()
    return {
        'trigger': trigger['workflow_input'],
        'runs': sorted(one['input'] for one in mistral.executions()),
        'actions': [one['definition'] for one in mistral.actions()],
        'variables': [one['variables'] for one in mistral.environments()],
    }


def test_others_ride_out_passing_errors(tidy, made, mistral):
    with passing(
        mistral,
        'GET /cron_triggers',
        'POST /cron_triggers',
        'POST /executions',
        'GET /executions/',
        'GET /tasks',
        'POST /actions\\?',
        'POST /environments',
    ):
        stack = made(others('one'))
    first = told(mistral)
    assert first['trigger'] == '{"text": "one"}', first
    assert len(first['runs']) == 1
    assert len(first['actions']) == len(first['variables']) == 1
    with passing(
        mistral,
        'GET /workflows/tidy',
        'DELETE /cron_triggers',
        'POST /cron_triggers',
        'POST /executions',
        'GET /executions/',
        'PUT /actions',
        'PUT /environments',
    ):
        stack.update(others('two'))
        stack.wait('UPDATE_COMPLETE')
    assert stack.outputs['said'] == {'said': 'two'}
    second = told(mistral)
    assert second['trigger'] == '{"text": "two"}'
    assert len(second['runs']) == 2
    assert 'two' in second['actions'][0]
    assert len(second['actions']) == len(second['variables']) == 1
    with passing(
        mistral,
        'DELETE /cron_triggers',
        'DELETE /executions',
        'DELETE /actions',
        'DELETE /environments',
    ):
        stack.delete()
        stack.wait('DELETE_COMPLETE')
