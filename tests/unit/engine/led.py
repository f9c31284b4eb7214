# SPDX-License-Identifier: Apache-2.0
"""An engine that leads runs, for tests of what starts and ends them."""

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
    """

    def setUp(self):
        super().setUp()
        # Heat's fake of Keystone makes trusts for no project.
        self.patch(
            parser.Stack,
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        self.leader = self.lead('engine-1')
        leading.install(self.leader)
        self.addCleanup(leading.install, None)
        self.meanwhile = self.go_on

    def lead(self, engine_id):
        return leading.Leader(
            engine_id,
            run_rows.RunRows(),
            run_fleet.RunServers,
            places=run_world.Places(100, 100),
            monotonic=lambda: self.now,
        )

    def go_on(self):
        """Let the leader do what is due."""
        self.leader.turn()

    def stored_runs(self):
        """Return all runs of the project, the newest first."""
        store = run_rows.RunRows()
        return [
            store.load(head.id).run
            for head in store.heads(
                self.heat.context.project_id, ordering.Query()
            )
        ]
