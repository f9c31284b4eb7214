# SPDX-License-Identifier: Apache-2.0
"""Nodes over Ironic's REST API, with answers as Ironic gives them."""

import functools
import json
import logging
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import testtools

from heat_plugins import errors
from heat_plugins.clients import ironic
from tests.unit import web_service

URL = 'http://ironic.example.com'
RESET = 'nodes/id?reset_interfaces=true'
PROVISION = 'nodes/id/states/provision'


class BaremetalTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.ironic = web_service.Service()
        self.ironic.answer = self.served
        self.answers, self.asked = [], []
        self.baremetal = self.at(URL)

    def served(self, request):
        body = json.loads(request.body) if request.body else None
        self.asked.append((request.method, request.url, body))
        self.headers = request.headers
        return self.answers.pop(0)

    def at(self, url):
        return ironic.BaremetalAPI(web_service.cloud(self.ironic, url))

    def answer(self, status, body=None):
        self.answers.append((status, body))

    def test_lists_are_read_to_their_last_page(self):
        path = '/v1/nodes?fields=uuid&marker=a'
        row = {'uuid': 'a', 'provision_state': 'enroll'}
        page = {'nodes': [row], 'next': f'http://elsewhere{path}'}
        self.answer(200, page)
        self.answer(200, {'nodes': [{'uuid': 'b'}]})
        found = self.baremetal.states()
        assert [one.uuid for one in found] == ['a', 'b']
        assert found[0].state == 'enroll'
        assert self.asked[1] == ('GET', f'{URL}{path}', None)

    def test_a_version_is_asked_for_that_the_address_may_name(self):
        for url in (URL, f'{URL}/v1/'):
            self.answer(200, {'nodes': []})
            self.at(url).nodes()
            assert self.asked[-1][1] == f'{URL}/v1/nodes/detail'
            for header in ('X-OpenStack-Ironic-API', 'OpenStack-API'):
                assert '1.81' in self.headers[f'{header}-Version']

    def test_each_change_is_one_request(self):
        patch = [{'op': 'add', 'path': '/name', 'value': 'a'}]
        reset = functools.partial(
            self.baremetal.update_node, reset_interfaces=True
        )
        node, manage = self.baremetal, {'target': 'manage'}
        port, of = {'address': 'aa'}, {'node_uuid': 'id'}
        for do, given, method, path, body in (
            (node.create_node, [{'a': 1}], 'POST', 'nodes', {'a': 1}),
            (node.update_node, ['id', patch], 'PATCH', 'nodes/id', patch),
            (reset, ['id', patch], 'PATCH', RESET, patch),
            (node.set_state, ['id', 'manage'], 'PUT', PROVISION, manage),
            (node.delete_node, ['id'], 'DELETE', 'nodes/id', None),
            (node.create_port, ['id', port], 'POST', 'ports', port | of),
        ):
            self.answer(202)
            do(*given)
            assert self.asked[-1] == (method, f'{URL}/v1/{path}', body)
        # Ports are in lower case, and an inventory is as it is.
        self.answer(200, {'ports': [{'node_uuid': 'id', 'address': 'AA:BB'}]})
        assert self.baremetal.ports() == {'aa:bb': 'id'}
        self.answer(200, {'inventory': {}})
        assert self.baremetal.inventory('id') == {'inventory': {}}

    def test_refusals_have_ironics_own_words(self):
        for status, said, kind in (
            (400, 'Bad driver', errors.Refused),
            (403, 'Not you', errors.Denied),
            (409, 'Node x is locked by host y', errors.NodeLocked),
            (409, 'A node with name x already exists', errors.Conflict),
            (503, 'No conductor', errors.Unavailable),
        ):
            told = f'Ironic answered {status} to GET of nodes: {said}'
            fault = {'faultcode': 'Client', 'faultstring': said}
            # Older Ironics give JSON within JSON.
            for message in (fault, json.dumps(fault)):
                self.answer(status, {'error_message': message})
                error = self.assertRaises(kind, self.baremetal.nodes)
                assert (type(error), str(error)) == (kind, told)
        self.answer(200, b'<html>')
        self.assertRaises(errors.ServiceError, self.baremetal.nodes)

    def test_what_keystoneauth_raises_is_told(self):
        fail = mock.Mock(side_effect=exceptions.ConnectFailure('x'))
        self.patch(adapter.Adapter, 'request', fail)
        call = errors.Unavailable, self.baremetal.nodes
        assert 'Ironic' in str(self.assertRaises(*call))

    def test_no_password_is_logged(self):
        self.answer(201)
        secret = {'driver_info': {'ipmi_password': 'hunter22'}}
        with self.assertLogs('', logging.DEBUG) as logs:
            logging.getLogger('any').debug('one at least')
            self.baremetal.create_node(secret)
        assert 'hunter22' not in str(logs.output)
