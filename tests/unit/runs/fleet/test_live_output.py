# SPDX-License-Identifier: Apache-2.0
"""No server keeps the output of another one from being read."""

import types

import testtools

from heat_plugins.objectstore import stores
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.follow import logs
from tests.unit.runs.fleet import simulation

OPERATION = '20270115T080000Z-00c0ffee'


class LiveOutputTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.world = simulation.World(1)
        self.cluster = self.world.cluster
        self.store = self.cluster.store()
        self.store.put_container(simulation.CONTAINER, {})
        self.patch(stores, 'PAGE', 10)
        self.patch(logs, '_MOST', 100)
        self.patch(logs, '_LEAST', 20)
        self.service = self.world.service()
        self.readers = {}

    def put(self, member, name, content):
        folder = layout.log_folder(OPERATION, member, 1)
        self.store.put_object(simulation.CONTAINER, folder + name, content)

    def prints(self, member, text):
        self.put(member, '000000', b'1 0 1 1\n' + text)

    def junk(self, member, number=300):
        objects = self.cluster.container(simulation.CONTAINER).objects
        folder = layout.log_folder(OPERATION, member, 1)
        for n in range(number):
            objects[f'{folder}000000.{n:06d}'] = b''

    def read(self, *members):
        """Return what is new of some members, and the requests for it."""
        self.world.now += 1
        self.cluster.seen.clear()
        return {
            member: b''.join(part.content for part in self.reader(member))
            for member in members
        }

    def reader(self, member):
        run_id = f'{OPERATION}.{member}.1'
        if member not in self.readers:
            run = types.SimpleNamespace(id=run_id, operation=OPERATION)
            self.readers[member] = self.service.log(run)
        return self.readers[member].read()

    def listings(self):
        return [one for one in self.cluster.seen if 'prefix' in one.query]

    def test_junk_of_one_server_hides_no_other(self):
        members = range(4)
        for member in members:
            self.prints(member, b'one\n')
        for member in (0, 2):
            self.junk(member)
        once = dict.fromkeys(members, b'one\n')
        self.assertEqual(once, self.read(*members))
        for member in members:
            self.prints(member, b'one\ntwo\n')
        again = dict.fromkeys(members, b'two\n')
        self.assertEqual(again, self.read(*members))

    def test_junk_costs_a_few_requests_and_not_one_for_each_page(self):
        for member in range(4):
            self.prints(member, b'one\n')
        self.read(*range(4))
        self.read(*range(4))
        usual = len(self.listings())
        self.junk(1, 3000)
        self.read(*range(4))
        # 3000 objects are 300 pages, of which it has the first 205.
        self.assertLess(len(self.listings()), usual + 220)

    def test_junk_that_belongs_to_no_run_is_skipped(self):
        objects = self.cluster.container(simulation.CONTAINER).objects
        folder = layout.logs(OPERATION)
        for n in range(2000):
            objects[f'{folder}00001.1.{n:06d}/000000'] = b''
        members = (0, 2)
        for member in members:
            self.prints(member, b'one\n')
        self.read(*members)
        for member in members:
            self.prints(member, b'one\ntwo\n')
        self.assertEqual(dict.fromkeys(members, b'two\n'), self.read(*members))
        self.assertLess(len(self.listings()), 10)

    def test_one_listing_tells_of_all_servers(self):
        members = range(9)
        for member in members:
            self.prints(member, b'one\n')
        self.read(*members)
        self.read(*members)
        self.assertEqual(1, len(self.listings()))
