# SPDX-License-Identifier: Apache-2.0
"""Heat's stacks and their servers, with answers as Heat gives them."""

import json

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import heat_plans
from heat_plugins.plans.content import references
from heat_plugins.plans.deploy import plan_stacks
from tests.unit.clients import test_heat

URL = test_heat.URL
STACK = heat_values.Stack(id='id-1', name='shop', status='CREATE_COMPLETE')
CONTENT = references.Resolved(
    template='a: ü', environments=('env.yaml',), files={'env.yaml': 'b'}
)
FOUND = {
    'id': 'id-1',
    'stack_name': 'shop',
    'stack_status': 'CREATE_COMPLETE',
    'stack_status_reason': 'done',
    'tags': ['a'],
    'creation_time': '2026-01-01T00:00:00Z',
    'updated_time': None,
}


class HeatStacksTest(test_heat.HeatCase):
    CLIENT = heat_plans.PlanStacks

    def sent(self, asked):
        return json.loads(self.wire.sent[asked].body)

    def test_no_stack_and_a_deleted_one_are_the_same(self):
        asked = 'GET /stacks/shop?resolve_outputs=false'
        self.answer(asked, {}, 404)
        assert self.heat.find('shop') is None
        # One that cannot be deleted is there.
        for status in ('DELETE_COMPLETE', 'DELETE_FAILED'):
            self.answer(asked, {'stack': FOUND | {'stack_status': status}})
            found = self.heat.find('shop')
            assert (found is not None) == (status == 'DELETE_FAILED')
        shown = found.failed, found.changed_at, found.tags
        assert shown == (True, '2026-01-01T00:00:00Z', ('a',))

    def test_all_of_a_plan_is_sent_to_make_its_stack(self):
        self.answer('POST /stacks', {'stack': {'id': 'id-1'}}, 201)
        made = self.heat.create('shop', CONTENT, tags=('a', 'b'), timeout=5)
        assert made == 'id-1'
        more = {'stack_name': 'shop', 'tags': 'a,b', 'timeout_mins': 5}
        content = {'template': 'a: ü', 'files': {'env.yaml': 'b'}}
        content['environment_files'] = ['env.yaml']
        assert self.sent('POST /stacks') == content | more
        # An update keeps nothing of what was there.
        asked = 'PUT /stacks/shop/id-1'
        self.answer(asked, None, 202)
        self.heat.replace(STACK, CONTENT, tags=(), timeout=None)
        assert self.sent(asked) == content
        # Heat counts the bytes, so none is given away.
        body = self.wire.sent[asked].body
        assert '"template":"a: ü",'.encode() in body
        # A cancel rolls nothing back.
        asked = 'POST /stacks/shop/id-1/actions'
        self.answer(asked, None, 202)
        self.heat.cancel(STACK)
        assert self.sent(asked) == {'cancel_without_rollback': None}

    def test_heat_s_name_of_an_error_is_passed_on(self):
        body = {'error': {'message': 'Too many.', 'type': 'RequestLimit'}}
        asked = 'POST /validate?show_nested=true&ignore_errors=99001'
        self.answer(asked, body, 400)
        call = (self.heat.validate, CONTENT)
        exc = self.assertRaises(errors.ServiceError, *call)
        assert 'Too many.' in str(exc)
        assert exc.kind == 'RequestLimit'

    def test_a_preview_names_a_new_stack_and_says_what_an_update_changes(self):
        self.answer('POST /stacks/preview', {'stack': {'resources': []}})
        self.heat.preview('shop', CONTENT)
        assert self.sent('POST /stacks/preview')['stack_name'] == 'shop'
        kinds = ('unchanged', 'updated', 'replaced', 'added', 'deleted')
        changes = {kind: [] for kind in kinds}
        changes['added'] = [{'resource_name': 'a'}]
        asked = 'PUT /stacks/shop/id-1/preview'
        self.answer(asked, {'resource_changes': changes})
        found = self.heat.preview_replace(STACK, CONTENT)
        assert (found['added'], found['deleted']) == (('a',), ())

    def test_events_after_another_nested_ones_included(self):
        row = test_heat.resource('server', 'x', 'id-2')
        event = {**row, 'id': 'e2', 'event_time': '2026-01-01T00:00:00Z'}
        path = 'GET /stacks/shop/id-1/events?sort_dir='
        asked = f'{path}asc&limit=9&marker=e1&nested_depth=50'
        self.answer(asked, {'events': [event]})
        (found,) = self.heat.events(STACK, 'e1', 9)
        assert found.place == 'id-2/server'
        assert not found.of_stack
        asked = f'{path}asc&limit=9&nested_depth=50'
        self.answer(asked, {'events': [event, event]})
        assert len(self.heat.events(STACK, None, 9)) == 2
        # The last one is asked for alone.
        for rows, last in (([{'id': 'e9'}], 'e9'), ([], None)):
            asked = f'{path}desc&limit=1&nested_depth=50'
            self.answer(asked, {'events': rows})
            assert self.heat.last_event(STACK) == last


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
        rows = (
            ('Tier', 'tier.yaml', 'root', 'nested'),
            ('web', 'OS::TripleO::WebServer', 'nested'),
            ('node', 'OS::Heat::DeployedServer', 'root'),
            ('net', 'OS::Neutron::Net', 'root'),
        )
        self.answer(
            '/stacks/shop/root/resources?nested_depth=50',
            {'resources': [test_heat.resource(*row) for row in rows]},
        )
        self.attributes(
            '/stacks/deep/nested/resources/web',
            name='web-0',
            addresses={'private': [{'addr': '10.0.0.7', 'version': 4}]},
        )
        self.attributes('/stacks/shop/root/resources/node', name='node')
        (found,) = self.heat.servers('shop')
        assert found == plan_stacks.StackServer(
            path=('Tier', 'web'), name='web-0', address='10.0.0.7'
        )

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
