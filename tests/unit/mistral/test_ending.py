# SPDX-License-Identifier: Apache-2.0
"""What becomes of executions when their resource goes."""

import itertools

import pytest

from heat_plugins import errors
from heat_plugins.mistral import workflow_service
from heat_plugins.mistral.definitions import definition_records
from heat_plugins.mistral.executions import ending
from tests.unit.mistral import fake_service

RECORD = definition_records.DefinitionRecord(
    names={'a': 's.r.a'}, mark='0123456789ab'
)


@pytest.fixture
def mistral():
    found = fake_service.FakeService()
    ids = {
        'ours running': RECORD.execution_id(),
        'ours done': RECORD.execution_id(),
        'theirs running': 'f' * 32,
        'theirs done': 'e' * 32,
        'of Heat': 'd' * 32,
        'the clock running': 'c' * 32,
        'the clock done': 'b' * 32,
    }
    for what, one in ids.items():
        state = 'SUCCESS' if 'done' in what else 'RUNNING'
        clock = 'clock' in what
        found.add('s.r.a', id=one, state=state, by_trigger=clock)
    found.what = {one: what for what, one in ids.items()}
    return found


@pytest.mark.parametrize(
    ('way', 'left'),
    [
        (ending.OnDelete.CANCEL, {'theirs running', 'theirs done'}),
        (ending.OnDelete.CANCEL_ALL, set()),
        (
            ending.OnDelete.LEAVE,
            {
                'ours running',
                'theirs running',
                'theirs done',
                'of Heat',
                'the clock running',
            },
        ),
    ],
)
def test_executions_are_ended_as_the_template_says(mistral, way, left):
    assert ending.end(mistral, RECORD, way, ['d' * 32])
    assert {mistral.what[row['id']] for row in mistral.rows} == left


def test_many_are_ended_bit_by_bit(mistral):
    for _ in range(2 * ending.AT_A_TIME):
        mistral.add('s.r.a', id=RECORD.execution_id())
    rounds = 1
    while not ending.end(mistral, RECORD, ending.OnDelete.CANCEL):
        rounds += 1
    assert rounds == 3
    assert not [row for row in mistral.rows if RECORD.began(row['id'])]


@pytest.mark.parametrize('method', ['cancel', 'delete_execution'])
def test_execution_that_vanishes_meanwhile_is_no_trouble(mistral, method):
    mistral.faults = [(method, errors.NotFound('not found'), False)]
    assert ending.end(mistral, RECORD, ending.OnDelete.CANCEL)


def test_mistral_that_is_away_is_noticed(mistral):
    mistral.faults = [('cancel', fake_service.unavailable(), False)]
    with pytest.raises(Exception, match='busy'):
        ending.end(mistral, RECORD, ending.OnDelete.CANCEL)


def test_executions_without_end_are_not_all_listed(mistral):
    asked = []

    def endless(names):
        for number in itertools.count():
            asked.append(number)
            yield workflow_service.Begun(
                id=RECORD.execution_id(), state='RUNNING', by_trigger=True
            )

    mistral.begun = endless
    mistral.cancel = mistral.delete_execution = lambda one: None
    assert not ending.end(mistral, RECORD, ending.OnDelete.CANCEL)
    assert len(asked) == ending.AT_A_TIME + 1
