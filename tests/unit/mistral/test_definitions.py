# SPDX-License-Identifier: Apache-2.0
"""What templates and signals say of workflows; what comes of executions."""

import dataclasses
import datetime
import json
import re

import hypothesis
from hypothesis import strategies as st
import pytest
import yaml

from heat_plugins import errors
from heat_plugins.mistral import calling
from heat_plugins.mistral import definitions
from heat_plugins.mistral import outcome
from heat_plugins.mistral import triggers
from heat_plugins.mistral import workflow_requests
from tests.unit.bad_input import anything

workflow = anything.map_of(
    input=anything.json_value,
    tasks=st.one_of(
        st.dictionaries(
            anything.spelled('one', 'two'),
            anything.map_of(workflow=anything.json_value),
            max_size=3,
        ),
        anything.json_value,
    ),
)

definition = st.one_of(
    st.dictionaries(
        anything.spelled('one', 'workflows', 'actions', 'version'),
        workflow,
        max_size=3,
    ).map(lambda content: yaml.safe_dump(content, allow_unicode=True)),
    anything.odd_text,
)


#: A busy machine makes up input slowly.
patient = hypothesis.settings(
    suppress_health_check=[hypothesis.HealthCheck.too_slow], deadline=None
)


@patient
@hypothesis.given(
    definition,
    anything.plain_text.filter(bool),
    st.dictionaries(anything.spelled('a', 'b'), anything.json_value),
)
@hypothesis.example('a: !!bool x', 'b', {})
@hypothesis.example('actions: 5', 'b', {})
@hypothesis.example('a: {input: {a: 1}, tasks: [b]}', 'b', {'a': 2})
@hypothesis.example("a: {tasks: {b: {workflow: ''}}}", 'b', {})
def test_a_definition_is_written_under_other_names_or_refused(
    text, prefix, defaults
):
    try:
        workflows = definitions.read(text)
    except definitions.InvalidDefinition:
        return
    names = definitions.workflow_names(workflows, prefix, None)
    written = definitions.write(workflows, names, defaults, list(names))
    assert yaml.safe_load(written).keys() >= set(names.values())


@patient
@hypothesis.given(
    st.one_of(
        anything.json_value,
        anything.map_of(
            workflow=anything.json_value,
            input=anything.json_value,
            params=anything.json_value,
            description=anything.scalar,
        ),
    ),
    workflow.filter(lambda value: isinstance(value, dict)),
    st.booleans(),
)
def test_a_signal_runs_a_workflow_or_is_refused(body, spec, is_whole):
    offer = workflow_requests.WorkflowOffer(
        workflows={'one': spec},
        names={'one': 'stack.one'},
        inputs={'a': 1},
        params={},
        body_is_input=is_whole,
    )
    try:
        run = workflow_requests.asked(body, offer)
    except workflow_requests.RunError:
        return
    assert run.workflow == 'stack.one'


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        ('a: [', 'the definition is not YAML at line 2'),
        ('a: {tasks: {}}\n\tb', 'line 2'),
        ('- a', 'must be a map'),
        (' ', 'must be a map'),
        ('a: 5', '"a" of the definition must be a map'),
        ("version: '2.0'", 'is empty'),
        ('name: b\nworkflows: {w: {a: 1}}', 'is a workbook'),
        ('actions: {w: {a: 1}}', 'define each workflow by its name'),
    ],
)
def test_what_is_no_definition_is_refused(text, said):
    with pytest.raises(definitions.InvalidDefinition, match=said):
        definitions.read(text)


def test_names_fit_mistral_and_stay_different():
    odd = 'a (b) = c, d' * 25
    shorts = ('main', f'{odd}.main', f'{odd}!.main')
    names = definitions.workflow_names(shorts, 'stack', None).values()
    assert len(set(names)) == 3
    for name in names:
        assert re.fullmatch(r'[\w.-]{1,255}', name)
    # As many characters as Mistral takes stay as they are.
    for short, is_same in (('x' * 249, True), ('x' * 250, False)):
        (name,) = definitions.workflow_names([short], 'stack', None).values()
        assert (name == f'stack.{short}') == is_same


def test_calls_and_inputs_are_those_of_the_stack():
    calls = ('main x=5', 'main', 'other', '<% $.which %>')
    tasks = {call: {'workflow': call} for call in calls}
    workflows = {
        'main': {'input': ['x', {'y': 1}], 'tasks': {}},
        'sub': {'tasks': tasks},
        'left': {'tasks': {}},
    }
    names = definitions.workflow_names(workflows, 'stack.it', None)
    assert names['left'] == 'stack.it.left'
    defaults = {'x': 7, 'z': 8}
    text = definitions.write(workflows, names, defaults, ['main', 'sub'])
    assert text.startswith("version: '2.0'\n")
    written = yaml.safe_load(text)
    assert written.keys() == {'version', 'stack.it.main', 'stack.it.sub'}
    assert written['stack.it.main']['input'] == [{'x': 7}, {'y': 1}]
    tasks = written['stack.it.sub']['tasks'].values()
    assert [task['workflow'] for task in tasks] == [
        *('stack.it.main x=5', 'stack.it.main', 'other', '<% $.which %>')
    ]


