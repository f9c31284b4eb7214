# SPDX-License-Identifier: Apache-2.0
"""Finding deployments in stacks and in those nested in them."""

import dataclasses

import testtools

from heat_plugins import errors
from tests.unit.runs import base
from tests.unit.runs import fake_heat


class FindTest(base.RunsTestCase):
    def setUp(self):
        super().setUp()
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

    def paths(self, resource=None, stack='shop'):
        return [one.resource for one in self.runs.find(stack, resource)]

    def test_by_path_through_nested_stacks(self):
        (target,) = self.runs.find('shop', 'tier.one.1')
        self.assertEqual('server-3', target.server_id)
        self.assertEqual(self.stack.id, target.stack_id)

    def test_by_physical_id(self):
        self.assertEqual(['db'], self.paths(self.row.id))

    def test_what_holds_several_stands_for_all_of_them(self):
        self.assertEqual(['tier.one.0', 'tier.one.1'], self.paths('tier.one'))

    def test_a_nested_stack_leads_to_the_root(self):
        (target,) = self.runs.find(self.nested.id, '0')
        self.assertEqual(self.stack.id, target.stack_id)
        self.assertEqual('tier.one.0', target.resource)

    def test_a_type_of_the_stacks_own_environment(self):
        self.heat.add_deployment(
            self.stack, 'own', 'server-4', kind='My::Deployment'
        )
        self.assertEqual(['own'], self.paths('own'))

    def test_what_is_not_there(self):
        for stack, resource in (
            ('shop', 'nothing'),
            ('shop', 'db_config'),
            ('of-another-project', 'db'),
        ):
            self.assertRaises(errors.NotFound, self.runs.find, stack, resource)

    def test_what_may_be_meant_is_named(self):
        for find, stack, resource, meant in (
            (self.runs.find, 'shpo', None, 'shop'),
            (self.runs.find, 'shop', 'db_cofnig', 'db_config'),
            (self.server, 'shop', 'db_cofnig', 'db_config'),
        ):
            exc = self.assertRaises(errors.NotFound, find, stack, resource)
            self.assertIn(f'; did you mean "{meant}"?', str(exc))

    def test_a_heat_that_lists_no_stacks_still_says_which_is_not_there(self):
        self.heat.failing = {'stack_names': errors.Denied('no', 403)}
        exc = self.assertRaises(errors.NotFound, self.runs.find, 'shpo')
        self.assertIn('no stack shpo', str(exc))

    def server(self, stack, resource):
        config = self.heat.add_config()
        return self.runs.server(stack, resource, config)

    def test_actions_and_their_inputs(self):
        (target,) = self.runs.find('shop', 'db')
        self.assertEqual(
            ['CREATE', 'BACKUP', 'FAIL/OVER'], list(target.actions)
        )
        self.assertEqual(['BACKUP', 'FAIL/OVER'], target.offered)
        self.assertEqual('ansible', target.tool('FAIL/OVER'))
        self.assertEqual(fake_heat.INPUTS, list(target.inputs))

    def test_types_are_the_templates_where_it_can_be_read(self):
        (target,) = self.runs.find('shop', 'db')
        self.assertEqual(fake_heat.INPUTS, list(target.declared))

    def test_so_are_those_that_the_stack_gives_undeclared(self):
        self.heat.add_deployment(
            self.stack, 'other', inputs=[{'name': 'level'}]
        )
        (target,) = self.runs.find('shop', 'other')
        names = [one['name'] for one in target.declared]
        self.assertEqual(['level', 'password'], names)

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
            (target,) = self.runs.find('timed', name)
            self.assertEqual(
                found, (target.timeout, target.delivery_timeout), name
            )

    def test_without_the_template_the_servers_config_has_to_do(self):
        self.heat.failing = {'template': errors.Denied('no')}
        (target,) = self.runs.find('shop', 'db')
        self.assertEqual(target.config.inputs, target.declared)


class OneGroupTest(base.RunsTestCase):
    """Members of a group for which Heat has no resources."""

    def setUp(self):
        super().setUp()
        self.members = self.heat.add_group(
            self.stack,
            'fleet',
            {'a': 'server-2', 'b.c': 'server-3'},
            properties={'timeout': 77},
        )
        self.states = self.heat.attributes['fleet', 'members']

    def paths(self, resource=None):
        return [one.resource for one in self.runs.find('shop', resource)]

    def test_the_group_stands_for_all_of_them(self):
        self.assertEqual(['fleet.a', 'fleet.b.c'], self.paths('fleet'))
        self.assertEqual(['db', 'fleet.a', 'fleet.b.c'], self.paths())

    def test_each_has_a_path_and_an_id(self):
        self.assertEqual(['fleet.b.c'], self.paths('fleet.b.c'))
        (target,) = self.runs.find('shop', self.members['a'].id)
        self.assertEqual('server-2', target.server_id)

    def test_what_the_template_says_of_the_group_holds_for_each(self):
        (target,) = self.runs.find('shop', 'fleet.a')
        self.assertEqual(77, target.timeout)

    def test_not_one_whose_config_was_withdrawn_from_its_server(self):
        row = self.members['a']
        self.heat.rows[row.id] = dataclasses.replace(row, server_id='group')
        self.states['a']['config'] = None
        self.assertEqual(['fleet.b.c'], self.paths('fleet'))

    def test_several_are_found_in_one_look_at_the_stack(self):
        self.heat.asked.clear()
        found = self.runs.find('shop', 'fleet.b.c', 'db', 'fleet')
        self.assertEqual(
            ['fleet.b.c', 'db', 'fleet.a'], [one.resource for one in found]
        )
        asked = [one.partition(' ')[0] for one in self.heat.asked]
        self.assertEqual(1, asked.count('resources'))
        self.assertEqual(1, asked.count('stack'))
        with testtools.ExpectedException(errors.NotFound, '.*no resource x;'):
            self.runs.find('shop', 'db', 'x')

    def test_a_member_that_names_its_config_costs_one_request(self):
        self.heat.asked.clear()
        self.assertEqual(['fleet.a', 'fleet.b.c'], self.paths('fleet'))
        asked = [one.partition(' ')[0] for one in self.heat.asked]
        self.assertNotIn('deployment', asked)

    def test_an_engine_of_an_earlier_release_does_not_name_them(self):
        for state in self.states.values():
            del state['config']
        self.assertEqual(['fleet.a', 'fleet.b.c'], self.paths('fleet'))
        asked = [one.partition(' ')[0] for one in self.heat.asked]
        self.assertEqual(2, asked.count('deployment'))
