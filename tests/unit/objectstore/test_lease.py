# SPDX-License-Identifier: Apache-2.0
"""One process at a time holds a lease, whatever comes between two requests.

The model of `test_exclusive_model` seldom meets these orders of requests.
"""

import testtools

from heat_plugins import errors
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import lease

FIRST, SECOND = lease.name(1), lease.name(2)
EXPIRY, SAFE = 45.0, 25.0


class Epochs:
    """Epochs in memory.

    :ivar before: called with the method and the name of each request.
    """

    def __init__(self, clock):
        self.records = {}
        self.before = lambda *request: None
        self._clock = clock

    def fetch(self, name):
        self.before('fetch', name)
        if name not in self.records:
            raise errors.NoObject(name)
        value, at = self.records[name]
        return json_records.FetchedRecord(value=value, age=self._clock() - at)

    def create(self, name, value):
        self.before('create', name)
        is_new = name not in self.records
        self.records.setdefault(name, (value, self._clock()))
        return is_new

    def delete(self, name):
        self.before('delete', name)
        self.records.pop(name, None)


class LeaseTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.epochs = Epochs(lambda: self.now)

    def lease(self, who):
        seconds = {'expiry': EXPIRY, 'safe': SAFE, 'clock': lambda: self.now}
        return lease.Lease(self.epochs, who=who, **seconds)

    def held(self, who):
        """Return a lease that a process has acquired."""
        acquired = self.lease(who)
        assert acquired.acquire(), who
        return acquired

    def test_a_late_holder_drops_nothing(self):
        # It leaves it to who is about to take over.
        dan = self.held('dan')
        self.now += SAFE + 1
        dan.drop()
        assert set(self.epochs.records) == {FIRST}
        self.epochs.records.clear()
        # And to who has.
        ann = self.held('ann')
        self.now += EXPIRY + 1
        bob = self.held('bob')
        ann.drop()
        assert set(self.epochs.records) == {FIRST, SECOND}
        assert not self.lease('eve').acquire()
        bob.drop()
        assert self.epochs.records == {}

    def test_the_first_epoch_is_dropped_first(self):
        self.held('ann')
        self.now += EXPIRY + 1
        bob = self.held('bob')
        eve, dan = self.lease('eve'), self.lease('dan')
        deleted, won = [], []

        def between(method, name):
            if method == 'delete':
                deleted.append(name)
                if len(deleted) == 2:
                    won.append(eve.acquire())

        # Else the second epoch is free while the first seems to be ann's.
        self.epochs.before = between
        bob.drop()
        assert [*won, dan.acquire()] == [True, False]

    def test_who_follows_a_lease_that_is_dropped_holds_nothing(self):
        self.held('ann')
        self.now += EXPIRY + 1

        def before(*request):
            if request == ('create', SECOND):
                self.epochs.records.pop(FIRST)

        self.epochs.before = before
        assert not self.lease('bob').acquire()
        assert self.epochs.records == {}
        self.held('eve')
