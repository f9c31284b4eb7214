# SPDX-License-Identifier: Apache-2.0
"""The operations on nodes, in terms of JSON, and their jobs step by step."""

import json

import testtools

from heat_plugins import errors
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic

INVENTORY = {
    'inventory': {
        'cpu': {'count': 4, 'architecture': 'x86_64'},
        'memory': {'physical_mb': 8192},
        'disks': [{'name': '/dev/sda', 'size': 40 << 30}, {'size': None}],
        'interfaces': [{'mac_address': '52:54:00:00:00:01'}, {'name': 'lo'}],
        'system_vendor': {'product_name': 'KVM'},
    },
    'plugin_data': {},
}


def nodes(b='fake-hardware'):
    """Return a file of the nodes a and b; b has a hardware type."""
    return {
        'nodes': [
            {'name': name, 'pm_type': kind, 'mac': [f'52:54:00:00:00:0{name}']}
            for name, kind in (('a', 'fake-hardware'), ('b', b))
        ]
    }


class NodesCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        self.store = fake_swift.Cluster().store()
        self.core = node_operations.NodeOperations(
            self.ironic, self.store, clock=lambda: 1000.0
        )

    def add(self, **states):
        for name, state in states.items():
            self.ironic.add(
                f'id-{name}',
                name=name,
                provision_state=state.replace('_', ' '),
                driver_info={'ipmi_password': 'hunter22'},
            )


class OperationsTest(NodesCase):
    def test_registering_reports_each_node_and_all(self):
        found = json.loads(json.dumps(self.core.register(nodes(b='nope'))))
        self.assertEqual(
            [('a', 'created', True), ('b', 'failed', False)],
            [
                (one['name'], one['action'], one['success'])
                for one in found['nodes']
            ],
        )
        self.assertFalse(found['success'])
        row = self.ironic.row('a')
        lists = found['enrolled'], found['manageable']
        self.assertEqual(([row['uuid']], []), lists)
        row['provision_state'] = 'manageable'
        found = self.core.register(nodes(b='nope'))
        lists = found['enrolled'], found['manageable']
        self.assertEqual(([], [row['uuid']]), lists)

    def test_no_upload_with_passwords_outlives_its_use(self):
        place = parcels.send(self.store, json.dumps(nodes()).encode())
        self.assertEqual(2, len(self.core.register(place)['nodes']))
        uploads = self.store.list_objects(place['container'], '')
        self.assertEqual([], list(uploads))

    def test_nodes_are_listed_by_name(self):
        self.add(b='enroll', a='enroll')
        found = self.core.list()
        self.assertEqual(['a', 'b'], [one['name'] for one in found])
        self.assertEqual('enroll', found[0]['provision_state'])
        self.assertNotIn('driver_info', found[0])

    def test_a_move_goes_step_by_step(self):
        self.add(a='manageable')
        found = self.core.begin('inspect', ['a', 'id-a'])
        self.assertIsNone(found['success'])
        found = self.core.step(found['convoy'])
        self.assertEqual(10, found['next_look'])
        self.ironic.finish('a')
        found = self.core.step(found['convoy'])
        del found['convoy']
        self.assertEqual(
            {'next_look': 0, 'done': ['id-a'], 'success': True, 'reason': ''},
            found,
        )

    def test_without_names_all_nodes_move_that_can(self):
        self.add(a='manageable', b='active', c='inspect_wait')
        members = self.core.begin('inspect')['convoy']['members']
        self.assertEqual(['a', 'c'], [one['name'] for one in members])

    def test_a_wrong_move_is_refused(self):
        self.assertRaises(errors.Invalid, self.core.begin, 'fly')
        for wrong in ('concurrency', 'attempts', 'timeout'):
            self.assertRaises(
                errors.Invalid, self.core.begin, 'inspect', **{wrong: 0}
            )
        self.assertRaises(errors.NotFound, self.core.begin, 'inspect', ['x'])
        found = self.core.begin('inspect')
        self.assertEqual((True, 0), (found['success'], found['next_look']))

    def test_only_inspections_are_aborted(self):
        self.add(a='inspect_wait', b='clean_wait', c='inspecting')
        self.assertEqual(
            {'nodes': ['id-a'], 'moving': ['id-c']}, self.core.abort()
        )
        self.assertEqual([('a', 'abort')], self.ironic.sent)

    def test_inspections_are_summarized(self):
        self.add(a='manageable', b='manageable')
        self.ironic.inventories['id-a'] = INVENTORY
        first, second = self.core.summaries(['a', 'b'])
        self.assertEqual(
            {
                'uuid': 'id-a',
                'name': 'a',
                'cpus': 4,
                'architecture': 'x86_64',
                'memory_mb': 8192,
                'disks_gb': [40],
                'macs': ['52:54:00:00:00:01'],
                'product': 'KVM',
            },
            first,
        )
        self.assertIsNone(second['cpus'])
        self.assertEqual(INVENTORY, self.core.inventory('a'))
        self.assertRaises(errors.NotFound, self.core.inventory, 'b')


