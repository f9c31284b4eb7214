# SPDX-License-Identifier: Apache-2.0
"""What Heat's API does, done in this process."""

from oslo_config import cfg

from tests.unit.resources import deployments


class ClientTest(deployments.DeploymentTestCase):
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
        assert self.heat.rpc.calls == []


class LimitTest(deployments.DeploymentTestCase):
    def limit(self, option, limit):
        cfg.CONF.set_override(option, limit)
        self.addCleanup(cfg.CONF.clear_override, option)

    def test_no_project_has_more_deployments_than_it_may(self):
        self.limit('max_software_deployments_per_tenant', 1)
        stack = self.created(name='first')
        _, reason = self.fails(deployments.template(), {})
        assert 'max_software_deployments_per_tenant' in reason
        # An action after the first makes none.
        self.update(stack, deployments.template(name='x'))
        self.delete(stack)

    def test_nor_more_configs(self):
        # One of the template, and one that is derived from it.
        self.limit('max_software_configs_per_tenant', 2)
        stack = self.created(name='first')
        self.limit('max_software_configs_per_tenant', 3)
        _, reason = self.fails(deployments.template(), {})
        assert 'max_software_configs_per_tenant' in reason
        self.update(stack, deployments.template(name='x'))
        self.limit('max_software_configs_per_tenant', -1)
        self.created(name='unlimited')
