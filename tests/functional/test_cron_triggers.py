# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::CronTrigger with a real Mistral, whose cron runs."""

import datetime

import pytest

from tests.functional import base
from tests.functional import flows


@pytest.fixture
def tidy(mistral):
    """A workflow that is there before any stack."""
    tidy = flows.ECHO.replace('echo:', 'tidy:', 1)
    flows.publish(mistral.session, tidy)
    yield
    mistral.session.delete(flows.MISTRAL, '/workflows/tidy')


def template(**properties):
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'trigger': {
                'type': 'OS::Mistral::CronTrigger',
                'properties': {
                    'pattern': flows.YEARLY,
                    'workflow': {'name': 'tidy', 'input': {'text': 'all'}},
                    **properties,
                },
            }
        },
    }


def updated(stack, state='UPDATE_COMPLETE', **properties):
    stack.update(template(**properties))
    stack.wait(state)


@pytest.mark.quick
def test_every_update_leaves_one_trigger(tidy, stacks, mistral):
    stack = stacks(template(name='nightly', count=7)).created()
    # The former trigger comes back if Mistral refuses the new one.
    past = {'pattern': None, 'first_time': '2020-01-01 00:00'}
    updated(stack, 'UPDATE_FAILED', name='nightly', count=7, **past)
    assert '1 minute in' in stack.reason
    assert 'The former trigger has been created again' in stack.reason
    (row,) = mistral.triggers()
    assert (row['pattern'], row['remaining_executions']) == (flows.YEARLY, 7)
    assert row['workflow_input'] == '{"text": "all"}'
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(1)
    other = {'name': 'tidy', 'input': {'text': 'little'}}
    for changed in (
        {'pattern': '0 0 2 1 *'},
        {'workflow': {**other, 'params': {'env': {'a': 1}}}, 'count': 8},
        {'name': 'daily', 'first_time': tomorrow.strftime('%Y-%m-%d %H:%M')},
    ):
        updated(stack, **{'name': 'nightly', **changed})
        (row,) = mistral.triggers()
        assert row['name'] == changed.get('name', 'nightly')
    assert row['first_execution_time']
    stack.remove()
    assert mistral.triggers() == []


@pytest.mark.quick
def test_the_trigger_of_the_example_fires_and_runs_out(stacks, mistral):
    text = (flows.EXAMPLES / 'nightly.yaml').read_text()
    stack = stacks(text, pattern=flows.OFTEN, count=2).created()
    base.until(lambda: stack.outputs['remaining'] == 0)

    def inputs():
        name = f'{stack.name}.report.report'
        rows = mistral.executions()
        return [one['input'] for one in rows if one['workflow_name'] == name]

    base.until(lambda: len(inputs()) == 2)
    # The trigger gives none: the workflow's default serves.
    assert inputs() == ['{"about": "last night"}'] * 2
    assert stack.outputs['upcoming'] == []
    # Mistral has deleted it; a check knows why, and an update creates it.
    assert mistral.triggers() == []
    stack.acts(check=None)
    stack.updated(text, pattern=flows.YEARLY, count=4)
    assert mistral.triggers()[0]['remaining_executions'] == 4
    stack.remove()
    assert mistral.triggers() == []
