# SPDX-License-Identifier: Apache-2.0
"""Which validations there are, in good trees and in bad ones."""

import pathlib
import sys

import fixtures
import pytest
import testtools

from heat_plugins import errors
from heat_plugins.plans.deploy import plan_stacks
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from tests.unit.validations import fakes


class PlaybookTest(testtools.TestCase):
    def read(self, text):
        return catalogue.playbook(text.encode(), 'validations/check.yaml')

    def test_it_is_what_its_metadata_say(self):
        found = self.read("""\
- hosts: web
  vars:
    metadata:
      name: Memory
      description: >
        Is there
        enough?
      groups: [prep, prep, size]
    password: !vault |
      $ANSIBLE_VAULT;1.1;AES256
    raw: !unsafe '{{ x }}'
- hosts: all
""")
        assert found == catalogue.Validation(
            id='check',
            path='validations/check.yaml',
            name='Memory',
            description='Is there enough?',
            groups=('prep', 'size'),
            hosts=('web', 'all'),
        )

    def test_its_name_is_by_default_that_of_its_file(self):
        found = self.read('[{hosts: all, vars: {metadata: {}}}]')
        assert (found.name, found.groups) == ('check', ())
        lacking = '- {hosts: all, vars: [metadata]}'
        for text in ('', 'a: 2021-04-16', '[]', '- a text', lacking):
            assert self.read(text) is None, text

    def test_what_cannot_be_read_is_refused_briefly_and_not_quoted(self):
        for text, said in (
            ('[{vars: {metadata: text}}]', 'validations/check.yaml'),
            ('[{vars: {metadata: {groups: {a: b}}}}]', 'metadata.groups'),
            ('[{vars: {metadata: {groups: [[a]]}}}]', 'metadata.groups'),
            ('[{vars: {metadata: {description: {a: b}}}}]', 'description'),
            ('[hunter2: {', 'is not YAML'),
            ('[' * 100_000, 'validations/check.yaml'),
        ):
            message = str(self.assertRaises(errors.Invalid, self.read, text))
            assert said in message
            assert 'hunter2' not in message
            assert len(message) < 200
        with pytest.raises(errors.Invalid):
            catalogue.playbook(b'\xff\xfe', 'x.yaml')


class CatalogueTest(testtools.TestCase):
    def test_playbooks_are_found_where_they_usually_lie(self):
        one, other = fakes.playbook('A'), fakes.playbook('Other')
        found = catalogue.read(
            {
                # Of two with one name the first counts.
                'validations/a.yaml': other,
                'validations/top.yaml': one,
                'top.yaml': one,
                'playbooks/a.yml': one,
                'validations/b.yaml': one,
                'share/ansible/validation-playbooks/c.yaml': one,
                'environments/d.yaml': one,
                'validations/roles/playbooks/e.yaml': one,
                'validations/f.txt': one,
                'validations/g.yaml': b'[',
            }
        )
        assert [one.id for one in found.validations] == ['a', 'b', 'c', 'top']
        assert {one.name for one in found.validations} == {'A'}
        first, second = found.warnings
        assert 'validations/a.yaml has the name of playbooks/a.yml' in first
        assert 'Left out: validations/g.yaml is not YAML' in second

    def test_validations_are_chosen_by_name_or_group(self):
        found = catalogue.read(
            {
                'a.yaml': fakes.playbook('A', 'x'),
                'b.yaml': fakes.playbook('B', 'x', 'y'),
                'c.yaml': fakes.playbook('C'),
            }
        )
        for chosen, names, groups in (
            ('abc', [], []),
            ('ac', ['c', 'a'], []),
            ('bc', ['c'], ['y']),
        ):
            ids = [one.id for one in found.choose(names, groups)]
            assert ''.join(ids) == chosen
        for names, groups, said in (
            (['d'], [], 'There is no validation d; there are: a, b, c'),
            ([], ['z'], 'There is no group z; there are: x, y'),
        ):
            with pytest.raises(errors.NotFound, match=said):
                found.choose(names, groups)

    def test_folders_of_roles_and_plugins_are_found(self):
        found = catalogue.paths(
            [
                'validations/roles/a/tasks/main.yaml',
                'validations/roles/a/library/own.py',
                'share/ansible/roles/b/tasks/main.yaml',
                'library/m.py',
                'playbooks/x.yaml',
            ]
        )
        assert found == {
            'library': ('library',),
            'roles': ('share/ansible/roles', 'validations/roles'),
        }

    def test_playbooks_roles_and_plugins_of_one_are_found(self):
        folder = self.useFixture(fixtures.TempDir()).path
        site = pathlib.Path(folder, 'lib/site')
        ram = fakes.playbook('RAM')
        files = {
            'checks-1.0.dist-info/METADATA': b'Name: checks\nVersion: 1.0\n',
            'checks/__init__.py': b'',
            'checks/playbooks/ram.yaml': ram,
            'checks/tests/playbooks/x.yaml': fakes.playbook('X'),
            '../share/ansible/roles/ram/tasks/main.yaml': b'[]',
        }
        files['../share/ansible/validation-playbooks/ram.yaml'] = ram
        for path, content in files.items():
            file = site / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        record = ''.join(f'{path},,\n' for path in [*files, 'lost.py'])
        (site / 'checks-1.0.dist-info/RECORD').write_text(record)
        self.patch(sys, 'path', [str(site), *sys.path])

        content = catalogue.of_package('checks')
        roles = {'share/ansible/roles/ram/tasks/main.yaml'}
        both = {'checks/playbooks', 'share/ansible/validation-playbooks'}
        assert content.keys() == roles | {f'{each}/ram.yaml' for each in both}
        found = catalogue.read(content)
        assert [one.id for one in found.validations] == ['ram']
        assert found.warnings == ()
        for name in ('no-such-package', ''):
            self.assertRaises(errors.NotFound, catalogue.of_package, name)


def hosts(*servers, output=None):
    """Return the hosts of a stack with servers: their path, name and address.

    :param output: what the stack says of them.
    """
    fake = fakes.Servers()
    fake.outputs['stack', 'validation_hosts'] = output
    fake.found['stack'] = [
        plan_stacks.StackServer(path=path, name=name, address=address)
        for path, name, address in servers
    ]
    return inventory.hosts(fake, 'stack')


def test_hosts_are_the_servers_that_have_addresses_or_an_output_names_them():
    path = ('Compute', '0', 'Nova-Compute')
    server = (path, 'compute-0', '10.0.0.1')
    groups = ('Compute', 'Nova_Compute')
    host = inventory.Host(name='compute-0', address='10.0.0.1', groups=groups)
    assert hosts(server, (('off',), 'off', '')) == (host,)
    # A name that another has, or that Ansible cannot have, gives way.
    names = (('a', 'x'), ('b', 'x'), ('c', '{{ evil }}'))
    found = hosts(*(((place,), name, '::1') for place, name in names))
    assert [host.name for host in found] == ['x', 'b', 'c']
    web = {'address': '2001:DB8::1', 'groups': ['web', 'all']}
    assert hosts(server, output={'b': '192.0.2.1', 'c': web}) == (
        inventory.Host(name='b', address='192.0.2.1'),
        inventory.Host(name='c', address='2001:db8::1', groups=('web',)),
    )


def test_a_wrong_output_is_refused():
    evil = '{{ lookup("pipe", "id") }}'
    for output, said in (
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
            hosts(output=output)


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
