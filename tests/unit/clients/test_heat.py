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
    def setUp(self):
        super().setUp()
        self.wire = Wire()
        self.heat = heat.Heat(web_service.cloud(self.wire, URL))

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

    def test_names_of_stacks(self):
        self.wire.answers['GET /stacks?limit=1000'] = (
            200,
            {'stacks': [{'stack_name': 'shop'}, {'stack_name': 'web'}]},
            {},
        )
        self.assertEqual(['shop', 'web'], self.heat.stack_names())

    def test_stacks_by_their_tag_page_by_page(self):
        self.patch(heat, '_PAGE', 2)
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

    def test_a_config_is_made_with_all_that_agents_need(self):
        self.answer('POST /software_configs', {'software_config': {'id': 'c'}})
        draft = heat_values.DerivedConfig(
            name='db-BACKUP',
            group='component',
            config={'configs': []},
            inputs=[{'name': 'x', 'value': 'y', 'type': 'String'}],
            outputs=[],
            options={},
        )
        self.assertEqual('c', self.heat.create_config(draft))
        sent = self.wire.sent['POST /software_configs']
        self.assertEqual(
            {'name', 'group', 'config', 'inputs', 'outputs', 'options'},
            set(json.loads(sent.body)),
        )
        self.assertEqual('token', sent.headers['X-Auth-Token'])

    def test_deployments(self):
        row = {
            'id': 'd',
            'server_id': 's',
            'config_id': 'c',
            'action': 'BACKUP',
            'status': 'IN_PROGRESS',
            'status_reason': 'mark',
        }
        self.answer('POST /software_deployments', {'software_deployment': row})
        self.answer(
            'GET /software_deployments/d', {'software_deployment': row}
        )
        self.answer(
            'GET /software_deployments?server_id=s',
            {'software_deployments': [row]},
        )
        made = self.heat.create_deployment(
            config_id='c', server_id='s', action='BACKUP', reason='mark'
        )
        self.assertEqual('d', made)
        self.assertEqual('mark', self.heat.deployment('d').reason)
        self.assertEqual(1, len(self.heat.deployments('s')))
        # Without an ID, Heat would list all.
        self.assertRaises(errors.NotFound, self.heat.deployment, '')

    def test_a_deployment_has_a_status_and_a_server_its_configs(self):
        self.answer(
            'PUT /software_deployments/d',
            {'software_deployment': {'status_reason': 'as it was'}},
        )
        config = {'id': 'c', 'name': 'n', 'group': 'g', 'config': 'text'}
        self.answer(
            'GET /software_deployments/metadata/s', {'metadata': [config]}
        )
        self.assertEqual('as it was', self.heat.set_status('d', 'COMPLETE'))
        sent = self.wire.sent['PUT /software_deployments/d']
        self.assertEqual({'status': 'COMPLETE'}, json.loads(sent.body))
        deployment = heat_values.Deployment(
            id='d', server_id='s', config_id='c'
        )
        self.heat.tell(deployment)
        sent = self.wire.sent['PUT /software_deployments/d']
        self.assertEqual({'config_id': 'c'}, json.loads(sent.body))
        (found,) = self.heat.server_configs('s')
        self.assertEqual(('c', 'g'), (found.id, found.group))
        self.answer('PUT /software_deployments/d', status=404)
        self.assertRaises(
            errors.NotFound, self.heat.set_status, 'd', 'COMPLETE'
        )

    def test_new_configs_are_listed_until_the_first_old_one(self):
        def listed(*entries):
            return {
                'software_configs': [
                    {'id': n, 'name': f'{n}-{action}', 'creation_time': at}
                    for n, action, at in entries
                ]
            }

        self.patch(heat, '_PAGE', 2)
        late, early = '2027-01-15T08:00:10Z', '2027-01-15T07:59:00Z'
        self.answer(
            'GET /software_configs?limit=2',
            listed(('4', 'BACKUP', late), ('3', 'STOP', late)),
        )
        self.answer(
            'GET /software_configs?limit=2&marker=3',
            listed(('2', 'BACKUP', late), ('1', 'BACKUP', early)),
        )
        self.assertEqual(
            ['4', '2'], self.heat.recent_configs('-BACKUP', 1_800_000_000)
        )

    def test_what_is_gone_is_deleted(self):
        self.answer('DELETE /software_deployments/d', status=404)
        self.answer('DELETE /software_configs/c', status=204)
        self.heat.delete_deployment('d')
        self.heat.delete_config('c')

    def test_each_status_has_one_meaning(self):
        for status, kind in (
            (404, errors.NotFound),
            (401, errors.Denied),
            (403, errors.Denied),
            (400, errors.ServiceError),
            (503, errors.Unavailable),
        ):
            said = {'error': {'message': 'of no use'}}
            self.answer('GET /software_configs/c', said, status=status)
            exc = self.assertRaises(kind, self.heat.config, 'c')
            self.assertIs(kind, type(exc))

    def test_a_broken_connection_may_pass(self):
        self.answer(
            'GET /software_configs/c', requests.exceptions.ConnectionError()
        )
        self.assertRaises(errors.Unavailable, self.heat.config, 'c')

    def test_what_heat_says_of_a_config_it_refuses_is_not_passed_on(self):
        said = {'error': {'message': 'bad input s3cret'}}
        self.answer('POST /software_configs', said, status=400)
        draft = heat_values.DerivedConfig(
            name='x',
            group='script',
            config='',
            inputs=[],
            outputs=[],
            options={},
        )
        exc = self.assertRaises(
            errors.ServiceError, self.heat.create_config, draft
        )
        self.assertNotIn('s3cret', str(exc))

    def test_an_answer_without_end_is_refused_before_it_is_gone_through(self):
        deep = 'x'
        for _ in range(300):
            deep = [deep]
        said = {'software_config': {'id': 'c', 'inputs': deep}}
        self.answer('GET /software_configs/c', said)
        exc = self.assertRaises(errors.ServiceError, self.heat.config, 'c')
        self.assertIn('nested more than 200 levels', str(exc))
