# SPDX-License-Identifier: Apache-2.0
"""A signal starts an operation on a deployment, or on a group's members."""

from unittest import mock

from heat.common import exception
from heat.engine import stack as parser

from heat_plugins import pools
from heat_plugins.deployments import signallers
from heat_plugins.engine import callers
from heat_plugins.engine import process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import triggering
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from tests.unit import heat_fixture
from tests.unit import threads
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups

OWNER = signallers.Signaller(
    user_id='owner', is_of_project=True, may_update=True
)
BACKUP = {'action': 'BACKUP'}


class OperateTest(groups.GroupTestCase):
    def setUp(self):
        super().setUp()
        # SQLite in memory has one connection, which not every release of Heat
        # lets threads share.
        self.patch(fleet_watching, 'AT_A_TIME', 1)
        #: How often an engine is told to look for operations at once.
        self.looked = 0

        def start(target):
            self.looked += 1

        self.patch(triggering, 'threading', threads.stand_in(start))

    def fleet(self, **properties):
        return self.created(
            groups.group(
                'a',
                'b',
                'c',
                resources={'config': triggers.CONFIG},
                **properties,
            )
        )

    def operate(self, stack, signaller=OWNER, **ordered):
        found = self.heat.load(stack)['deployment']
        with mock.patch.object(callers, 'of', return_value=signaller):
            found.signal({'operate': {**BACKUP, **ordered}})

    def refused(self, stack, *signaller, **ordered):
        before = set(deployments.events(stack))
        self.assertRaises(
            exception.ResourceFailure,
            *(self.operate, stack, *signaller),
            **ordered,
        )
        (said,) = set(deployments.events(stack)) - before
        self.assertTrue(said.startswith('Not triggered: '), said)
        self.assertEqual([], self.door(stack).history(fleets.Filter()))
        return said

    def door(self, stack):
        heat = own_heat.OwnHeat(self.heat.rpc, stack.context)
        return fleets.Fleets.with_own_key(
            heat,
            self.swift.store(stack.context.project_id),
            who='an engine',
            pool=pools.Pool(workers=1),
        )

    def test_a_group_is_an_operation_over_its_members(self):
        stack = self.fleet()
        self.operate(
            stack,
            max_concurrent='2',
            max_errors='50%',
            input_values={'level': 9},
        )
        (head,) = self.door(stack).history(fleets.Filter())
        self.assertEqual(
            ('BACKUP', 3, 'running', 'a signal', [stack.name]),
            (
                head.action,
                head.targets,
                head.state.value,
                head.created_by,
                head.stacks,
            ),
        )
        self.assertIn(
            f'Signal: operation {head.id} of BACKUP has started on 3 servers',
            deployments.events(stack),
        )
        self.assertEqual(1, self.looked)
        # Nobody leads it: an engine goes on with it at once.
        advancer = self.door(stack).advancer(head.id)
        found = advancer.step()
        self.assertEqual(2, len(found.live))
        self.assertEqual({'level': 9}, found.order.inputs)
        self.work()
        given = self.given()
        self.assertEqual(['CREATE', 'BACKUP'], given['a'])
        self.assertEqual(['CREATE'], given['c'])
        self.delete(stack)

    def test_an_engine_finds_it(self):
        stack = self.fleet()
        made = []
        register = binding.register

        def recorded(heat, order, seal):
            made.append(order)
            return register(heat, order, seal)

        self.patch(binding, 'register', recorded)
        self.operate(stack)
        self.assertEqual([stack.id], made[0].stack_ids)

    def test_an_engine_advances_it_to_its_end(self):
        # Heat's fake of Keystone makes trusts for no project.
        self.patch(
            parser.Stack,
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        targets = []
        self.patch(process, 'threading', threads.stand_in(targets.append))
        step_on = fleet_watching._step_on
        self.patch(
            fleet_watching,
            '_step_on',
            lambda *led: step_on(*led, lambda seconds: self.work()),
        )
        self.patch(fleet_watching, 'ADVANCED', process.Places(32, 4))
        stack = self.fleet()
        self.operate(stack, input_values={'level': 9})
        (head,) = self.door(stack).history(fleets.Filter())
        operation_id = head.id
        fleet_watching.look()
        self.answer = {'deploy_status_code': 0, 'size': '12 MB'}
        # One for the project, and one for the operation.
        targets.pop()()
        targets.pop()()
        # The order of what Heat has within a second is any.
        levels = [
            inputs['level']
            for inputs in map(deployments.inputs, self.handed)
            if inputs.get('deploy_action') == 'BACKUP'
        ]
        self.assertEqual(['9'] * 3, levels)
        found = self.door(stack).show(operation_id)
        self.assertIs(operations.Phase.COMPLETE, found.control.phase)
        self.assertEqual(
            ['12 MB'] * 3, [one.outputs['size'] for one in found.attempts]
        )
        # Heat still knows what proves its records, and nothing of its runs.
        rows = [one.server_id for one in self.deployment_rows()]
        self.assertEqual(4, len(rows))
        self.assertEqual(1, rows.count(operation_id))
        self.assertEqual([], fleet_watching.registered(stack.context))
        fleet_watching.look()
        self.assertEqual([], targets)

    def test_a_deployment_is_one_server(self):
        stack = self.created(
            deployments.template(resources={'config': triggers.CONFIG})
        )
        self.operate(stack, deadline=600)
        (head,) = self.door(stack).history(fleets.Filter())
        self.assertEqual(1, head.targets)

    def test_what_is_no_operation_is_refused(self):
        stack = self.fleet()
        for ordered, said in (
            ({'max_concurent': 3}, 'did you mean "max_concurrent"?'),
            ({'canary': 'some'}, 'canary must be a number'),
            ({'action': 'BAKCUP'}, 'did you mean "BACKUP"?'),
        ):
            self.assertIn(said, self.refused(stack, **ordered))
        # Servers start none unless the template lets them.
        server = signallers.Signaller(user_id='s', is_of_project=False)
        self.assertIn('trigger_by_servers', self.refused(stack, server))

    def test_nothing_is_one_if_an_output_has_that_name(self):
        config = {
            'type': 'OS::Heat::SoftwareConfig',
            'properties': {'outputs': [{'name': 'operate'}]},
        }
        stack = self.created(
            deployments.template(resources={'config': config})
        )
        self.assertIn('an output of that name', self.refused(stack))
