# SPDX-License-Identifier: Apache-2.0
"""What a server, its neighbours and other people can do and see."""

import hmac
import json
import re
import sqlite3
import time
from urllib import parse

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import servers

rest = base.minicloud_client.rest


def _answers(url, *methods):
    return [rest.send(method, url).status for method in methods]


@pytest.mark.quick
def test_url_is_good_for_one_object_and_for_putting_it(stacks):
    template = base.software(deployments=2)
    stack = stacks(template)
    mine, other = (
        stack.waiting(name).signal_url
        for name in ('deployment0', 'deployment1')
    )
    parts = parse.urlsplit(mine)
    neighbour = parse.urlsplit(other)
    folder, _, _ = parts.path.rpartition('/')
    container = parts.path.partition('/signals/')[0]
    for path in (neighbour.path, f'{folder}/other', f'{container}/other'):
        url = parse.urlunsplit(parts._replace(path=path))
        assert rest.send('PUT', url, body=b'{}').status == conftest.REFUSED
    if conftest.STORE == 'swift':
        _list_nothing(parts, container)
    # 404 is an answer to somebody who may ask: nothing is there so far.
    refused = [conftest.REFUSED] * 3
    assert _answers(mine, 'HEAD', 'GET', 'DELETE', 'POST') == [404, *refused]
    assert base.put(mine, servers.body()) == 201
    assert _answers(mine, 'GET', 'DELETE', 'POST') == refused
    assert base.put(other, servers.body()) == 201
    stack.wait('CREATE_COMPLETE')


def _list_nothing(parts, container):
    """Hold that a URL lists neither its container nor the account.

    Not for Ceph's gateway, which such a request crashes.
    """
    for path in (container, container.rpartition('/')[0]):
        url = parse.urlunsplit(parts._replace(path=path))
        assert _answers(url, 'GET', 'HEAD') == [401, 401]
        listing = f'{url}&prefix=signals/&format=json'
        assert rest.send('GET', listing).status == 401


def test_url_lives_about_as_long_as_the_action_may_take(cloud, stacks):
    stack = stacks(base.software(timeout=100))
    url = stack.waiting().signal_url
    query = dict(parse.parse_qsl(parse.urlsplit(url).query))
    # An hour is the margin.
    left = int(query['temp_url_expires']) - time.time()
    assert 3600 < left <= 3700
    longer = {**query, 'temp_url_expires': str(2**31 - 1)}
    assert base.put(_with_query(url, longer), b'{}') == conftest.REFUSED
    # Its own key, which only the project can see, signs URLs that have run
    # out as well; they are refused, and those that have not are not.
    container = f'/heat-plugins-{stack.id}'
    demo = cloud.session()
    keeper = container if 'Container' in conftest.KEY_HEADER else ''
    headers = demo.request('HEAD', 'object-store', keeper).headers
    key = headers[conftest.KEY_HEADER]
    for seconds, status in ((-1, 401), (60, 201)):
        path = parse.urlsplit(url).path
        expires = int(time.time()) + seconds
        signature = hmac.new(
            key.encode(), f'PUT\n{expires}\n{path}'.encode(), conftest.DIGEST
        ).hexdigest()
        signed = {'temp_url_sig': signature, 'temp_url_expires': expires}
        assert base.put(_with_query(url, signed), b'{}') == status
    stack.wait('CREATE_COMPLETE')


def _with_query(url, query):
    return parse.urlunsplit(
        parse.urlsplit(url)._replace(query=parse.urlencode(query))
    )


def test_another_project_sees_nothing(cloud, stacks):
    stack = stacks(base.software())
    waiting = stack.waiting()
    other = cloud.session('other')
    shown = other.get('orchestration', '/software_deployments').json()
    ids = [one['id'] for one in shown['software_deployments']]
    assert waiting.id not in ids
    for path in (
        f'/software_deployments/{waiting.id}',
        f'/software_configs/{waiting.config["id"]}',
        f'/stacks/{stack.id}',
    ):
        assert other.get('orchestration', path).status in (403, 404)
    server = stack.resource('server')['physical_resource_id']
    path = f'/software_deployments/metadata/{server}'
    assert other.get('orchestration', path).json() == {'metadata': []}
    url = waiting.signal_url.split('?')[0]
    # Ceph's gateway says 404 of what is not there, whoever asks.
    refusals = {'swift': {403}, 'rgw': {403, 404}}[conftest.STORE]
    for method in ('GET', 'PUT', 'DELETE'):
        answer = rest.send(method, url, token=other.token, body=b'')
        assert answer.status in refusals
    container = url.split('/signals/')[0]
    assert rest.send('GET', container, token=other.token).status == 403


