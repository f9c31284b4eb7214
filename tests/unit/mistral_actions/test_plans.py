# SPDX-License-Identifier: Apache-2.0
"""The actions on plans, as Mistral makes and runs them."""

from oslo_config import fixture as config_fixture
import testtools

from heat_plugins.mistral_actions import plans
from heat_plugins.objectstore import parcels
from heat_plugins.plans import plan_operations
from heat_plugins.plans.rendering import rendering
from tests.unit.mistral_actions import base
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes

UPLOADS = 'heat-plugins-uploads-project-1'


class ActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.cloud.heat.answer = fake_heat.answer
        self.cloud.plans.create('plan', fakes.content())
        core = plan_operations.PlanOperations(self.cloud.plans)
        self.patch(plans, 'core', lambda context: core)

    def test_a_result_is_what_the_operation_returns(self):
        found = base.run(plans.Show(plan='plan'))
        self.assertEqual('root.yaml', found['template'])
        listed = base.run(plans.List())
        self.assertEqual(['plan'], [one['name'] for one in listed])

    def test_a_large_result_is_put_beside_the_plan(self):
        self.patch(parcels, 'LIMIT', 100)
        found = base.run(plans.GetCapabilities(plan='plan'))
        self.assertEqual({'container', 'object', 'bytes'}, set(found))
        self.assertEqual('plan', found['container'])
        whole = parcels.unpack(self.cloud.swift.store(), found)
        self.assertEqual('Basics', whole['topics'][0]['title'])

    def test_so_is_a_long_list_of_plans_where_nothing_stays(self):
        self.patch(parcels, 'LIMIT', 10)
        found = base.run(plans.List())
        self.assertEqual(UPLOADS, found['container'])
        there = self.cloud.swift.container(UPLOADS)
        self.assertEqual({found['object']: '86400'}, there.lifetimes)
        [listed] = parcels.unpack(self.cloud.swift.store(), found)
        self.assertEqual('plan', listed['name'])

    def test_values_may_come_by_reference(self):
        store = self.cloud.swift.store()
        store.put_object('plan', '.heat-plugins/in', b'{"who": "me"}')
        place = parcels.reference('plan', '.heat-plugins/in', b'')
        base.run(plans.UpdateParameters(plan='plan', values=place))
        environment = self.cloud.plans.load('plan').environment
        self.assertEqual({'who': 'me'}, environment.parameter_defaults)


class LimitsTest(testtools.TestCase):
    def test_they_are_the_operator_s_and_else_those_of_the_commands(self):
        self.assertEqual(rendering.RenderingLimits(), plans.limits())
        fixture = self.useFixture(config_fixture.Config(plans.CONF))
        fixture.config(group='heat_plugins', plan_render_seconds=3)
        fixture.config(group='heat_plugins', plan_render_memory=200)
        fixture.config(group='heat_plugins', plan_render_output=2)
        self.assertEqual(
            rendering.RenderingLimits(
                seconds=3, memory=200 * 1024**2, output=2 * 1024**2
            ),
            plans.limits(),
        )
