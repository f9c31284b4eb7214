# SPDX-License-Identifier: Apache-2.0
"""What engines make of a schedule that none of them has kept for a while."""

import contextlib

from heat.db import api as db_api
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins import metrics
from heat_plugins.engine.database import schedule_rows
from heat_plugins.runs.schedules import schedules
from tests.unit import counted
from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.resources import deployments
from tests.unit.resources import test_software_schedule as base

NOW = keeping.NOW
MINUTE = 60


class Killed(Exception):
    """The engine has died: it reaches the database no more."""


class Statements:
    """Counts statements of the database, twice each, and commits.

    :ivar kill_at: the one from which on the engine is dead; None for none.
    """

    def __init__(self, case):
        self.number, self.kill_at = 0, None
        engine = db_api.get_engine()
        for name in (
            'before_cursor_execute',
            'after_cursor_execute',
            'commit',
        ):
            sqlalchemy.event.listen(engine, name, self)
            case.addCleanup(sqlalchemy.event.remove, engine, name, self)

    def __call__(self, *args):
        self.number += 1
        if self.kill_at is not None and self.number >= self.kill_at:
            raise Killed('it is dead')


class OutageTest(keeping.KeepingCase):
    def test_an_hours_outage_leaves_one_late_run_and_names_what_it_missed(
        self,
    ):
        self.scheduled(cron='*/10 * * * *', start_within=300)
        self.keeper().look()
        self.now = NOW + 63 * MINUTE
        keeper = self.keeper()
        with self.assertLogs('heat_plugins', 'WARNING') as logs:
            keeper.look()
        uuid = self.heat.load(self.made)['nightly'].uuid
        (event,) = [
            each for each in deployments.events(self.made) if 'missed' in each
        ]
        for minutes in range(10, 60, 10):
            assert f'2027-01-15T08:{minutes}:00Z' in logs.output[0]
        assert self.record().missed == 5
        # Clients cut long reasons.
        assert f'and 3 more: {self.record().reason[:99]}' in event[:200]
        late = schedules.run_id(uuid, NOW + 60 * MINUTE)
        assert self.runs() == [late]
        # No engine names or starts anything again.
        self.after(MINUTE, keeper)
        self.keeper().look()
        assert self.runs() == [late]
        assert self.record().missed == 5
        # An event that cannot be written changes nothing.
        self.patch(schedule_rows, 'add_event', None)
        self.after(19 * MINUTE, keeper)
        assert self.record().missed == 6

    def test_a_deadlock_delays_a_schedule_by_seconds(self):
        self.scheduled()
        keeper = self.keeper()
        keeper.look()
        self.at(1)

        def lose(*args):
            raise db_exception.DBDeadlock

        replace = schedule_rows.replace
        self.patch(schedule_rows, 'replace', lose)
        assert keeper.look() <= 2
        self.patch(schedule_rows, 'replace', replace)
        self.after(2, keeper)
        assert self.runs() == self.ids(1)

    def test_what_an_update_finds_missed_is_an_event(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(cron='*/10 * * * *', start_within=300)
        self.now = NOW + 49 * MINUTE
        content = base.template(cron='@daily', stack_tag='prod')
        self.heat.update(self.made, content)
        assert self.record().missed == 4
        assert counts.of(metrics.TICKS) == {'missed': 4}
        (event,) = [
            each for each in deployments.events(self.made) if 'missed' in each
        ]
        assert 'The former schedule has missed 4 of its times' in event
        self.heat.update(self.made, base.template(cron='@weekly'))
        assert 'missed 0' not in str(deployments.events(self.made))

    def test_an_engine_that_dies_at_any_statement_loses_and_doubles_nothing(
        self,
    ):
        statements = Statements(self)
        kills = 0
        while self.killed_at(statements, kills + 1):
            kills += 1
            self.lead('engine-2')
            successor = self.keeper()
            for _ in range(4):
                self.after(MINUTE, successor)
            assert self.runs() == self.ids(1), kills
            record = self.record()
            assert (record.created, record.missed) == (True, 0), kills
            (made,) = self.ids(1)
            assert len(self.store.load(made).revisions) == 4
            self.heat.delete(self.made)
        # Before and after each of them.
        assert kills > 15

    def killed_at(self, statements, number):
        """Let an engine die around a statement; False if it has fewer."""
        self.now = NOW
        self.lead()
        self.scheduled()
        self.keeper().look()
        self.at(1)
        keeper = self.keeper()
        statements.number, statements.kill_at = 0, number
        with contextlib.suppress(Exception):
            keeper.look()
        statements.kill_at = None
        self.renew_places()
        return statements.number >= number

    def test_many_at_once_cost_a_few_statements_each(self):
        statements = Statements(self)
        costs = {each: self.cost(statements, each) for each in (5, 10)}
        each = (costs[10] - costs[5]) / 5
        # Two for each statement, one for each commit.
        assert each < 16
        assert costs[10] < 2.1 * costs[5]

    def cost(self, statements, number):
        """Return what one stack costs that has some schedules due."""
        self.now = NOW
        content = base.template(cron='@hourly', stack_tag='prod')
        (schedule,) = content['resources'].values()
        content['resources'] = {f's{n}': schedule for n in range(number)}
        made = self.heat.create(content, name=f'with-{number}')
        self.at(1)
        keeper, statements.number = self.keeper(), 0
        keeper.look()
        cost = statements.number
        started = self.store.leaders()
        assert started == {keeping.ENGINE}
        self.heat.delete(made)
        return cost
