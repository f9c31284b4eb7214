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
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: "#!/bin/sh"
      outputs: [{name: answer}]
  server:
    type: OS::Heat::DeployedServer
    properties:
      software_config_transport: POLL_SERVER_HEAT
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: config}
      server: {get_resource: server}
      signal_transport: HEAT_SIGNAL
"""


class HeatFixtureTest(heat_fixture.HeatTestCase):
    def test_a_created_stack_is_complete_in_the_database_too(self):
        stack = self.heat.create(CONFIG)
        again = self.heat.load(stack)
        self.assertEqual(('CREATE', 'COMPLETE'), again.state)
        self.assertEqual('#!/bin/sh', again['config'].FnGetAtt('config'))

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

    def test_a_waiting_deployment_is_stepped_by_hand(self):
        stack = self.heat.stack(DEPLOYMENT)
        task = self.heat.begin(stack, 'CREATE')
        for _ in range(9):
            self.assertFalse(task.step())
        (handed,) = self.heat.deployments_of(stack['server'].resource_id)
        self.assertEqual('#!/bin/sh', handed['config'])
        self.heat.signal(
            stack['deployment'], answer='42', deploy_status_code=0
        )
        self.assertTrue(task.step())
        self.assertEqual('42', stack['deployment'].FnGetAtt('answer'))

    def test_what_happens_meanwhile_can_be_said_first(self):
        stack = self.heat.stack(DEPLOYMENT)
        sleeps = []

        def meanwhile():
            sleeps.append(stack['deployment'].state)
            if len(sleeps) == 5:
                self.heat.signal(stack['deployment'], answer='42')

        self.heat.meanwhile = meanwhile
        self.heat.run(stack, 'CREATE')
        self.assertEqual('42', stack['deployment'].FnGetAtt('answer'))
        self.assertEqual(('CREATE', 'IN_PROGRESS'), sleeps[4])

    def test_an_update_is_stepped_too(self):
        stack = self.heat.create(CONFIG)
        first = stack['config'].resource_id
        task = self.heat.begin(stack, 'UPDATE', CONFIG.replace('/sh', '/bash'))
        while not task.step():
            pass
        self.assertEqual(('UPDATE', 'COMPLETE'), stack.state)
        self.assertNotEqual(first, stack['config'].resource_id)

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


class TypesTest(heat_fixture.HeatTestCase):
    class Replacement(heat_fixture.resource.Resource):
        """A resource type of a test's own."""

        properties_schema = {}

        def handle_create(self):
            self.resource_id_set('made')

    TYPES = {'OS::Heat::SoftwareConfig': Replacement}

    def test_a_tests_own_class_takes_the_place_of_heats(self):
        stack = self.heat.create("""
heat_template_version: 2021-04-16
resources:
  config: {type: OS::Heat::SoftwareConfig}
""")
        self.assertIsInstance(stack['config'], self.Replacement)
        self.assertEqual('made', stack['config'].resource_id)

    def test_and_only_while_that_test_runs(self):
        self.heat.cleanup()
        other = heat_fixture.Heat({})
        other.setup()
        self.addCleanup(other.cleanup)
        self.assertNotIsInstance(
            other.create(CONFIG)['config'], self.Replacement
        )
