# SPDX-License-Identifier: Apache-2.0
"""Reading what templates, signals and Mistral say of workflows is linear."""

import datetime
import itertools

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import bounds
from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.definitions import renaming
from heat_plugins.mistral.definitions import structured
from heat_plugins.mistral.executions import outcome
from heat_plugins.mistral.executions import workflow_requests
from heat_plugins.mistral.triggers import cron_triggers
from heat_plugins.mistral.triggers import schedule
from tests.unit import growth
from tests.unit.bad_input import anything
from tests.unit.bounds import readers

NOW = datetime.datetime(2030, 1, 1)
ID = '3b7f05c4-3d06-4942-a401-1e9e75b6d814'


def filled(text):
    """Return what repeats a text up to a number of characters."""
    return lambda size: text * (size // len(text))


# Reasons

REASONS = {
    'letters': 'a',
    'lines': '\n',
    'blanks': ' ',
    'indents': '\n [',
    'exceptions': 'The action raised an exception [',
    'messages': "The action raised an exception [msg='",
    'ends of messages': "', ",
    'tasks that did not run': 'Failed to run task [error=',
    'ends of these': 'Failed to run task [error=, wf=, task=',
    'ids': 'task_ex_id=',
    'whole ids': f'task_ex_id={ID}, ',
    'brackets': '[ ,',
    'leads': 'Failure caused by error in tasks: ',
    'traces': 'Traceback (most recent call last)',
}


@pytest.mark.parametrize('text', REASONS.values(), ids=REASONS)
@pytest.mark.parametrize(
    'before', ['', "The action raised an exception [msg='"]
)
def test_a_reason_costs_no_more_than_its_size(before, text):
    made = filled(text)
    growth.check(
        lambda info: outcome.reason('ERROR', info),
        lambda size: before + made(size),
    )


@hypothesis.given(
    st.lists(
        st.one_of(st.sampled_from([*REASONS.values()]), anything.odd_text),
        max_size=12,
    ).map(''.join)
)
def test_a_reason_is_a_short_line(info):
    said = outcome.reason('ERROR', info)
    assert len(said) <= outcome.REASON_LIMIT + len('ERROR: ')
    assert len(said.splitlines()) == 1


def test_a_long_list_of_failed_tasks_leaves_room_for_the_reason():
    tasks = ', '.join(f'task{number}' for number in range(5000))
    info = f'Failure caused by error in tasks: {tasks}\n\n  a -> It failed.'
    assert outcome.reason('ERROR', info) == 'ERROR: a -> It failed.'


def test_what_mistral_sends_may_be_nested_without_end():
    assert outcome.mapping('[' * 10**6) == {}
    assert outcome.mapping('{"a":' * 900 + '1' + '}' * 900) == {}


# Definitions

HEAD = 'version: "2.0"\nw:\n  tasks:\n'

TEXTS = {
    'a list': filled('- a\n'),
    'a flow': lambda size: f'[{"a," * (size // 2)}]',
    'merges': lambda size: 'a:\n' + '  <<: {}\n' * (size // 9),
    'a list of merges': lambda size: (
        'a:\n  <<: [' + '{a: 1},' * (size // 7) + ']'
    ),
    'words': filled('a '),
    'lines': filled('a\n'),
    'escapes': lambda size: f'"{chr(92)}n{"a" * size}"',
    'empty lines': filled('\n'),
    'a block': lambda size: '|\n' + ' a\n' * (size // 3),
    'keys': filled('? a\n'),
    'open brackets': filled('['),
    'open braces': filled('{'),
    'deep lists': lambda size: '- [' + '[' * 60 + ']' * 60 + ']\n' * size,
    'dashes': filled('- '),
    'comments': filled('#'),
    'a number by sixties': lambda size: 'a: ' + '1:' * (size // 2) + '1',
    'a fraction by sixties': lambda size: f'a: {"59:" * (size // 3)}59.5',
    'digits': lambda size: 'a: ' + '1' * size,
    'hexadecimal digits': lambda size: 'a: 0x' + 'f' * size,
    'blanks in a date': lambda size: f'a: 2001-01-01 {" " * size}x',
    'anchors': filled('&a '),
    'a tag': lambda size: f'!{"a" * size} b',
    'indents': lambda size: ''.join(
        ' ' * depth + 'a:\n' for depth in range(int((2 * size) ** 0.5))
    ),
    'the same key': lambda size: 'w:\n' + '  a: 1\n' * (size // 7),
    'unknown targets': lambda size: (
        HEAD
        + ''.join(
            f'    task{one:05}: {{action: a, on-success: tisk{one:05}}}\n'
            for one in range(size // 50)
        )
    ),
    'unknown keys': lambda size: (
        HEAD
        + '    t:\n      action: a\n'
        + ''.join(f'      k{number}: 1\n' for number in range(size // 12))
    ),
    'a clause': lambda size: (
        HEAD + f'    t: {{action: a, on-success: "{"<%" * (size // 2)}"}}'
    ),
    'a deep clause': lambda size: (
        HEAD
        + '    t: {action: a, on-success: '
        + f'{"[" * 50}{"t," * (size // 2)}{"]" * 50}}}'
    ),
    'calls': lambda size: (
        HEAD
        + ''.join(
            f'    t{number}: {{workflow: w}}\n' for number in range(size // 20)
        )
    ),
    'workflows': lambda size: ''.join(
        f'w{number}: {{input: [a], tasks: {{a: {{workflow: w1}}}}}}\n'
        for number in range(size // 50)
    ),
}


def whole(text):
    """Read, check and write a definition."""
    found = definition_reading.read(text)
    if definition_checking.check(found):
        return
    names = {name: f'stack.{name}' for name in found.workflows}
    renaming.render(found, names, None, {'a': 1})


@pytest.mark.parametrize('made', TEXTS.values(), ids=TEXTS)
def test_a_definition_costs_no_more_than_its_size(made):
    growth.check(readers.refusing(whole), made, largest=2**17)


@pytest.mark.parametrize('name', ['keys', 'open brackets', 'unknown keys'])
def test_an_ad_hoc_action_costs_no_more_than_its_size(name):
    growth.check(
        readers.refusing(structured.read_action), TEXTS[name], largest=2**17
    )


@pytest.mark.parametrize('text', ['<%', '{{', '{%', '<% {{ {% '])
def test_to_look_for_an_expression_costs_no_more_than_its_size(text):
    growth.check(definition_reading.is_expression, filled(text))


@hypothesis.given(
    st.lists(st.sampled_from(['<%', '%>', '{{', '}}', '{%', '%}', 'a', '\n']))
)
def test_an_expression_has_a_beginning_and_an_end(parts):
    text = ''.join(parts)
    found = any(
        end in text[text.index(begin) + 2 :]
        for begin, end in (('<%', '%>'), ('{{', '}}'), ('{%', '%}'))
        if begin in text
    )
    assert definition_reading.is_expression(text) == found


def refused(text):
    with pytest.raises(definition_reading.DefinitionError) as caught:
        definition_reading.read(text)
    return str(caught.value)


def test_a_text_without_end_is_refused_with_the_limit():
    text = 'a' * (definition_reading.CHARACTERS + 1)
    assert f'the limit is {definition_reading.CHARACTERS}' in refused(text)


def test_keys_without_end_are_refused_with_the_limit():
    text = '- a\n' * (definition_reading.NODES + 1)
    assert f'more than {definition_reading.NODES} keys' in refused(text)


@pytest.mark.parametrize(
    'text',
    ['- ' * 100 + 'a', '[' * 100 + ']' * 100, '{a: ' * 100 + '1' + '}' * 100],
)
def test_depth_without_end_is_refused_with_the_limit(text):
    assert f'at most {bounds.DEPTH} levels' in refused(text)


def test_what_is_as_deep_as_it_may_be_is_read():
    deep = '[' * 60 + ']' * 60
    assert definition_reading.read(f'w: {{tasks: {deep}}}').workflows


def test_a_fraction_by_sixties_is_refused():
    assert 'not valid YAML' in refused(f'a: {"59:" * 300}59.5')


def test_problems_are_not_looked_for_beyond_those_that_are_told():
    text = TEXTS['unknown targets'](50 * 2000)
    found = definition_checking.check(definition_reading.read(text))
    assert len(found) == bounds.LISTED + 1
    assert str(definition_reading.DefinitionError(iter(found))).endswith(
        '; and more'
    )
    assert 'did you mean "task00000"?' in str(found[0])


@pytest.mark.parametrize('number', [11, 900])
def test_a_message_about_a_definition_is_short(number):
    name = 'n' * number
    problems = definition_checking.check(
        definition_reading.read(
            f'{HEAD}    t: {{action: a, {name}: 1, join: "{name}", '
            f'on-success: {name}}}'
        )
    )
    assert len(problems) == 3
    assert len(str(definition_reading.DefinitionError(problems))) < 1500


@pytest.mark.parametrize('depth', [100, 400, 10**4])
def test_properties_without_end_are_refused_with_the_limit(depth):
    value = 1
    for _ in range(depth):
        value = [value]
    tasks = [{'name': 'a', 'action': 'b', 'input': {'x': value}}]
    with pytest.raises(
        definition_reading.DefinitionError, match='more than 64 levels'
    ):
        structured.definition('w', {'type': 'direct', 'tasks': tasks})


def test_tasks_of_one_name_are_counted_in_one_pass():
    growth.check(
        structured.doubles,
        lambda size: {'tasks': [{'name': f't{n}'} for n in range(size)]},
        largest=2**17,
    )
    tasks = [{'name': name} for name in ('b', 'a', 'b', 'a', 'c')]
    assert structured.doubles({'tasks': tasks}) == ['a', 'b']


# What Mistral says of a definition

SMALL = 'w: {tasks: {a: {action: b}}}'


@pytest.mark.parametrize(
    'made',
    [
        lambda size: 'On instance' + "['tasks']" * (size // 9) + ':',
        lambda size: 'On instance' + '[' * size,
        lambda size: 'On instance' + "['" * (size // 2),
        lambda size: 'On instance' + '[1]' * (size // 3),
        lambda size: f'On instance[{"1" * size}]:',
        filled("\nOn instance['a']"),
        filled('task_name='),
        filled('\n\nFailed validating'),
        filled('Invalid DSL: '),
        filled(' '),
    ],
)
def test_to_place_a_refusal_costs_no_more_than_its_size(made):
    definition = definition_reading.read(SMALL)
    answers = {}

    def place(said):
        (found,) = definition_checking.locate(definition, lambda *_: said)
        assert len(str(found)) < 700
        answers[len(said)] = found

    growth.check(place, made)


def test_mistral_is_not_asked_about_each_of_many_workflows():
    definition = definition_reading.read(
        ''.join(f'w{n}: {{tasks: {{a: {{action: b}}}}}}\n' for n in range(999))
    )
    asked = []

    def ask(text, workbook):
        asked.append(text)
        return None if len(asked) > 1 else 'something'

    (found,) = definition_checking.locate(definition, ask)
    assert str(found) == 'Mistral says: something'
    assert len(asked) < 60


# Signals, names and the clock

OFFER = workflow_requests.WorkflowOffer(
    workflows={
        'w': definition_reading.DefinedWorkflow(
            name='w', type='direct', inputs={}, data={}
        )
    },
    names={'w': 'stack.w'},
    inputs={},
    params={},
)


@pytest.mark.parametrize(
    'made',
    [
        lambda size: {'workflow': 'w' * size},
        lambda size: {'input': {f'k{n}': 1 for n in range(size)}},
        lambda size: {'input': {'k' * size: 1}},
        lambda size: {f'k{n}': 1 for n in range(size)},
    ],
)
def test_a_signal_costs_no_more_than_its_size(made):
    def read(body):
        run = workflow_requests.asked(body, OFFER)
        workflow_requests.write_log({'ignored': list(run.ignored)})

    growth.check(readers.refusing(read), made, largest=2**17)


def test_a_refused_signal_is_told_in_a_few_words():
    given = {f'{number:02}{"k" * 10**5}': 1 for number in range(99)}
    with pytest.raises(workflow_requests.RunError) as caught:
        workflow_requests.asked({'input': given}, OFFER)
    assert len(str(caught.value)) < 12000
    assert 'and 89 more' in str(caught.value)


@pytest.mark.parametrize('text', [' ', 'a=', '\U0001f4a3'])
def test_a_name_costs_no_more_than_its_size(text):
    growth.check(
        lambda one: definition_records._fit(
            one, definition_records.NAME_LIMIT
        ),
        filled(text),
    )
    growth.check(lambda name: definition_reading.called(name), filled(text))
    growth.check(
        lambda base: structured.base_name({'base': base}), filled(text)
    )


@pytest.mark.parametrize(
    'text',
    ['1,', '1-59,', '*/', '* ', 'h(', 'mon#5,', 'L', '0 0 L 2 L1,', '1'],
)
def test_a_pattern_costs_no_more_than_its_size(text):
    growth.check(
        readers.refusing(lambda pattern: schedule.upcoming(pattern, NOW)),
        lambda size: f'{filled(text)(size)}1 * * * *',
    )


def test_a_pattern_is_as_long_as_mistral_keeps_it():
    longest = f'{"59," * 30}59 * * * *'
    assert len(longest) == 100
    assert schedule.upcoming(longest, NOW)
    with pytest.raises(schedule.ScheduleError, match='Mistral allows 100'):
        schedule.upcoming('0,' + longest, NOW)


def test_times_are_not_counted_without_end():
    for pattern in ('0 0 29 2 *', '0 0 29 2 mon#5', '* * * * * *'):
        growth.check(
            lambda years, pattern=pattern: schedule.has_expired(
                pattern,
                None,
                10**9,
                NOW,
                NOW + datetime.timedelta(days=365 * years),
            ),
            lambda size: min(size, 7000),
            largest=2**14,
        )


@pytest.mark.parametrize('text', ['[', '{"a":', '"\\u0061"', '9'])
def test_a_trigger_of_mistral_costs_no_more_than_its_size(text):
    row = {
        'id': 'id',
        'name': 'name',
        'workflow_name': 'w',
        'workflow_id': 'id',
        'next_execution_time': None,
        'remaining_executions': None,
    }
    growth.check(
        lambda given: cron_triggers.LiveTrigger.from_row(
            {**row, 'workflow_input': given}
        ),
        filled(text),
    )


@hypothesis.given(st.lists(anything.odd_text, max_size=40))
def test_what_is_remembered_of_a_signal_has_a_limit(names):
    text = workflow_requests.write_log(
        {'error': ''.join(names) * 2000, 'ignored': names * 99}
    )
    assert len(text) < 20000


def test_the_problems_of_a_definition_come_one_by_one():
    endless = (
        definition_reading.DefinitionProblem(message=str(n))
        for n in itertools.count()
    )
    assert str(definition_reading.DefinitionError(endless)).endswith(
        '9; and more'
    )
