# SPDX-License-Identifier: Apache-2.0
"""Servers of a real Nova: what becomes of their deployments with them."""

import pytest

from tests.functional import base
from tests.functional import conftest
from tests.functional import running
from tests.functional import servers

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        conftest.PROFILE != 'small',
        reason='Nova is an addition to the profile small',
    ),
]

#: What becomes of a server with another flavor; what Heat says where no host
#: has room, and the minutes that it has for that.
POLICIES = {'REPLACE': ('server', 5), 'RESIZE': ('Timed out', 1)}


class Nova:
    """A cloud's Nova, as the user demo sees it."""

    def __init__(self, cloud):
        self._cloud = cloud
        self._session = cloud.session()

    def servers(self):
        """Return the status of each server, by its ID."""
        answer = self._session.get('compute', '/servers/detail')
        return {one['id']: one['status'] for one in answer.json()['servers']}

    def stop(self, server):
        self.post(server, 'action', **{'os-stop': None})
        base.until(lambda: self.servers()[server] == 'SHUTOFF')

    def start(self, server):
        self.post(server, 'action', **{'os-start': None})

    def delete(self, server):
        answer = self._session.delete('compute', f'/servers/{server}')
        assert answer.ok, answer
        base.until(lambda: server not in self.servers())

    def disk(self, server):
        """Return what is on a server."""
        return self._cloud.agent(server)

    def post(self, server, place, **body):
        path = f'/servers/{server}/{place}'
        answer = self._session.post('compute', path, body)
        assert answer.ok, answer


@pytest.fixture(scope='module')
def cloud(request):
    """A cloud with Nova, for these tests alone."""
    installer = base.Cloud('nova')
    done = installer.minicloud('install', '--with', 'compute', check=False)
    if done.returncode:
        pytest.skip(f'Nova cannot be installed: {done.stderr}')
    yield from conftest.clouds(request, 'nova', extras=['compute'])


@pytest.fixture
def nova(cloud):
    return Nova(cloud)


@pytest.fixture
def stacks(cloud, nova):
    """Makes stacks; deletes them, and holds that nothing stays behind."""
    before = base.Leftovers.of(cloud)
    yield from conftest._stacks(cloud)
    assert nova.servers() == {}
    left = set(base.Leftovers.of(cloud).containers) - set(before.containers)
    for name in left:
        # Heat 24 to 27 leave the metadata of each server with POLL_TEMP_URL.
        assert not name.startswith('heat-plugins-')
        base.delete_container(cloud.session(), name)
    before.hold(cloud)


def template(transport, *, server=None, **properties):
    """Return a template with a deployment to a server of Nova."""
    found = base.software(
        signal_transport=transport,
        actions=['CREATE', 'UPDATE', 'DELETE'],
        server={
            'image': 'agent',
            'flavor': 'small',
            'networks': [{'allocate_network': 'none'}],
            'user_data_format': 'SOFTWARE_CONFIG',
            'software_config_transport': 'POLL_TEMP_URL',
            **(server or {}),
        },
        **properties,
    )
    found['resources']['server']['type'] = 'OS::Nova::Server'
    return found


def server_of(stack):
    return stack.resource('server')['physical_resource_id']


def config_of(stack):
    """Return the ID of what the server was given last."""
    return stack.deployment().config['id']


def greeting(stack):
    return stack.outputs['deployment_greeting']


def test_nova_starts_it_and_while_off_or_resized_it_keeps_its_disk(
    nova, stacks
):
    stack = stacks(template('TEMP_URL_POLL')).created()
    # Its user data have done the rest.
    assert greeting(stack) == 'hello world'
    server, created = server_of(stack), config_of(stack)
    disk = nova.disk(server)
    drive = disk.path / 'config-2/openstack/latest/user_data'
    assert b'cfn-init-data' in drive.read_bytes()
    nova.stop(server)
    stack.update(template('TEMP_URL_POLL'), who='moon')
    stack.waiting(action='UPDATE')
    assert server_of(stack) == server
    nova.start(server)
    stack.wait('UPDATE_COMPLETE')
    assert greeting(stack) == 'hello moon'
    # Nova suspends it, and Heat runs nothing on it.
    stack.acts(suspend=None)
    assert nova.servers() == {server: 'SUSPENDED'}
    stack.acts(resume=None)
    assert nova.servers() == {server: 'ACTIVE'}
    stack.acts(check=None)
    updated = config_of(stack)
    resized = template('TEMP_URL_POLL', server={'flavor': 'medium'})
    stack.updated(resized, who='mars')
    assert greeting(stack) == 'hello mars'
    assert nova.servers() == {server: 'ACTIVE'}
    # It has run each of them once.
    assert servers.has_run(disk) == {created, updated, config_of(stack)}
    assert disk.log.read_text().count('CREATE for world') == 1
    log = disk.log.open()
    stack.remove()
    # DELETE has run before Nova has deleted the server, with its disk.
    assert 'DELETE for mars' in log.read()
    assert not disk.path.exists()


#: What is run before an update may still run when the update has begun.
_SLOW = base.SCRIPT + '[ "$who" = moon ] || sleep 4\n'


