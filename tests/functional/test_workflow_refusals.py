# SPDX-License-Identifier: Apache-2.0
"""What OS::Mistral::Workflow refuses, and in which words."""

import json

import pytest

from tests.functional import flows


@pytest.mark.parametrize(
    ('definition', 'said'),
    [
        ('version: "2.0"\nw: [', 'not YAML at line 3'),
        (f'name: b\nworkflows: {{w: {{{flows.NOOP}}}}}', 'is a workbook'),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      on-success: [gone]',
            'workflow w: Mistral says: ',
        ),
        (
            'w:\n  tasks:\n    b:\n'
            '      action: std.echo\n      input: {output: <% nope( %>}',
            'workflow w: Mistral says: Parse error',
        ),
        (
            'w:\n  tasks:\n    a:\n      action: std.noop\n'
            '      retry: {cnt: 3}',
            'workflow w: Mistral says: Invalid DSL',
        ),
    ],
)
def test_bad_definition_is_refused_with_the_reason(mistral, definition, said):
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
    ('key', 'value'),
    [
        # Heat's own schema has one type for each of these.
        ('with_items', {'a': 1}),
        ('wait_before', 'soon'),
        ('timeout', [1]),
        ('pause_before', 'perhaps'),
        ('keep_result', 5),
        ('retry', {'tries': 5}),
        ('on_success', 5),
        ('on_success', ['gone']),
        ('join', {'a': 1}),
        ('input', [1]),
    ],
)
def test_value_that_no_task_can_have_is_refused(mistral, key, value):
    task = {'name': 'one', 'action': 'std.noop', key: value}
    content = flows.template(None, type='direct', tasks=[task])
    assert 'Mistral says: ' in flows.refusal(mistral, content)


def test_taken_names_are_refused_and_left_alone(cloud, made, mistral):
    mistral.make(f'mine:\n  {flows.NOOP}\nversion: "2.0"')
    admin = cloud.session('admin')
    public = f'version: "2.0"\nall.public:\n  {flows.NOOP}'
    mistral.make(public, 'scope=public', admin)
    try:
        for name, said in (
            ('mine', 'another workflow mine already'),
            ('all.public', 'another workflow all.public already'),
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
        ({'input': {'x' * 300: 1}}, 'unexpected='),
        ({'input': [1]}, '"input" must be a map'),
        ({'params': 'x'}, '"params" must be a map'),
        ({'workflow': 'gone'}, 'one of w, not "gone"'),
        ({}, "missing=['needed']"),
        # Heat drops what is no map before anybody sees it.
        ([1], "missing=['needed']"),
        ('text', "missing=['needed']"),
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
