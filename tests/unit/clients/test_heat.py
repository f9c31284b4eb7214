# SPDX-License-Identifier: Apache-2.0
"""Heat over REST, with answers as Heat gives them."""

import json

import requests
import testtools

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.clients import heat
from tests.unit import web_service

URL = 'http://heat.example.com/v1/project-1'


class Wire(web_service.Service):
    """Answers by method and path; an AssertionError for any other."""

    def __init__(self):
        super().__init__()
        self.answers = {}
        self.sent = {}

    def answer(self, request):
        asked = f'{request.method} {request.url.removeprefix(URL)}'
        assert asked in self.answers, f'{asked} was not expected'
        status, body, headers = self.answers[asked]
        if isinstance(body, Exception):
            raise body
        self.sent[asked] = request
        return status, body, headers


class HeatCase(testtools.TestCase):
    CLIENT = heat.Heat

    def setUp(self):
        super().setUp()
        self.wire = Wire()
        self.heat = self.CLIENT(web_service.cloud(self.wire, URL))

    def answer(self, asked, body=None, status=200, **headers):
        self.wire.answers[asked] = (status, body, headers)


class HeatTest(HeatCase):
    def test_a_stack_by_name(self):
        found = {
            'id': 'id-1',
            'stack_name': 'my shop',
            'stack_status': 'DELETE_COMPLETE',
            'parent': None,
            'parameters': {'size': '3'},
        }
        there = f'{URL}/stacks/my%20shop/id-1?resolve_outputs=false'
        self.answer(
            'GET /stacks/my%20shop?resolve_outputs=false',
            status=302,
            location=there,
        )
        self.answer(
            'GET /stacks/my%20shop/id-1?resolve_outputs=false',
            {'stack': found},
        )
        stack = self.heat.stack('my shop')
        self.assertEqual('id-1', stack.id)
        self.assertTrue(stack.gone)

    def test_a_signal_goes_to_the_resource_of_its_stack(self):
        found = {
            'id': 'id-1',
            'stack_name': 'shop',
            'stack_status': 'CREATE_COMPLETE',
            'parent': None,
            'parameters': {},
        }
        self.answer('GET /stacks/id-1?resolve_outputs=false', {'stack': found})
        asked = 'POST /stacks/shop/id-1/resources/nightly%20backup/signal'
        self.answer(asked)
        self.heat.signal(
            heat_values.Resource(
                name='nightly backup',
                type='OS::Heat::SoftwareSchedule',
                physical_id='x',
                status='CREATE_COMPLETE',
                stack_id='id-1',
            ),
            {'do': 'run'},
        )
        self.assertEqual({'do': 'run'}, json.loads(self.wire.sent[asked].body))

    def test_stacks_by_their_tag_page_by_page(self):
        self.patch(heat, 'PAGE', 2)
        self.answer(
            'GET /stacks?tags=production&limit=2',
            {'stacks': [{'id': 'id-1'}, {'id': 'id-2'}]},
        )
        self.answer(
            'GET /stacks?tags=production&limit=2&marker=id-2',
            {'stacks': [{'id': 'id-3'}]},
        )
        self.assertEqual(
            ['id-1', 'id-2', 'id-3'], self.heat.stack_ids('production')
        )

    def test_resources_with_those_of_nested_stacks(self):
        stack = heat_values.Stack(
            id='id-1', name='shop', status='CREATE_COMPLETE', parent=None
        )
        links = [
            {'rel': 'self', 'href': f'{URL}/stacks/shop/id-1/resources/tier'},
            {'rel': 'stack', 'href': f'{URL}/stacks/shop/id-1'},
            {'rel': 'nested', 'href': f'{URL}/stacks/shop-tier/id-2'},
        ]
        self.answer(
            'GET /stacks/shop/id-1/resources?nested_depth=50',
            {
                'resources': [
                    {
                        'resource_name': 'tier',
                        'resource_type': 'OS::Heat::ResourceGroup',
                        'physical_resource_id': 'id-2',
                        'resource_status': 'CREATE_COMPLETE',
                        'links': links,
                    }
                ]
            },
        )
        (found,) = self.heat.resources(stack)
        self.assertEqual(('id-1', 'id-2'), (found.stack_id, found.nested_id))

    def test_each_failure_has_one_meaning(self):
        words = {'error': {'message': 'of no use'}}
        for status, body, kind, part in (
            (404, words, errors.NotFound, 'no stack shop'),
            (401, words, errors.Denied, 'of no use'),
            (403, words, errors.Denied, 'of no use'),
            (400, words, errors.ServiceError, 'of no use'),
            (503, words, errors.Unavailable, 'of no use'),
            # Without words it names the status.
            (503, b'<html>', errors.Unavailable, '503'),
            (0, requests.ConnectionError(), errors.Unavailable, ''),
        ):
            asked = 'GET /stacks/shop?resolve_outputs=false'
            self.answer(asked, body, status=status)
            exc = self.assertRaises(kind, self.heat.stack, 'shop')
            self.assertIs(kind, type(exc))
            self.assertIn(part, str(exc))

    def test_an_answer_without_end_is_refused_before_it_is_gone_through(self):
        deep = 'x'
        for _ in range(300):
            deep = [deep]
        said = {'stack': {'id': 's', 'outputs': deep}}
        self.answer('GET /stacks/shop?resolve_outputs=false', said)
        exc = self.assertRaises(errors.ServiceError, self.heat.stack, 'shop')
        self.assertIn('nested more than 200 levels', str(exc))

    def test_names_of_stacks(self):
        self.answer(
            'GET /stacks?limit=1000',
            {'stacks': [{'stack_name': 'shop'}, {'stack_name': 'web'}]},
        )
        self.assertEqual(['shop', 'web'], self.heat.stack_names())
