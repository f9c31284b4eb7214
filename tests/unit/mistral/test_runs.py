# SPDX-License-Identifier: Apache-2.0
"""What the body of a signal asks for."""

import dataclasses

import pytest

from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.executions import workflow_requests

WORKFLOWS = definition_reading.read(
    'main: {input: [needed, usual: 5], tasks: {a: {action: std.noop}}}\n'
    'back: {type: reverse, tasks: {a: {action: std.noop}}}'
).workflows

SEVERAL = workflow_requests.WorkflowOffer(
    workflows=WORKFLOWS,
    names={'main': 's.r.main', 'back': 's.r.back'},
    inputs={'needed': 1},
    params={'env': {'x': 1}},
)

ONE = dataclasses.replace(
    SEVERAL,
    workflows={'main': WORKFLOWS['main']},
    names={'main': 's.r.main'},
)

#: What Aodh 20 sends to an alarm's URL.
ALARM = {
    'severity': 'low',
    'alarm_name': 'cpu_high',
    'current': 'alarm',
    'alarm_id': '0ca2845e-c142-4d4b-a346-e495553628ce',
    'reason': 'Transition to alarm',
    'reason_data': {'type': 'threshold'},
    'previous': 'ok',
}


def refused(body, offer=ONE):
    with pytest.raises(workflow_requests.RunError) as caught:
        workflow_requests.asked(body, offer)
    return str(caught.value)


@pytest.mark.parametrize('body', [None, '', {}])
def test_empty_body_runs_the_only_workflow_with_the_defaults(body):
    assert workflow_requests.asked(
        body, ONE
    ) == workflow_requests.RequestedRun(
        workflow='main', input={'needed': 1}, params={'env': {'x': 1}}
    )


def test_what_is_given_goes_before_the_defaults():
    body = {
        'workflow': 'main',
        'input': {'needed': 2, 'usual': 3},
        'params': {'env': {}},
        'description': 'why',
    }
    assert workflow_requests.asked(
        body, ONE
    ) == workflow_requests.RequestedRun(
        workflow='main',
        input={'needed': 2, 'usual': 3},
        params={'env': {}},
        description='why',
    )


def test_workflow_may_be_named_as_in_mistral():
    assert (
        workflow_requests.asked({'workflow': 's.r.main'}, SEVERAL).workflow
        == 'main'
    )


def test_defaults_go_to_the_workflows_that_know_them():
    body = {'workflow': 'back', 'params': {'task_name': 'a'}}
    assert workflow_requests.asked(body, SEVERAL).input == {}


def test_alarm_runs_the_workflow_and_its_words_are_passed_over():
    run = workflow_requests.asked(ALARM, ONE)
    assert run.input == {'needed': 1}
    assert run.ignored == tuple(sorted(ALARM))


def test_body_may_be_the_input():
    offer = dataclasses.replace(ONE, body_is_input=True)
    run = workflow_requests.asked({'usual': 7}, offer)
    assert run.input == {'needed': 1, 'usual': 7}
    assert workflow_requests.asked(None, offer).input == {'needed': 1}
    assert 'unknown input workflow' in refused({'workflow': 'x'}, offer)


@pytest.mark.parametrize(
    ('body', 'said'),
    [
        ([1], 'the body must be a map, not a list'),
        ('x', 'the body must be a map, not a text'),
        (5, 'the body must be a map, not a number'),
        (True, 'the body must be a map, not true'),
        ({'input': [1]}, '"input" must be a map, not a list'),
        ({'input': 'x'}, '"input" must be a map, not a text'),
        ({'params': 5}, '"params" must be a map, not a number'),
        ({'workflow': {}}, '"workflow" must be a text, not a map'),
        ({'description': 1.5}, '"description" must be a text'),
        (
            {'input': {'zz': 1, 'aa': 2}},
            'unknown input aa, zz: the workflow "main" takes needed, usual',
        ),
        ({'workflow': 'gone'}, 'there is no workflow "gone", only main'),
    ],
)
def test_what_cannot_be_run_is_refused(body, said):
    assert said in refused(body)


def test_one_of_several_must_be_named():
    said = refused({}, SEVERAL)
    assert said.endswith('"workflow" must name one of main, back')


def test_missing_input_is_refused():
    offer = dataclasses.replace(ONE, inputs={})
    assert refused({'input': {'usual': 1}}, offer) == (
        'the workflow "main" needs the input needed'
    )


def test_reverse_workflow_needs_its_last_task():
    assert 'task_name' in refused({'workflow': 'back'}, SEVERAL)
