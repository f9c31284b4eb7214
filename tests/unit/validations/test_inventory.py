# SPDX-License-Identifier: Apache-2.0
"""The servers of a stack, as Ansible is told of them."""

import pytest
import testtools

from heat_plugins import errors
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.validations import inventory
from tests.unit.validations import fakes


class HostsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.servers = fakes.Servers()
        self.servers.found['stack'] = []

    def hosts(self, **outputs):
        for name, value in outputs.items():
            self.servers.outputs['stack', name] = value
        return inventory.hosts(self.servers, 'stack')

    def test_they_are_the_servers_that_have_addresses(self):
        self.servers.found['stack'] = [
            plan_stacks.StackServer(
                path=('Compute', '0', 'Nova-Compute'),
                name='compute-0',
                address='10.0.0.1',
            ),
            plan_stacks.StackServer(path=('off',), name='off'),
        ]
        [host] = self.hosts()
        assert host == inventory.Host(
            name='compute-0',
            address='10.0.0.1',
            groups=('Compute', 'Nova_Compute'),
        )
        # A name that another has, or that Ansible cannot have, gives way.
        self.servers.found['stack'] = [
            plan_stacks.StackServer(path=(place,), name=name, address='::1')
            for place, name in (('a', 'x'), ('b', 'x'), ('c', '{{ evil }}'))
        ]
        assert [host.name for host in self.hosts()] == ['x', 'b', 'c']

    def test_an_output_may_say_which_they_are(self):
        self.servers.found['stack'] = [
            plan_stacks.StackServer(path=('a',), name='a', address='10.0.0.1')
        ]
        found = self.hosts(
            validation_hosts={
                'b': '192.0.2.1',
                'c': {'address': '2001:DB8::1', 'groups': ['web', 'all']},
            }
        )
        assert found == (
            inventory.Host(name='b', address='192.0.2.1'),
            inventory.Host(name='c', address='2001:db8::1', groups=('web',)),
        )

    def test_a_wrong_output_is_refused(self):
        evil = '{{ lookup("pipe", "id") }}'
        for value, said in (
            ('text', 'validation_hosts'),
            (['10.0.0.1'], 'validation_hosts'),
            ({'a': None}, 'validation_hosts'),
            ({'a': {'groups': ['web']}}, 'validation_hosts'),
            # Ansible would run the template.
            ({'a': evil}, 'not an IP address'),
            ({'a': f'fe80::1%{evil}'}, 'not an IP address'),
            ({evil: '10.0.0.1'}, 'name of a host'),
            ({'-x': '10.0.0.1'}, 'name of a host'),
        ):
            with pytest.raises(errors.Invalid, match=said):
                self.hosts(validation_hosts=value)


HOSTS = (
    inventory.Host(name='a', address='10.0.0.1', groups=('web',)),
    inventory.Host(name='b', address='10.0.0.2'),
)


def test_hosts_are_named_or_all_are_meant():
    found = inventory.grouped(HOSTS, {'first': ['a'], 'every': []})
    groups = [(host.name, host.groups) for host in found]
    assert groups == [('a', ('web', 'first', 'every')), ('b', ('every',))]
    said = "'c' into group first: the hosts are a, b"
    with pytest.raises(errors.NotFound, match=said):
        inventory.grouped(HOSTS, {'first': ['a', 'c']})


def test_this_machine_stands_alone_or_joins_the_servers_of_a_stack():
    written = inventory.write([inventory.LOCALHOST], inventory.Login())['all']
    assert written['hosts']['localhost']['ansible_connection'] == 'local'
    assert written['children']['stack']['hosts'] == {}
    assert inventory.write((), inventory.Login())['all']['hosts'] == {}
    found = inventory.grouped(HOSTS, {'undercloud': ['localhost']})
    assert [one.name for one in found] == ['a', 'b', 'localhost']
    login = inventory.Login(user='me', key_file='/key')
    written = inventory.write(found, login)['all']
    assert written['hosts']['localhost']['ansible_connection'] == 'local'
    assert written['hosts']['a'] == {'ansible_host': '10.0.0.1'}
    assert written['children']['web'] == {'hosts': {'a': {}}}
    assert written['children']['stack'] == {
        'hosts': {'a': {}, 'b': {}},
        'vars': {
            'ansible_connection': 'ssh',
            'ansible_user': 'me',
            'ansible_ssh_private_key_file': '/key',
        },
    }
