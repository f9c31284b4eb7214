# SPDX-License-Identifier: Apache-2.0
"""What ``up --with compute`` adds, as far as Nova is not needed for it."""

import json

from minicloud_lib import catalog
from minicloud_lib.compute import network
import testtools


class NetworkTest(testtools.TestCase):
    """The stub of the network API."""

    def ask(self, path, method='GET'):
        answers = []
        body = network.application(
            {'REQUEST_METHOD': method, 'PATH_INFO': path},
            lambda status, headers: answers.append(status),
        )
        return answers[0], json.loads(b''.join(body))

    def test_each_list_is_empty(self):
        for path, key in (
            ('/v2.0/ports', 'ports'),
            ('/v2.0/ports.json', 'ports'),
            ('/v2.0/security-groups', 'security_groups'),
        ):
            self.assertEqual(('200 OK', {key: []}), self.ask(path))

    def test_it_has_a_version(self):
        _, body = self.ask('/')
        self.assertEqual('v2.0', body['versions'][0]['id'])

    def test_there_is_nothing_to_show_or_to_make(self):
        for path, method in (
            ('/v2.0/ports/an-id', 'GET'),
            ('/v2.0/ports', 'POST'),
            ('/v2.0', 'GET'),
        ):
            status, body = self.ask(path, method)
            self.assertEqual('404 Not Found', status)
            self.assertIn('message', body['NeutronError'])


class ServicesTest(testtools.TestCase):
    def test_no_service_starts_before_it_is_asked_for(self):
        for extra, services in catalog.EXTRAS.items():
            for name in services:
                self.assertTrue(catalog.SMALL[name].on_demand, (extra, name))
