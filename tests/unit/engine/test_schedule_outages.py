# SPDX-License-Identifier: Apache-2.0
"""What engines make of a schedule that none of them has kept for a while."""

from oslo_db import exception as db_exception

from heat_plugins.engine import process
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import schedule_keeping
from heat_plugins.objectstore import lease
from heat_plugins.runs.records import record_names
from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.resources import deployments
from tests.unit.resources import test_software_schedule as base
from tests.unit.runs.fleet import simulation

NOW = keeping.NOW
MINUTE = 60

#: What reads and writes the database for a keeper.
STATEMENTS = {
    name: getattr(rows, name)
    for name in ('select', 'select_in', 'write', 'finds')
}


class OutageTest(keeping.KeepingCase):
    def test_an_hours_outage_leaves_one_late_run_and_names_what_it_missed(
        self,
    ):
        self.scheduled(cron='*/10 * * * *', start_within=300)
        self.keeper().look()
        self.now = NOW + 63 * MINUTE
        self.world.now = self.now
        keeper = self.keeper()
        keeper.look()
        uuid = self.heat.load(self.made)['nightly'].uuid
        missed = [
            record_names.id_of_tick(uuid, NOW + minutes * MINUTE)
            for minutes in range(10, 60, 10)
        ]
        (event,) = [
            each for each in deployments.events(self.made) if 'missed' in each
        ]
        for each in missed:
            self.assertIn(each, event)
        self.assertEqual(5, self.record().missed)
        late = record_names.id_of_tick(uuid, NOW + 60 * MINUTE)
        self.assertEqual([late], self.operations())
        # No engine names or starts anything again.
        self.now += MINUTE
        keeper.look()
        self.keeper().look()
        self.assertEqual([late], self.operations())
        self.assertEqual(5, self.record().missed)

    def test_a_deadlock_delays_a_schedule_by_seconds(self):
        self.scheduled()
        keeper = self.keeper()
        keeper.look()
        self.at(1)

        def lose(*args):
            raise db_exception.DBDeadlock

        replace = schedule_rows.replace
        self.patch(schedule_rows, 'replace', lose)
        self.assertLessEqual(keeper.look(), 6)
        self.patch(schedule_rows, 'replace', replace)
        self.now += 6
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())

    def test_what_an_update_finds_missed_is_an_event(self):
        self.scheduled(cron='*/10 * * * *', start_within=300)
        self.now = NOW + 49 * MINUTE
        content = base.template(cron='@daily', stack_tag='prod')
        self.heat.update(self.made, content)
        self.assertEqual(4, self.record().missed)
        (event,) = [
            each for each in deployments.events(self.made) if 'missed' in each
        ]
        self.assertIn('The former schedule has missed 4 of its times', event)
        self.heat.update(self.made, base.template(cron='@weekly'))
        self.assertNotIn('missed 0', str(deployments.events(self.made)))

    def test_an_engine_that_dies_at_any_statement_loses_and_doubles_nothing(
        self,
    ):
        kills = 0
        while self.killed_at(kills + 1):
            kills += 1
            self.now += lease.EXPIRY
            self.world.now = self.now
            successor = self.keeper()
            for _ in range(9):
                self.now += lease.EXPIRY / 2
                self.world.now = self.now
                successor.look()
            self.assertEqual(self.ids(1), self.operations(), kills)
            record = self.record()
            self.assertEqual((True, 0), (record.created, record.missed), kills)
            self.heat.delete(self.made)
        # Before and after each of them.
        self.assertGreater(kills, 6)

    def killed_at(self, number):
        """Let an engine die around a statement; False if it has fewer."""
        self.set_world(2)
        self.now = NOW
        self.scheduled()
        self.keeper().look()
        self.at(1)
        left = [number]

        def around(function):
            def call(*args):
                self.die(left)
                done = function(*args)
                self.die(left)
                return done

            return call

        for name, function in STATEMENTS.items():
            self.patch(rows, name, around(function))
        try:
            self.keeper().look()
        except simulation.Killed:
            return True
        finally:
            for name, function in STATEMENTS.items():
                self.patch(rows, name, function)
            self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
        return False

    def die(self, left):
        left[0] -= 1
        if left[0] == 0:
            raise simulation.Killed
