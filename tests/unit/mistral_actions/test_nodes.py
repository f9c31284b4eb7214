# SPDX-License-Identifier: Apache-2.0
"""The actions on nodes, as Mistral makes and runs them."""

import testtools

from heat_plugins import errors
from heat_plugins.mistral_actions import nodes
from heat_plugins.nodes import node_operations
from tests.unit import fake_swift
from tests.unit.mistral_actions import base
from tests.unit.nodes import fake_ironic

FILE = {
    'nodes': [
        {
            'name': 'a',
            'pm_type': 'fake-hardware',
            'pm_password': 'hunter22',
            'mac': ['52:54:00:00:00:01'],
        }
    ]
}


class ActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        core = node_operations.NodeOperations(
            self.ironic, fake_swift.Cluster().store(), clock=lambda: 1000.0
        )
        self.patch(nodes, 'core', lambda context: core)

    def test_a_node_goes_from_a_file_to_its_inspection(self):
        found = base.run(nodes.Register(nodes=FILE))
        self.assertNotIn('hunter22', str(found))
        for verb in ('manage', 'inspect'):
            begun = base.run(nodes.Begin(verb=verb, nodes=found['enrolled']))
            begun = base.run(nodes.Step(convoy=begun['convoy']))
            self.ironic.finish('a')
            begun = base.run(nodes.Step(convoy=begun['convoy']))
            self.assertTrue(begun['success'])
        (summary,) = base.run(nodes.Summaries(nodes=begun['done']))
        self.assertEqual('a', summary['name'])
        (listed,) = base.run(nodes.List())
        self.assertEqual('manageable', listed['provision_state'])

    def test_an_error_is_a_code_and_a_message(self):
        found = base.run(nodes.Begin(verb='inspect', nodes=['x']))
        self.assertEqual(
            {'code': 'not-found', 'message': 'There is no node x'},
            found.error,
        )
        self.ironic.failing['states'] = [errors.Unavailable('503')]
        found = base.run(nodes.Abort())
        self.assertEqual('unavailable', found.error['code'])
