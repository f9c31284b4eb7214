# SPDX-License-Identifier: Apache-2.0
"""Heat's stacks over REST, with answers as Heat gives them."""

import json

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import heat_plans
from heat_plugins.plans.content import references
from tests.unit.clients import test_heat

URL = test_heat.URL
STACK = heat_values.Stack(id='id-1', name='shop', status='CREATE_COMPLETE')
CONTENT = references.Resolved(
    template='a: ü',
    environments=('env.yaml',),
    files={'env.yaml': 'b'},
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

VALIDATE = '/validate?show_nested=true&ignore_errors=99001'


class HeatStacksTest(test_heat.HeatCase):
    CLIENT = heat_plans.PlanStacks

    def refuse(self, asked, status, message=''):
        self.answer(asked, {'error': {'message': message}}, status)

    def sent(self, asked):
        return json.loads(self.wire.sent[asked].body)

    def test_a_stack_by_its_name(self):
        self.answer('GET /stacks/shop?resolve_outputs=false', {'stack': FOUND})
        found = self.heat.find('shop')
        self.assertEqual('2026-01-01T00:00:00Z', found.changed_at)
        self.assertEqual(('a',), found.tags)

    def test_no_stack_and_a_deleted_one_are_the_same(self):
        asked = 'GET /stacks/shop?resolve_outputs=false'
        self.refuse(asked, 404)
        self.assertIsNone(self.heat.find('shop'))
        gone = {**FOUND, 'stack_status': 'DELETE_COMPLETE'}
        self.answer(asked, {'stack': gone})
        self.assertIsNone(self.heat.find('shop'))
        # One that cannot be deleted is there.
        self.answer(asked, {'stack': gone | {'stack_status': 'DELETE_FAILED'}})
        self.assertTrue(self.heat.find('shop').failed)

    def test_all_of_a_plan_is_sent_to_make_its_stack(self):
        self.answer('POST /stacks', {'stack': {'id': 'id-1'}}, 201)
        made = self.heat.create('shop', CONTENT, tags=('a', 'b'), timeout=5)
        self.assertEqual('id-1', made)
        self.assertEqual(
            {
                'stack_name': 'shop',
                'template': 'a: ü',
                'environment_files': ['env.yaml'],
                'files': {'env.yaml': 'b'},
                'tags': 'a,b',
                'timeout_mins': 5,
            },
            self.sent('POST /stacks'),
        )

    def test_an_update_keeps_nothing_of_what_was_there(self):
        self.answer('PUT /stacks/shop/id-1', None, 202)
        self.heat.replace(STACK, CONTENT, tags=(), timeout=None)
        self.assertEqual(
            {'template', 'environment_files', 'files'},
            set(self.sent('PUT /stacks/shop/id-1')),
        )
        # Heat counts the bytes, so none is given away.
        body = self.wire.sent['PUT /stacks/shop/id-1'].body
        self.assertIn('"template":"a: ü",'.encode(), body)

    def test_heat_s_name_of_an_error_is_passed_on(self):
        body = {'error': {'message': 'Too many.', 'type': 'RequestLimit'}}
        self.answer(f'POST {VALIDATE}', body, 400)
        exc = self.assertRaises(
            errors.ServiceError, self.heat.validate, CONTENT
        )
        self.assertIn('Too many.', str(exc))
        self.assertEqual('RequestLimit', exc.kind)

    def test_a_cancel_rolls_nothing_back(self):
        self.answer('POST /stacks/shop/id-1/actions', None, 202)
        self.heat.cancel(STACK)
        self.assertEqual(
            {'cancel_without_rollback': None},
            self.sent('POST /stacks/shop/id-1/actions'),
        )

    def test_a_preview_of_an_update_says_what_changes(self):
        kinds = ('unchanged', 'updated', 'replaced', 'added', 'deleted')
        changes = {kind: [] for kind in kinds}
        changes['added'] = [{'resource_name': 'a'}]
        self.answer(
            'PUT /stacks/shop/id-1/preview', {'resource_changes': changes}
        )
        found = self.heat.preview_replace(STACK, CONTENT)
        self.assertEqual(('a',), found['added'])
        self.assertEqual((), found['deleted'])

    def test_events_after_another_nested_ones_included(self):
        event = {
            'id': 'e2',
            'resource_name': 'server',
            'physical_resource_id': None,
            'resource_status': 'CREATE_FAILED',
            'resource_status_reason': None,
            'event_time': '2026-01-01T00:00:00Z',
            'links': [
                {'rel': 'self', 'href': 'http://x/e2'},
                {'rel': 'stack', 'href': f'{URL}/stacks/shop-tier/id-2'},
            ],
        }
        self.answer(
            'GET /stacks/shop/id-1/events?sort_dir=asc&limit=9&marker=e1'
            '&nested_depth=50',
            {'events': [event]},
        )
        (found,) = self.heat.events(STACK, 'e1', 9)
        self.assertEqual('id-2/server', found.place)
        self.assertFalse(found.of_stack)
        self.answer(
            'GET /stacks/shop/id-1/events?sort_dir=asc&limit=9'
            '&nested_depth=50',
            {'events': [event, event]},
        )
        self.assertEqual(2, len(self.heat.events(STACK, None, 9)))

    def test_the_last_event_is_asked_for_alone(self):
        asked = (
            'GET /stacks/shop/id-1/events?sort_dir=desc&limit=1'
            '&nested_depth=50'
        )
        self.answer(asked, {'events': [{'id': 'e9'}]})
        self.assertEqual('e9', self.heat.last_event(STACK))
        self.answer(asked, {'events': []})
        self.assertIsNone(self.heat.last_event(STACK))

    def test_a_preview_of_a_new_stack_names_it(self):
        self.answer('POST /stacks/preview', {'stack': {'resources': []}})
        self.heat.preview('shop', CONTENT)
        self.assertEqual(
            'shop', self.sent('POST /stacks/preview')['stack_name']
        )
