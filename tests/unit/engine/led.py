# SPDX-License-Identifier: Apache-2.0
"""An engine that leads runs, for tests of what starts and ends them."""

import time

from heat.engine import stack as parser

from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import ordering
from tests.unit import heat_fixture
from tests.unit.engine import run_world
from tests.unit.resources import deployments


class LedCase(deployments.DeploymentTestCase):
    """A test with a leader, whose threads are the caller's.

    It works whenever a second passes.

    :ivar ahead: the seconds by which the clocks of leaders are ahead.
    """

    ENGINE = 'engine-1'

    def setUp(self):
        super().setUp()
        # Heat's fake of Keystone makes trusts for no project.
        new = heat_fixture.new_context
        self.patch(parser.Stack, 'stored_context', lambda stack: new())
        self.ahead = 0
        self.leader = self.lead(self.ENGINE)
        leading.install(self.leader)
        self.addCleanup(leading.install, None)
        self.meanwhile = lambda: self.leader.turn()

    def lead(self, engine_id):
        return leading.Leader(
            engine_id,
            run_rows.RunRows(),
            run_fleet.RunServers,
            places=run_world.Places(100, 100),
            clock=lambda: time.time() + self.ahead,
            monotonic=lambda: self.now,
        )

    def go_on(self):
        self.leader.turn()

    def stored_runs(self):
        store = run_rows.RunRows()
        return [
            store.load(head.id).run
            for head in store.heads(
                self.heat.context.project_id, ordering.Query()
            )
        ]
