# SPDX-License-Identifier: Apache-2.0
"""Nodes over Ironic's REST API, with answers as Ironic gives them."""

import json
import logging

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import testtools

from heat_plugins import errors
from heat_plugins.clients import ironic
from tests.unit import web_service

URL = 'http://ironic.example.com'


class Ironic(web_service.Service):
    """Gives the answers that it was told to, in their order."""

    def __init__(self):
        super().__init__()
        self.answers = []
        self.asked = []

    def answer(self, request):
        body = json.loads(request.body) if request.body else None
        self.asked.append((request.method, request.url, body))
        self.headers = request.headers
        return self.answers.pop(0)


class BaremetalTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = Ironic()
        self.baremetal = self.at(URL)

    def at(self, url):
        return ironic.BaremetalAPI(web_service.cloud(self.ironic, url))

    def answer(self, status, body=None):
        self.ironic.answers.append((status, body))

    def refuse(self, status, said):
        fault = {'faultcode': 'Client', 'faultstring': said}
        self.answer(status, {'error_message': fault})

    def test_lists_are_read_to_their_last_page(self):
        self.answer(
            200,
            {
                'nodes': [{'uuid': 'a', 'provision_state': 'enroll'}],
                'next': 'http://elsewhere/v1/nodes?fields=uuid&marker=a',
            },
        )
        self.answer(200, {'nodes': [{'uuid': 'b'}]})
        found = self.baremetal.states()
        self.assertEqual(['a', 'b'], [one.uuid for one in found])
        self.assertEqual('enroll', found[0].state)
        self.assertEqual(
            ('GET', f'{URL}/v1/nodes?fields=uuid&marker=a', None),
            self.ironic.asked[1],
        )

    def test_a_version_is_asked_for_that_the_address_may_name(self):
        for url in (URL, f'{URL}/v1/'):
            self.answer(200, {'nodes': []})
            self.at(url).nodes()
            self.assertEqual(
                f'{URL}/v1/nodes/detail', self.ironic.asked[-1][1]
            )
            for header in (
                'X-OpenStack-Ironic-API-Version',
                'OpenStack-API-Version',
            ):
                self.assertIn('1.81', self.ironic.headers[header])

    def test_each_change_is_one_request(self):
        for _ in range(6):
            self.answer(202)
        patch = [{'op': 'add', 'path': '/name', 'value': 'a'}]
        self.baremetal.create_node({'driver': 'x'})
        self.baremetal.update_node('id', patch)
        self.baremetal.update_node('id', patch, reset_interfaces=True)
        self.baremetal.create_port('id', {'address': 'aa'})
        self.baremetal.set_state('id', 'manage')
        self.baremetal.delete_node('id')
        self.assertEqual(
            [
                ('POST', '/v1/nodes', {'driver': 'x'}),
                ('PATCH', '/v1/nodes/id', patch),
                ('PATCH', '/v1/nodes/id?reset_interfaces=true', patch),
                ('POST', '/v1/ports', {'address': 'aa', 'node_uuid': 'id'}),
                (
                    'PUT',
                    '/v1/nodes/id/states/provision',
                    {'target': 'manage'},
                ),
                ('DELETE', '/v1/nodes/id', None),
            ],
            [
                (method, url.removeprefix(URL), body)
                for method, url, body in self.ironic.asked
            ],
        )

    def test_ports_are_in_lower_case_and_an_inventory_is_as_it_is(self):
        self.answer(200, {'ports': [{'node_uuid': 'id', 'address': 'AA:BB'}]})
        self.assertEqual({'aa:bb': 'id'}, self.baremetal.ports())
        self.answer(200, {'inventory': {}})
        self.assertEqual({'inventory': {}}, self.baremetal.inventory('id'))

    def test_refusals_have_ironics_own_words(self):
        for status, said, kind in (
            (400, 'Bad driver', errors.Refused),
            (403, 'Not you', errors.Denied),
            (404, 'No node', errors.NotFound),
            (409, 'Node x is locked by host y', errors.NodeLocked),
            (409, 'A node with name x already exists', errors.Conflict),
            (429, 'Slowly', errors.Unavailable),
            (503, 'No conductor', errors.Unavailable),
        ):
            self.refuse(status, said)
            error = self.assertRaises(kind, self.baremetal.nodes)
            self.assertIs(kind, type(error))
            self.assertEqual(
                f'Ironic answered {status} to GET of nodes: {said}', str(error)
            )

    def test_other_answers_are_errors_too(self):
        # Older Ironics give JSON within JSON.
        fault = json.dumps({'faultstring': 'Bad\n driver'})
        self.answer(400, {'error_message': fault})
        error = self.assertRaises(errors.Refused, self.baremetal.nodes)
        self.assertIn('Bad driver', str(error))
        self.answer(200, b'<html>')
        self.assertRaises(errors.ServiceError, self.baremetal.nodes)

    def test_what_keystoneauth_raises_is_told(self):
        for raised, kind in (
            (exceptions.ConnectFailure('x'), errors.Unavailable),
            (exceptions.Unauthorized('x'), errors.Denied),
            (exceptions.EndpointNotFound('x'), errors.ServiceError),
        ):

            def fail(*args, raised=raised, **options):
                raise raised

            self.patch(adapter.Adapter, 'request', fail)
            error = self.assertRaises(kind, self.baremetal.nodes)
            self.assertIs(kind, type(error))

    def test_no_password_is_logged(self):
        self.answer(201)
        with self.assertLogs('', logging.DEBUG) as logs:
            logging.getLogger('any').debug('one at least')
            self.baremetal.create_node(
                {'driver_info': {'ipmi_password': 'hunter22'}}
            )
        self.assertNotIn('hunter22', str(logs.output))
