# SPDX-License-Identifier: Apache-2.0
"""Definitions from properties."""

from heat_plugins.mistral.definitions import definition_checking
from heat_plugins.mistral.definitions import definition_reading
from heat_plugins.mistral.definitions import structured


def written(**properties):
    definition = definition_reading.read(
        structured.definition('w', properties)
    )
    assert definition_checking.check(definition) == []
    return definition.workflows['w'].data


def task(**values):
    tasks = [{'name': 't', 'action': 'std.noop', **values}]
    return written(type='direct', tasks=tasks)['tasks']['t']


def test_workflow_says_what_the_properties_say():
    assert written(
        type='direct',
        description='why',
        tags=['a'],
        input={'x': 1, 'y': None},
        output={'o': '<% $.x %>'},
        output_on_error={'e': 1},
        vars={'v': 2},
        task_defaults={'on_error': ['t'], 'wait_before': None, 'timeout': 0},
        tasks=[{'name': 't', 'action': 'std.noop', 'publish': None}],
    ) == {
        'type': 'direct',
        'description': 'why',
        'tags': ['a'],
        'input': [{'x': 1}, {'y': None}],
        'output': {'o': '<% $.x %>'},
        'output-on-error': {'e': 1},
        'vars': {'v': 2},
        'task-defaults': {'on-error': ['t'], 'timeout': 0},
        'tasks': {'t': {'action': 'std.noop'}},
    }


def test_words_of_a_task_have_hyphens():
    assert task(
        publish_on_error={'x': 1},
        safe_rerun=True,
        fail_on='<% false %>',
        with_items=['i in <% $.x %>', 'j in <% $.y %>'],
        keep_result=False,
    ) == {
        'action': 'std.noop',
        'publish-on-error': {'x': 1},
        'safe-rerun': True,
        'fail-on': '<% false %>',
        'with-items': ['i in <% $.x %>', 'j in <% $.y %>'],
        'keep-result': False,
    }


def test_numbers_and_switches_may_come_as_texts():
    found = task(
        join='2',
        wait_before='5',
        concurrency='<% $.x %>',
        pause_before='True',
        safe_rerun='<% $.y %>',
        retry={'count': '3', 'delay': 1, 'break_on': '<% $.z %>', 'x': None},
    )
    assert found == {
        'action': 'std.noop',
        'join': 2,
        'wait-before': 5,
        'concurrency': '<% $.x %>',
        'pause-before': True,
        'safe-rerun': '<% $.y %>',
        'retry': {'count': 3, 'delay': 1, 'break-on': '<% $.z %>'},
    }


def test_join_may_be_a_word():
    assert task(join='all')['join'] == 'all'


def test_old_policies_stand_in_the_task():
    assert task(policies={'timeout': 3}) == {
        'action': 'std.noop',
        'timeout': 3,
    }


def test_what_is_empty_is_not_said():
    assert task(on_success=[], publish={}, input=None) == {
        'action': 'std.noop'
    }
