# SPDX-License-Identifier: Apache-2.0
"""What Heat's API does, done in this process."""

import inspect

from oslo_config import cfg

from heat_plugins.engine.database import in_process
from tests.unit import heat_fixture
from tests.unit.resources import deployments


class ClientTest(deployments.DeploymentTestCase):
    def test_it_takes_the_place_of_heats_client(self):
        for name, ours in vars(in_process.Client).items():
            heats = getattr(heat_fixture.Rpc, name, None)
            if heats is not None and not name.startswith('_'):
                self.assertEqual(
                    list(inspect.signature(heats).parameters),
                    list(inspect.signature(ours).parameters),
                    name,
                )

    def test_no_deployment_asks_by_rpc(self):
        stack = self.created(
            deployments.template(actions=deployments.ALL_ACTIONS)
        )
        self.update(
            stack,
            deployments.template(actions=deployments.ALL_ACTIONS, name='x'),
        )
        self.heat.rpc.calls.clear()
        self.finish(self.heat.start(stack['deployment'].delete))
        self.assertEqual([], self.heat.rpc.calls)


class LimitTest(deployments.DeploymentTestCase):
    def limit(self, option, limit):
        cfg.CONF.set_override(option, limit)
        self.addCleanup(cfg.CONF.clear_override, option)

    def test_no_project_has_more_deployments_than_it_may(self):
        self.limit('max_software_deployments_per_tenant', 1)
        stack = self.created(name='first')
        _, reason = self.fails(deployments.template(), {})
        self.assertIn('max_software_deployments_per_tenant', reason)
        # An action after the first makes none.
        self.update(stack, deployments.template(name='x'))
        self.delete(stack)

    def test_nor_more_configs(self):
        # One of the template, and one that is derived from it.
        self.limit('max_software_configs_per_tenant', 2)
        stack = self.created(name='first')
        self.limit('max_software_configs_per_tenant', 3)
        _, reason = self.fails(deployments.template(), {})
        self.assertIn('max_software_configs_per_tenant', reason)
        self.update(stack, deployments.template(name='x'))
        self.limit('max_software_configs_per_tenant', -1)
        self.created(name='unlimited')

    def test_many_that_are_made_together_are_counted_once(self):
        self.limit('max_software_configs_per_tenant', 100)
        service = in_process.Service()
        counted = []

        def count(context):
            counted.append(self.now)
            return 98

        self.patch(service, 'count_software_config', count)
        service.check_room(self.heat.context, 1)
        service.check_room(self.heat.context, 1)
        self.assertEqual(1, len(counted))
        # Who seems to be one too many is counted anew, and may be let in.
        service.check_room(self.heat.context, 1)
        self.assertEqual(2, len(counted))
        self.now += 2
        service.check_room(self.heat.context, 1)
        self.assertEqual(3, len(counted))

    def test_what_makes_a_deployment_reads_nothing_back(self):
        self.created()
        ours = in_process.Service()
        (row,) = self.deployment_rows()
        ours.count_software_deployment(self.heat.context)
        values = {
            'server_id': 'nobody',
            'config_id': row.config_id,
            'input_values': {},
            'action': 'CREATE',
            'status': 'COMPLETE',
            'status_reason': '',
            'stack_user_project_id': None,
        }
        with self.counting_queries() as statements:
            ours.create_software_deployment(self.heat.context, **values)
        # What is told of a server that no stack has is one more question.
        self.assertEqual(
            ['SELECT', 'INSERT', 'SELECT'],
            [each.split()[0] for each in statements],
        )
