# SPDX-License-Identifier: Apache-2.0
"""What doc/source/threat-model.rst says that anybody can do and see.

Many of the servers here are hostile: no agent would send what they send.
"""

import gzip
import hmac
import io
import itertools
import json
import re
import shlex
import subprocess
import tarfile
import time
from urllib import parse
import uuid

import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers
from tests.functional import test_triggers
from tests.functional.conftest import REFUSED

PAGE = base.ROOT / 'doc/source/threat-model.rst'

#: The inputs with the URLs of a run, and what each permits.
URLS = {
    'deploy_signal_id': {'PUT': 201, 'HEAD': 200},
    'deploy_progress_url': {'PUT': 201, 'HEAD': 200},
    'deploy_log_url': {'PUT': 201, 'HEAD': 200},
    'deploy_control_url': {'GET': 404, 'HEAD': 404},
}
RESULT, REPORT, LOG, CONTROL = URLS

SECRET = base.body(deploy_stdout='a secret')

#: The servers of a group.
MEMBERS = ('server0', 'server1')


def commands():
    """Return the page's curl commands, and the statuses that it promises."""
    found = re.findall(r'^    (curl .*?) +# (.*)$', PAGE.read_text(), re.M)
    return [
        (command, [int(each) for each in re.findall(r'\d{3}', comment)])
        for command, comment in found
    ]


def send(method, url, body=b'', **headers):
    """Send a request as a hostile server; the HTTP status."""
    named = {name.replace('_', '-'): one for name, one in headers.items()}
    return base.rest.send(method, url, body=body, headers=named).status


