# SPDX-License-Identifier: Apache-2.0
"""What doc/source/threat-model.rst says that one can do with a URL.

The servers here are hostile: no agent would send what they send.
"""

from collections.abc import Iterator
import gzip
import io
import itertools
import json
import re
import shlex
import subprocess
import tarfile
from urllib import parse
import uuid

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers
from tests.functional import test_triggers
from tests.functional.conftest import REFUSED

PAGE = base.ROOT / 'doc/source/threat-model.rst'

rest = base.minicloud_client.rest

#: The inputs with the URLs of a run, and what each permits.
URLS = {
    'deploy_signal_id': {'PUT': 201, 'HEAD': 200},
    'deploy_progress_url': {'PUT': 201, 'HEAD': 200},
    'deploy_log_url': {'PUT': 201, 'HEAD': 200},
    'deploy_control_url': {'GET': 404, 'HEAD': 404},
}
RESULT, REPORT, LOG, CONTROL = URLS

SECRET = servers.body(deploy_stdout='a secret')

MEMBERS = test_triggers.SERVERS


def commands():
    """Return the page's curl commands, and the statuses that it promises."""
    found = re.findall(r'^    (curl .*?) +# (.*)$', PAGE.read_text(), re.M)
    return [
        (command, [int(each) for each in re.findall(r'\d{3}', comment)])
        for command, comment in found
    ]


