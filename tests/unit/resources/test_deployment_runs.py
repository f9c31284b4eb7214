# SPDX-License-Identifier: Apache-2.0
"""Runs of a deployment's actions end when its stack goes."""

from heat_plugins.runs import run as runs
from heat_plugins.runs.records import records
from tests.unit.resources import deployments


class StackGoesTest(deployments.DeploymentTestCase):
    def start_run(self, stack, **more):
        """Hand the server a run, as a command does."""
        rpc, context = self.heat.rpc, self.heat.context
        config = rpc.create_software_config(
            context,
            group='script',
            name='db-BACKUP',
            config='',
            inputs=[],
            outputs=[],
            options={},
        )
        deployment = stack['deployment']
        row = rpc.create_software_deployment(
            context,
            server_id=deployment.properties['server'],
            config_id=config['id'],
            action='BACKUP',
            status='IN_PROGRESS',
            status_reason='',
        )
        run = runs.Run(
            id='20270115T080000Z-00000000',
            stack_id=stack.id,
            stack_name=stack.name,
            resource='deployment',
            deployment_id=deployment.resource_id,
            server_id=deployment.properties['server'],
            action='BACKUP',
            state=runs.State.WAITING,
            reason='',
            started_at=1,
            started_by='ann',
            timeout=60,
            row_id=row['id'],
            config_id=config['id'],
        )
        found = records.Records(self.swift.store(context.project_id), stack.id)
        found.open(run.key)
        found.write(run)

    def test_a_run_that_waits_goes_with_its_stack(self):
        stack = self.created()
        self.start_run(stack)
        self.assertEqual(2, len(self.deployment_rows()))
        self.delete(stack)
        self.assert_nothing_left()

    def test_one_that_heat_has_no_more_is_no_matter(self):
        stack = self.created()
        self.start_run(stack)
        for row in self.deployment_rows():
            if row.id != stack['deployment'].resource_id:
                self.heat.rpc.delete_software_deployment(
                    self.heat.context, row.id
                )
        self.delete(stack)
        self.assert_nothing_left()
