# SPDX-License-Identifier: Apache-2.0
"""No server keeps the output of another one from being read."""

from unittest import mock

import testtools

from heat_plugins.objectstore import stores
from heat_plugins.runs import logs
from heat_plugins.runs import run_objects
from tests.unit import fake_swift

RUN = '5bd8c0c0-0000-4000-8000-000000000001'
CONTAINER = 'heat-plugins-stack'
FOLDER = f'runs/logs/{RUN}/'


class LiveOutputTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        self.store = self.cluster.store()
        self.store.put_container(CONTAINER, {})
        self.patch(stores, 'PAGE', 10)
        self.patch(logs, '_MOST', 100)
        self.source = logs.RunLogs(
            self.store, CONTAINER, FOLDER, lambda: self.now
        )
        self.readers = {}

    def folder(self, member):
        return run_objects.RunObjects(self.store, 'stack', RUN, member, 1).log

    def put(self, member, name, content):
        folder = self.folder(member)
        self.store.put_object(CONTAINER, folder + name, content)

    def prints(self, member, text):
        self.put(member, '000000', b'1 0 1 1\n' + text)

    def junk(self, member, number=300):
        objects = self.cluster.container(CONTAINER).objects
        folder = self.folder(member)
        for n in range(number):
            objects[f'{folder}000000.{n:06d}'] = b''

    def read(self, *members):
        """Return what is new of some members, and the requests for it."""
        self.now += 1
        self.cluster.seen.clear()
        return {
            member: b''.join(part.content for part in self.reader(member))
            for member in members
        }

    def reader(self, member):
        new = logs.Reader(self.source, self.folder(member))
        return self.readers.setdefault(member, new).read()

    def listings(self):
        return [one for one in self.cluster.seen if 'prefix' in one.query]

    def test_junk_of_one_server_hides_no_other(self):
        members = range(4)
        for member in members:
            self.prints(member, b'one\n')
        for member in (0, 2):
            self.junk(member)
        once = dict.fromkeys(members, b'one\n')
        assert once == self.read(*members)
        for member in members:
            self.prints(member, b'one\ntwo\n')
        again = dict.fromkeys(members, b'two\n')
        assert again == self.read(*members)

    def test_junk_costs_a_few_requests_and_not_one_for_each_page(self):
        objects = self.cluster.container(CONTAINER).objects
        for n in range(2000):
            # This is of no run.
            objects[f'{FOLDER}00001.1.{n:06d}/000000'] = b''
        self.junk(1, 1000)
        self.enterContext(mock.patch.object(logs, '_MOST', 500))
        members = range(4)
        for member in members:
            self.prints(member, b'one\n')
        self.read(*members)
        for member in members:
            self.prints(member, b'one\ntwo\n')
        assert dict.fromkeys(members, b'two\n') == self.read(*members)
        # 3000 objects are 300 pages: 50 are of all runs, 101 of that one.
        assert len(self.listings()) < 170

    def test_one_listing_tells_of_all_servers(self):
        members = range(9)
        for member in members:
            self.prints(member, b'one\n')
        self.read(*members)
        self.read(*members)
        assert len(self.listings()) == 1
