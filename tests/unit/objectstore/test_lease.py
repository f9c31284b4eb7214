# SPDX-License-Identifier: Apache-2.0
"""One process at a time holds a lease, whatever comes between two requests.

The model of `test_exclusive_model` seldom meets these orders of requests.
"""

import testtools

from heat_plugins.objectstore import exclusive
from heat_plugins.objectstore import json_records
from heat_plugins.objectstore import lease
from tests.unit import fake_swift

FIRST, SECOND = lease.name(1), lease.name(2)
EXPIRY, SAFE = 45.0, 25.0


class LeaseTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster()
        self.cluster.now = lambda: self.now
        self.epochs = json_records.Records(self.cluster.store(), 'box')

    def lease(self, who):
        seconds = {'expiry': EXPIRY, 'safe': SAFE, 'clock': lambda: self.now}
        return lease.Lease(self.epochs, who=who, **seconds)

    def held(self, who):
        acquired = self.lease(who)
        assert acquired.acquire(), who
        return acquired

    def test_a_late_holder_drops_nothing(self):
        # It leaves it to who is about to take over.
        dan = self.held('dan')
        self.now += SAFE + 1
        dan.drop()
        assert self.epochs.names() == [FIRST]
        self.epochs.delete(FIRST)
        # And to who has.
        ann = self.held('ann')
        self.now += EXPIRY + 1
        bob = self.held('bob')
        ann.drop()
        assert self.epochs.names() == [FIRST, SECOND]
        assert not self.lease('eve').acquire()
        bob.drop()
        assert self.epochs.names() == []

    def test_the_first_epoch_is_dropped_first(self):
        self.held('ann')
        self.now += EXPIRY + 1
        bob = self.held('bob')
        eve, dan = self.lease('eve'), self.lease('dan')
        deleted, won = [], []

        def between(request):
            is_epoch = exclusive.FOLDER not in request.url
            if request.method == 'DELETE' and is_epoch:
                deleted.append(request.url)
                if len(deleted) == 2:
                    won.append(eve.acquire())

        # Else the second epoch is free while the first seems to be ann's.
        self.cluster.before = between
        bob.drop()
        assert [*won, dan.acquire()] == [True, False]

    def test_who_follows_a_lease_that_is_dropped_holds_nothing(self):
        self.held('ann')
        self.now += EXPIRY + 1

        def before(request):
            if request.method == 'PUT' and SECOND in request.url:
                self.cluster.container('box').objects.pop(FIRST, None)

        self.cluster.before = before
        assert not self.lease('bob').acquire()
        assert self.epochs.names() == []
        self.held('eve')
