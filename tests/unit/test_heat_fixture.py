# SPDX-License-Identifier: Apache-2.0
"""The engine that the tests of resources use behaves as Heat's."""

from heat.common import exception

from tests.unit import heat_fixture

CONFIG = """
heat_template_version: 2021-04-16
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: "#!/bin/sh"}
"""

DEPLOYMENT = """
heat_template_version: 2021-04-16
resources:
  server:
    type: OS::Heat::DeployedServer
    properties:
      software_config_transport: POLL_SERVER_HEAT
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      server: {get_resource: server}
      signal_transport: HEAT_SIGNAL
"""


class HeatFixtureTest(heat_fixture.HeatTestCase):
    def test_a_stack_that_fails_says_why(self):
        def refuse(context, **arguments):
            raise exception.Error('the row cannot be written')

        self.heat.rpc.stubs['create_software_config'] = refuse
        error = self.assertRaises(AssertionError, self.heat.create, CONFIG)
        self.assertIn('the row cannot be written', str(error))

    def test_an_unannounced_call_is_refused(self):
        self.assertRaises(
            heat_fixture.UnexpectedCall,
            self.heat.rpc.identify_stack,
            self.heat.context,
            'stack',
        )

    def test_the_engines_errors_arrive_as_remote_ones(self):
        def show():
            self.heat.rpc.show_software_config(self.heat.context, 'absent')

        error = self.assertRaises(exception.NotFound, show)
        self.assertEqual('NotFound_Remote', type(error).__name__)
        with self.heat.rpc.ignore_error_by_name('NotFound'):
            show()

    def test_waiting_for_nothing_ends(self):
        self.heat.PATIENCE = 50
        stack = self.heat.stack(DEPLOYMENT)
        stack.validate()
        self.assertRaises(
            heat_fixture.StillWaiting, self.heat.run, stack, 'CREATE'
        )

    def test_one_test_leaves_the_next_nothing(self):
        for _ in range(2):
            self.assertEqual(
                [], self.heat.rpc.list_software_configs(self.heat.context)
            )
            self.heat.create(CONFIG)
            self.heat.cleanup()
            self.heat.setup()
