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
        self.assertNotIn('hunter22', output)
        return code, output

    def register(self, line=''):
        return self.json(f'node register {self.file} {line}')

    def assert_states(self, **states):
        found = {one.name: one.state for one in self.ironic.states()}
        self.assertEqual(states, found)


class RegisterTest(NodeCase):
    def test_nodes_become_manageable_or_available_or_stay(self):
        self.register('--no-manage')
        self.assert_states(a='enroll', b='enroll')
        with self.assertLogs('', 'WARNING') as logs:
            self.register()
        self.assertIn('b: the key colour is unknown', logs.output[0])
        self.assert_states(a='manageable', b='manageable')
        code, found = self.register('--provide')
        self.assertEqual(0, code)
        self.assertEqual(['unchanged'] * 2, [one['Action'] for one in found])
        self.assert_states(a='available', b='available')

    def test_a_node_that_fails_is_shown_with_the_others(self):
        self.wrong['b'] = 'no route to host'
        with self.assertLogs('', 'ERROR') as logs:
            code, found = self.register('--provide')
        self.assertEqual(common.FAILED, code)
        self.assertIn('manage: 1 done, 1 failed', logs.output[0])
        self.assertEqual(
            ['', 'no route to host'], [one['Reason'] for one in found]
        )
        self.assert_states(a='available', b='enroll')

    def test_a_dry_run_registers_nothing_and_removal_is_opt_in(self):
        code, found = self.register('--dry-run')
        self.assertEqual((0, 2), (code, len(found)))
        self.assertEqual(['port 52:54:00:00:00:01'], found[0]['Changes'])
        self.assertEqual('would be created', found[0]['Action'])
        self.assert_states()
        self.ironic.add('id-x', name='x')
        self.assertEqual(2, len(self.register()[1]))
        *_, last = self.register('--remove')[1]
        self.assertEqual(('x', 'removed'), (last['Name'], last['Action']))

    def test_an_unreadable_file_is_an_error(self):
        self.refused('node register', str(self.folder / 'nope'))
        self.file.write_text('pm_password: [hunter22')
        said = self.refused(f'node register {self.file}')
        self.assertNotIn('hunter22', said)


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
        self.assertEqual(0, code)
        self.assertEqual(
            ['a', 'done', 4, 8192, ['40'], ['52:54:00:00:00:01']],
            [found[0][name] for name in names],
        )
        self.assertIn('inspect: 2 moving', self.stderr.getvalue())
        text = (folder / 'a.json').read_text()
        self.assertEqual(test_operations.INVENTORY, json.loads(text))

    def test_inspected_nodes_may_become_available(self):
        self.wrong['b'] = 'disk on fire'
        with self.assertLogs('', 'ERROR'):
            code, found = self.introspect('--all --provide --attempts=2')
        self.assertEqual(common.FAILED, code)
        self.assertEqual(
            [('done', 1, ''), ('failed', 2, 'disk on fire')],
            [(one['State'], one['Attempts'], one['Reason']) for one in found],
        )
        self.assert_states(a='available', b='inspect failed')

    def test_an_interruption_stops_them(self):
        def interrupted(seconds):
            for name in 'ab':
                self.ironic.row(name)['provision_state'] = 'inspect wait'
            raise KeyboardInterrupt

        self.wait = interrupted
        with self.assertLogs('', 'ERROR'):
            code, found = self.introspect('--all')
        self.assertEqual((common.INTERRUPTED, []), (code, found))
        self.assert_states(a='inspect failed', b='inspect failed')
        # Those of others can be stopped, too.
        self.ironic.row('a')['provision_state'] = 'inspect wait'
        found = self.introspect('--all --abort')
        self.assertEqual((0, [{'UUID': 'id-a'}]), found)

    def test_nodes_become_available_and_are_listed(self):
        code, found = self.json('node provide a')
        self.assertEqual((0, 'done'), (code, found[0]['State']))
        _, found = self.json('node list')
        names = 'Name', 'UUID', 'State'
        self.assertEqual(
            ['a', 'id-a', 'available'], [found[0][name] for name in names]
        )
        for arguments in ((), ('a', '--all')):
            self.refused('node introspect', *arguments)
