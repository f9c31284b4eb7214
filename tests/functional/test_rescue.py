# SPDX-License-Identifier: Apache-2.0
"""Deployments of an engine that has died are resumed, whoever asks or not."""

import sqlite3

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import kills
from tests.functional import servers

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        conftest.PROFILE != 'small', reason='other engines look there'
    ),
]


@pytest.fixture(scope='module')
def alone(request, tmp_path_factory):
    """A cloud whose engine is one process, that does not fork."""
    conf = tmp_path_factory.mktemp('rescue') / 'heat.conf'
    conf.write_text(kills.CONF)
    yield from conftest.clouds(
        request, 'rescue', plugin=base.ROOT, conf=[conf]
    )


def test_a_delete_goes_on_though_nobody_touches_a_stack(alone):
    stack = base.Stack(
        alone.session(), base.software(actions=['DELETE'])
    ).created()
    stack.delete()
    before = stack.waiting(action='DELETE')
    alone.kill('heat')
    # The script runs once: whoever resumes it looks for the result first.
    assert before.put(servers.body()) == 201
    log = alone.log('heat')
    size = log.stat().st_size

    def logged(text):
        return log.read_text()[size:].count(text)

    alone.start('heat')
    # To look at the stack itself would be to touch it.
    base.until(lambda: logged('while it worked on deployment of stack'), 60)
    stack.wait('DELETE_COMPLETE')
    assert logged('waits for a signal of DELETE') == 1
    assert not logged('withdrawing DELETE')
    # Heat deletes the stack's trust and project only then, which may fail.
    base.until(lambda: stack.name not in _names(alone))


def test_a_create_is_not_run_again(alone):
    stack = base.Stack(alone.session(), base.software())
    before = stack.waiting()
    alone.kill('heat')
    log = alone.log('heat')
    size = log.stat().st_size
    alone.start('heat')
    base.until(
        lambda: 'waits for a signal of CREATE' in log.read_text()[size:]
    )
    assert before.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    after = stack.deployment()
    assert (after.id, after.config['id']) == (before.id, before.config['id'])
    assert after.status == 'COMPLETE'


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
    with sqlite3.connect(alone.path / 'data/heat.sqlite') as database:
        changed = database.execute(
            "UPDATE resource SET status = 'COMPLETE', engine_id = NULL "
            "WHERE name = 'deployment' AND stack_id = ?",
            [stack.id],
        )
        assert changed.rowcount == 1
    alone.start('heat')
    stack.wait('CREATE_COMPLETE')
    assert 'stands still in CREATE' in alone.log('heat').read_text()


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
    with sqlite3.connect(alone.path / 'data/heat.sqlite') as database:
        changed = database.execute(
            "UPDATE resource SET action = 'CREATE', status = 'COMPLETE', "
            'engine_id = NULL WHERE stack_id = ?',
            [stack.id],
        )
        deleted = database.execute(
            'DELETE FROM sync_point WHERE stack_id = ?', [stack.id]
        )
        assert (changed.rowcount, deleted.rowcount) == (1, 2)
    alone.start('heat')
    stack.wait('DELETE_COMPLETE', 200)
    assert 'stands still in DELETE' in alone.log('heat').read_text()


def test_a_server_loses_what_an_engine_withdrew_before_it_died(alone):
    stack = base.Stack(alone.session(), base.software())
    config_id = stack.waiting().config['id']
    database = kills.Database(alone.path / 'data/heat.sqlite')
    database.arm(kills.TELL)
    stack.action(cancel_without_rollback=None)
    base.until(database.is_held)
    alone.crash('heat')
    database.disarm()
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


def _names(cloud):
    stacks = cloud.session().get('orchestration', '/stacks').json()['stacks']
    return [one['stack_name'] for one in stacks]
