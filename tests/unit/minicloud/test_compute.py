# SPDX-License-Identifier: Apache-2.0
"""What ``up --with compute`` adds, as far as Nova is not needed for it."""

import json
import pathlib
import tempfile

from minicloud_lib import catalog
from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib.compute import guests
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


class GuestsTest(testtools.TestCase):
    """Servers are found by their folders, whatever their flavor is now."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        home = layout.Home(pathlib.Path(folder.name))
        self.instance = home.instance('tests')

    def test_those_of_nova_are_known(self):
        for folder in (
            self.instance.agents / 'agent-of-nova/config-2',
            self.instance.agents / 'agent',
            self.instance.servers / 'machine-of-nova/config-2',
            self.instance.servers / 'machine',
        ):
            folder.mkdir(parents=True)
        self.assertEqual(
            ['agent-of-nova', 'machine-of-nova'],
            [*guests.known(self.instance)],
        )

    def test_an_agent_starts_with_its_user_data_and_not_without(self):
        guest = guests.find(self.instance, 'web')
        guest.create({'a/b': b'c'}, name='web', supervised=False)
        self.assertEqual(b'c', (guest.path / 'config-2/a/b').read_bytes())
        self.assertFalse(guest.is_on)
        # Its image has no agent that would want to start.
        guest.start()
        self.assertTrue(guest.is_on)
        guest.stop()
        self.assertFalse(guest.is_on)
        guest.remove()
        self.assertFalse(guest.path.exists())

    def test_a_machine_is_found_as_one(self):
        guest = guests.new(self.instance, 'web', is_machine=True)
        error = self.assertRaises(
            errors.UnavailableError,
            guest.create,
            {},
            name='web',
            supervised=False,
        )
        self.assertIn('no image', str(error))
        guest.path.mkdir(parents=True)
        found = guests.find(self.instance, 'web')
        self.assertIsInstance(found, guests.MachineGuest)
        found.remove()
        self.assertIsInstance(
            guests.find(self.instance, 'web'), guests.AgentGuest
        )
