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
        assert [
            (one['name'], one['action'], one['success'])
            for one in found['nodes']
        ] == [('a', 'created', True), ('b', 'failed', False)]
        assert not found['success']
        row = self.ironic.row('a')
        lists = found['enrolled'], found['manageable']
        assert lists == ([row['uuid']], [])
        row['provision_state'] = 'manageable'
        found = self.core.register(nodes(b='nope'))
        lists = found['enrolled'], found['manageable']
        assert lists == ([], [row['uuid']])

    def test_no_upload_with_passwords_outlives_its_use(self):
        place = parcels.send(self.store, json.dumps(nodes()).encode())
        assert len(self.core.register(place)['nodes']) == 2
        uploads = self.store.list_objects(place['container'], '')
        assert list(uploads) == []

    def test_nodes_are_listed_by_name(self):
        self.add(b='enroll', a='enroll')
        found = self.core.list()
        assert [one['name'] for one in found] == ['a', 'b']
        assert found[0]['provision_state'] == 'enroll'
        assert 'driver_info' not in found[0]

    def test_a_move_goes_step_by_step(self):
        self.add(a='manageable')
        found = self.core.begin('inspect', ['a', 'id-a'])
        assert found['success'] is None
        found = self.core.step(found['convoy'])
        assert found['next_look'] == 10
        self.ironic.finish('a')
        found = self.core.step(found['convoy'])
        del found['convoy']
        assert found == {
            'next_look': 0,
            'done': ['id-a'],
            'success': True,
            'reason': '',
        }

    def test_without_names_all_nodes_move_that_can(self):
        self.add(a='manageable', b='active', c='inspect_wait')
        members = self.core.begin('inspect')['convoy']['members']
        assert [one['name'] for one in members] == ['a', 'c']

    def test_a_wrong_move_is_refused(self):
        self.assertRaises(errors.Invalid, self.core.begin, 'fly')
        for wrong in ('concurrency', 'attempts', 'timeout'):
            self.assertRaises(
                errors.Invalid, self.core.begin, 'inspect', **{wrong: 0}
            )
        self.assertRaises(errors.NotFound, self.core.begin, 'inspect', ['x'])
        found = self.core.begin('inspect')
        assert (found['success'], found['next_look']) == (True, 0)

    def test_only_inspections_are_aborted(self):
        self.add(a='inspect_wait', b='clean_wait', c='inspecting')
        assert self.core.abort() == {'nodes': ['id-a'], 'moving': ['id-c']}
        assert self.ironic.sent == [('a', 'abort')]

    def test_inspections_are_summarized(self):
        self.add(a='manageable', b='manageable')
        self.ironic.inventories['id-a'] = INVENTORY
        first, second = self.core.summaries(['a', 'b'])
        assert first == {
            'uuid': 'id-a',
            'name': 'a',
            'cpus': 4,
            'architecture': 'x86_64',
            'memory_mb': 8192,
            'disks_gb': [40],
            'macs': ['52:54:00:00:00:01'],
            'product': 'KVM',
        }
        assert second['cpus'] is None
        assert self.core.inventory('a') == INVENTORY
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
        assert found == states

    def test_nodes_of_a_file_become_available(self):
        step = self.work('register', nodes=nodes(), provide=True)
        assert step['success']
        self.assert_states(a='available', b='available')
        verbs = [one['verb'] for one in step['state']['moves']]
        assert verbs == ['manage', 'provide']

    def test_each_step_can_be_repeated(self):
        self.repeats = 3
        self.test_nodes_of_a_file_become_available()
        self.ironic.row('a')['provision_state'] = 'manageable'
        assert self.work('introspect', nodes=['a'])['success']
        assert self.ironic.sent.count(('a', 'inspect')) == 1

    def test_a_file_stays_until_its_nodes_are_recorded(self):
        place = parcels.send(self.store, json.dumps(nodes()).encode())
        for _ in range(2):
            step = self.core.work('register', {'nodes': place})
            assert len(step['state']['nodes']) == 2
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
        assert not step['success']
        assert step['reason'] == 'manage: 1 done, 1 failed'
        self.assert_states(a='available', b='enroll')

    def test_inspected_nodes_are_summarized_and_provided(self):
        self.work('register', nodes=nodes())
        step = self.work('introspect', nodes=None, provide=True)
        assert step['success']
        names = sorted(one['name'] for one in step['output']['found'])
        assert names == ['a', 'b']
        self.assert_states(a='available', b='available')

    def test_a_move_of_no_nodes_is_done(self):
        step = self.work('move', verb='provide', nodes=None)
        assert step['success']
        assert step['state']['moves'][0]['members'] == []