def test_another_project_runs_nothing_on_a_server(cloud, stacks):
    stack = stacks(base.software(signal_transport='NO_SIGNAL')).created()
    server = stack.resource('server')['physical_resource_id']
    owner, other = cloud.session(), cloud.session('other')

    def deploy(session, script, **more):
        config = session.post(
            'orchestration',
            '/software_configs',
            {'name': 'any', 'group': 'script', 'config': script},
        ).json()['software_config']
        made = session.post(
            'orchestration',
            '/software_deployments',
            {
                'server_id': server,
                'config_id': config['id'],
                'action': 'CREATE',
                'status': 'COMPLETE',
                **more,
            },
        )
        if not made.ok:
            path = f'/software_configs/{config["id"]}'
            assert session.delete('orchestration', path).ok
        return made

    def given():
        return [each['config'] for each in stack.metadata()]

    with sqlite3.connect(cloud.path / 'data/heat.sqlite') as database:
        ((users,),) = database.execute(
            'SELECT stack_user_project_id FROM stack WHERE id = ?', (stack.id,)
        )
    for named in (owner.project_id, users):
        refused = deploy(other, 'evil', stack_user_project_id=named)
        assert refused.status == 400
        assert 'stack_user_project_id' in refused.body.decode()
    deployment = deploy(other, 'evil').json()['software_deployment']
    # As it lies there since it was not refused.
    with sqlite3.connect(cloud.path / 'data/heat.sqlite') as database:
        database.execute(
            'UPDATE software_deployment SET stack_user_project_id = ? '
            'WHERE id = ?',
            (owner.project_id, deployment['id']),
        )
    own = deploy(owner, 'by the API').json()['software_deployment']
    assert 'by the API' in given()
    assert 'evil' not in given()
    stack.updated(base.software(script='second', signal_transport='NO_SIGNAL'))
    assert {'second', 'by the API'} <= set(given())
    assert 'evil' not in given()
    path = f'/software_deployments/metadata/{server}'
    for session in (owner, cloud.session('admin')):
        shown = session.get('orchestration', path).json()['metadata']
        assert 'evil' not in [each['config'] for each in shown]
    for session, made in ((owner, own), (other, deployment)):
        for path in (
            f'/software_deployments/{made["id"]}',
            f'/software_configs/{made["config_id"]}',
        ):
            assert session.delete('orchestration', path).ok


@pytest.mark.quick
def test_secrets_are_in_no_log_event_or_reason(cloud, stacks):
    template = base.software(deployments=2)
    mine = template['resources']['deployment0']['properties']
    mine['signal_transport'] = 'HEAT_SIGNAL'
    template['resources']['config']['properties']['outputs'] = [
        {'name': 'greeting', 'error_output': True}
    ]
    stack = stacks(template)
    first, second = (
        stack.waiting(name) for name in ('deployment0', 'deployment1')
    )
    query = parse.parse_qs(parse.urlsplit(second.signal_url).query)
    secrets = [
        first.inputs['deploy_password'],
        query['temp_url_sig'][0],
        'what the script has sent',
    ]
    # What a hook that crashes sends: all that it was given.
    everything = f'{second.signal_url} {secrets}'
    sent = servers.body(
        greeting=everything, deploy_stderr=everything, deploy_status_code=1
    )
    assert second.put(sent) == 201
    stack.wait('CREATE_FAILED')
    stack.signal('deployment0', {'greeting': everything})
    log = cloud.log('heat').read_text()
    seen = [log, stack.reason, stack.deployment('deployment1').reason]
    for name in ('deployment0', 'deployment1'):
        seen.append(str(stack.events(name)))
        seen.append(str(stack.resource(name)['resource_status_reason']))
    for secret in secrets:
        assert not [text for text in seen if secret in text]
    container = f'/heat-plugins-{stack.id}'
    headers = cloud.session().request('HEAD', 'object-store', container)
    of_cloud = json.loads((cloud.path / 'instance.json').read_text())
    for secret in (
        headers.headers.get(conftest.KEY_HEADER, 'no key'),
        *of_cloud['secrets'].values(),
    ):
        assert secret not in log
    assert not re.findall(r'temp_url_sig=(?!\*\*\*).{12}', log)
    assert not re.findall(r'(?i)x-auth-token\W+(?!\{SHA256\})\w{20}', log)
    assert 'error output "greeting" has a value' in stack.reason


SECRET = 'hunter2 "quoted" \\ $x'

LEAK = """#!/bin/sh
env
echo "$url" >&2
printf '\\033]0;title\\007\\342\\200\\256'
printf %s "$password" > "$heat_outputs_path.greeting"
"""


def test_hidden_parameters_are_shown_in_declared_outputs_alone(cloud, stacks):
    values = {
        'who': {'get_param': 'who'},
        'password': {'get_param': 'password'},
        'url': {
            'str_replace': {
                'template': 'mysql://root:PASSWORD@db',
                'params': {'PASSWORD': {'get_param': 'password'}},
            }
        },
    }
    template = base.software(deployments=2, script=LEAK, input_values=values)
    template['parameters']['password'] = {'type': 'string', 'hidden': True}
    resources = template['resources']
    config = resources['config']['properties']
    # A hook that cannot start a script tells what it was given.
    resources['broken'] = {
        'type': 'OS::Heat::SoftwareConfig',
        'properties': {**config, 'config': '#!/no/such/interpreter\n'},
    }
    resources['deployment1']['properties']['config'] = {
        'get_resource': 'broken'
    }
    stack = stacks(template, password=SECRET)
    with servers.agent(cloud, stack):
        stack.wait('CREATE_FAILED')
        base.until(
            lambda: stack.deployment('deployment0').status == 'COMPLETE'
        )
    shown = [stack.reason]
    found = []
    for name in ('deployment0', 'deployment1'):
        outputs = stack.resource(name, 'deploy_stdout', 'deploy_stderr')
        attributes = outputs['attributes']
        found.append(
            (attributes['deploy_stdout'], attributes['deploy_stderr'])
        )
        shown += [*found[-1], str(stack.events(name))]
    (stdout, stderr), (_, broken) = found
    assert stack.outputs['deployment0_greeting'] == SECRET
    assert 'mysql://root:******@db' in stderr
    assert 'password=******' in stdout
    assert 'who=world' in stdout
    assert '******' in broken
    # A hook that has crashed prints nothing to its stdout.
    for text in map(str, shown):
        assert 'hunter2' not in text
        assert 'temp_url_sig=' not in text.replace('temp_url_sig=***', '')
