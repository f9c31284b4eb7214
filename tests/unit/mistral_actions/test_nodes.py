# SPDX-License-Identifier: Apache-2.0
"""The actions on nodes, as Mistral makes and runs them."""

from importlib import metadata
import inspect
import types

from mistral_lib import actions
from mistral_lib.actions import context as contexts
import testtools

from heat_plugins.mistral_actions import nodes
from heat_plugins.mistral_actions import results
from heat_plugins.nodes import operations
from heat_plugins.plans import errors
from tests.unit import fake_swift
from tests.unit.nodes import fake_ironic

# What is done by whoever waits: no action of its own.
_BY_HAND = {'inventory', 'stop'}

FILE = {
    'nodes': [
        {
            'name': 'a',
            'pm_type': 'fake',
            'pm_password': 'hunter22',
            'mac': ['52:54:00:00:00:01'],
        }
    ]
}


def published():
    """Return the actions that Mistral is told of, by their names."""
    return {
        entry.name: entry.load()
        for entry in metadata.entry_points(group='mistral.actions')
        if entry.name.startswith('nodes.')
    }


class ActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = fake_ironic.Ironic()
        core = operations.Operations(
            self.ironic, fake_swift.Cluster().store(), clock=lambda: 1000.0
        )
        self.patch(nodes, 'core', lambda context: core)

    def run_action(self, action):
        """Run an action where Mistral would, made again from its values."""
        serializer = actions.base.ActionSerializer()
        there = serializer.deserialize_from_dict(
            serializer.serialize_to_dict(action)
        )
        execution = contexts.ExecutionContext(
            workflow_execution_id='workflow-1', action_execution_id='action-1'
        )
        return there.run(
            contexts.ActionContext(types.SimpleNamespace(), execution)
        )

    def test_there_is_one_for_each_operation_with_its_arguments(self):
        wanted = {
            f'nodes.{name}': [
                (one.name, one.default)
                for one in inspect.signature(method).parameters.values()
                if one.name != 'self'
            ]
            for name, method in vars(operations.Operations).items()
            if not name.startswith('_') and name not in _BY_HAND
        }
        found = {
            name: [
                (one.name, one.default)
                for one in inspect.signature(action).parameters.values()
            ]
            for name, action in published().items()
        }
        self.assertEqual(wanted, found)

    def test_each_calls_the_operation_of_its_name(self):
        for name, action in published().items():
            self.assertEqual(name, f'nodes.{action._operation}')

    def test_a_node_goes_from_a_file_to_its_inspection(self):
        found = self.run_action(nodes.Register(nodes=FILE))
        self.assertNotIn('hunter22', str(found))
        for verb in ('manage', 'inspect'):
            begun = self.run_action(
                nodes.Begin(verb=verb, nodes=found['enrolled'])
            )
            begun = self.run_action(nodes.Step(convoy=begun['convoy']))
            self.ironic.finish('a')
            begun = self.run_action(nodes.Step(convoy=begun['convoy']))
            self.assertTrue(begun['success'])
        (summary,) = self.run_action(nodes.Summaries(nodes=begun['done']))
        self.assertEqual('a', summary['name'])
        (listed,) = self.run_action(nodes.List())
        self.assertEqual('manageable', listed['provision_state'])

    def test_an_error_is_a_code_and_a_message(self):
        found = self.run_action(nodes.Begin(verb='inspect', nodes=['x']))
        self.assertEqual(
            {'code': 'not-found', 'message': 'There is no node x'},
            found.error,
        )
        self.ironic.failing['states'] = [errors.Unavailable('503')]
        found = self.run_action(nodes.Abort())
        self.assertEqual('unavailable', found.error['code'])

    def test_what_should_not_happen_is_logged_and_not_told(self):
        self.ironic.failing['nodes'] = [ValueError('hunter22')]
        with self.assertLogs(results.LOG, 'ERROR'):
            found = self.run_action(nodes.List())
        self.assertEqual('error', found.error['code'])
        self.assertNotIn('hunter22', str(found.error))
