# SPDX-License-Identifier: Apache-2.0
"""Two servers that boot: virtual machines with Heat's own user data.

Both meet each fault at the same time. One has the agents alone and
POLL_SERVER_CFN, Heat's default; the other has the add-on as well and
POLL_TEMP_URL. Without KVM a machine is emulated, and each step takes some ten
times as long as on a server. Hence all tests use the same two machines, and
run in their order.
"""

import contextlib
import re
import shlex
import time

import pytest

from tests import pages
from tests.functional import base
from tests.functional import running

pytestmark = [pytest.mark.server, pytest.mark.timeout(1800)]


#: Seconds for what a server does at once: emulated, on a busy machine.
SOON = 300

_GOING = ('pending', 'starting', 'waiting', 'running')

_SILENT = base.minicloud_client.sockets.Silent

#: Goes on when the server is no longer held; see `Machine.hold`.
SCRIPT = """\
#!/bin/sh
touch /run/started
while [ -e /run/hold ]; do sleep 1; done
""" + base.SCRIPT.partition('\n')[2]


#: Leaves not a block, and takes a moment: nothing is written.
_FILL_DISK = """\
mkdir /root/full
for size in 256M 16M 1M 64K 4K; do
    while fallocate -l $size "$(mktemp -p /root/full)" 2>/dev/null; do :; done
done
! echo full >/root/full/more
"""


@pytest.fixture(scope='module', autouse=True)
def image(cloud):
    """There is the image of servers, or what it takes cannot be had."""
    result = cloud.minicloud('server', 'build', check=False)
    if result.returncode == 4:
        pytest.skip(result.stderr.strip())
    assert result.returncode == 0, result.stderr


def template(container):
    """Return a template with the servers ``plain`` and ``supervised``.

    :param container: holds the metadata of those that poll a TempURL.
    """
    found = base.software(
        deployments=2,
        config=running.component(
            {'CREATE UPDATE BACKUP': SCRIPT}, {'who': ''}, ('greeting',)
        ),
        signal_transport='AUTO',
    )
    resources = found['resources']
    del resources['server'], resources['config']['depends_on']
    data = {'container': container, 'object': 'metadata'}
    ways = {
        'plain': {'software_config_transport': 'POLL_SERVER_CFN'},
        'supervised': {
            'software_config_transport': 'POLL_TEMP_URL',
            'deployment_swift_data': data,
        },
    }
    for number, (name, properties) in enumerate(ways.items()):
        resources[name] = {
            'type': 'OS::Heat::DeployedServer',
            'properties': properties,
        }
        deployment = resources[f'deployment{number}']
        deployment['properties']['server'] = {'get_resource': name}
    return found


class Machine:
    """A virtual machine that is a server of a stack.

    :ivar name: of the resource that is the server.
    :ivar deployment: the resource that deploys to it.
    """

    def __init__(self, cloud, stack, name, deployment):
        self.name = name
        self.deployment = deployment
        self.stack = stack
        self.server = cloud.server(
            f'{stack.name}-{name}',
            stack.name,
            name,
            supervised=name == 'supervised',
        )

    @property
    def status(self):
        """The status of the resource that deploys to it."""
        return self.stack.resource(self.deployment)['resource_status']

    def run(self):
        """Return the newest run of an action."""
        shown = self.stack.resource(self.deployment, 'runs')
        found = shown['attributes']['runs']
        return dict(found[0]) if found else {'state': 'none', 'id': None}

    def starts_backup(self):
        before = self.run()['id']
        self.stack.signal(self.deployment, {'trigger': 'BACKUP'})
        base.until(lambda: self.run()['id'] != before)

    def ends(self, state, seconds=SOON):
        """Wait until the newest run ends so."""

        def ended():
            found = self.run()
            return None if found['state'] in _GOING else found

        found = base.until(ended, seconds)
        assert found['state'] == state, found
        return found

    def does(self, command):
        """Say whether a command succeeds on the server."""
        return self.server.run(command, SOON).code == 0

    def hold(self):
        """Let what it runs from now on wait for `release`."""
        assert self.does('rm -f /run/started && touch /run/hold')

    def has_started(self):
        return self.does('test -e /run/started')

    def release(self):
        assert self.does('rm /run/hold')

    def is_back(self):
        """Wait until it has booted again, and its agent runs."""
        booted = '! test -e /run/started && pgrep -f bin/os-collect-confi[g]'

        def is_up():
            with contextlib.suppress(_SILENT):
                return self.does(booted)
            return False

        base.until(is_up, SOON)

    def has_skipped(self):
        """Say whether its agent has skipped a config since the last boot."""
        return self.does(
            'journalctl -b -u os-collect-config | sed "1,/already deployed/d" '
            '| grep -F "Completed phase configure"'
        )


