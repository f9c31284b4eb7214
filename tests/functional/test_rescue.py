# SPDX-License-Identifier: Apache-2.0
"""Deployments of an engine that has died are resumed, whoever asks or not."""

import json
import sqlite3
import time

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers
from tests.functional import test_operations

#: Nothing that an operation's record may be named.
JUNK = '20300101T000000Z-0bad0bad'

#: For each request about operations, seconds; and those within which a
#: deployment must be resumed all the same, with the settings below.
SLOW, SOON = 20, 60

#: A new engine tells the one before dead after seconds.
CONF = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 5
"""


@pytest.fixture(scope='module')
def alone(request, tmp_path_factory):
    """A cloud whose engine is one process, that does not fork."""
    conf = tmp_path_factory.mktemp('rescue') / 'heat.conf'
    conf.write_text(CONF)
    yield from conftest.clouds(
        request, 'rescue', plugin=base.ROOT, conf=[conf]
    )


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
def test_a_delete_goes_on_though_nobody_touches_a_stack(alone):
    operation_id = _operation(alone)
    stack = base.Stack(alone.session(), base.software(actions=['DELETE']))
    stack.wait('CREATE_COMPLETE')
    stack.delete()
    before = stack.waiting(action='DELETE')
    alone.kill('heat')
    # The script runs once: whoever resumes it looks for the result first.
    assert before.put(servers.body()) == 201
    log = alone.log('heat')
    size = log.stat().st_size
    slow = {'path': '.*heat-plugins-operations.*', 'delay': SLOW}

    def logged(text):
        return log.read_text()[size:].count(text)

    with alone.faults([slow]):
        alone.start('heat')
        begun = time.monotonic()
        # To look at the stack itself would be to touch it.
        base.until(lambda: logged('while it worked on deployment of stack'))
        assert time.monotonic() - begun < SOON
    _check_operations(alone, operation_id, logged)
    stack.wait('DELETE_COMPLETE')
    assert log.read_text()[size:].count('waits for a signal of DELETE') == 1
    assert not logged('withdrawing DELETE')
    # Heat deletes the stack's trust and project only then, which may fail.
    base.until(lambda: stack.name not in _names(alone))


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
@pytest.mark.parametrize('arrives', ['before', 'after'])
def test_a_create_is_not_run_again(alone, arrives):
    stack = base.Stack(alone.session(), base.software())
    before = stack.waiting()
    alone.kill('heat')
    if arrives == 'before':
        assert before.put(servers.body()) == 201
    log = alone.log('heat')
    size = log.stat().st_size
    alone.start('heat')
    base.until(
        lambda: 'waits for a signal of CREATE' in log.read_text()[size:]
    )
    if arrives == 'after':
        assert before.put(servers.body()) == 201
    stack.wait('CREATE_COMPLETE')
    after = stack.deployment()
    assert (after.id, after.config['id']) == (before.id, before.config['id'])
    assert after.status == 'COMPLETE'


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
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


@pytest.mark.skipif(
    conftest.PROFILE != 'small', reason='other engines look there'
)
@pytest.mark.timeout(300)
def test_a_delete_goes_on_whose_engine_died_before_its_first_resource(alone):
    waits = {'action_wait_secs': {'delete': 60}}
    template = {
        'heat_template_version': '2021-04-16',
        'resources': {
            'first': {'type': 'OS::Heat::TestResource', 'properties': waits}
        },
    }
    stack = base.Stack(alone.session(), template)
    stack.wait('CREATE_COMPLETE')
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


def _operation(cloud):
    """Start an operation that no server answers, and a junk one; its ID."""
    stack = base.Stack(cloud.session(), test_operations.template())
    stack.wait('CREATE_COMPLETE')
    code, shown = test_operations.Operations(cloud)(
        *('run', 'BACKUP', '--stack', stack.name, '--yes')
    )
    assert code == 0, shown
    session = cloud.session()
    (container,) = [
        one['name']
        for one in session.get('object-store', '?format=json').json()
        if one['name'].startswith('heat-plugins-operations')
    ]
    for name, values in {
        f'heads/{JUNK}': {'id': JUNK, 'state': 'complete', 'created_at': 1},
        f'orders/{JUNK}': {'id': JUNK, 'members': []},
        f'states/{JUNK}/000001/control': {'began_at': 1},
        f'leads/{JUNK}/999999999': {},
    }.items():
        body = json.dumps(values).encode()
        path = f'/{container}/operations/{name}'
        assert session.put('object-store', path, body).status == 201
    config = {
        'name': JUNK,
        # A former release's, which takes no deployment.
        'group': 'heat-plugins-operation',
        'config': json.dumps({'operation': JUNK, 'stacks': [stack.id]}),
    }
    answer = session.post('orchestration', '/software_configs', config)
    assert answer.ok, answer
    return shown['id']


def _check_operations(cloud, operation_id, logged):
    """Hold that what is junk costs one warning, and the other goes on."""
    base.until(lambda: logged(f'Advancing operation {operation_id}'))
    base.until(lambda: logged(f'Cannot advance operation {JUNK}'))
    operations = test_operations.Operations(cloud)
    code, said = operations('show', JUNK)
    assert code != 0 and 'delete --force' in said, said
    _, listed = operations('list')
    states = {one['id']: one['state'] for one in listed}
    assert states == {operation_id: 'running', JUNK: 'complete'}
    assert logged(f'Cannot advance operation {JUNK}') == 1
    code, shown = operations('cancel', operation_id)
    assert (code, shown['id']) == (0, operation_id), shown


def _names(cloud):
    stacks = cloud.session().get('orchestration', '/stacks').json()['stacks']
    return [one['stack_name'] for one in stacks]
