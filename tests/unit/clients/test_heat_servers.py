# SPDX-License-Identifier: Apache-2.0
"""The servers of stacks over REST, with answers as Heat gives them."""

from heat_plugins import errors
from heat_plugins.clients import heat_plans
from heat_plugins.plans.deploy import plan_stacks
from tests.unit.clients import test_heat

resource = test_heat.resource


class HeatServersTest(test_heat.HeatCase):
    CLIENT = heat_plans.PlanStacks

    def answer(self, asked, body=None, status=200):
        super().answer(f'GET {asked}', body, status)

    def stack(self, name, stack_id=None, **more):
        found = {'id': stack_id or name, 'stack_name': name, **more}
        body = {'stack': {**found, 'stack_status': 'CREATE_COMPLETE'}}
        for query in ('', '?resolve_outputs=false'):
            self.answer(f'/stacks/{stack_id or name}{query}', body)

    def attributes(self, path, **found):
        self.answer(path, {'resource': {'attributes': found}})

    def test_an_output_of_a_stack(self):
        outputs = [
            {'output_key': 'other', 'output_value': 1},
            {'output_key': 'hosts', 'output_value': {'a': 'b'}},
            {'output_key': 'bad', 'output_value': None, 'output_error': 'why'},
        ]
        self.stack('shop', outputs=outputs)
        assert self.heat.output('shop', 'hosts') == {'a': 'b'}
        assert self.heat.output('shop', 'nope') is None
        call = (self.heat.output, 'shop', 'bad')
        assert 'why' in str(self.assertRaises(errors.Invalid, *call))

    def test_servers_are_found_in_nested_stacks_too(self):
        self.stack('shop', 'root')
        self.stack('shop')
        self.wire.answers['GET /stacks/shop'][1]['stack']['id'] = 'root'
        self.stack('deep', 'nested')
        self.answer(
            '/stacks/shop/root/resources?nested_depth=50',
            {
                'resources': [
                    resource('Tier', 'tier.yaml', 'root', 'nested'),
                    resource('web', 'OS::TripleO::WebServer', 'nested'),
                    resource('node', 'OS::Heat::DeployedServer', 'root'),
                    resource('net', 'OS::Neutron::Net', 'root'),
                ]
            },
        )
        self.attributes(
            '/stacks/deep/nested/resources/web',
            name='web-0',
            addresses={'private': [{'addr': '10.0.0.7', 'version': 4}]},
        )
        self.attributes('/stacks/shop/root/resources/node', name='node')
        assert self.heat.servers('shop') == [
            plan_stacks.StackServer(
                path=('Tier', 'web'), name='web-0', address='10.0.0.7'
            )
        ]

    def test_the_owners_choice_then_a_floating_one_then_ipv4(self):
        six = {'addr': '2001:db8::1', 'version': 6}
        four = {'addr': '10.0.0.1', 'version': 4}
        floating = {'addr': '192.0.2.1', 'version': 4}
        floating['OS-EXT-IPS:type'] = 'floating'
        for every, own, wanted in (
            ([floating], '198.51.100.1', '198.51.100.1'),
            ([six, four, floating], '', '192.0.2.1'),
            ([six, four], '', '10.0.0.1'),
            ([six], '', '2001:db8::1'),
            ([], '', ''),
        ):
            attributes = {'accessIPv4': own, 'addresses': {'net': every}}
            assert heat_plans.address(attributes) == wanted
