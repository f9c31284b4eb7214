# SPDX-License-Identifier: Apache-2.0
"""Who may start runs and answer for servers, by the API and by a signal."""

import json
import uuid

import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from tests.functional import base
from tests.functional import running
from tests.functional import test_triggers

rest = base.minicloud_client.rest

#: As Heat's own default, without the rules of former years.
POLICY = '"stacks:update": "role:member and project_id:%(project_id)s"\n'


@pytest.fixture(scope='module')
def policy(cloud):
    """Let readers be in the project demo, who may update nothing."""
    admin = cloud.session('admin')
    (user,) = admin.get('identity', '/users?name=reader').json()['users']
    (role,) = admin.get('identity', '/roles?name=reader').json()['roles']
    path = (
        f'/projects/{cloud.session().project_id}/users/{user["id"]}'
        f'/roles/{role["id"]}'
    )
    assert admin.put('identity', path).ok
    file = cloud.path / 'conf/policy.yaml'
    file.write_text(POLICY)
    yield
    # Heat does not expect that the file goes.
    file.write_text('{}')
    assert admin.delete('identity', path).ok


@pytest.fixture
def reader(cloud, policy):
    """Return the client of a reader of the project demo."""
    return running.client(cloud, 'reader', cloud.env()['OS_PROJECT_NAME'])


@pytest.fixture
def token(cloud, policy):
    """Return the token of a reader of the project demo."""
    env = cloud.env('reader')
    user = {
        'name': env['OS_USERNAME'],
        'password': env['OS_PASSWORD'],
        'domain': {'id': 'default'},
    }
    keystone = cloud.session('admin').endpoint('identity')
    return base.token(keystone, user, cloud.session().project_id)


@pytest.mark.quick
def test_runs_are_ordered_through_an_unchanged_heat_api(cloud, stacks, reader):
    stack = stacks(running.fleet(2)).created()
    demo, other = running.client(cloud), running.client(cloud, 'other')
    base.until(lambda: demo.door().release)
    selected = {'stacks': [stack.name], 'resources': ['db*']}

    # A dry run selects what the command does.
    found = demo.select('BACKUP', **selected)
    command = cloud.openstack(
        *('software', 'deployment', 'run', 'start', 'BACKUP'),
        *('--stack', stack.name, '--resource', 'db*', '--dry-run'),
        *('-f', 'json'),
    )
    assert [dict(row) for row in found.rows] == json.loads(command)
    assert list(demo.list(stack=stack.name)) == []

    run_id = str(uuid.uuid4())
    order = {
        **selected,
        'run_id': run_id,
        'expected': found.targets,
        'inputs': {'broken': 'a-secret-name'},
        # One target at a time, and long before the next.
        'limits': {'pause': 60, 'max_concurrent': 1, 'cut_off': 1000},
    }
    with pytest.raises(errors.Refused, match='targets were confirmed'):
        demo.start('BACKUP', **{**order, 'expected': 1})
    with pytest.raises(errors.Refused, match='Heat has no stack'):
        demo.start('BACKUP', run_id=run_id, stacks=['nowhere'])
    run = demo.start('BACKUP', **order)
    assert demo.start('BACKUP', **order).created_at == run.created_at
    with pytest.raises(errors.Exists):
        demo.start('BACKUP', **{**order, 'inputs': {}})
    assert (run.id, run.targets) == (run_id, found.targets)
    assert [each.id for each in demo.list(stack=stack.name)] == [run_id]
    listed = demo.list(action='BACKUP', limit=1)
    assert next(iter(listed)).id == run_id
    assert list(demo.list(stack=stack.name, state=['failed'])) == []
    assert [each.resource for each in demo.targets(run_id)] == [
        row['resource'] for row in found.rows
    ]

    # Who may what.
    assert reader.show(run_id).targets == run.targets
    for refused in (
        lambda run_id: reader.start('BACKUP', stacks=[stack.name]),
        *(reader.pause, reader.cancel, reader.retry, reader.delete),
    ):
        with pytest.raises(errors.Denied):
            refused(run_id)
    assert list(other.list()) == []
    for missing in (other.show, other.pause, other.cancel):
        with pytest.raises(errors.NotFound):
            missing(run_id)
    with pytest.raises(errors.Refused, match='Heat has no stack'):
        other.start('BACKUP', stacks=[stack.id])

    request = str(uuid.uuid4())
    assert demo.pause(run_id, request=request).state == 'paused'
    assert demo.pause(run_id, request=request).requests[0]['do'] == 'pause'
    with pytest.raises(errors.Refused, match='cancel it first'):
        demo.delete(run_id)
    demo.cancel(run_id)
    ended = demo.wait(run_id, 60)
    assert ended.state == 'cancelled', ended
    with pytest.raises(errors.Refused, match='it has ended: cancelled'):
        demo.cancel(run_id)

    # Heat's own API shows nothing of it, and no secret comes out.
    heat = cloud.session()
    answer = heat.request('GET', 'orchestration', '/software_deployments')
    assert run_id.encode() not in answer.body
    query = ordering.Query(run=run_id, outputs=True).server_id
    path = f'/software_deployments?server_id={query.replace("&", "%26")}'
    answer = heat.request('GET', 'orchestration', path)
    assert run_id.encode() in answer.body
    assert b'a-secret-name' not in answer.body
    demo.delete(run_id)
    assert list(demo.list(stack=stack.name)) == []


@pytest.mark.quick
def test_a_reader_starts_and_answers_nothing(cloud, stacks, token):
    stack = stacks(base.software(signal_transport='HEAT_SIGNAL'))
    stack.waiting()
    heat = cloud.session().endpoint('orchestration')
    url = f'{heat}/stacks/{stack.name}/{stack.id}'
    # Heat's policy permits the signal, and no update.
    assert rest.send('PUT', url, token=token, body={}).status == 403
    signal = f'{url}/resources/deployment/signal'
    for details, said in (
        ({'trigger': 'BACKUP'}, 'Not triggered: '),
        ({'run': {'action': 'X'}}, 'Not triggered: '),
        ({'greeting': 'forged'}, 'Result refused: '),
    ):
        answer = rest.send('POST', signal, token=token, body=details)
        assert answer.ok, answer
        event = test_triggers.told(
            stack, said, holding='its sender may not update'
        )
        assert 'policy stacks:update of Heat' in event
    assert stack.status == 'CREATE_IN_PROGRESS'
    # A user who may update the stack answers in the server's place.
    stack.signal('deployment', {'greeting': 'hello'})
    stack.wait('CREATE_COMPLETE')


@pytest.mark.quick
def test_a_reader_is_shown_no_url_that_starts_runs(cloud, stacks, token):
    stack = stacks(test_triggers.template(trigger_url=True)).created()
    assert stack.outputs['trigger_url'].startswith('http')
    heat = cloud.session().endpoint('orchestration')
    url = f'{heat}/stacks/{stack.name}/{stack.id}'
    for path in (
        url,
        f'{url}/outputs/trigger_url',
        f'{url}/resources/deployment',
    ):
        answer = rest.send('GET', path, token=token)
        assert answer.ok, answer
        assert b'/signal/' not in answer.body
