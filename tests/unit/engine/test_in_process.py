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
    def test_no_project_has_more_of_them_than_it_may(self):
        # A deployment has one config of the template, and a derived one.
        for what, first, second in (('deployments', 1, 1), ('configs', 2, 3)):
            self.heat.database.empty()
            option = f'max_software_{what}_per_tenant'
            cfg.CONF.set_override(option, first)
            stack = self.created(name=what)
            cfg.CONF.set_override(option, second)
            _, reason = self.fails(deployments.template(), {})
            assert option in reason
            # An action after the first makes none.
            self.update(stack, deployments.template(name='x'))
            cfg.CONF.set_override(option, -1)
            self.created(name=f'unlimited-{what}')
