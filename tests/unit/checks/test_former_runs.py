# SPDX-License-Identifier: Apache-2.0
"""What a former release has left is named before an upgrade."""

import uuid

from heat.db import models
from oslo_upgradecheck import upgradecheck
import sqlalchemy

from heat_plugins.checks import engine
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from tests.unit import heat_fixture
from tests.unit.runs import store_contract

Code = upgradecheck.Code


class FormerRunsTest(heat_fixture.HeatTestCase):
    def deployment(self, group, project='p1', **values):
        """Store a deployment of a config of that group."""
        config_id = str(uuid.uuid4())
        config = {'id': config_id, 'name': 'x', 'group': group}
        values = {'action': 'BACKUP', 'status': 'IN_PROGRESS', **values}
        rows.write(
            self.heat.context,
            sqlalchemy.insert(models.SoftwareConfig).values(
                **config, tenant=project
            ),
            sqlalchemy.insert(models.SoftwareDeployment).values(
                id=str(uuid.uuid4()),
                config_id=config_id,
                server_id='server',
                tenant=project,
                stack_user_project_id=project,
                **values,
            ),
        )

    def check(self):
        found = engine.runs_of_former_release()
        return found.code, found.details

    def test_without_any_all_is_well(self):
        self.deployment('script', action='UPDATE')
        self.deployment('script', status='COMPLETE')
        assert self.check() == (
            Code.SUCCESS,
            'A former release has left no run.',
        )

    def test_a_run_of_this_release_is_none(self):
        kept = run_rows.RunRows().create(
            store_contract.PROJECT, store_contract.run(), 'engine'
        )
        after, made = store_contract.begun(kept, 0)
        run_rows.RunRows().step(kept, after, 'begin', given=made)
        found = run_tables.read(self.heat.context, has_tables=True)
        assert (found.running, found.registered) == ({}, {})
        found = run_tables.read(self.heat.context, has_tables=False)
        assert found.running == {store_contract.PROJECT: 1}
        kept = f'Project {store_contract.PROJECT} keeps 2 targets of runs; '
        assert kept in engine.tables().details

    def test_runs_in_progress_are_waited_for_and_records_named(self):
        self.deployment('script')
        self.deployment('ansible', project='p2')
        for group in (*run_tables.REGISTERED, 'heat-plugins-notices'):
            self.deployment(group)
        code, said = self.check()
        assert code == Code.WARNING
        assert 'on 2 servers of projects p1, p2. Let them end' in said
        assert 'containers heat-plugins-operations' in said
        assert 'delete them: p1.' in said

    def test_a_database_that_is_away_quotes_nothing(self):
        def fail(engine):
            raise ValueError('hunter2')

        self.patch(run_tables, 'is_ready', fail)
        code, said = self.check()
        assert code == Code.WARNING
        assert 'ValueError' in said
        assert 'hunter2' not in said