@pytest.mark.parametrize('transport', ['TEMP_URL_POLL', 'CFN_SIGNAL'])
def test_a_rebuilt_server_answers_an_update_by_its_own_result(
    nova, stacks, transport
):
    def booting(image):
        return template(transport, script=_SLOW, server={'image': image})

    stack = stacks(booting('agent-supervised')).created()
    server, created = server_of(stack), config_of(stack)
    stack.updated(booting('agent'))
    assert nova.servers() == {server: 'ACTIVE'}
    # Its disk is empty, so it runs again what it ran before; and meanwhile:
    stack.updated(booting('agent'), who='moon')
    assert greeting(stack) == 'hello moon'
    disk = nova.disk(server)
    assert servers.has_run(disk) == {created, config_of(stack)}
    if transport == 'CFN_SIGNAL':
        assert any(
            'Result ignored: it answers an earlier action'
            in one['resource_status_reason']
            for one in stack.events('deployment')
        )


@pytest.mark.parametrize(
    ('transport', 'polling'),
    [('CFN_SIGNAL', 'POLL_SERVER_CFN'), ('HEAT_SIGNAL', 'POLL_SERVER_HEAT')],
)
def test_a_server_that_is_replaced_runs_delete_before(
    nova, stacks, transport, polling
):
    def booting(image):
        return template(
            transport,
            server={
                'image': image,
                'image_update_policy': 'REPLACE',
                'software_config_transport': polling,
            },
        )

    stack = stacks(booting('agent')).created()
    former = server_of(stack)
    log = nova.disk(former).log.open()
    stack.updated(booting('agent-supervised'), who='moon')
    assert greeting(stack) == 'hello moon'
    assert nova.servers() == {server_of(stack): 'ACTIVE'}
    assert server_of(stack) != former
    assert 'DELETE for world' in log.read()


def test_a_server_that_is_gone_is_replaced(nova, stacks):
    stack = stacks(template('CFN_SIGNAL')).created()
    former = server_of(stack)
    nova.delete(former)
    stack.acts('FAILED', check=None)
    assert stack.resource('server')['resource_status'] == 'CHECK_FAILED'
    stack.updated(template('CFN_SIGNAL'), who='moon')
    assert greeting(stack) == 'hello moon'
    second = server_of(stack)
    assert nova.servers() == {second: 'ACTIVE'}
    stack.mark('server')
    stack.updated(template('CFN_SIGNAL'), who='sun')
    assert greeting(stack) == 'hello sun'
    assert nova.servers().keys() == {server_of(stack)} != {second}
    # No server is left to run DELETE.
    nova.delete(server_of(stack))
    stack.remove()


def test_what_no_host_has_room_for_fails_before_the_deployment(nova, stacks):
    def sized(flavor, policy):
        return template(
            'TEMP_URL_POLL',
            server={'flavor': flavor, 'flavor_update_policy': policy},
        )

    made = {each: stacks(sized('small', each)) for each in POLICIES}
    before = {}
    for policy, stack in made.items():
        stack.wait('CREATE_COMPLETE')
        before[policy] = server_of(stack), config_of(stack)
        # Nova gives a resize up at once, and Heat waits until its time limit.
        stack.update(
            sized('huge', policy), who='moon', timeout_mins=POLICIES[policy][1]
        )
    for policy, stack in made.items():
        server, created = before[policy]
        stack.wait('UPDATE_FAILED')
        assert POLICIES[policy][0] in stack.reason
        assert config_of(stack) == created
        assert greeting(stack) == 'hello world'
        assert nova.servers()[server] == 'ACTIVE'
        stack.update(sized('small', policy), who='moon')
    for stack in made.values():
        stack.wait('UPDATE_COMPLETE')
        assert greeting(stack) == 'hello moon'
        assert nova.servers()[server_of(stack)] == 'ACTIVE'
    assert server_of(made['RESIZE']) == before['RESIZE'][0]
    assert len(nova.servers()) == len(made)


def test_a_run_finds_servers_by_what_nova_knows_of_them(
    cloud, nova, stacks, tmp_path
):
    found = template('TEMP_URL_POLL', server={'metadata': {'role': 'web'}})
    other = template('TEMP_URL_POLL')['resources']['server']
    found['resources']['other'] = other
    stack = stacks(found).created()
    by_name = {
        name: stack.resource(name)['physical_resource_id']
        for name in ('server', 'other')
    }
    commands = running.Commands(cloud)

    def reached(*selection):
        """Run a script on servers; return the names of those it ran on."""
        journal = tmp_path / 'journal'
        journal.write_text('')
        options = '--stack', stack.name, *selection, '--yes', '--wait'
        script = '-f', 'json', '--', 'sh', '-c', f'pwd >> {journal}'
        process = commands.begin('start', *options, *script)
        code, ended = commands.end(process)
        assert code == 0, ended
        commands('delete', ended['id'])
        places = journal.read_text()
        return {name for name, server in by_name.items() if server in places}

    assert reached() == {'server', 'other'}
    assert reached('--server-metadata', 'role=web') == {'server'}
    nova.post(by_name['other'], 'metadata', metadata={'role': 'web'})
    assert reached('--server-metadata', 'role=web') == {'server', 'other'}
