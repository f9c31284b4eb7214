# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan node …``, over the fakes of the core."""

import json
import types

from heat_plugins.nodes import node_operations
from heat_plugins.osc import common
from heat_plugins.osc.nodes import node_commands
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic
from tests.unit.nodes import test_operations
from tests.unit.osc import base

FILE = """
nodes:
  - name: a
    pm_type: fake-hardware
    mac: ['52:54:00:00:00:01']
    pm_password: hunter22
  - {name: b, pm_type: fake-hardware, mac: ['52:54:00:00:00:02'], colour: red}
"""


class NodeCase(base.FolderCase):
    def setUp(self):
        super().setUp()
        self.wait = self.sleep
        clock = types.SimpleNamespace(sleep=lambda seconds: self.wait(seconds))
        self.patch(node_commands, 'time', clock)
        self.patch(node_commands, 'operations', lambda manager: self.core)
        self.ironic = fake_ironic.Ironic()
        self.store = fake_swift.Cluster().store()
        self.core = node_operations.NodeOperations(
            self.ironic, self.store, clock=lambda: 1000.0
        )
        self.file = self.folder / 'nodes.yaml'
        self.file.write_text(FILE)
        self.wrong = {}

    def sleep(self, seconds):
        """Let Ironic be done as soon as somebody waits."""
        for one in self.ironic.states():
            if one.state in ('verifying', 'inspecting', 'cleaning'):
                self.ironic.finish(one.uuid, self.wrong.get(one.name))
                self.ironic.inventories[one.uuid] = test_operations.INVENTORY

    def run_command(self, line, *arguments):
        code, output = super().run_command(line, *arguments)
        assert 'hunter22' not in output
        return code, output

    def register(self, line=''):
        return self.json(f'node register {self.file} {line}')

    def assert_states(self, **states):
        found = {one.name: one.state for one in self.ironic.states()}
        assert found == states


class RegisterTest(NodeCase):
    def test_nodes_become_manageable_or_available_or_stay(self):
        self.register('--no-manage')
        self.assert_states(a='enroll', b='enroll')
        with self.assertLogs('', 'WARNING') as logs:
            self.register()
        assert 'b: the key colour is unknown' in logs.output[0]
        self.assert_states(a='manageable', b='manageable')
        code, found = self.register('--provide')
        assert code == 0
        assert [one['Action'] for one in found] == ['unchanged'] * 2
        self.assert_states(a='available', b='available')

    def test_a_node_that_fails_is_shown_with_the_others(self):
        self.wrong['b'] = 'no route to host'
        with self.assertLogs('', 'ERROR') as logs:
            code, found = self.register('--provide')
        assert code == common.FAILED
        assert 'manage: 1 done, 1 failed' in logs.output[0]
        assert [one['Reason'] for one in found] == ['', 'no route to host']
        self.assert_states(a='available', b='enroll')

    def test_a_dry_run_registers_nothing_and_removal_is_opt_in(self):
        code, found = self.register('--dry-run')
        assert (code, len(found)) == (0, 2)
        assert found[0]['Changes'] == ['port 52:54:00:00:00:01']
        assert found[0]['Action'] == 'would be created'
        self.assert_states()
        self.ironic.add('id-x', name='x')
        assert len(self.register()[1]) == 2
        *_, last = self.register('--remove')[1]
        assert (last['Name'], last['Action']) == ('x', 'removed')

    def test_an_unreadable_file_is_an_error(self):
        self.refused('node register', str(self.folder / 'nope'))
        self.file.write_text('pm_password: [hunter22')
        said = self.refused(f'node register {self.file}')
        assert 'hunter22' not in said


class IntrospectTest(NodeCase):
    def setUp(self):
        super().setUp()
        for name in 'ab':
            self.ironic.add(
                f'id-{name}', name=name, provision_state='manageable'
            )

    def introspect(self, line):
        return self.json(f'node introspect {line}')

    def test_inventories_are_shown_and_saved(self):
        folder = self.folder / 'found'
        code, found = self.introspect(f'--all --save {folder}')
        names = ('Name', 'State', 'CPUs', 'Memory MB', 'Disks GB', 'MACs')
        assert code == 0
        assert [found[0][name] for name in names] == [
            'a',
            'done',
            4,
            8192,
            ['40'],
            ['52:54:00:00:00:01'],
        ]
        assert 'inspect: 2 moving' in self.stderr.getvalue()
        text = (folder / 'a.json').read_text()
        assert json.loads(text) == test_operations.INVENTORY

    def test_inspected_nodes_may_become_available(self):
        self.wrong['b'] = 'disk on fire'
        with self.assertLogs('', 'ERROR'):
            code, found = self.introspect('--all --provide --attempts=2')
        assert code == common.FAILED
        assert [
            (one['State'], one['Attempts'], one['Reason']) for one in found
        ] == [('done', 1, ''), ('failed', 2, 'disk on fire')]
        self.assert_states(a='available', b='inspect failed')

    def test_an_interruption_stops_them(self):
        def interrupted(seconds):
            for name in 'ab':
                self.ironic.row(name)['provision_state'] = 'inspect wait'
            raise KeyboardInterrupt

        self.wait = interrupted
        with self.assertLogs('', 'ERROR'):
            code, found = self.introspect('--all')
        assert (code, found) == (common.INTERRUPTED, [])
        self.assert_states(a='inspect failed', b='inspect failed')
        # Those of others can be stopped, too.
        self.ironic.row('a')['provision_state'] = 'inspect wait'
        found = self.introspect('--all --abort')
        assert found == (0, [{'UUID': 'id-a'}])

    def test_nodes_become_available_and_are_listed(self):
        code, found = self.json('node provide a')
        assert (code, found[0]['State']) == (0, 'done')
        _, found = self.json('node list')
        names = 'Name', 'UUID', 'State'
        assert [found[0][name] for name in names] == ['a', 'id-a', 'available']
        for arguments in ((), ('a', '--all')):
            self.refused('node introspect', *arguments)