def curl(command, url, folder, env):
    words = [word.replace('$URL', url) for word in shlex.split(command)]
    quiet = '--silent --output /dev/null --write-out %{http_code}'
    done = subprocess.run(
        [words[0], *quiet.split(), *words[1:]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def changed(url, query=None, **parts):
    """Return a URL with other parts."""
    if query:
        parts['query'] = parse.urlencode(query)
    return parse.urlunsplit(parse.urlsplit(url)._replace(**parts))


@pytest.mark.quick
def test_url_is_good_for_one_object_and_for_putting_it(
    cloud, stacks, tmp_path
):
    stack = stacks(base.software(deployments=2, timeout=100))
    mine, other = (
        stack.waiting(name).signal_url
        for name in ('deployment0', 'deployment1')
    )
    path = parse.urlsplit(mine).path
    container = path.partition('/signals/')[0]
    query = dict(parse.parse_qsl(parse.urlsplit(mine).query))
    # An hour is the margin.
    left = int(query['temp_url_expires']) - time.time()
    assert 3600 < left <= 3700
    refused = [
        changed(mine, {**query, 'temp_url_expires': str(2**31 - 1)}),
        changed(mine, path=parse.urlsplit(other).path),
        changed(mine, path=f'{path}0'),
        changed(mine, path=f'{container}/other'),
    ]
    # 404 is an answer to somebody who may ask: nothing is there so far.
    statuses = [send(each, mine) for each in ('HEAD', 'GET', 'DELETE', 'POST')]
    assert statuses == [404, *[REFUSED] * 3]
    env = base.curl_environment(cloud)
    (tmp_path / 'result.json').write_bytes(base.body())
    page = commands()
    assert len(page) == 4
    for command, of_swift in page:
        expected = [REFUSED if each == 401 else each for each in of_swift]
        assert curl(command, mine, tmp_path, env) in expected, command
        for url in refused:
            assert curl(command, url, tmp_path, env) == REFUSED, command
    # Not for Ceph's gateway, which such a request crashes.
    if conftest.STORE == 'swift':
        for path in (container, container.rpartition('/')[0]):
            listed = changed(mine, path=path)
            for url in (listed, f'{listed}&prefix=signals/&format=json'):
                assert send('GET', url) == send('HEAD', url) == 401
    # Its own key, which only the project can see, signs URLs that have run
    # out as well; they are refused, and those that have not are not.
    keeper = stack.container if 'Container' in conftest.KEY_HEADER else ''
    headers = cloud.session().request('HEAD', 'object-store', keeper).headers
    key = headers[conftest.KEY_HEADER].encode()
    path = parse.urlsplit(other).path
    for seconds, status in ((-1, 401), (60, 201)):
        expires = int(time.time()) + seconds
        signature = hmac.new(
            key, f'PUT\n{expires}\n{path}'.encode(), conftest.DIGEST
        ).hexdigest()
        signed = {'temp_url_sig': signature, 'temp_url_expires': expires}
        assert base.put(changed(other, signed), b'{}') == status
    stack.wait('CREATE_COMPLETE')


def test_another_project_sees_nothing_and_runs_nothing_on_a_server(
    cloud, stacks
):
    stack = stacks(base.software())
    waiting = stack.waiting()
    owner, other = cloud.session(), cloud.session('other')
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
        answer = base.rest.send(method, url, token=other.token, body=b'')
        assert answer.status in refusals
    container = url.split('/signals/')[0]
    assert base.rest.send('GET', container, token=other.token).status == 403
    path = f'/stacks/{stack.name}/{stack.id}/resources/deployment/signal'
    before = len(stack.events('deployment'))
    for details in (
        {'trigger': 'BACKUP'},
        {'run': {'action': 'BACKUP'}},
        {'deploy_status_code': 0},
    ):
        for session in (owner, other):
            endpoint = session.endpoint('orchestration')
            headers = {'X-Auth-Token': other.token}
            status = test_triggers.post(endpoint + path, details, **headers)
            assert status in (403, 404), (endpoint, status)
    assert len(stack.events('deployment')) == before
    waiting.answer()
    stack.wait('CREATE_COMPLETE')

    def post(session, kind, **body):
        return session.post('orchestration', f'/{kind}s', body)

    made = {}
    for session, script in ((other, 'evil'), (owner, 'by the API')):
        config = {'name': 'any', 'group': 'script', 'config': script}
        answer = post(session, 'software_config', **config)
        order = {
            'server_id': server,
            'config_id': answer.json()['software_config']['id'],
            'action': 'CREATE',
            'status': 'COMPLETE',
        }
        if session is other:
            forged = {**order, 'stack_user_project_id': owner.project_id}
            refused = post(other, 'software_deployment', **forged)
            assert refused.status == 400
            assert 'stack_user_project_id' in refused.body.decode()
        answer = post(session, 'software_deployment', **order)
        made[session] = answer.json()['software_deployment']
    stack.update(base.software(script='second'))
    stack.waiting(action='UPDATE').answer()
    stack.wait('UPDATE_COMPLETE')
    given = {each['config'] for each in stack.metadata()}
    assert given >= {'second', 'by the API'}
    assert 'evil' not in given
    for session, each in made.items():
        for path in (
            f'/software_deployments/{each["id"]}',
            f'/software_configs/{each["config_id"]}',
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
    sent = base.body(
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
    swift = cloud.session()
    headers = swift.request('HEAD', 'object-store', stack.container)
    of_cloud = json.loads((cloud.path / 'instance.json').read_text())
    for secret in (
        headers.headers.get(conftest.KEY_HEADER, 'no key'),
        *of_cloud['secrets'].values(),
    ):
        assert secret not in log
    assert not re.findall(r'temp_url_sig=(?!\*\*\*).{12}', log)
    assert not re.findall(r'(?i)x-auth-token\W+(?!\{SHA256\})\w{20}', log)
    assert 'error output "greeting" has a value' in stack.reason


HIDDEN = 'hunter2 "quoted" \\ $x'

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
    stack = stacks(template, password=HIDDEN)
    with servers.agent(cloud, stack):
        stack.wait('CREATE_FAILED')
        base.until(
            lambda: stack.deployment('deployment0').status == 'COMPLETE'
        )
    shown, names = [stack.reason], ('deploy_stderr', 'deploy_stdout')
    for name in ('deployment1', 'deployment0'):
        attributes = stack.resource(name, *names)['attributes']
        shown += [*(attributes[each] for each in names), stack.events(name)]
    _, broken, _, _, stderr, stdout, _ = shown
    assert stack.outputs['deployment0_greeting'] == HIDDEN
    assert 'mysql://root:******@db' in stderr
    assert 'password=******' in stdout
    assert 'who=world' in stdout
    assert '******' in broken
    # A hook that has crashed prints nothing to its stdout.
    for text in map(str, shown):
        assert 'hunter2' not in text
        assert 'temp_url_sig=' not in text.replace('temp_url_sig=***', '')


class Run:
    """A run on two servers, and what those were given for it."""

    def __init__(self, cloud, stack):
        self._swift = cloud.session()
        self._stack = stack
        self.container = stack.container
        self.commands = running.Commands(cloud)
        self.id = str(uuid.uuid4())
        order = {'action': 'BACKUP', 'id': self.id}
        stack.signal('fleet', {'run': order})
        self.urls = [self.given(name) for name in MEMBERS]

    def given(self, server, former=()):
        """Return the URLs that a server is given for it.

        :param former: where results of former attempts went.
        """

        def urls():
            for config in self._stack.metadata(server):
                inputs = {
                    one['name']: one['value'] for one in config['inputs']
                }
                if LOG in inputs and inputs[RESULT] not in former:
                    return {name: inputs[name] for name in URLS}
            return {}

        return dict(base.until(urls))

    def command(self, name, *words):
        code, shown = self.commands(name, self.id, *words)
        assert code in (0, 3, 6), shown
        return shown

    def objects(self):
        path = f'{self.container}?format=json'
        answer = self._swift.get('object-store', path)
        return [one['name'] for one in answer.json()]

    def content(self, url):
        """Return the object of a URL as heat-plugins reads it."""
        path = parse.urlsplit(url).path
        path = path[path.index(self.container) :]
        answer = self._swift.get(
            'object-store', f'{path}?multipart-manifest=get'
        )
        return answer.body


def below(url, name):
    """Return the URL of an object below the prefix of one."""
    return changed(url, path=parse.urlsplit(url).path + name)


@pytest.fixture
def victim(cloud):
    """An object in another container of the project; its path."""
    swift = cloud.session()
    path = '/victim/secret'
    assert swift.put('object-store', '/victim').ok
    assert swift.put('object-store', path, SECRET).ok
    yield path
    kept = swift.get('object-store', path).body
    base.delete_container(swift, 'victim')
    assert kept == SECRET


@pytest.fixture(scope='module')
def stack(cloud, module_stacks):
    whole = test_triggers.template(members='single')
    resources = whole['resources']
    group = resources.pop('deployment')['properties']
    resources |= dict.fromkeys(MEMBERS, resources.pop('server'))
    resources['config'].pop('depends_on')
    del group['server'], whole['outputs']
    group['servers'] = {name: {'get_resource': name} for name in MEMBERS}
    resources['fleet'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'properties': group,
    }
    return module_stacks(whole, name='attacked').created()


@pytest.fixture
def run(victim, cloud, stack):
    """What was to stay is looked at when the run is deleted."""
    found = Run(cloud, stack)
    yield found
    # Whatever the test has left of it.
    for verb in ('cancel', 'wait', 'delete'):
        found.commands(verb, found.id)


#: What a server may send along with what it PUTs.
_HEADERS = {
    'X-Copy-From': '{victim}',
    'X-Object-Manifest': '{victim}',
    'X-Symlink-Target': '{victim}',
    'X-Delete-After': '1000',
    'Content-Encoding': 'gzip',
    'X-Object-Meta-Long': 'x' * 200,
    'X-Container-Read': '.r:*',
    'X-Timestamp': '1.00000',
}

#: What a store refuses of it. Ceph's gateway copies, see the page.
_NOT_PERMITTED = {
    'swift': {'X-Copy-From', 'X-Object-Manifest', 'X-Symlink-Target'},
    'rgw': {'X-Object-Manifest'},
}[conftest.STORE]


def test_urls_permit_what_the_page_says_and_reach_no_other_object(run, victim):
    """The fixtures look at what is left, and at what was to stay."""
    prefix = run.urls[0][LOG]
    for number, (header, value) in enumerate(_HEADERS.items()):
        url = below(prefix, f'{number:06d}')
        sent = {header: value.format(victim=victim)}
        status = send('PUT', url, b'mine', **sent)
        if header in _NOT_PERMITTED:
            assert status == 400, header
            continue
        assert status == 201, header
        is_copied = (header, conftest.STORE) == ('X-Copy-From', 'rgw')
        assert run.content(url) == (SECRET if is_copied else b'mine')
    # Cleaning follows no name.
    for name in ('../' * 5 + victim[1:], '../000000', './000000', '..', 'a//'):
        assert send('PUT', below(prefix, name), b'x') == 201
    before = run.objects()
    url = run.urls[0][RESULT]
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w') as archive:
        for name in (victim[1:], '../00001.1', '../requests/1'):
            archive.addfile(tarfile.TarInfo(name))
    send('PUT', f'{url}&extract-archive=tar', content.getvalue())
    # Ceph's gateway unpacks it below the object's own name.
    own = url.partition('?')[0].partition(f'{run.container}/')[2] + '/'
    made = [one for one in run.objects() if one not in before]
    assert all(one.startswith(own) for one in made), made
    assert len(made) == (3 if conftest.STORE == 'rgw' else 0)
    # Nor does it end a run.
    assert not {'complete', 'failed'} & {*run.command('show')['counts']}
    for urls in run.urls:
        urls[LOG] = below(urls[LOG], '100000')
    # Nor is the signature of one that of another.
    parts = [parse.urlsplit(url) for each in run.urls for url in each.values()]
    for one, other in itertools.permutations(parts, 2):
        url = parse.urlunsplit(one._replace(query=other.query))
        assert send('PUT', url) == send('GET', url) == REFUSED, url
    for urls, (name, permitted) in itertools.product(run.urls, URLS.items()):
        for method in ('GET', 'DELETE', 'POST', 'PUT', 'HEAD'):
            expected = permitted.get(method, REFUSED)
            assert send(method, urls[name]) == expected, (name, method)


def test_a_result_is_what_was_put_and_counts_once_for_its_own_attempt(
    run, victim
):
    former = manifest, bomb = [urls[RESULT] for urls in run.urls]
    named = json.dumps([{'path': victim}]).encode()
    # By one on Ceph's gateway, heat-engine reads the object, says the page.
    how = '&multipart-manifest=put' if conftest.STORE == 'swift' else ''
    assert send('PUT', f'{manifest}{how}', named) == 201
    packed = gzip.compress(b' ' * 10_000_000 + SECRET)
    assert send('PUT', bomb, packed, Content_Encoding='gzip') == 201
    shown = run.command('wait')
    assert shown['counts'] == {'failed': 2}
    assert 'a secret' not in str(shown['failures'])
    reasons = str([each['reason'] for each in shown['failures']])
    assert reasons.count('cannot be used: ') == 2, reasons
    assert 'it is a list' in reasons
    run.command('retry')
    now = [run.given(name, former)[RESULT] for name in MEMBERS]
    assert [send('PUT', url, base.body()) for url in former] == [201] * 2
    counts = run.command('wait', '--timeout', '3')['counts']
    assert not {'complete', 'failed'} & {*counts}, counts
    assert [send('PUT', url, base.body()) for url in now] == [201] * 2
    assert run.command('wait')['counts'] == {'complete': 2}


#: As Heat's own default, without the rules of former years.
POLICY = '"stacks:update": "role:member and project_id:%(project_id)s"\n'


@pytest.fixture
def reader(cloud):
    """A session of a reader in the project demo, who may update nothing."""
    file = cloud.path / 'conf/policy.yaml'
    file.write_text(POLICY)
    with base.in_demo(cloud, 'reader', 'reader') as session:
        yield session
    # Heat does not expect that the file goes.
    file.write_text('{}')


@pytest.mark.quick
@pytest.mark.usefixtures('reader')
def test_runs_are_ordered_through_an_unchanged_heat_api(cloud, stacks):
    stack = stacks(running.fleet(2)).created()
    demo, other = running.client(cloud), running.client(cloud, 'other')
    reader = running.client(cloud, 'reader', cloud.env()['OS_PROJECT_NAME'])
    base.until(lambda: demo.door().release)
    selected = {'stacks': [stack.name], 'resources': ['db*']}

    found = demo.select('BACKUP', **selected)
    assert list(demo.list(stack=stack.name)) == []
    run_id = str(uuid.uuid4())
    order = {
        **selected,
        'run_id': run_id,
        'expected': found.targets,
        'inputs': {'broken': 'a-secret-name'},
    }
    with pytest.raises(errors.Refused, match='targets were confirmed'):
        demo.start('BACKUP', **{**order, 'expected': 1})
    run = demo.start('BACKUP', **order)
    assert demo.start('BACKUP', **order).created_at == run.created_at
    assert [each.id for each in demo.list(stack=stack.name)] == [run_id]
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

    assert demo.pause(run_id).state == 'paused'
    demo.cancel(run_id)
    assert demo.wait(run_id, 60).state == 'cancelled'

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
def test_a_reader_starts_and_answers_nothing_and_sees_no_url_for_it(
    stacks, reader
):
    template = base.software(signal_transport='HEAT_SIGNAL', trigger_url=True)
    template['outputs']['trigger_url'] = {
        'value': {'get_attr': ['deployment', 'trigger_url']}
    }
    stack = stacks(template)
    stack.waiting()
    url = reader.endpoint('orchestration') + f'/stacks/{stack.name}/{stack.id}'
    token = reader.token
    # Heat's policy permits the signal, and no update.
    assert base.rest.send('PUT', url, token=token, body={}).status == 403
    signal = f'{url}/resources/deployment/signal'
    for details, said in (
        ({'trigger': 'BACKUP'}, 'Not triggered: '),
        ({'run': {'action': 'X'}}, 'Not triggered: '),
        ({'greeting': 'forged'}, 'Result refused: '),
    ):
        answer = base.rest.send('POST', signal, token=token, body=details)
        assert answer.ok, answer
        event = test_triggers.told(
            stack, said, holding='its sender may not update'
        )
        assert 'policy stacks:update of Heat' in event
    assert stack.status == 'CREATE_IN_PROGRESS'
    # A user who may update the stack answers in the server's place.
    stack.signal('deployment', {'greeting': 'hello'})
    stack.wait('CREATE_COMPLETE')
    assert stack.outputs['trigger_url'].startswith('http')
    for place in ('', '/outputs/trigger_url', '/resources/deployment'):
        answer = base.rest.send('GET', f'{url}{place}', token=token)
        assert answer.ok, answer
        assert b'/signal/' not in answer.body