def test_an_explicit_name_is_that_of_one_and_begins_those_of_several():
    for shorts, explicit, names in (
        ('a', None, ['stack.it.a']),
        ('a', 'mine', ['mine']),
        ('ab', 'mine', ['mine.a', 'mine.b']),
    ):
        found = definitions.workflow_names([*shorts], 'stack.it', explicit)
        assert [*found.values()] == names


TWO = workflow_requests.WorkflowOffer(
    workflows={'main': {'input': ['x', {'y': 1}]}},
    names={'main': 'stack.main', 'sub': 'stack.sub'},
    inputs={'x': 1, 'z': 2},
    params={'a': 1, 'b': 1},
)


@pytest.mark.parametrize(
    ('changed', 'body', 'expected'),
    [
        # A workflow has either name, and of all inputs those it declares.
        ({}, {'workflow': 'main'}, {'input': {'x': 1}}),
        ({}, {'workflow': 'stack.main'}, {'input': {'x': 1}}),
        ({}, {'workflow': 'sub'}, {'workflow': 'stack.sub', 'input': {}}),
        ({'default': 'main'}, None, {'input': {'x': 1}}),
        ({'default': 'sub'}, {'workflow': 'main'}, {'input': {'x': 1}}),
        ({'names': {'main': 'stack.main'}}, '', {'input': {'x': 1}}),
        (
            {'default': 'main', 'body_is_input': True},
            {'x': 5, 'workflow': 'sub'},
            {'input': {'x': 5, 'workflow': 'sub'}},
        ),
        (
            {},
            {
                'workflow': 'main',
                'input': {'x': 3, 'v': 4},
                'params': {'b': 2},
                'description': 7,
                'odd': 1,
                'even': 2,
            },
            {
                'input': {'x': 3, 'v': 4},
                'params': {'a': 1, 'b': 2},
                'description': '7',
                'ignored': ('even', 'odd'),
            },
        ),
    ],
)
def test_a_signal_asks_for_a_run(changed, body, expected):
    offer = dataclasses.replace(TWO, **changed)
    run = workflow_requests.asked(body, offer)
    assert dataclasses.asdict(run) == {
        'workflow': 'stack.main',
        'params': {'a': 1, 'b': 1},
        'description': '',
        'ignored': (),
        **expected,
    }


def test_the_log_has_the_last_signals_and_fits_the_database():
    data = {'other': 'x'}
    bomb = '\U0001f4a3' * 99
    for number in range(12):
        ignored = [f'{bomb}{each}' for each in range(99)] * (number == 11)
        error = 'e' * 9999 if number == 11 else None
        entry = {'error': error, 'ignored': ignored, 'number': number}
        data.update([workflow_requests.write_log(entry)])
    shown = workflow_requests.read_log(data)
    assert [each['number'] for each in shown] == [*range(11, 1, -1)]
    assert shown[1]['error'] is None
    # Heat's column is a TEXT, which MariaDB ends at 64 KB.
    assert max(map(len, data.values())) < 2**16
    assert (len(shown[0]['error']), len(shown[0]['ignored'])) == (2000, 50)
    surplus = workflow_requests.surplus_log(data)
    assert [json.loads(data[key])['number'] for key in surplus] == [1, 0]


@pytest.mark.parametrize(
    ('body', 'said'),
    [
        ([1], 'the body must be a map'),
        ('text', 'the body must be a map'),
        ({'input': [1]}, '"input" must be a map'),
        ({'params': 'x'}, '"params" must be a map'),
        ({'workflow': 'gone'}, 'one of main, sub, not "gone"'),
        ({'workflow': {}}, 'one of main, sub'),
        ({}, 'one of main, sub'),
    ],
)
def test_a_signal_that_asks_for_nothing_is_refused(body, said):
    with pytest.raises(workflow_requests.RunError, match=said):
        workflow_requests.asked(body, TWO)


def test_numbers_and_truth_values_may_be_texts():
    given = {
        'name': 'true',
        'concurrency': '3',
        'keep-result': 'False',
        'pause-before': True,
        'fail-on': '<% $.odd %>',
        'retry': {'break_on': 'true', 'count': '<% $.times %>', 'delay': '7'},
    }
    assert definitions.typed(given) == {
        **given,
        'concurrency': 3,
        'keep-result': False,
        'retry': {'break-on': 'true', 'count': '<% $.times %>', 'delay': 7},
    }


