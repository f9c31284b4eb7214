# SPDX-License-Identifier: Apache-2.0
"""How engines start what a schedule has to run for times of the past."""

import types

from heat.common import exception as heat_exception

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.engine import process
from heat_plugins.engine.database import scans
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import schedule_keeping
from heat_plugins.objectstore import lease
from heat_plugins.runs.fleet import operations
from tests.unit import counted
from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.runs.fleet import simulation

HOUR, NOW = keeping.HOUR, keeping.NOW

#: The two hours before the schedule was created.
RANGE = {'from': '2027-01-15T06:00', 'to': '2027-01-15T07:00'}


class BackfillTest(keeping.KeepingCase):
    def backfill(self, **more):
        self.signal(self.made, {'do': 'backfill', **RANGE, **more})

    def refused(self, details):
        self.assertRaises(
            heat_exception.ResourceFailure, self.signal, self.made, details
        )

    def end(self, keeper, *hours):
        """Let operations run to their end, one after another."""
        for made in self.ids(*hours):
            keeper.look()
            self.assertIn(made, self.operations())
            self.finish(made)
            self.now += 60
            self.world.now = self.now
            keeper.look()

    def test_a_range_becomes_one_operation_after_another(self):
        self.scheduled(cut_off=600)
        keeper = self.keeper()
        self.backfill()
        self.assertEqual(2, self.get(self.made, 'backfill'))
        keeper.look()
        self.assertEqual(self.ids(-2), self.operations())
        operation = self.finish(*self.ids(-2))
        self.assertIs(operations.Phase.COMPLETE, operation.control.phase)
        # The cut-off counts from the start, not from the time of the past.
        self.assertEqual(600, operation.order.limits.cut_off)
        self.now += 60
        self.world.now = self.now
        keeper.look()
        self.end(keeper, -1)
        self.assertEqual(self.ids(-2, -1), self.operations())
        record = self.record()
        self.assertEqual(
            ((), 'complete', 0),
            (record.backfill, record.outcome, record.missed),
        )

    def test_what_it_cannot_start_was_missed_before(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(cron='0 6,7 * * *', start_within=120)
        self.backfill()
        self.is_trusted, keeper = False, self.keeper()
        for _ in range(8):
            self.now += 60
            keeper.look()
        record = self.record()
        self.assertEqual(((), 0), (record.backfill, record.missed))
        self.assertEqual({}, counts.of(metrics.TICKS))

    def test_what_has_run_is_left_out(self):
        self.scheduled()
        keeper = self.keeper()
        self.backfill()
        self.end(keeper, -2, -1)
        self.patch(scans, 'is_registered', lambda *args: True)
        last = self.record().last
        self.backfill()
        for _ in range(4):
            keeper.look()
        self.assertEqual(self.ids(-2, -1), self.operations())
        record = self.record()
        self.assertEqual(
            ((), None, last, 'complete', 0),
            (
                record.backfill,
                record.running,
                record.last,
                record.outcome,
                record.failures,
            ),
        )

    def test_what_ended_before_its_engine_recorded_it_is_recorded(self):
        self.scheduled(cron='0 6,7 * * *')
        keeper = self.keeper()
        self.backfill()
        record = schedule_rows.change
        self.patch(schedule_rows, 'change', self.die)
        self.assertRaises(simulation.Killed, keeper.look)
        self.patch(schedule_rows, 'change', record)
        self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
        self.finish(*self.ids(-2), fail=[0])
        self.patch(scans, 'is_registered', lambda *args: True)
        keeper = self.keeper()
        for _ in range(2):
            self.now += 60
            self.world.now = self.now
            keeper.look()
        record = self.record()
        self.assertEqual(
            ('failed', (NOW - HOUR,)), (record.outcome, record.backfill)
        )

    def die(self, *args):
        raise simulation.Killed

    def test_an_engine_killed_at_any_request_leaves_one_operation_each(self):
        kills = 0
        while self.killed_at(kills + 1):
            kills += 1
            keeper = self.keeper()
            for _ in range(9):
                self.now += lease.EXPIRY / 2
                self.world.now = self.now
                keeper.look()
            self.end(keeper, -2, -1)
            self.assertEqual(self.ids(-2, -1), self.operations(), kills)
            # Of two times on two servers.
            self.assertEqual([1] * 4, [*self.world.executed.values()], kills)
            self.assertEqual((), self.record().backfill)
            self.heat.delete(self.made)
        self.assertGreater(kills, 20)

    def killed_at(self, number):
        """Let an engine die at a request; False if it sends fewer."""
        self.set_world(2)
        self.now = self.world.now = NOW
        self.scheduled(cron='0 6,7 * * *')
        self.backfill()
        return self.dies_at(number)

    def test_an_engine_keeps_what_it_has_created(self):
        self.is_full = False
        step_on = fleet_watching._step_on
        self.patch(
            fleet_watching,
            '_step_on',
            lambda *led: step_on(*led, self.world.sleep),
        )
        self.patch(fleet_watching, 'ADVANCED', process.Places(32, 4))
        self.scheduled()
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        # No other one looks for it.
        self.assertEqual([], self.looked)
        (operation_id,) = self.ids(1)
        door = self.door(types.SimpleNamespace(name=''), None)
        ended = door.show(operation_id)
        self.assertIs(operations.Phase.COMPLETE, ended.control.phase)
        self.assertEqual(0, len(fleet_watching.ADVANCED))

    def test_what_it_cannot_advance_it_releases(self):
        self.is_full = False

        def fail(*led):
            raise errors.Denied('no', 403)

        self.patch(fleet_watching, '_step_on', fail)
        self.scheduled()
        self.at(1)
        self.keeper().look()
        self.finish(*self.ids(1))

    def test_it_stops_and_a_bad_range_is_refused(self):
        self.scheduled()
        self.backfill()
        self.signal(self.made, {'do': 'stop-backfill'})
        self.assertEqual(0, self.get(self.made, 'backfill'))
        self.keeper().look()
        self.assertEqual([], self.operations())
        for details in (
            {'do': 'backfill'},
            {'do': 'backfill', 'from': '2027-01-15'},
            {'do': 'backfill', 'from': '2027-01-15', 'to': 3},
            {'do': 'backfill', 'from': '2027-02-01', 'to': '2027-02-02'},
            {'do': 'run', 'to': '2027-02-02'},
        ):
            self.refused(details)
        self.assertEqual(0, self.get(self.made, 'backfill'))
        # What is refused does not count.
        self.assertEqual(2, self.record().signals)
