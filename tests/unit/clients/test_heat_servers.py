# SPDX-License-Identifier: Apache-2.0
"""The servers of stacks over REST, with answers as Heat gives them."""

import testtools

from heat_plugins import errors
from heat_plugins.clients import heat_plans
from heat_plugins.plans.deploy import plan_stacks
from tests.unit.clients import test_heat

URL = test_heat.URL


class HeatServersTest(test_heat.HeatCase):
    CLIENT = heat_plans.PlanStacks

    def answer(self, asked, body=None, status=200):
        super().answer(f'GET {asked}', body, status)

    def stack(self, name, stack_id=None, **more):
        found = {
            'id': stack_id or name,
            'stack_name': name,
            'stack_status': 'CREATE_COMPLETE',
            **more,
        }
        body = {'stack': found}
        for query in ('', '?resolve_outputs=false'):
            self.answer(f'/stacks/{stack_id or name}{query}', body)

    def resource(self, name, type_, stack, nested=None):
        links = [{'rel': 'stack', 'href': f'{URL}/stacks/x/{stack}'}]
        if nested:
            links.append({'rel': 'nested', 'href': f'{URL}/stacks/y/{nested}'})
        return {
            'resource_name': name,
            'resource_type': type_,
            'physical_resource_id': f'id-{name}',
            'resource_status': 'CREATE_COMPLETE',
            'links': links,
        }

    def attributes(self, path, **found):
        self.answer(path, {'resource': {'attributes': found}})

    def test_an_output_of_a_stack(self):
        outputs = [
            {'output_key': 'other', 'output_value': 1},
            {'output_key': 'hosts', 'output_value': {'a': 'b'}},
            {'output_key': 'bad', 'output_value': None, 'output_error': 'why'},
        ]
        self.stack('shop', outputs=outputs)
        self.assertEqual({'a': 'b'}, self.heat.output('shop', 'hosts'))
        self.assertIsNone(self.heat.output('shop', 'nope'))
        error = self.assertRaises(
            errors.Invalid, self.heat.output, 'shop', 'bad'
        )
        self.assertIn('why', str(error))

    def test_servers_are_found_in_nested_stacks_too(self):
        self.stack('shop', 'root')
        self.stack('shop')
        self.wire.answers['GET /stacks/shop'][1]['stack']['id'] = 'root'
        self.stack('deep', 'nested')
        self.answer(
            '/stacks/shop/root/resources?nested_depth=50',
            {
                'resources': [
                    self.resource('Tier', 'tier.yaml', 'root', 'nested'),
                    self.resource('web', 'OS::TripleO::WebServer', 'nested'),
                    self.resource('node', 'OS::Heat::DeployedServer', 'root'),
                    self.resource('net', 'OS::Neutron::Net', 'root'),
                ]
            },
        )
        self.attributes(
            '/stacks/deep/nested/resources/web',
            name='web-0',
            addresses={'private': [{'addr': '10.0.0.7', 'version': 4}]},
        )
        self.attributes('/stacks/shop/root/resources/node', name='node')
        self.assertEqual(
            [
                plan_stacks.StackServer(
                    path=('Tier', 'web'), name='web-0', address='10.0.0.7'
                )
            ],
            self.heat.servers('shop'),
        )


class AddressTest(testtools.TestCase):
    def test_the_owners_choice_then_a_floating_one_then_ipv4(self):
        six = {'addr': '2001:db8::1', 'version': 6}
        four = {'addr': '10.0.0.1', 'version': 4}
        floating = {
            'addr': '192.0.2.1',
            'version': 4,
            'OS-EXT-IPS:type': 'floating',
        }
        for every, own, wanted in (
            ([floating], '198.51.100.1', '198.51.100.1'),
            ([six, four, floating], '', '192.0.2.1'),
            ([six, four], '', '10.0.0.1'),
            ([six], '', '2001:db8::1'),
            ([], '', ''),
        ):
            attributes = {'accessIPv4': own, 'addresses': {'net': every}}
            self.assertEqual(wanted, heat_plans.address(attributes))