def curl(command, url, folder, env):
    words = [word.replace('$URL', url) for word in shlex.split(command)]
    quiet = [
        '--silent',
        '--output',
        '/dev/null',
        '--write-out',
        '%{http_code}',
    ]
    done = subprocess.run(
        [words[0], *quiet, *words[1:]],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_curl_with_a_url_is_answered_as_the_page_says(cloud, stacks, tmp_path):
    env = base.curl_environment(cloud)
    (tmp_path / 'result.json').write_bytes(servers.body())
    stack = stacks(base.software())
    url = stack.waiting().signal_url
    page = commands()
    assert len(page) == 4
    for command, statuses in page:
        assert curl(command, url, tmp_path, env) in statuses, command
    name, _, query = url.partition('?')
    later = re.sub('(expires=)([0-9])', r'\g<1>9\2', query)
    for other in (f'{name}0?{query}', f'{name}?{later}'):
        for command, _ in page:
            assert curl(command, other, tmp_path, env) == 401, command
    stack.wait('CREATE_COMPLETE')


class Run:
    """A run on two servers, and what those were given for it."""

    def __init__(self, cloud, stack):
        self._swift = cloud.session()
        self._stack = stack
        self.container = f'/heat-plugins-{stack.id}'
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

    def ended(self):
        """Wait for its end; what a user is shown of it."""
        return self.command('wait')

    def objects(self, prefix=''):
        path = f'{self.container}?prefix={prefix}&format=json'
        answer = self._swift.get('object-store', path)
        return [one['name'] for one in answer.json()] if answer.ok else []

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
    parts = parse.urlsplit(url)
    return parse.urlunsplit(parts._replace(path=parts.path + name))


def crossed(urls):
    """Sign the object of each URL with the signature of each other one."""
    for mine, other in itertools.permutations(map(parse.urlsplit, urls), 2):
        yield parse.urlunsplit(mine._replace(query=other.query))


def archive(*names):
    """Return a tarball of files with some names."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode='w') as found:
        for name in names:
            found.addfile(tarfile.TarInfo(name))
    return content.getvalue()


def send(method, url, body=b'', **headers):
    """Send a request as a hostile server; the HTTP status."""
    named = {name.replace('_', '-'): one for name, one in headers.items()}
    return rest.send(method, url, body=body, headers=named).status


@pytest.fixture
def victim(cloud):
    """An object in another container of the project; its path."""
    swift = cloud.session()
    path = '/victim/secret'
    assert swift.put('object-store', '/victim').ok
    assert swift.put('object-store', path, SECRET).ok
    yield path
    kept = swift.get('object-store', path).body
    swift.delete('object-store', path)
    swift.delete('object-store', '/victim')
    assert kept == SECRET


@pytest.fixture(scope='module')
def stack(cloud, module_stacks):
    found = module_stacks(test_triggers.fleet(), name='attacked').created()
    return found


@pytest.fixture
def run(
    # What was to stay is looked at when the run is deleted.
    victim: str,
    cloud: base.Cloud,
    stack: base.Stack,
) -> Iterator[Run]:
    found = Run(cloud, stack)
    yield found
    # Whatever the test has left of it.
    found.commands('cancel', found.id)
    found.commands('wait', found.id)
    found.commands('delete', found.id)


def test_a_url_permits_what_the_page_says_and_no_more(run):
    own = [dict(urls) for urls in run.urls]
    for urls in own:
        urls[LOG] = below(urls[LOG], '000000')
    for url in crossed([url for urls in own for url in urls.values()]):
        assert send('PUT', url) == REFUSED, url
        assert send('GET', url) == REFUSED, url
    for urls, (name, permitted) in itertools.product(own, URLS.items()):
        for method in ('GET', 'DELETE', 'POST', 'PUT', 'HEAD'):
            expected = permitted.get(method, REFUSED)
            assert send(method, urls[name]) == expected, (name, method)


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


def test_no_header_lets_a_url_reach_other_objects(run, victim):
    for number, (header, value) in enumerate(_HEADERS.items()):
        url = below(run.urls[0][LOG], f'{number:06d}')
        sent = {header: value.format(victim=victim)}
        status = send('PUT', url, b'mine', **sent)
        if header in _NOT_PERMITTED:
            assert status == 400, header
            continue
        assert status == 201, header
        is_copied = (header, conftest.STORE) == ('X-Copy-From', 'rgw')
        assert run.content(url) == (SECRET if is_copied else b'mine')


def test_a_result_is_what_was_put_and_not_what_it_names(run, victim):
    manifest, bomb = (urls[RESULT] for urls in run.urls)
    named = json.dumps([{'path': victim}]).encode()
    assert send('PUT', f'{manifest}&multipart-manifest=put', named) == 201
    packed = gzip.compress(b' ' * 10_000_000 + SECRET)
    assert send('PUT', bomb, packed, Content_Encoding='gzip') == 201
    shown = run.ended()
    assert shown['counts'] == {'failed': 2}
    assert 'a secret' not in str(shown['failures'])
    reasons = str([each['reason'] for each in shown['failures']])
    assert reasons.count('cannot be used: ') == 2, reasons
    assert 'it is a list' in reasons


def test_a_result_counts_once_and_for_its_own_attempt(run):
    former = [urls[RESULT] for urls in run.urls]
    for url in former:
        assert send('PUT', url, b'{"deploy_status_code": 3}') == 201
    assert run.ended()['counts'] == {'failed': 2}
    run.command('retry')
    now = [run.given(name, former)[RESULT] for name in MEMBERS]
    assert [send('PUT', url, servers.body()) for url in former] == [201] * 2
    counts = run.command('wait', '--timeout', '3')['counts']
    assert not {'complete', 'failed'} & {*counts}, counts
    assert [send('PUT', url, servers.body()) for url in now] == [201] * 2
    assert run.ended()['counts'] == {'complete': 2}


def test_what_a_server_names_leads_cleaning_to_no_other_object(run, victim):
    """The fixtures look at what is left, and at what was to stay."""
    prefix = run.urls[0][LOG]
    for name in ('../' * 5 + victim[1:], '../000000', './000000', '..', 'a//'):
        assert send('PUT', below(prefix, name), b'x') == 201
    before = run.objects()
    url = run.urls[0][RESULT]
    names = [victim[1:], '../00001.1', '../requests/1']
    send('PUT', f'{url}&extract-archive=tar', archive(*names))
    # Ceph's gateway unpacks it below the object's own name.
    own = url.partition('?')[0].partition(f'{run.container}/')[2] + '/'
    made = [one for one in run.objects() if one not in before]
    assert all(one.startswith(own) for one in made), made
    assert len(made) == (3 if conftest.STORE == 'rgw' else 0)
    # Nor does it end a run.
    assert not {'complete', 'failed'} & {*run.command('show')['counts']}


@conftest.trusted
def test_a_signal_of_another_project_or_stack_reaches_nothing(
    cloud, stack, stacks
):
    other = stacks(test_triggers.template(), name='other').created()
    stranger = test_triggers.Server(cloud, other)
    tenant = cloud.session('other')
    own = tenant.endpoint('orchestration')
    ours = cloud.session().endpoint('orchestration')
    path = f'/stacks/{stack.name}/{stack.id}/resources/fleet/signal'
    before = len(stack.events('fleet'))
    for details in (
        {'trigger': 'BACKUP'},
        {'run': {'action': 'BACKUP'}},
        {'deploy_status_code': 0},
    ):
        for endpoint, token in (
            (own, tenant.token),
            (ours, tenant.token),
            (ours, stranger.token),
            (stranger.endpoint, stranger.token),
        ):
            headers = {'X-Auth-Token': token}
            status = test_triggers.post(endpoint + path, details, **headers)
            assert status in (403, 404), (endpoint, status)
    assert len(stack.events('fleet')) == before
