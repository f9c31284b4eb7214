# SPDX-License-Identifier: Apache-2.0
"""Deployments of an engine that has died are resumed, whoever asks or not."""

import sqlite3

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import kills

pytestmark = pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)


def test_what_a_dead_engine_waited_for_goes_on_and_is_not_run_again(alone):
    template = base.software(actions=['CREATE', 'DELETE'])
    stack = base.Stack(alone.session(), template)
    log = alone.log('heat')

    def dies():
        """Kill the engine; return what counts words in the log of another."""
        alone.kill('heat')
        size = log.stat().st_size
        return lambda text: log.read_text()[size:].count(text)

    before = stack.waiting()
    logged = dies()
    alone.start('heat')
    base.until(lambda: logged('waits for a signal of CREATE'))
    before.answer()
    stack.wait('CREATE_COMPLETE')
    after = stack.deployment()
    assert (after.id, after.config['id']) == (before.id, before.config['id'])
    assert after.status == 'COMPLETE'
    stack.delete()
    before = stack.waiting(action='DELETE')
    logged = dies()
    # The script runs once: whoever resumes it looks for the result first.
    before.answer()
    alone.start('heat')
    # To look at the stack itself would be to touch it.
    base.until(lambda: logged('while it worked on deployment of stack'), 60)
    stack.wait('DELETE_COMPLETE')
    assert logged('waits for a signal of DELETE') == 1
    assert not logged('withdrawing DELETE')
    # Heat deletes the stack's trust and project only then, which may fail.
    path = f'/stacks?name={stack.name}'
    heat = alone.session()
    base.until(lambda: not heat.get('orchestration', path).json()['stacks'])


def _change(cloud, statement, stack):
    """Change rows of a stack, as an engine that has died may leave them."""
    with sqlite3.connect(cloud.path / 'data/heat.sqlite') as database:
        changed = database.execute(f'{statement} stack_id = ?', [stack.id])
        assert changed.rowcount


def test_a_stack_goes_on_whose_engine_died_between_two_resources(alone):
    template = base.software()
    template['resources']['after'] = {
        'type': 'OS::Heat::Value',
        'depends_on': 'deployment',
        'properties': {'value': 1},
    }
    stack = base.Stack(alone.session(), template)
    stack.waiting()
    alone.kill('heat')
    # An engine releases a resource that is complete, and then tells the next.
    released = "UPDATE resource SET status = 'COMPLETE', engine_id = NULL"
    _change(alone, f"{released} WHERE name = 'deployment' AND", stack)
    alone.start('heat')
    stack.wait('CREATE_COMPLETE')
    told = f'{stack.id}, stands still in CREATE'
    assert told in alone.log('heat').read_text()
    stack.remove()


@pytest.mark.long
def test_a_delete_goes_on_whose_engine_died_before_its_first_resource(alone):
    waits = {'action_wait_secs': {'delete': 12}}
    template = {
        'heat_template_version': '2021-04-16',
        'resources': {
            'first': {'type': 'OS::Heat::TestResource', 'properties': waits}
        },
    }
    stack = base.Stack(alone.session(), template).created()
    stack.delete()
    state = 'DELETE_IN_PROGRESS'
    base.until(lambda: stack.resource('first')['resource_status'] == state)
    alone.kill('heat')
    # An engine stores the action, and then the order of the resources.
    before = "action = 'CREATE', status = 'COMPLETE', engine_id = NULL"
    _change(alone, f'UPDATE resource SET {before} WHERE', stack)
    _change(alone, 'DELETE FROM sync_point WHERE', stack)
    alone.start('heat')
    stack.wait('DELETE_COMPLETE', 200)
    told = f'{stack.id}, stands still in DELETE'
    assert told in alone.log('heat').read_text()


def test_a_server_loses_what_an_engine_withdrew_before_it_died(alone):
    stack = base.Stack(alone.session(), base.software())
    config_id = stack.waiting().config['id']
    database = kills.Database(alone)
    kills.strike(
        alone,
        database,
        kills.TELL,
        lambda: stack.action(cancel_without_rollback=None),
        lambda: True,
    )
    states = {row.config_id: row.status for row in database.rows()}
    assert states[config_id] == 'FAILED'
    given = [
        each['id']
        for configs in database.metadata().values()
        for each in configs
    ]
    assert config_id in given
    alone.start('heat')
    base.until(lambda: not stack.metadata())
    stack.remove()
