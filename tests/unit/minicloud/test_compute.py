# SPDX-License-Identifier: Apache-2.0
"""What ``up --with compute`` adds, as far as Nova is not needed for it."""

import pathlib
import tempfile

from minicloud_lib import catalog
from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib.compute import guests
import testtools


class ServicesTest(testtools.TestCase):
    def test_no_service_starts_before_it_is_asked_for(self):
        for extra, added in catalog.EXTRAS.items():
            for name in added.services:
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
