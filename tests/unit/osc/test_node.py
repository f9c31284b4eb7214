# SPDX-License-Identifier: Apache-2.0
"""``openstack deployment plan node …``, over the fakes of the core."""

import json
import types

from heat_plugins.nodes import node_operations
from heat_plugins.osc import common
from heat_plugins.osc.nodes import node_commands
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic
from tests.unit.osc import base

FILE = """
nodes:
  - name: a
    pm_type: fake-hardware
    mac: ['52:54:00:00:00:01']
    pm_password: hunter22
  - {name: b, pm_type: fake-hardware, mac: ['52:54:00:00:00:02'], colour: red}
"""


class NodeTest(base.FolderCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        self.wrong = {}
        # Ironic is done as soon as somebody waits.
        self.wait = lambda seconds: self.ironic.finish_all(self.wrong)
        clock = types.SimpleNamespace(sleep=lambda seconds: self.wait(seconds))
        core = node_operations.NodeOperations(
            self.ironic, fake_swift.Cluster().store(), clock=lambda: 1000.0
        )
        self.patch(node_commands, 'time', clock)
        self.patch(node_commands, 'operations', lambda manager: core)
        self.file = self.folder / 'nodes.yaml'
        self.file.write_text(FILE)

    def run_command(self, line, *arguments):
        code, output = super().run_command(line, *arguments)
        assert 'hunter22' not in output
        return code, output

    def register(self, line=''):
        return self.json(f'node register {self.file} {line}')

    def test_nodes_are_registered_and_become_manageable_or_available(self):
        code, found = self.register('--dry-run')
        assert (code, len(found), self.ironic.named()) == (0, 2, {})
        assert found[0]['Changes'] == ['port 52:54:00:00:00:01']
        assert found[0]['Action'] == 'would be created'
        self.register('--no-manage')
        assert self.ironic.named() == {'a': 'enroll', 'b': 'enroll'}
        self.wrong['b'] = 'no route to host'
        with self.assertLogs('', 'WARNING') as logs:
            code, found = self.register('--provide')
        assert code == common.FAILED
        assert 'manage: 1 done, 1 failed' in logs.output[0]
        assert 'b: the key colour is unknown' in logs.output[1]
        assert [one['Reason'] for one in found] == ['', 'no route to host']
        assert self.ironic.named() == {'a': 'available', 'b': 'enroll'}
        self.wrong.clear()
        self.ironic.add('id-x', name='x')
        *_, last = self.register('--remove')[1]
        assert self.ironic.named()['b'] == 'manageable'
        assert (last['Name'], last['Action']) == ('x', 'removed')

    def test_an_unreadable_file_is_an_error(self):
        self.refused('node register', str(self.folder / 'nope'))
        self.file.write_text('pm_password: [hunter22')
        assert 'hunter22' not in self.refused(f'node register {self.file}')

    def test_nodes_are_inspected_shown_saved_provided_and_listed(self):
        self.ironic.populate(a='manageable', b='manageable')
        self.wrong['b'] = 'disk on fire'
        folder = self.folder / 'found'
        options = f'--all --provide --attempts=2 --save {folder}'
        with self.assertLogs('', 'ERROR'):
            code, found = self.json(f'node introspect {options}')
        assert code == common.FAILED
        shown = {'Name': 'a', 'UUID': 'id-a', 'State': 'done', 'Attempts': 1}
        sizes = {'CPUs': 4, 'Memory MB': 8192, 'Disks GB': ['40']}
        macs = {'MACs': ['52:54:00:00:00:01'], 'Reason': ''}
        assert found[0] == {**shown, **sizes, **macs}
        names = 'State', 'Attempts', 'Reason'
        failed = [found[1][name] for name in names]
        assert failed == ['failed', 2, 'disk on fire']
        assert 'inspect: 2 moving' in self.stderr.getvalue()
        text = (folder / 'a.json').read_text()
        assert json.loads(text) == fake_ironic.INVENTORY
        _, found = self.json('node list')
        assert found[0].items() >= {'Name': 'a', 'State': 'available'}.items()
        self.ironic.row('b')['provision_state'] = 'manageable'
        self.wrong.clear()
        code, found = self.json('node provide b')
        assert (code, found[0]['State']) == (0, 'done')
        for arguments in ((), ('a', '--all')):
            self.refused('node introspect', *arguments)

    def test_an_interruption_aborts_inspections(self):
        def interrupted(seconds):
            for name in 'ab':
                self.ironic.row(name)['provision_state'] = 'inspect wait'
            raise KeyboardInterrupt

        self.ironic.populate(a='manageable', b='manageable')
        self.wait = interrupted
        with self.assertLogs('', 'ERROR'):
            code, found = self.json('node introspect --all')
        assert (code, found) == (common.INTERRUPTED, [])
        assert set(self.ironic.named().values()) == {'inspect failed'}
        # Those of others can be aborted, too.
        self.ironic.row('a')['provision_state'] = 'inspect wait'
        found = self.json('node introspect --all --abort')
        assert found == (0, [{'UUID': 'id-a'}])
