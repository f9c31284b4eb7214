# SPDX-License-Identifier: Apache-2.0
"""Servers that take deployments of their own stack only."""

from tests.unit import heat_fixture
from tests.unit.resources import deployments

POLICY = 'deployment_policy'


def server(policy=None):
    """Return a template of a server alone."""
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'server': {
                'type': 'OS::Heat::DeployedServer',
                'properties': {
                    'software_config_transport': 'POLL_SERVER_HEAT'
                },
                'metadata': {POLICY: policy} if policy else {},
            }
        },
    }


class PolicyTest(deployments.DeploymentTestCase):
    def other(self, policy=None):
        """Make a stack that has but a server; return that and its id."""
        stack = self.heat.create(server(policy), name='servers')
        return stack, stack['server'].resource_id

    def theirs(self, server_id, **properties):
        """Return a template with a deployment to a server of another."""
        return deployments.template(
            server=server_id, resources={'server': None}, **properties
        )

    def own(self, policy):
        """Return a template with a server and a deployment to it."""
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        whole['resources']['server']['metadata'] = {POLICY: policy}
        return whole

    def refused(self, whole):
        """Create a stack whose deployment fails; return the reason."""
        stack = self.heat.stack(whole)
        task = self.heat.begin(stack, 'CREATE')
        reason = self.failed(task, stack)
        assert self.handed == []
        assert self.deployment_rows() == []
        return stack, reason

    def test_a_closed_server_takes_nothing_from_another_stack(self):
        _, server_id = self.other('SAME_STACK')
        stack, reason = self.refused(self.theirs(server_id))
        assert (
            f'Server {server_id} accepts only deployments of its own stack: '
            'deployment_policy is SAME_STACK in the metadata of resource '
            'server of stack servers'
        ) in reason
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_server_that_is_closed_later_runs_nothing_of_others_more(self):
        stack, server_id = self.other()
        whole = self.theirs(server_id, actions=deployments.ALL_ACTIONS)
        other = self.created(whole, name='stack')
        assert len(self.handed) == 1
        self.update(stack, server('SAME_STACK'))
        again = self.heat.load(other)
        changed = self.theirs(
            server_id, actions=deployments.ALL_ACTIONS, name='x'
        )
        task = self.heat.begin(again, 'UPDATE', changed)
        assert 'only deployments of its own stack' in self.failed(task, again)
        assert len(self.handed) == 1
        # It goes all the same, and its DELETE is not run.
        self.delete(other)
        assert len(self.handed) == 1
        self.assert_nothing_left()

    def test_a_resource_with_the_servers_id_opens_nothing(self):
        # As one has it by `external_id`.
        mine = self.heat.create(server(), name='mine')
        _, server_id = self.other('SAME_STACK')
        mine['server'].resource_id_set(server_id)
        _, reason = self.refused(self.theirs(server_id))
        assert 'only deployments of its own stack' in reason

    def test_a_resource_of_another_project_closes_nothing(self):
        stack, server_id = self.other()
        theirs = self.heat.context
        self.heat.context = heat_fixture.new_context(
            project_id='f' * 32, user_id='e' * 32
        )
        stranger = self.heat.create(server('SAME_STACK'), name='stranger')
        stranger['server'].resource_id_set(server_id)
        self.heat.context = theirs
        self.created(self.theirs(server_id), name='stack')
        assert len(self.handed) == 1
        assert '_'.join(stack.state) == 'CREATE_COMPLETE'

    def test_a_trigger_from_another_stack_is_refused(self):
        stack, server_id = self.other()
        whole = self.theirs(server_id)
        whole['resources']['config'] = deployments.component(
            (['CREATE'], 'a'), (['BACKUP'], 'b')
        )
        other = self.created(whole, name='stack')
        self.update(stack, server('SAME_STACK'))
        other['deployment'].signal({'trigger': 'BACKUP'})
        assert 'only deployments of its own stack' in str(
            deployments.events(other)
        )
        assert len(self.handed) == 1
