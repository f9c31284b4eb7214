# SPDX-License-Identifier: Apache-2.0
"""Work on nodes, step by step, as drivers of JSON take it."""

import json

import testtools

from heat_plugins import errors
from heat_plugins.nodes import node_operations
from heat_plugins.objectstore import parcels
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic
from tests.unit.nodes import test_operations

FILE = {
    'nodes': [
        {
            'name': name,
            'pm_type': 'fake-hardware',
            'mac': [f'52:54:00:00:00:0{number}'],
        }
        for number, name in enumerate('ab', 1)
    ]
}


class NodeJobsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        self.store = fake_swift.Cluster().store()
        self.operations = node_operations.NodeOperations(
            self.ironic, self.store, clock=lambda: 1000.0
        )
        self.repeats = 1
        self.wrong = {}

    def work(self, kind, **given):
        """Work to the end; each step may be repeated, as after crashes."""
        state = None
        while True:
            for _ in range(self.repeats):
                step = self.operations.work(kind, given, state)
            step = json.loads(json.dumps(step))
            if step['success'] is not None:
                return step
            state = step['state']
            self.finish()

    def finish(self):
        for one in self.ironic.states():
            if one.state in ('verifying', 'inspecting', 'cleaning'):
                self.ironic.finish(one.uuid, self.wrong.get(one.name))
                self.ironic.inventories[one.uuid] = test_operations.INVENTORY

    def states(self):
        return {one.name: one.state for one in self.ironic.states()}

    def test_nodes_of_a_file_become_available(self):
        step = self.work('register', nodes=FILE, provide=True)
        self.assertTrue(step['success'])
        self.assertEqual({'a': 'available', 'b': 'available'}, self.states())
        self.assertEqual(
            ['manage', 'provide'],
            [one['verb'] for one in step['state']['moves']],
        )

    def test_each_step_can_be_repeated(self):
        self.repeats = 3
        self.test_nodes_of_a_file_become_available()
        self.ironic.row('a')['provision_state'] = 'manageable'
        self.assertTrue(self.work('introspect', nodes=['a'])['success'])
        self.assertEqual(
            1, len([s for s in self.ironic.sent if 'inspect' in s])
        )

    def test_a_file_stays_until_its_nodes_are_on_record(self):
        place = parcels.send(self.store, json.dumps(FILE).encode())
        step = self.operations.work('register', {'nodes': place})
        again = self.operations.work('register', {'nodes': place})
        self.assertEqual(len(step['state']['nodes']), 2)
        self.assertEqual(len(again['state']['nodes']), 2)
        self.operations.work('register', {'nodes': place}, step['state'])
        self.assertRaises(errors.NotFound, parcels.received, self.store, place)

    def test_a_file_that_is_refused_goes_at_once(self):
        place = parcels.send(self.store, b'{"nodes": []}')
        self.assertRaises(
            errors.Invalid, self.operations.work, 'register', {'nodes': place}
        )
        self.assertRaises(errors.NotFound, parcels.received, self.store, place)

    def test_those_that_fail_do_not_keep_the_others(self):
        self.wrong['b'] = 'no route to host'
        step = self.work('register', nodes=FILE, provide=True)
        self.assertFalse(step['success'])
        self.assertEqual('manage: 1 done, 1 failed', step['reason'])
        self.assertEqual({'a': 'available', 'b': 'enroll'}, self.states())

    def test_what_was_inspected_is_summarized_and_provided(self):
        self.work('register', nodes=FILE)
        step = self.work('introspect', nodes=None, provide=True)
        self.assertTrue(step['success'])
        self.assertEqual(
            ['a', 'b'], sorted(one['name'] for one in step['output']['found'])
        )
        self.assertEqual({'a': 'available', 'b': 'available'}, self.states())

    def test_a_move_of_no_nodes_is_done(self):
        step = self.work('move', verb='provide', nodes=None)
        self.assertTrue(step['success'])
        self.assertEqual([], step['state']['moves'][0]['members'])
