# SPDX-License-Identifier: Apache-2.0
"""The operations on nodes, in terms of JSON."""

import json

import testtools

from heat_plugins import errors
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic

NODES = {
    'nodes': [
        {
            'name': 'a',
            'pm_type': 'fake-hardware',
            'mac': ['52:54:00:00:00:01'],
        },
        {'name': 'b', 'pm_type': 'nope', 'mac': ['52:54:00:00:00:02']},
    ]
}

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


class OperationsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        self.store = fake_swift.Cluster().store()
        self.core = node_operations.NodeOperations(
            self.ironic, self.store, clock=lambda: 1000.0
        )

    def test_registering_tells_of_each_node_and_of_all(self):
        found = json.loads(json.dumps(self.core.register(NODES)))
        self.assertEqual(
            [('a', 'created', True), ('b', 'failed', False)],
            [
                (one['name'], one['action'], one['success'])
                for one in found['nodes']
            ],
        )
        self.assertFalse(found['success'])
        self.assertEqual([self.ironic.row('a')['uuid']], found['enrolled'])
        self.assertEqual([], found['manageable'])
        self.ironic.row('a')['provision_state'] = 'manageable'
        found = self.core.register(NODES)
        self.assertEqual([], found['enrolled'])
        self.assertEqual([self.ironic.row('a')['uuid']], found['manageable'])

    def test_no_upload_with_passwords_outlives_its_use(self):
        place = parcels.send(self.store, json.dumps(NODES).encode())
        self.assertEqual(2, len(self.core.register(place)['nodes']))
        self.assertEqual(
            [], list(self.store.list_objects(place['container'], ''))
        )

    def test_nodes_are_listed_by_name(self):
        for name in ('b', 'a'):
            self.ironic.add(
                f'id-{name}',
                name=name,
                driver_info={'ipmi_password': 'hunter22'},
            )
        found = self.core.list()
        self.assertEqual(['a', 'b'], [one['name'] for one in found])
        self.assertEqual('enroll', found[0]['provision_state'])
        self.assertNotIn('driver_info', found[0])

    def test_a_way_goes_from_its_begin_to_its_end(self):
        self.ironic.add('id-a', name='a', provision_state='manageable')
        found = self.core.begin('inspect', ['a', 'id-a'])
        self.assertIsNone(found['success'])
        found = self.core.step(found['convoy'])
        self.assertEqual(10, found['next_look'])
        self.ironic.finish('a')
        found = self.core.step(found['convoy'])
        self.assertTrue(found['success'])
        self.assertEqual(0, found['next_look'])
        self.assertEqual('', found['reason'])
        self.assertEqual(['id-a'], found['done'])

    def test_without_names_all_go_that_can(self):
        for name, state in (
            ('a', 'manageable'),
            ('b', 'active'),
            ('c', 'inspect wait'),
        ):
            self.ironic.add(f'id-{name}', name=name, provision_state=state)
        convoy = self.core.begin('inspect')['convoy']
        self.assertEqual(
            ['a', 'c'], [one['name'] for one in convoy['members']]
        )

    def test_what_cannot_be_is_refused(self):
        self.assertRaises(errors.Invalid, self.core.begin, 'fly')
        for wrong in ('concurrency', 'attempts', 'timeout'):
            self.assertRaises(
                errors.Invalid, self.core.begin, 'inspect', **{wrong: 0}
            )
        self.assertRaises(errors.NotFound, self.core.begin, 'inspect', ['x'])
        found = self.core.begin('inspect')
        self.assertEqual((True, 0), (found['success'], found['next_look']))

    def test_to_abort_is_for_inspections_alone(self):
        for name, state in (
            ('a', 'inspect wait'),
            ('b', 'clean wait'),
            ('c', 'inspecting'),
        ):
            self.ironic.add(f'id-{name}', name=name, provision_state=state)
        self.assertEqual(
            {'nodes': ['id-a'], 'moving': ['id-c']}, self.core.abort()
        )
        self.assertEqual([('a', 'abort')], self.ironic.sent)

    def test_summaries_are_few_numbers(self):
        for name in 'ab':
            self.ironic.add(f'id-{name}', name=name)
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
