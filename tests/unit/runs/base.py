# SPDX-License-Identifier: Apache-2.0
"""A stack with a deployment, its object store, and a clock to turn."""

import testtools

from heat_plugins.objectstore import keys
from heat_plugins.runs.targets import targets
from tests.unit import fake_swift
from tests.unit.runs import fake_heat


class RunsTestCase(testtools.TestCase):
    def setUp(self):
        super().setUp()
        keys.KeyKeeper.forget_abilities()
        self.addCleanup(keys.KeyKeeper.forget_abilities)
        self.now = 1_800_000_000.0
        self.cluster = fake_swift.Cluster(clock=lambda: 0)
        # Its clock is wrong, which must not matter.
        self.cluster.now = lambda: self.now - 500_000
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.row = self.heat.add_deployment(self.stack)

    def on_server(self, name, config):
        """Return a server of the stack as the target of a config."""
        (target,) = targets.Finder(self.heat).matching(
            self.stack, lambda place: place.path == name, config
        )
        return target

    def sleep(self, seconds):
        self.now += seconds
