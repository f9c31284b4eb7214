# SPDX-License-Identifier: Apache-2.0
"""Which operations an engine advances."""

import collections
import json
import time
import types

from heat.common import context as heat_context
from heat.objects import software_config as config_objects

from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operation as operations
from tests.unit import heat_fixture
from tests.unit.runs.fleet import simulation

PROJECT = 'project-1'


class WatchingTest(heat_fixture.HeatTestCase):
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.context = heat_context.get_admin_context()
        self.world = simulation.World(4, fail=[3])
        self.real = own_heat.Heat
        self.load = fleet_watching._stack
        self.patch(own_heat, 'Heat', lambda rpc, context: self.world.heat)
        self.patch(fleet_watching.rpc_client, 'EngineClient', lambda: None)
        self.stack = types.SimpleNamespace(
            context=None,
            clients=types.SimpleNamespace(
                client=lambda name: self.world.cluster.store()
            ),
        )
        self.patch(
            fleet_watching,
            '_stack',
            lambda stack_id, project_id: (
                self.stack if project_id == PROJECT else None
            ),
        )
        self.addCleanup(fleet_watching._advanced.clear)

    def begin(self):
        """Start an operation by a command that ends at once."""
        order = self.world.order()
        advancer = self.world.advancer(order)
        advancer.begin(fleet_requests.register(self.world.heat, order))
        advancer.step()
        return advancer

    def register(self, name, tenant=PROJECT, config=None):
        config = config or json.dumps({'stacks': ['one']})
        return config_objects.SoftwareConfig.create(
            self.context,
            {
                'group': fleet_requests.GROUP,
                'name': name,
                'tenant': tenant,
                'config': {'config': config},
            },
        )

    def look(self):
        """Look, and do at once what a thread would."""
        self.patch(
            fleet_watching,
            'threading',
            types.SimpleNamespace(
                Thread=lambda target, args, **more: types.SimpleNamespace(
                    start=lambda: target(*args)
                )
            ),
        )
        self.patch(
            fleet_watching,
            '_step_on',
            lambda advancer, step_on=fleet_watching._step_on: step_on(
                advancer, self.world.sleep
            ),
        )
        return fleet_watching.look()

    def found(self, order_id):
        return fleets.Fleets(self.world.heat, self.world.tools()).show(
            order_id
        )

    def test_it_takes_over_what_a_command_has_left(self):
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id)
        self.assertEqual([advancer.operation.id], self.look())
        found = self.found(advancer.operation.id)
        self.assertIs(operations.Phase.FAILED, found.control.phase)
        self.assertEqual([3], found.failures)
        self.assertEqual([], self.world.given)
        # Heat knows no more of it.
        self.assertEqual(self.world.configs, set(self.world.heat.configs))

    def test_it_leaves_alone_what_somebody_advances(self):
        advancer = self.begin()
        self.register(advancer.operation.id)
        self.assertEqual([], self.look())
        self.assertEqual({}, fleet_watching._advanced)

    def test_it_takes_over_from_a_process_that_has_died(self):
        advancer = self.begin()
        self.register(advancer.operation.id)
        self.world.sleep(60)
        self.assertEqual([advancer.operation.id], self.look())

    def test_it_acts_in_no_other_project(self):
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id, tenant='project-2')
        self.assertEqual([], self.look())

    def test_what_names_no_operation_does_not_stop_it(self):
        advancer = self.begin()
        advancer.release()
        for config in ('[]', '{}', 'x', '{"stacks": 3}'):
            self.register('x', config=config)
        self.register('20270115T080000Z-00000000')
        self.register(advancer.operation.id)
        self.assertEqual([advancer.operation.id], self.look())

    def test_configs_of_one_project_hide_no_operation_of_another(self):
        self.patch(fleet_watching, '_READ', 5)
        for number in range(12):
            self.register(f'{number}', tenant='project-2')
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id)
        found = fleet_watching.registered(self.context)
        of_each = collections.Counter(one.project_id for one in found)
        self.assertEqual({'project-2': 5, PROJECT: 1}, of_each)
        self.assertIn(PROJECT, [one.project_id for one in found[:2]])
        self.assertEqual([advancer.operation.id], self.look())

    def test_a_config_costs_little_however_long_it_is(self):
        self.register('x', config=json.dumps({'stacks': ['x' * 200_000]}))
        self.register('y', config=json.dumps({'stacks': ['y'] * 10_000}))
        (found,) = fleet_watching.registered(self.context)
        self.assertEqual(100, len(found.stacks))

    def test_a_project_leaves_places_for_others(self):
        advancer = self.begin()
        advancer.release()
        self.register(advancer.operation.id)
        fleet_watching._advanced.update(dict.fromkeys('abcd', PROJECT))
        self.assertEqual([], self.look())
        fleet_watching._advanced.update(dict.fromkeys('abcd', 'project-2'))
        self.assertEqual([advancer.operation.id], self.look())

    def test_an_operation_of_the_same_name_elsewhere_keeps_none_from_it(self):
        advancer = self.begin()
        advancer.release()
        theirs = self.register(advancer.operation.id, tenant='project-2')
        fleet_watching._advanced[theirs.id] = 'project-2'
        self.register(advancer.operation.id)
        self.assertEqual([advancer.operation.id], self.look())

    def test_it_finds_what_heat_was_told_of(self):
        order = self.world.order()
        heat = self.real(
            self.heat.rpc, heat_fixture.new_context(project_id=PROJECT)
        )
        config_id = fleet_requests.register(heat, order)
        (one,) = fleet_watching.registered(self.context)
        self.assertEqual(config_id, one.config_id)
        self.assertEqual(order.id, one.operation_id)
        self.assertEqual(PROJECT, one.project_id)
        self.assertEqual(
            {stack.id for stack in self.world.stacks}, set(one.stacks)
        )
        heat.delete_config(config_id)
        self.assertEqual([], fleet_watching.registered(self.context))

    def test_it_has_the_stored_credentials_of_a_stack(self):
        stack = self.heat.create({'heat_template_version': '2021-04-16'})
        project = stack.tenant_id
        # Heat's fake of Keystone makes trusts for no project.
        self.assertIsNone(self.load(stack.id, project))
        self.patch(
            type(stack),
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        loaded = self.load(stack.id, project)
        self.assertEqual(project, loaded.tenant_id)
        self.assertIsNotNone(loaded.clients)
        # Anybody may write the id of a stack into a config.
        self.assertIsNone(self.load(stack.id, 'of-somebody-else'))
        self.assertIsNone(self.load('no-such-stack', project))

    def test_heat_knows_how_old_it_is(self):
        self.register('20270115T080000Z-00000000')
        (one,) = fleet_watching.registered(self.context)
        self.assertEqual(PROJECT, one.project_id)
        self.assertEqual(('one',), one.stacks)
        self.assertTrue(-60 < one.age < 600, one.age)

    def test_a_leftover_goes(self):
        order = self.world.order()
        config_id = fleet_requests.register(self.world.heat, order)
        self.patch(fleet_watching, '_LEFTOVER', -1)
        self.patch(
            fleet_watching,
            'registered',
            lambda context: [
                fleet_watching.Registered(
                    config_id=config_id,
                    operation_id=order.id,
                    project_id=PROJECT,
                    stacks=('one',),
                    age=time.time(),
                )
            ],
        )
        self.look()
        self.assertNotIn(config_id, self.world.heat.configs)