def test_the_reason_is_that_of_mistral_in_one_line():
    long = 'e' * (outcome.REASON_LIMIT - 1)
    for info, reason in (
        ('Error in tasks: b\n\n  b -> no', 'Error in tasks: b b -> no'),
        (None, 'no reason given'),
        ('e' * 10**6, f'{long}…'),
    ):
        assert outcome.reason('ERROR', info) == f'ERROR: {reason}'


def test_the_latest_value_of_a_published_variable_counts():
    tasks = [
        {'updated_at': '2', 'published': '{"a": 2}'},
        {'updated_at': '1', 'published': {'a': 1, 'b': 1}},
        {'updated_at': '3', 'published': None},
    ]
    assert outcome.published(tasks) == {'a': 2, 'b': 1}
    assert outcome.published(tasks, '{"a": 3}') == {'a': 3, 'b': 1}


def test_what_is_no_map_is_none():
    deep = '{"a":' * 900 + '1' + '}' * 900
    for value in (None, '', '[1]', 'no JSON', 7, '[' * 10**6, deep):
        assert outcome.mapping(value) == {}


def test_the_workflow_of_a_trigger_is_a_name_or_a_map():
    whole = {'name': 'tidy', 'input': {'a': 1}, 'params': {'b': 2}}
    assert triggers.called(whole) == ('tidy', {'a': 1}, {'b': 2})
    assert triggers.called('tidy') == ('tidy', {}, {})
    for value, said in (
        ({'input': {}}, 'a map with "name"'),
        ({'name': 'tidy', 'x': 1}, 'has no key x'),
        ({'name': 'tidy', 'input': 'all'}, 'must be maps'),
        ({'name': 'tidy', 'params': [1]}, 'must be maps'),
        (['tidy'], 'must be a text, or a map'),
    ):
        with pytest.raises(triggers.InvalidCall, match=said):
            triggers.called(value)


@pytest.mark.parametrize(
    ('pattern', 'due', 'remaining', 'times'),
    [
        (None, None, None, []),
        (None, '2030-01-01 14:00', 1, ['14:00']),
        ('0 * * * *', '2030-01-01 14:00', None, ['14:00', '15:00', '16:00']),
        ('0 * * * *', '2030-01-01 14:00:00', 2, ['14:00', '15:00']),
    ],
)
def test_at_most_three_next_runs_are_shown(pattern, due, remaining, times):
    shown = triggers.upcoming(pattern, triggers.time(due), remaining)
    assert shown == [f'2030-01-01 {time} UTC' for time in times]


def test_a_trigger_that_is_long_due_tells_that_none_fires():
    noon = datetime.datetime(2030, 1, 1, 12)
    *late, due = None, 'soon', '2030-01-01 11:55:01', '2030-01-01 11:55:00'
    row = {'name': 'n' * 200, 'next_execution_time': due}
    reason = triggers.none_fires(row, noon)
    assert due in reason
    # An event of Heat's holds no more.
    assert len(reason) <= 255
    for time in late:
        row['next_execution_time'] = time
        assert triggers.none_fires(row, noon) is None


PASSING = errors.Unavailable('busy')
DOUBTFUL = errors.LikelyDefect('a defect')


@pytest.mark.parametrize(
    ('seconds', 'calls', 'delays'),
    [
        (
            100,
            [(second, PASSING) for second in (0, 10, 60, 99, 100)],
            [1, 2, 15, 24, None],
        ),
        # A likely defect is given less, and what does not pass nothing.
        (100, [(0, DOUBTFUL), (14, DOUBTFUL), (15, DOUBTFUL)], [1, 3, None]),
        (10, [(0, DOUBTFUL), (10, DOUBTFUL)], [1, None]),
        (0, [(0, PASSING)], [None]),
        (100, [(0, errors.ServiceError('no'))], [None]),
    ],
)
def test_delays_grow_until_the_budget_is_spent(seconds, calls, delays):
    now = iter([second for second, _ in calls])
    budget = calling.RetryBudget(seconds, lambda: next(now))
    assert [budget.delay(error, 'make') for _, error in calls] == delays


def test_a_delay_has_a_limit():
    assert [calling.backoff(waited) for waited in (0, 120, 999)] == [1, 30, 30]


@pytest.mark.parametrize(('answered', 'delay'), [('make', 1), ('look', None)])
def test_an_answer_to_the_same_call_gives_a_new_budget(answered, delay):
    now = iter([0, 100])
    budget = calling.RetryBudget(100, lambda: next(now))
    budget.delay(PASSING, 'make')
    budget.reset(answered)
    assert budget.is_retrying('make') == (delay is None)
    assert budget.delay(PASSING, 'make') == delay
