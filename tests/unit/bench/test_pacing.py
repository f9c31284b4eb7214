# SPDX-License-Identifier: Apache-2.0
"""The computed cost of intervals."""

import testtools

from tests.bench import pacing


class ComputedTest(testtools.TestCase):
    def test_an_interval_that_does_not_grow_is_one_listing_a_second(self):
        # After half a minute with four a second.
        found = pacing.compute_one(limit=1.0, seconds=60)
        self.assertAlmostEqual(120 + 32, found.listings, delta=1)
        self.assertAlmostEqual(0.5, found.latency, delta=0.1)

    def test_one_that_grows_costs_less_and_takes_longer(self):
        slow = pacing.compute_one(limit=10.0, seconds=600)
        quick = pacing.compute_one(limit=5.0, seconds=600)
        self.assertTrue(slow.listings < quick.listings)
        self.assertTrue(slow.latency > quick.latency)
