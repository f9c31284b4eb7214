# SPDX-License-Identifier: Apache-2.0
"""Finding deployments in stacks and in those nested in them."""

import dataclasses

import testtools

from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs.targets import selecting
from tests.unit.runs import fake_heat


class FindTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.heat.add_deployment(self.stack)
        self.nested = self.heat.add_stack('shop-tier', parent=self.stack.id)
        self.heat.add_resource(
            self.stack,
            'tier.one',
            'OS::Heat::SoftwareDeploymentGroup',
            self.nested.id,
            self.nested.id,
        )
        self.heat.add_deployment(self.nested, '0', 'server-2')
        self.heat.add_deployment(self.nested, '1', 'server-3')

    def find(self, stack='shop', resource=None):
        wanted = ordering.Wanted(
            stacks=(stack,), resources=(resource,) if resource else ()
        )
        return selecting.Chooser(self.heat).deployments(wanted)

    def paths(self, resource=None, stack='shop'):
        return [one.resource for one in self.find(stack, resource)]

    def test_by_path_through_nested_stacks(self):
        (target,) = self.find('shop', 'tier.one.1')
        assert target.server_id == 'server-3'
        assert self.stack.id == target.stack_id

    def test_a_nested_stack_leads_to_the_root(self):
        assert self.paths() == self.paths(stack=self.nested.id)
        (target,) = self.find(self.nested.id, 'tier.one.0')
        assert self.stack.id == target.stack_id
        # A type of the stack's own environment may be a deployment.
        kind = 'My::Deployment'
        self.heat.add_deployment(self.stack, 'own', 'server-4', kind=kind)
        assert self.paths('own') == ['own']

    def test_what_is_not_there(self):
        for stack, resource in (
            ('shop', 'nothing'),
            ('shop', 'db_config'),
            ('of-another-project', 'db'),
        ):
            self.assertRaises(errors.NotFound, self.find, stack, resource)
        exc = self.assertRaises(errors.NotFound, self.find, 'shpo')
        assert '; did you mean "shop"?' in str(exc)
        self.heat.failing = {'stack_names': errors.Denied('no', 403)}
        exc = self.assertRaises(errors.NotFound, self.find, 'shpo')
        assert 'no stack shpo' in str(exc)

    def test_actions_and_their_inputs(self):
        (target,) = self.find('shop', 'db')
        assert list(target.actions) == ['CREATE', 'BACKUP', 'FAIL/OVER']
        assert target.offered == ['BACKUP', 'FAIL/OVER']
        assert target.tool('FAIL/OVER') == 'ansible'
        assert list(target.inputs) == fake_heat.INPUTS
        assert list(target.declared) == fake_heat.INPUTS
        # What the stack gives undeclared.
        self.heat.add_deployment(
            self.stack, 'other', inputs=[{'name': 'level'}]
        )
        (target,) = self.find('shop', 'other')
        names = [one['name'] for one in target.declared]
        assert names == ['level', 'password']

    def test_time_limits_are_the_templates(self):
        self.stack = self.heat.add_stack('timed', limit='300', key='******')
        for name, properties, found in (
            ('own', {'timeout': 7, 'delivery_timeout': '9'}, (7, 9)),
            ('given', {'timeout': {'get_param': 'limit'}}, (300, None)),
            ('none', {}, (None, None)),
            # What only Heat can work out: as the server was told.
            ('joined', {'timeout': {'str_split': [',', '5', 0]}}, (60, None)),
            ('hidden', {'timeout': {'get_param': 'key'}}, (60, None)),
        ):
            row = self.heat.add_deployment(
                self.stack, name, properties=properties
            )
            config = self.heat.configs[row.config_id]
            config.inputs.append(
                {'name': 'deploy_signal_timeout', 'value': '60'}
            )
            (target,) = self.find('timed', name)
            assert found == (target.timeout, target.delivery_timeout), name

    def test_members_of_a_group_that_has_no_resources(self):
        servers = {'a': 'server-2', 'b.c': 'server-3'}
        members = self.heat.add_group(
            self.stack, 'fleet', servers, properties={'timeout': 77}
        )
        assert self.paths('fleet.b.c') == ['fleet.b.c']
        (target,) = self.find('shop', members['a'].id)
        assert (target.resource, target.timeout) == ('fleet.a', 77)
        assert target.server_id == 'server-2'
        # Its config was withdrawn from its server.
        row = members['a']
        self.heat.rows[row.id] = dataclasses.replace(row, server_id='group')
        self.heat.attributes['fleet', 'members']['a']['config'] = None
        assert self.paths('fleet') == ['fleet.b.c']
