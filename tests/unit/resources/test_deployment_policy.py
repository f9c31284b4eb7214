# SPDX-License-Identifier: Apache-2.0
"""Servers that take deployments of their own stack only."""

from tests.unit import heat_fixture
from tests.unit.resources import deployments

POLICY = 'deployment_policy'


def server(policy=None):
    whole = deployments.template()
    alone = whole['resources']['server']
    alone['metadata'] = {POLICY: policy} if policy else {}
    return {**whole, 'resources': {'server': alone}}


class PolicyTest(deployments.DeploymentTestCase):
    def other(self, policy=None, name='servers'):
        """Make a stack that has but a server; return that and its id."""
        stack = self.heat.create(server(policy), name=name)
        return stack, stack['server'].resource_id

    def theirs(self, server_id, **properties):
        return deployments.template(
            server=server_id,
            resources={
                'server': None,
                'config': deployments.component(
                    (['CREATE', 'UPDATE', 'DELETE'], 'a'), (['BACKUP'], 'b')
                ),
            },
            **properties,
        )

    def test_a_closed_server_takes_nothing_from_another_stack(self):
        _, server_id = self.other('SAME_STACK')
        # A resource with its ID opens nothing, as one has it by `external_id`.
        mine = self.heat.create(server(), name='mine')
        mine['server'].resource_id_set(server_id)
        stack, reason = self.fails(self.theirs(server_id), {})
        assert (
            f'Server {server_id} accepts only deployments of its own stack: '
            'deployment_policy is SAME_STACK in the metadata of resource '
            'server of stack servers'
        ) in reason
        assert self.deployment_rows() == []
        self.delete(stack)
        self.assert_nothing_left()
        # One of another project closes nothing.
        opened, server_id = self.other(name='opened')
        owner = self.heat.context
        self.heat.context = heat_fixture.new_context(
            project_id='f' * 32, user_id='e' * 32
        )
        stranger = self.heat.create(server('SAME_STACK'), name='stranger')
        stranger['server'].resource_id_set(server_id)
        self.heat.context = owner
        stack = self.created(self.theirs(server_id))
        assert self.actions() == ['CREATE']
        # One that is closed later runs nothing more of others.
        self.update(opened, server('SAME_STACK'))
        said = 'only deployments of its own stack'
        stack['deployment'].signal({'trigger': 'BACKUP'})
        assert said in str(deployments.events(stack))
        again = self.heat.load(stack)
        changed = self.theirs(server_id, name='x')
        task = self.heat.begin(again, 'UPDATE', changed)
        assert said in self.failed(task, again)
        # It goes all the same, and its DELETE is not run.
        self.delete(stack)
        assert self.actions() == ['CREATE']
        self.assert_nothing_left()