class JobsTest(NodesCase):
    def setUp(self):
        super().setUp()
        self.repeats = 1
        self.wrong = {}

    def work(self, kind, **given):
        """Work to the end; each step may be repeated, as after crashes."""
        state = None
        while True:
            for _ in range(self.repeats):
                step = self.core.work(kind, given, state)
            step = json.loads(json.dumps(step))
            if step['success'] is not None:
                return step
            state = step['state']
            self.finish()

    def finish(self):
        for one in self.ironic.states():
            if one.state in ('verifying', 'inspecting', 'cleaning'):
                self.ironic.finish(one.uuid, self.wrong.get(one.name))
                self.ironic.inventories[one.uuid] = INVENTORY

    def assert_states(self, **states):
        found = {one.name: one.state for one in self.ironic.states()}
        self.assertEqual(states, found)

    def test_nodes_of_a_file_become_available(self):
        step = self.work('register', nodes=nodes(), provide=True)
        self.assertTrue(step['success'])
        self.assert_states(a='available', b='available')
        verbs = [one['verb'] for one in step['state']['moves']]
        self.assertEqual(['manage', 'provide'], verbs)

    def test_each_step_can_be_repeated(self):
        self.repeats = 3
        self.test_nodes_of_a_file_become_available()
        self.ironic.row('a')['provision_state'] = 'manageable'
        self.assertTrue(self.work('introspect', nodes=['a'])['success'])
        self.assertEqual(1, self.ironic.sent.count(('a', 'inspect')))

    def test_a_file_stays_until_its_nodes_are_recorded(self):
        place = parcels.send(self.store, json.dumps(nodes()).encode())
        for _ in range(2):
            step = self.core.work('register', {'nodes': place})
            self.assertEqual(len(step['state']['nodes']), 2)
        self.core.work('register', {'nodes': place}, step['state'])
        self.assertRaises(errors.NotFound, parcels.received, self.store, place)

    def test_a_file_that_is_refused_is_deleted_at_once(self):
        place = parcels.send(self.store, b'{"nodes": []}')
        self.assertRaises(
            errors.Invalid, self.core.work, 'register', {'nodes': place}
        )
        self.assertRaises(errors.NotFound, parcels.received, self.store, place)

    def test_nodes_that_fail_do_not_hold_up_the_others(self):
        self.wrong['b'] = 'no route to host'
        step = self.work('register', nodes=nodes(), provide=True)
        self.assertFalse(step['success'])
        self.assertEqual('manage: 1 done, 1 failed', step['reason'])
        self.assert_states(a='available', b='enroll')

    def test_inspected_nodes_are_summarized_and_provided(self):
        self.work('register', nodes=nodes())
        step = self.work('introspect', nodes=None, provide=True)
        self.assertTrue(step['success'])
        names = sorted(one['name'] for one in step['output']['found'])
        self.assertEqual(['a', 'b'], names)
        self.assert_states(a='available', b='available')

    def test_a_move_of_no_nodes_is_done(self):
        step = self.work('move', verb='provide', nodes=None)
        self.assertTrue(step['success'])
        self.assertEqual([], step['state']['moves'][0]['members'])
