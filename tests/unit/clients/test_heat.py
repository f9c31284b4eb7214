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

FOUND = {
    'id': 'id-1',
    'stack_name': 'my shop',
    'stack_status': 'DELETE_COMPLETE',
}


def resource(name, type_, stack, nested=None):
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
        path = '/stacks/my%20shop?resolve_outputs=false'
        there = '/stacks/my%20shop/id-1?resolve_outputs=false'
        self.answer(f'GET {path}', status=302, location=f'{URL}{there}')
        self.answer(f'GET {there}', {'stack': FOUND})
        stack = self.heat.stack('my shop')
        assert stack.id == 'id-1'
        assert stack.gone

    def test_a_signal_goes_to_the_resource_of_its_stack(self):
        self.answer('GET /stacks/id-1?resolve_outputs=false', {'stack': FOUND})
        asked = 'POST /stacks/my%20shop/id-1/resources/night%20run/signal'
        self.answer(asked)
        schedule = heat_values.Resource(
            name='night run',
            type='OS::Heat::SoftwareSchedule',
            physical_id='x',
            status='CREATE_COMPLETE',
            stack_id='id-1',
        )
        self.heat.signal(schedule, {'do': 'run'})
        assert json.loads(self.wire.sent[asked].body) == {'do': 'run'}

    def test_stacks_by_their_tag_or_names_page_by_page(self):
        self.patch(heat, 'PAGE', 2)
        for marker, ids in (('', ('1', '2')), ('&marker=2', ('3',))):
            page = {'stacks': [{'id': stack_id} for stack_id in ids]}
            self.answer(f'GET /stacks?tags=production&limit=2{marker}', page)
        assert self.heat.stack_ids('production') == ['1', '2', '3']
        rows = [{'stack_name': 'shop'}, {'stack_name': 'web'}]
        self.answer('GET /stacks?limit=1000', {'stacks': rows})
        assert self.heat.stack_names() == ['shop', 'web']

    def test_resources_with_those_of_nested_stacks(self):
        stack = heat_values.Stack(id='id-1', name='shop', status='')
        row = resource('tier', 'OS::Heat::ResourceGroup', 'id-1', 'id-2')
        asked = 'GET /stacks/shop/id-1/resources?nested_depth=50'
        self.answer(asked, {'resources': [row]})
        (found,) = self.heat.resources(stack)
        assert (found.stack_id, found.nested_id) == ('id-1', 'id-2')

    def test_each_failure_has_one_meaning(self):
        words = {'error': {'message': 'of no use'}}
        for status, body, kind, part in (
            (404, words, errors.NotFound, 'no stack shop'),
            # Without words it names the status.
            (503, b'<html>', errors.Unavailable, '503'),
            (0, requests.ConnectionError(), errors.Unavailable, ''),
        ):
            asked = 'GET /stacks/shop?resolve_outputs=false'
            self.answer(asked, body, status=status)
            exc = self.assertRaises(kind, self.heat.stack, 'shop')
            assert type(exc) is kind
            assert part in str(exc)

    def test_an_answer_without_end_is_refused_before_it_is_gone_through(self):
        deep = b'{"stack": {"id": "s", "outputs": ' + b'[' * 300 + b']' * 300
        self.answer('GET /stacks/shop?resolve_outputs=false', deep + b'}}')
        exc = self.assertRaises(errors.ServiceError, self.heat.stack, 'shop')
        assert 'nested more than 200 levels' in str(exc)