class Pair:
    """Both machines, and their stack."""

    def __init__(self, cloud, stacks, container):
        self._template = template(container)
        self.stack = stacks(self._template, timeout_mins=30)
        self.plain, self.supervised = self.both = [
            Machine(cloud, self.stack, name, f'deployment{number}')
            for number, name in enumerate(('plain', 'supervised'))
        ]

    def update(self, who):
        self.stack.update(self._template, timeout_mins=30, who=who)

    def do(self, command):
        for machine in self.both:
            assert machine.does(command)

    def start_backups(self, held=False):
        """Start them; return once they run, if they wait for `release`."""
        if held:
            for machine in self.both:
                machine.hold()
        for machine in self.both:
            machine.starts_backup()
        if held:
            self.are_in_mid_action()

    def backups_complete(self):
        for machine in self.both:
            found = machine.ends('complete')
            assert found['outputs']['deploy_stdout'].startswith('BACKUP')

    def are_in_mid_action(self):
        for machine in self.both:
            base.until(machine.has_started, SOON)


@pytest.fixture(scope='module')
def pair(cloud, module_stacks):
    """Two servers of a stack that is complete."""
    demo = cloud.session()
    public = {'X-Container-Read': '.r:*'}
    assert demo.put('object-store', '/machines', headers=public).ok
    found = Pair(cloud, module_stacks, 'machines')
    begun = time.monotonic()
    with found.plain.server, found.supervised.server:
        found.stack.wait('CREATE_COMPLETE', 3 * SOON)
        print(f'From power-on to outputs: {time.monotonic() - begun:.0f} s')
        yield found
    # Heat's own server leaves what held its metadata behind.
    found.stack.purge()
    base.delete_container(demo, 'machines')


def test_they_run_what_their_user_data_leads_them_to(pair):
    outputs = pair.stack.outputs
    for number, machine in enumerate(pair.both):
        assert outputs[f'deployment{number}_greeting'] == 'hello world'
        data = 'cat /var/lib/heat-cfntools/cfn-init-data'
        assert '"metadata_url"' in machine.server.run(data).stdout
    pair.start_backups()
    pair.backups_complete()


def test_a_clock_that_is_an_hour_wrong_does_no_harm(pair):
    pair.do('date -s "+1 hour"')
    pair.start_backups()
    pair.backups_complete()
    pair.do('hwclock --hctosys')


def test_a_result_waits_for_a_network_that_is_away_for_a_minute(pair):
    pair.start_backups(held=True)
    for machine in pair.both:
        machine.server.unplug()
        machine.release()
    time.sleep(60)
    assert pair.plain.run()['state'] == 'waiting'
    assert pair.supervised.run()['state'] == 'running'
    for machine in pair.both:
        machine.server.plug()
    pair.backups_complete()


def test_a_disk_that_was_full_delays_an_action(pair):
    make_room = f'rm -r /root/full && {_advice()}'
    pair.do(_FILL_DISK)
    pair.start_backups()
    for machine in pair.both:
        said = 'journalctl -u os-collect-config | grep -F "No space left"'
        base.until(lambda machine=machine, said=said: machine.does(said), SOON)
        assert machine.does(make_room)
    pair.backups_complete()


def _advice():
    """Return the command of the page that lets an agent run configs again."""
    page = pages.read('stuck')
    (found,) = set(re.findall('``(rm -f .*?)``', page))
    return str(found)


def test_a_reboot_in_mid_action_fails_it_only_with_the_add_on(pair):
    pair.start_backups(held=True)
    pair.do('systemctl --no-block reboot')
    for machine in pair.both:
        machine.is_back()
    assert 'stopped before' in pair.supervised.ends('failed')['reason']
    base.until(pair.plain.has_skipped, SOON)
    assert pair.plain.run()['state'] == 'waiting'
    # As the page says how to run it again.
    forget = 'cd /var/lib/heat-config/deployed && rm "$(ls -t | head -n 1)"'
    assert pair.plain.does(f'{forget} && {_advice()}')
    pair.plain.ends('complete')


def test_a_loss_of_power_in_mid_action(pair, cloud):
    plain, supervised = pair.both
    for machine in pair.both:
        machine.hold()
    pair.update('moon')
    pair.are_in_mid_action()
    # So that the server knows of it afterwards.
    assert plain.does('sync')
    plain.server.kill()
    plain.server.start()
    supervised.release()
    base.until(lambda: supervised.status == 'UPDATE_COMPLETE', SOON)
    # At once: what heat-agents have written is not on the disk yet.
    supervised.hold()
    supervised.starts_backup()
    base.until(supervised.has_started, SOON)
    supervised.server.kill()
    supervised.server.start()
    plain.is_back()
    base.until(plain.has_skipped, SOON)
    assert plain.status == 'UPDATE_IN_PROGRESS'
    cloud.openstack(*shlex.split(_answer(pair.stack.name, plain.deployment)))
    pair.stack.wait('UPDATE_COMPLETE', SOON)
    assert 'stopped before' in supervised.ends('failed')['reason']
    pair.start_backups()
    pair.backups_complete()


def _answer(stack, deployment):
    """Return the command of the page that answers in a server's place."""
    (found,) = re.findall(
        r'^    openstack (stack resource signal web .*)$',
        pages.read('stuck'),
        re.MULTILINE,
    )
    command = str(found).replace('signal web', f'signal {stack}')
    return command.replace('page_deployment', deployment)
