# SPDX-License-Identifier: Apache-2.0
"""What OS::Mistral::Workflow refuses, and in which words."""

import json

import pytest

from tests.functional import flows


@pytest.mark.parametrize(
    ('definition', 'said'),
    [
        ('version: "2.0"\nw: [', 'line 2: this is not valid YAML'),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      on-success: [gone]',
            'workflow "w", task "a", line 5: on-success names the task "gone"',
        ),
        (
            f'w:\n  {flows.NOOP}\nw:\n  {flows.NOOP}',
            'line 3: the workflow "w" appears twice, also on line 1',
        ),
        (
            'w:\n  tasks:\n    a: {action: std.noop}\n    b:\n'
            '      action: std.echo\n      input: {output: <% nope( %>}',
            'workflow "w", task "b", line 6: Mistral says: input: Parse error',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      retry: {cnt: 3}',
            'workflow "w", task "a", line 5: Mistral says: retry',
        ),
    ],
)
def test_bad_definition_is_refused_with_its_place(mistral, definition, said):
    assert said in flows.refusal(mistral, flows.template(definition))


def test_both_forms_or_neither_are_refused(mistral):
    tasks = [{'name': 't', 'action': 'std.noop'}]
    for properties in (
        {'definition': flows.ECHO, 'type': 'direct', 'tasks': tasks},
        {'definition': None},
        {'definition': None, 'type': 'direct'},
    ):
        assert '"definition"' in flows.refusal(
            mistral, flows.template(**properties)
        )


@pytest.mark.parametrize(
    ('key', 'value', 'said'),
    [
        # Heat's own schema has one type for each of these.
        ('with_items', {'a': 1}, 'with-items'),
        ('wait_before', 'soon', 'wait-before'),
        ('timeout', [1], 'timeout'),
        ('pause_before', 'perhaps', 'pause-before'),
        ('concurrency', {'a': 1}, 'concurrency'),
        ('keep_result', 5, 'keep-result'),
        ('safe_rerun', 5, 'safe-rerun'),
        ('retry', 5, 'retry'),
        ('retry', {'tries': 5}, 'retry'),
        ('on_success', 5, 'on-success'),
        ('on_success', ['gone'], 'on-success names the task "gone"'),
        ('join', {'a': 1}, 'join'),
        ('input', [1], 'input'),
        ('publish', 5, 'publish'),
    ],
)
def test_value_that_no_task_can_have_is_named(mistral, key, value, said):
    task = {'name': 'one', 'action': 'std.noop', key: value}
    if key == 'concurrency':
        task['with_items'] = 'i in <% [1] %>'
    content = flows.template(None, type='direct', tasks=[task])
    message = flows.refusal(mistral, content)
    assert said in message
    assert 'task "one"' in message or 'tasks[0]' in message


def test_get_resource_of_several_is_refused(mistral):
    content = flows.template(f'a:\n  {flows.NOOP}\nb:\n  {flows.NOOP}')
    content['outputs']['x'] = {'value': {'get_resource': 'workflow'}}
    said = flows.refusal(mistral, content)
    assert '{get_attr: [workflow, available_workflows, a]}' in said


def test_taken_names_are_refused_and_left_alone(cloud, made, mistral):
    mistral.make(f'mine:\n  {flows.NOOP}\nversion: "2.0"')
    admin = cloud.session('admin')
    public = f'version: "2.0"\nall.public:\n  {flows.NOOP}'
    mistral.make(public, 'scope=public', admin)
    try:
        for name, said in (
            ('mine', 'does not belong to this resource'),
            ('all.public', 'a public workflow "all.public"'),
        ):
            stack = made(flows.template(name=name), status='CREATE_FAILED')
            assert said in stack.reason
            stack.delete()
            stack.wait('DELETE_COMPLETE')
        assert {'mine', 'all.public'} <= mistral.names()
    finally:
        mistral.session.delete(flows.MISTRAL, '/workflows/mine')
        admin.delete(flows.MISTRAL, '/workflows/all.public')


def test_bad_signals_leave_events_and_the_reason(made):
    stack = made(flows.template('w:\n  input: [needed]\n  ' + flows.NOOP))
    bodies = [
        ({'input': {'x' * 300: 1}}, 'unknown input xxx'),
        ({'input': [1]}, '"input" must be a map, not a list'),
        ({'params': 'x'}, '"params" must be a map'),
        ({'workflow': 'gone'}, 'there is no workflow "gone"'),
        ({}, 'needs the input needed'),
        # Heat drops what is no map before anybody sees it.
        ([1], 'needs the input needed'),
        ('text', 'needs the input needed'),
    ]
    for number, (body, said) in enumerate(bodies, 1):
        stack.signal('workflow', body)
        result = flows.signalled(stack, count=number)
        assert said in result['error']
        assert result['execution_id'] is None
    reasons = [reason for _, reason in flows.events(stack)]
    assert len(reasons) == len(bodies)
    assert all(len(reason) <= 255 for reason in reasons)
    assert stack.outputs['executions'] == []


def test_huge_output_fails_the_run_and_says_why(made):
    definition = flows.ECHO.replace('<% $.text %>', "<% 'x' * 1200000 %>")
    stack = made(flows.template(definition))
    stack.signal('workflow', {})
    ran = flows.finished(stack)
    assert ran['state'] == 'ERROR'
    assert 'limit' in ran['state_info'].lower()
    assert len(json.dumps(stack.outputs)) < 2000000
