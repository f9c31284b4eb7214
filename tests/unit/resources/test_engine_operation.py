# SPDX-License-Identifier: Apache-2.0
"""An engine advances an operation on the deployments of a stack."""

import json
import types

from heat.engine import stack as parser

from heat_plugins.engine.database import own_heat
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.runs import orchestration
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation as operations
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from tests.unit import heat_fixture
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers


class OperationTest(test_deployment_triggers.TriggerTestCase):
    def setUp(self):
        super().setUp()
        self.addCleanup(fleet_watching._advanced.clear)
        # Heat's fake of Keystone makes trusts for no project.
        self.patch(
            parser.Stack,
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        #: What was to be done in threads.
        self.threads = []
        self.patch(
            fleet_watching,
            'threading',
            types.SimpleNamespace(
                Thread=lambda target, args, **more: types.SimpleNamespace(
                    start=lambda: self.threads.append((target, args))
                )
            ),
        )

    def door(self, stack, who='ann'):
        return fleets.Fleets.with_own_key(
            own_heat.Heat(self.heat.rpc, stack.context),
            self.swift.store(deployments.PROJECT),
            who=who,
        )

    def begin(self, stack):
        """Record an operation, as a command does that dies at once."""
        heat = own_heat.Heat(self.heat.rpc, stack.context)
        row = heat.deployment(stack['deployment'].resource_id)
        config = heat.config(row.config_id)
        target = _target(heat, stack, row, config)
        chosen = fleet_targets.Chosen(
            targets=[target], left_out=(), variants=('',)
        )
        order = starting.Order(action='BACKUP', inputs={'level': 9})
        advancer = self.door(stack).create(
            chosen, limit_values.Limits(), order
        )
        advancer.release()
        return advancer.operation.id

    def step_on(self, answer):
        """Let the engine go on, and the server answer meanwhile."""
        ((target, args),) = self.threads

        def sleep(seconds):
            answer()

        self.patch(
            fleet_watching,
            '_step_on',
            lambda advancer, step_on=fleet_watching._step_on: step_on(
                advancer, sleep
            ),
        )
        target(*args)

    def test_it_gives_servers_their_runs_and_takes_their_results(self):
        stack = self.stack()
        operation_id = self.begin(stack)
        self.assertEqual([], self.given(stack))
        self.assertEqual([operation_id], fleet_watching.look())
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual('9', given['level'])
        answers = []

        def answer():
            if not answers:
                body = json.dumps({'deploy_status_code': 0, 'size': '12 MB'})
                answers.append(
                    self.swift.put_signed(
                        given['deploy_signal_id'], body.encode()
                    )
                )

        self.step_on(answer)
        self.assertEqual([201], answers)
        found = self.door(stack).show(operation_id)
        self.assertIs(operations.Phase.COMPLETE, found.control.phase)
        self.assertEqual('12 MB', found.attempts[0].outputs['size'])
        # Nothing is left of it in Heat.
        self.assertEqual([], self.given(stack))
        self.assertEqual([], fleet_watching.registered(stack.context))
        self.assertEqual([], fleet_watching.look())


def _target(heat, stack, row, config):
    """Return the deployment of a stack as a target."""
    return targets.Target(
        root=heat.stack(stack.id),
        path='deployment',
        resource=orchestration.Resource(
            name='deployment',
            type='OS::Heat::SoftwareDeployment',
            physical_id=row.id,
            status='CREATE_COMPLETE',
            stack_id=stack.id,
        ),
        deployment=row,
        config=config,
        declared=config.inputs,
    )
