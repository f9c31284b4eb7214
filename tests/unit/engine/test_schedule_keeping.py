# SPDX-License-Identifier: Apache-2.0
"""Which engine starts what a schedule has due, and when."""

import itertools
import logging
import time
import types

import fixtures
from heat.common import context as heat_context
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_upgradecheck import upgradecheck

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins import pools
from heat_plugins.checks import engine as checks
from heat_plugins.engine import process
from heat_plugins.engine.database import scans
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import schedule_keeping
from heat_plugins.objectstore import lease
from heat_plugins.resources import software_schedule
from heat_plugins.runs import schedule_deciding
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from tests.unit import counted
from tests.unit import examples
from tests.unit import threads
from tests.unit.resources import deployments
from tests.unit.resources import test_software_schedule as base
from tests.unit.runs.fleet import simulation

HOUR = 3600
NOW = base.NOW


class KeepingCase(base.ScheduleCase):
    """Engines over the fakes of Heat's API and of the object store."""

    def setUp(self):
        super().setUp()
        self.set_world(4)
        cfg.CONF.set_override('rescue_interval', 60, config.GROUP)
        self.patch(process, 'threading', threads.stand_in(self.start))
        self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
        self.patch(schedule_keeping, '_heat', lambda stack: self.world.heat)
        self.patch(schedule_keeping, '_door', self.door)
        self.patch(fleet_watching, 'load_stack', self.load_stack)
        self.patch(scans, 'ended', self.ended)
        #: The operations that engines looked for.
        self.looked = []
        self.patch(fleet_watching, 'look_for', self.looked.append)
        #: Whether the engine that creates an operation has no place for it.
        self.is_full = True
        keep = fleet_watching.keep
        self.patch(
            fleet_watching,
            'keep',
            lambda *given: not self.is_full and keep(*given),
        )
        #: Whether Keystone refuses the trust of the stack.
        self.is_trusted = True
        self.patch(fleets, 'is_tick_to_tidy', lambda: False)
        #: What the threads of engines do that have not run.
        self.later = None

    def set_world(self, members):
        """Begin with some servers, in stacks that bear the tag."""
        self.world = world = simulation.World(members)
        world.heat.stack_ids = lambda tag=None: [
            each.id for each in world.stacks
        ]

    def start(self, target):
        if self.later is None:
            target()
        else:
            self.later.append(target)

    def door(self, row, stack, budget=None, limits=None):
        return fleets.Fleets(
            self.world.heat, self.world.tools(f'schedule {row.name}')
        )

    def load_stack(self, stack_id, project_id):
        if not self.is_trusted:
            return None
        # A resource does not keep its stack alive.
        self.stack = self.heat.load(types.SimpleNamespace(id=stack_id))
        return self.stack

    def ended(self, context, wanted):
        live = {
            row.server_id
            for row in self.world.heat.rows.values()
            if row.status == 'IN_PROGRESS'
        }
        return {each for each in wanted if each[1] not in live}

    def keeper(self):
        return schedule_keeping.Keeper(clock=lambda: self.now)

    def scheduled(self, **given):
        """Create a stack whose schedule runs on the servers of the world."""
        given = {'cron': '@hourly', 'stack_tag': 'prod', **given}
        self.made = self.created(**given)
        return self.made

    def at(self, hours):
        """Let it be some hours after the creation."""
        self.now = NOW + hours * HOUR
        self.world.now = self.now

    def ids(self, *hours):
        uuid = self.heat.load(self.made)['nightly'].uuid
        return [record_names.id_of_tick(uuid, NOW + h * HOUR) for h in hours]

    def operations(self):
        """Return the IDs of the operations that there are, in their order."""
        door = fleets.Fleets(self.world.heat, self.world.tools())
        return [each.id for each in door.history(fleets.Filter())][::-1]

    def finish(self, operation_id, fail=()):
        """Let an engine advance an operation to its end."""
        self.world.fail = set(fail)
        door = fleets.Fleets(self.world.heat, self.world.tools('engine'))
        advancer = door.advancer(operation_id)
        now = self.world.now
        while not advancer.step().ended:
            self.world.sleep(1)
        self.world.now = now
        return advancer.operation

    def record(self):
        return self.kept(self.made).record

    def dies_at(self, number):
        """Let an engine look, and die at a request; False if it ends."""
        self.world.kill_at = number
        try:
            self.keeper().look()
        except simulation.Killed:
            return True
        finally:
            self.world.kill_at = None
            self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
        return False


class KeepingTest(KeepingCase):
    """What becomes of a tick, whatever fails."""

    def test_each_tick_is_counted_once(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(start_within=120)
        keepers = self.keeper(), self.keeper()
        self.at(1)
        for keeper in keepers:
            keeper.look()
        self.finish(*self.ids(1))
        # The end is seen; two missed and one late; one that finds it running.
        for hours in (1.01, 4.02, 5):
            self.at(hours)
            for keeper in keepers:
                keeper.look()
        self.assertEqual(
            {'started': 1, 'late': 1, 'missed': 2, 'skipped': 1},
            counts.of(metrics.TICKS),
        )

    def test_what_is_not_recorded_is_not_counted(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled()
        self.at(1)
        change, keeper = schedule_rows.change, self.keeper()
        self.patch(schedule_rows, 'change', lambda *args: None)
        keeper.look()
        self.assertEqual({}, counts.of(metrics.TICKS))
        self.patch(schedule_rows, 'change', change)
        self.now += 15
        keeper.look()
        self.assertEqual({'started': 1}, counts.of(metrics.TICKS))

    def test_of_two_engines_that_give_up_one_counts_and_tells(self):
        counts = self.useFixture(counted.Counted())
        self.is_trusted = False
        self.scheduled(start_within=120)
        self.at(1)
        self.keeper().look()
        self.later = []
        for hours in (1.1, 1.2):
            self.at(hours)
            self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
            self.keeper().look()
        both, self.later = self.later, None
        self.assertEqual(2, len(both))
        for each in both:
            each()
        self.assertEqual({'missed': 1}, counts.of(metrics.TICKS))
        events = deployments.events(self.made)
        self.assertEqual(1, len([e for e in events if 'missed' in e]))

    def test_what_waited_for_another_tick_starts_late(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(overlap='queue')
        keeper = self.keeper()
        for hours in (1, 2):
            self.at(hours)
            keeper.look()
        self.finish(*self.ids(1))
        for hours in (2.5, 2.6):
            self.at(hours)
            keeper.look()
        self.assertEqual({'started': 1, 'late': 1}, counts.of(metrics.TICKS))

    def test_what_an_update_finds_missed_is_counted(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(start_within=120)
        self.at(2.5)
        self.heat.update(self.made, base.template(cron='@daily'))
        self.assertEqual({'missed': 2}, counts.of(metrics.TICKS))

    def test_a_tick_becomes_an_operation(self):
        self.scheduled(
            limits={'max_concurrent': '1', 'max_errors': '50%'},
            cut_off=600,
        )
        keeper = self.keeper()
        self.assertEqual(60, keeper.look())
        self.at(1)
        self.assertLess(keeper.look(), 60)
        self.assertEqual(self.ids(1), self.operations())
        self.assertEqual(self.ids(1), self.looked)
        (made,) = self.ids(1)
        operation = self.finish(made)
        self.assertEqual(4, len(operation.attempts))
        self.assertEqual('schedule nightly', operation.order.created_by)
        self.assertEqual(
            ('1', '50%', 600),
            (
                str(operation.order.limits.max_concurrent),
                str(operation.order.limits.max_errors),
                operation.order.limits.cut_off,
            ),
        )
        self.now += 5
        keeper.look()
        record = self.record()
        self.assertEqual(
            ('complete', None, NOW + HOUR, 0),
            (record.outcome, record.running, record.last, record.missed),
        )

    def test_it_wakes_for_the_tick_and_not_much_before(self):
        self.scheduled()
        keeper = self.keeper()
        self.now = NOW + HOUR - 7.5
        self.assertEqual(7.5, keeper.look())
        self.at(2)
        # Another engine has stored none, and there is none.
        self.heat.delete(self.made)
        self.assertEqual(60, keeper.look())

    def test_what_is_not_due_is_read_once_and_asks_no_service(self):
        self.scheduled()
        keeper = self.keeper()
        read = []
        parse = schedule_deciding.KeptSchedule.read
        self.patch(
            schedule_deciding.KeptSchedule,
            'read',
            lambda text: read.append(text) or parse(text),
        )
        for minutes in range(50):
            self.now = NOW + minutes * 60
            keeper.look()
        self.assertEqual(1, len(read))
        self.assertEqual(0, self.world.requests)

    def test_two_engines_make_one_operation(self):
        self.scheduled()
        first, second = self.keeper(), self.keeper()
        self.at(1)
        first.look()
        second.look()
        self.assertEqual(self.ids(1), self.operations())
        self.assertEqual(1, len(self.looked))

    def test_of_engines_that_decide_at_the_same_time_one_does(self):
        self.scheduled()
        self.at(1)
        replace, before = schedule_rows.replace, []

        def other_first(context, number, old, new):
            if not before:
                before.append(new)
                # It has threads of its own.
                ours = schedule_keeping._PLACES
                schedule_keeping._PLACES = process.Places(32, 4)
                self.keeper().look()
                schedule_keeping._PLACES = ours
            return replace(context, number, old, new)

        self.patch(schedule_rows, 'replace', other_first)
        self.assertEqual(0.1, self.keeper().look())
        self.assertEqual(self.ids(1), self.operations())

    def test_a_dead_engine_that_has_decided_has_a_successor(self):
        self.scheduled()
        self.at(1)
        self.later = []
        self.keeper().look()
        # Its thread never runs.
        (_,) = self.later
        self.later = None
        schedule_keeping._PLACES = process.Places(32, 4)
        successor = self.keeper()
        self.assertEqual(15, successor.look())
        self.assertEqual([], self.operations())
        self.now += 15
        successor.look()
        self.assertEqual(self.ids(1), self.operations())
        self.assertTrue(self.record().created)

    def test_the_first_engine_of_a_tick_competes_with_none(self):
        self.set_world(1)
        self.scheduled()
        keeper, seen = self.keeper(), self.world.cluster.seen
        for hours in (1, 2):
            self.at(hours)
            before = len(seen)
            keeper.look()
            # At first there is no container.
            self.assertLess(len(seen) - before, 12)
            self.finish(*self.ids(hours))
            self.now += 60
            keeper.look()
        self.assertEqual(self.ids(1, 2), self.operations())

    def test_an_engine_that_stood_still_finds_what_its_successor_does(self):
        for last in (0, -1):
            self.scheduled()
            self.at(1)
            self.later = []
            self.keeper().look()
            schedule_keeping._PLACES = process.Places(32, 4)
            self.now += 15
            self.keeper().look()
            # One has decided, and one after it that it is late.
            stuck, later = self.later
            self.later = None
            for run in (stuck, later) if last else (later, stuck):
                run()
            self.assertEqual(self.ids(1), self.operations())
            # No other process has replaced what proves it.
            self.finish(*self.ids(1))
            self.heat.delete(self.made)
            self.set_world(4)
            self.now = NOW

    def test_an_engine_killed_at_any_request_leaves_one_operation(self):
        """Its successor creates it, or finds it; servers run it once."""
        kills = 0
        while self.killed_at(kills + 1):
            kills += examples.STEP
            # Its lease expires, and what it has announced.
            keeper = self.keeper()
            for _ in range(9):
                self.now += lease.EXPIRY / 2
                self.world.now = self.now
                keeper.look()
            self.assertEqual(self.ids(1), self.operations(), kills)
            self.assertTrue(self.record().created, kills)
            self.finish(*self.ids(1))
            self.assertEqual([1, 1], [*self.world.executed.values()], kills)
            self.heat.delete(self.made)
        self.assertGreater(kills, 20)

    def killed_at(self, number):
        """Let an engine die at a request; False if it sends fewer."""
        self.set_world(2)
        self.now = NOW
        self.scheduled()
        self.at(1)
        return self.dies_at(number)

    def test_an_operation_that_a_user_has_deleted_is_not_made_again(self):
        self.scheduled()
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        (made,) = self.ids(1)
        self.finish(made)
        self.door(types.SimpleNamespace(name=''), None).delete(made)
        self.now += 5
        keeper.look()
        self.assertEqual([], self.operations())
        self.assertEqual('cancelled', self.record().outcome)

    def test_an_outage_delays_a_tick_and_then_misses_it(self):
        self.scheduled(cron='0 */6 * * *', start_within=600)
        keeper = self.keeper()
        self.is_trusted = False
        self.at(4)
        self.assertEqual(15, keeper.look())
        self.assertIn('with its stored credentials', self.record().reason)
        self.is_trusted = True
        self.now += 15
        keeper.look()
        self.assertEqual(self.ids(4), self.operations())
        self.assertEqual('', self.record().reason)
        self.assertIn('No schedule has missed', checks.schedules().details)
        self.finish(*self.ids(4))
        self.now += 5
        keeper.look()
        self.is_trusted = False
        self.at(10)
        keeper.look()
        self.now += 601
        keeper.look()
        record = self.record()
        self.assertEqual(
            (None, 1, 'missed'),
            (record.running, record.missed, record.outcome),
        )
        self.assertIn('stored credentials', record.reason)
        (made,) = self.ids(10)
        (event,) = (
            each
            for each in deployments.events(self.made)
            if each.startswith('Not triggered: ')
        )
        self.assertIn(f'missed {made}: heat-engine cannot load', event)
        self.assertIn(
            f'Project {self.made.tenant_id}: {self.made.name}',
            checks.schedules().details,
        )
        self.assertEqual(1, len(self.operations()))

    def test_what_an_outage_has_missed_is_an_event(self):
        self.scheduled(start_within=120)
        self.at(2.5)
        self.keeper().look()
        event = deployments.events(self.made)[0]
        for missed in self.ids(1, 2):
            self.assertIn(missed, event)
        self.assertIn(schedule_deciding.LATE, event)
        self.patch(schedule_rows, 'add_event', None)
        self.at(3.5)
        self.keeper().look()
        self.assertEqual(3, self.record().missed)

    def test_an_operation_that_a_dead_engine_has_created_is_not_missed(self):
        self.scheduled(start_within=120)
        self.at(1)
        change = schedule_rows.change
        self.patch(schedule_rows, 'change', lambda *args: None)
        self.keeper().look()
        self.assertFalse(self.record().created)
        self.patch(schedule_rows, 'change', change)
        self.patch(
            scans,
            'is_registered',
            lambda context, project_id, operation_id: bool(
                self.world.heat.deployments(operation_id)
            ),
        )
        self.at(1.5)
        self.keeper().look()
        self.assertEqual(
            (True, 0), (self.record().created, self.record().missed)
        )
        self.assertEqual(self.ids(1), self.operations())

    def test_a_target_that_is_not_there_is_a_reason(self):
        self.scheduled(targets=['nothing*'])
        self.at(1)
        self.keeper().look()
        self.assertIn('There is no target', self.record().reason)

    def test_a_daily_check_knows_before_the_night_what_is_wrong(self):
        self.scheduled(cron='0 7 * * *', targets=['nothing*'])
        keeper = self.keeper()
        self.at(0.9)
        keeper.look()
        self.assertEqual('', self.record().reason)
        self.at(1)
        keeper.look()
        self.assertIn('There is no target', self.record().reason)
        self.assertEqual(0, self.record().missed)
        # It is checked once an hour then, by one engine.
        asked = len(self.world.heat.asked)
        self.keeper().look()
        self.at(1.9)
        keeper.look()
        self.assertEqual(asked, len(self.world.heat.asked))
        self.at(2)
        keeper.look()
        self.assertLess(asked, len(self.world.heat.asked))

    def test_a_named_target_that_is_gone_is_a_reason_that_stays(self):
        (name, *_) = self.paths()
        self.scheduled(cron='@daily', targets=[name, 'gone', 'gone*'])
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        reason = self.record().reason
        self.assertEqual('There is no target for BACKUP in gone', reason)
        # It starts on what is there.
        self.at(16)
        keeper.look()
        (made,) = self.ids(16)
        self.assertEqual(1, len(self.finish(made).attempts))
        self.now += 5
        keeper.look()
        keeper.look()
        record = self.record()
        self.assertEqual(('complete', reason), (record.outcome, record.reason))

    def paths(self):
        """Return the paths of the deployments of the world."""
        chooser = fleet_targets.Chooser(self.world.heat, pools.Pool(workers=1))
        wanted = fleet_targets.Wanted(tags=('prod',))
        order = orders.RunOrder(action='BACKUP', inputs={})
        chosen = chooser.choose(wanted, order)
        return [each.resource for each in chosen.targets]

    def test_what_can_run_is_checked_once_a_day(self):
        self.scheduled(cron='0 0 1 * *')
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        asked = len(self.world.heat.asked)
        self.keeper().look()
        self.at(20)
        keeper.look()
        self.assertEqual(asked, len(self.world.heat.asked))
        self.at(25)
        keeper.look()
        self.assertLess(asked, len(self.world.heat.asked))

    def test_a_check_that_a_temporary_failure_stops_is_retried(self):
        self.scheduled(cron='0 0 1 * *', targets=['nothing*'])
        load = self.load_stack

        def fail(*args):
            raise errors.Unavailable('away')

        self.patch(fleet_watching, 'load_stack', fail)
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        self.patch(fleet_watching, 'load_stack', load)
        self.now += 599
        keeper.look()
        self.assertEqual('', self.record().reason)
        self.now += 60
        keeper.look()
        self.assertIn('There is no target', self.record().reason)

    def test_a_check_keeps_why_a_tick_was_missed(self):
        self.scheduled(cron='0 7 1,15 * *', start_within=120)
        keeper = self.keeper()
        self.at(24 * 17)
        keeper.look()
        self.at(24 * 18)
        keeper.look()
        record = self.record()
        self.assertEqual(
            ('missed', schedule_deciding.LATE), (record.outcome, record.reason)
        )
        self.assertEqual(NOW + 24 * 18 * HOUR, record.checked)

    def test_the_daily_check_withdraws_a_reason(self):
        self.scheduled(cron='0 0 1 * *')
        keeper = self.keeper()
        self.is_trusted = False
        self.at(1)
        keeper.look()
        self.assertIn('stored credentials', self.record().reason)
        self.is_trusted = True
        self.at(25)
        keeper.look()
        self.assertEqual('', self.record().reason)
        self.assertEqual([], self.operations())

    def test_a_paused_schedule_is_not_checked(self):
        self.scheduled(cron='0 0 1 * *', targets=['nothing*'], paused=True)
        self.at(1)
        self.assertEqual(60, self.keeper().look())
        self.assertEqual('', self.record().reason)

    def test_a_check_for_which_there_is_no_thread_comes_later(self):
        self.scheduled(cron='0 0 1 * *', targets=['nothing*'])
        self.patch(schedule_keeping, '_PLACES', process.Places(0, 0))
        self.at(1)
        keeper = self.keeper()
        self.assertIn(int(keeper.look()), range(2, 7))
        self.assertEqual('', self.record().reason)
        self.patch(schedule_keeping, '_PLACES', process.Places(32, 4))
        self.now += 60
        keeper.look()
        self.assertIn('There is no target', self.record().reason)

    def test_what_cannot_be_created_is_retried_within_a_minute(self):
        self.scheduled()
        self.is_trusted = False
        keeper = self.keeper()
        self.at(1)
        begun = []
        while len(begun) < 9:
            pause = keeper.look()
            begun.append(self.record().acted)
            begun = sorted({*begun})
            self.now += pause
        pauses = [b - a for a, b in itertools.pairwise(begun)]
        self.assertEqual(15, pauses[0])
        self.assertEqual(sorted(pauses), pauses)
        self.assertIn(pauses[-1], (60, 61))

    def test_a_tick_that_waits_starts_after_the_end_of_the_former(self):
        self.scheduled(overlap='queue', start_within=120)
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        self.at(2)
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())
        self.finish(*self.ids(1))
        self.at(2.5)
        keeper.look()
        keeper.look()
        self.assertEqual(self.ids(1, 2), self.operations())
        self.assertEqual(0, self.record().missed)

    def test_a_tick_may_cancel_the_former(self):
        self.scheduled(overlap='cancel')
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        self.at(2)
        keeper.look()
        (first,) = self.ids(1)
        found = self.door(types.SimpleNamespace(name=''), None).show(first)
        self.assertIs(operations.Phase.CANCELLED, found.control.phase)
        self.now += 5
        keeper.look()
        keeper.look()
        self.assertEqual(self.ids(1, 2), self.operations())

    def test_an_operation_that_is_cancelled_already_is_waited_for(self):
        self.scheduled(overlap='cancel')
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        asked = []

        def request(door, operation_id, what):
            asked.append(what)
            raise errors.Refused('it is stopping')

        self.patch(fleets.Fleets, 'request', request)
        self.at(2)
        keeper.look()
        self.now += 5
        keeper.look()
        self.assertEqual(['cancel'], asked)
        self.now += 25
        keeper.look()
        self.assertEqual(['cancel'] * 2, asked)
        self.assertEqual(NOW + 2 * HOUR, self.record().waiting)

    def started(self, **given):
        """Return an engine that has created the operation of a tick."""
        self.scheduled(**given)
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        return keeper

    def test_an_operation_that_was_tampered_with_has_failed(self):
        keeper = self.started(pause_after_failures=1)
        (made,) = self.ids(1)
        self.finish(made)
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        objects[layout.order(made)] += b' '
        self.now += 30
        keeper.look()
        record = self.record()
        self.assertEqual(
            ('failed', None, '1 failures in a row'),
            (record.outcome, record.running, record.paused),
        )
        self.assertIn(made, record.reason)

    def test_why_the_end_cannot_be_read_is_a_reason(self):
        keeper = self.started()
        self.finish(*self.ids(1))
        self.is_trusted = False
        self.now += 30
        keeper.look()
        record = self.record()
        self.assertEqual(NOW + HOUR, record.running)
        self.assertIn('stored credentials', record.reason)
        self.is_trusted = True
        self.now += 30
        keeper.look()
        self.assertEqual('', self.record().reason)
        self.assertEqual('complete', self.record().outcome)

    def test_why_nothing_can_be_cancelled_is_a_reason(self):
        keeper = self.started(overlap='cancel')
        self.is_trusted = False
        self.at(2)
        keeper.look()
        self.assertIn('stored credentials', self.record().reason)

    def test_the_end_is_read_without_a_listing_and_without_attempts(self):
        keeper = self.started()
        self.finish(*self.ids(1))
        before = len(self.world.cluster.seen)
        self.now += 30
        self.patch(operation_records.Heads, 'ids', lambda *args: [])
        keeper.look()
        self.assertEqual('complete', self.record().outcome)
        seen = [one.where for one in self.world.cluster.seen[before:]]
        self.assertEqual(
            [], [where for where in seen if where.endswith('/00000')]
        )

    def test_what_heat_knows_of_was_not_deleted(self):
        keeper = self.started()
        (made,) = self.ids(1)
        self.finish(made)
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        order = objects.pop(layout.order(made))
        self.patch(scans, 'is_registered', lambda *args: True)
        self.now += 30
        keeper.look()
        self.assertEqual(NOW + HOUR, self.record().running)
        self.assertIn('There is no operation', self.record().reason)
        objects[layout.order(made)] = order
        self.now += 30
        keeper.look()
        self.assertEqual('complete', self.record().outcome)

    def test_what_has_no_records_for_a_day_has_failed(self):
        keeper = self.started(pause_after_failures=1)
        (made,) = self.ids(1)
        self.finish(made)
        objects = self.world.cluster.container(simulation.CONTAINER).objects
        del objects[layout.order(made)]
        self.patch(scans, 'is_registered', lambda *args: True)
        self.at(25)
        keeper.look()
        self.assertEqual(NOW + HOUR, self.record().running)
        self.at(26)
        keeper.look()
        record = self.record()
        self.assertEqual((None, 'failed'), (record.running, record.outcome))
        self.assertIn('There is no operation', record.reason)

    def test_what_a_stack_may_not_read_names_the_remedy(self):
        self.scheduled()

        def deny(tag=None):
            raise errors.Denied('HTTP 403: no trust', 403)

        self.world.heat.stack_ids = deny
        self.at(1)
        self.keeper().look()
        self.assertIn('no trust. If the trust', self.record().reason)
        self.assertIn('as another user', self.record().reason)

    def test_a_failure_is_one_warning(self):
        logged = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.scheduled()
        self.is_trusted = False
        keeper = self.keeper()
        self.at(1)
        for _ in range(3):
            keeper.look()
            self.now += 60
        self.assertEqual(
            1,
            logged.output.count(
                'Cannot create the operation of schedule nightly'
            ),
        )

    def test_what_no_engine_keeps_is_named_by_the_status(self):
        self.scheduled(start_within=120)
        clock = types.SimpleNamespace(time=lambda: self.now)
        self.patch(schedule_rows, 'time', clock)
        self.assertNotIn(self.made.name, checks.schedules().details)
        self.at(1.5)
        found = checks.schedules()
        self.assertEqual(upgradecheck.Code.SUCCESS, found.code)
        self.assertIn(self.made.name, found.details)
        self.now = NOW
        cfg.CONF.set_override('rescue_interval', 0, config.GROUP)
        found = checks.schedules()
        self.assertEqual(upgradecheck.Code.WARNING, found.code)
        self.assertIn('that no engine keeps', found.details)

    def test_a_pause_holds_a_tick_that_is_not_created(self):
        self.scheduled()
        keeper = self.keeper()
        self.is_trusted = False
        self.at(1)
        keeper.look()
        self.is_trusted = True
        self.signal(self.made, {'do': 'pause'})
        self.at(1.5)
        keeper.look()
        self.assertEqual([], self.operations())
        self.assertIsNone(self.get(self.made, 'last_operation'))
        self.at(3)
        keeper.look()
        record = self.record()
        self.assertEqual((None, 0), (record.running, record.missed))

    def test_what_is_surplus_is_forgotten_after_the_operation_is_there(self):
        self.scheduled()
        done = []
        look_for, tidy = self.looked.append, fleets.Fleets.tidy
        self.patch(
            fleet_watching,
            'look_for',
            lambda each: done.append('released') or look_for(each),
        )

        def forget(door, most):
            done.append(self.record().created)
            tidy(door, most)

        self.patch(fleets.Fleets, 'tidy', forget)
        self.patch(fleets, 'is_tick_to_tidy', lambda: True)
        self.at(1)
        keeper = self.keeper()
        keeper.look()
        self.assertEqual(['released', True], done)
        self.finish(*self.ids(1))
        self.now += 5
        keeper.look()
        self.assertEqual(2, len(done))

    def half_created(self, **given):
        """Leave a tick that Heat knows of, and that nobody has recorded."""
        self.scheduled(**given)
        self.at(1)
        heads = operation_records.Heads

        def die(*args):
            self.world.kill_at = 0
            raise simulation.Killed

        write = heads.write
        self.patch(heads, 'write', die)
        keeper = self.keeper()
        self.assertRaises(simulation.Killed, keeper.look)
        self.patch(heads, 'write', write)
        self.world.kill_at = None
        # Each server has one, too.
        self.assertEqual(5, len(self.world.heat.rows))
        self.patch(scans, 'is_registered', lambda *args: True)
        self.assertEqual([], self.operations())
        return keeper

    def test_what_was_half_created_does_not_start_too_late(self):
        keeper = self.half_created(start_within=120)
        self.at(1.5)
        self.world.sleep(lease.EXPIRY * 2)
        keeper.look()
        self.assertEqual([], self.operations())
        self.assertEqual(
            (None, 1), (self.record().running, self.record().missed)
        )

    def test_what_was_half_created_does_not_start_in_a_pause(self):
        keeper = self.half_created()
        self.signal(self.made, {'do': 'pause'})
        self.now += 60
        keeper.look()
        # Its engine may still create it.
        self.assertIn('Another process creates', self.record().reason)
        self.now += 600
        self.world.now = self.now
        keeper.look()
        self.assertEqual([], self.operations())
        self.assertEqual(
            (None, 0), (self.record().running, self.record().missed)
        )

    def test_what_is_created_needs_no_targets_any_more(self):
        self.scheduled()
        self.at(1)
        change = schedule_rows.change
        self.patch(schedule_rows, 'change', lambda *args: None)
        keeper = self.keeper()
        keeper.look()
        self.patch(schedule_rows, 'change', change)
        self.patch(scans, 'is_registered', lambda *args: True)
        self.patch(schedule_keeping, '_choose', None)
        self.now += 15
        keeper.look()
        self.assertTrue(self.record().created)

    def test_a_pause_does_not_hide_what_a_dead_engine_has_created(self):
        self.scheduled()
        self.at(1)
        change = schedule_rows.change
        self.patch(schedule_rows, 'change', lambda *args: None)
        keeper = self.keeper()
        keeper.look()
        self.patch(schedule_rows, 'change', change)
        self.patch(scans, 'is_registered', lambda *args: True)
        self.signal(self.made, {'do': 'pause'})
        self.now += 15
        keeper.look()
        self.assertEqual('starting', self.get(self.made, 'last_outcome'))
        self.now += 45
        keeper.look()
        self.assertTrue(self.record().created)
        self.assertEqual('running', self.get(self.made, 'last_outcome'))

    def test_of_several_processes_one_does_what_is_due(self):
        self.scheduled()
        self.at(1)
        keepers = [self.keeper() for _ in range(8)]
        loads, load = [], self.load_stack
        self.patch(
            fleet_watching,
            'load_stack',
            lambda *args: loads.append(args) or load(*args),
        )
        for keeper in keepers:
            keeper.look()
        self.assertEqual(1, len(loads))
        self.finish(*self.ids(1))
        self.now += 30
        for keeper in keepers:
            keeper.look()
        # The end, and the daily check.
        self.assertEqual(3, len(loads))

    def test_between_scans_only_what_is_due_is_read(self):
        keeper = self.started()
        kept, wanted = schedule_rows.kept, []

        def read(context, numbers):
            wanted.append(numbers)
            return kept(context, numbers)

        (row,) = self.rows()
        self.patch(schedule_rows, 'kept', read)
        for _ in range(29):
            self.now += 1
            keeper.look()
        self.assertNotIn(None, wanted)
        self.assertIn({row.number}, wanted)
        self.assertIn(set(), wanted)
        # A clock that is set back delays no scan.
        self.now -= 9 * HOUR
        keeper.look()
        self.assertIsNone(wanted[-1])

    def test_what_a_user_has_written_stops_no_other(self):
        self.scheduled()
        due = schedule_deciding.due
        self.heat.create(
            base.template(cron='@hourly', stack_tag='prod', note='bad'),
            name='other',
        )

        def decide(schedule, record, now):
            if schedule.note:
                raise OverflowError('it is hostile')
            return due(schedule, record, now)

        self.patch(schedule_deciding, 'due', decide)
        self.at(1)
        self.keeper().look()
        self.assertEqual(self.ids(1), self.operations())

    def test_what_cannot_be_recorded_stops_no_other(self):
        self.scheduled()
        other = self.heat.create(
            base.template(cron='@hourly', stack_tag='prod'), name='other'
        )
        bad = self.heat.load(other)['nightly'].id
        replace = schedule_rows.replace
        failures = []

        def fail(context, number, before, after):
            if number == bad:
                failures.append(self.now)
                raise db_exception.DBDataError(ValueError('it is too long'))
            return replace(context, number, before, after)

        self.patch(schedule_rows, 'replace', fail)
        keeper = self.keeper()
        self.at(1)
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())
        self.now += 30
        keeper.look()
        self.assertEqual(1, len(failures))
        self.now += 31
        keeper.look()
        self.assertEqual(2, len(failures))

    def test_a_record_that_would_not_fit_is_not_kept(self):
        self.scheduled(paused=True)
        (row,) = self.rows()
        long = self.kept(self.made).with_record(reason='é' * 6000)
        schedule_rows.change(
            heat_context.get_admin_context(), row.number, lambda _: long
        )
        self.at(1)
        self.keeper().look()
        self.assertEqual(NOW, self.record().since)

    def test_what_another_resource_has_stored_starts_nothing(self):
        self.scheduled()
        kind = software_schedule.SoftwareSchedule
        self.patch(kind, 'type', lambda resource: 'OS::Heat::Value')
        self.at(1)
        self.keeper().look()
        self.assertEqual([], self.operations())
        self.assertIn('no schedule', self.record().reason)

    def test_a_wrong_clock_does_not_stop_it(self):
        self.scheduled()
        (row,) = self.rows()
        ahead = NOW + 999 * HOUR
        kept = self.kept(self.made).with_record(since=ahead, checked=ahead)
        schedule_rows.change(
            heat_context.get_admin_context(), row.number, lambda _: kept
        )
        keeper = self.keeper()
        keeper.look()
        self.at(1)
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())
        kept = self.kept(self.made).with_record(acted=ahead)
        schedule_rows.change(
            heat_context.get_admin_context(), row.number, lambda _: kept
        )
        self.finish(*self.ids(1))
        self.now += 60
        keeper.look()
        self.assertEqual('complete', self.record().outcome)

    def test_an_error_of_the_database_takes_no_place(self):
        self.scheduled()
        keeper = self.keeper()
        self.at(1)
        replace = schedule_rows.replace

        def fail(*args):
            raise db_exception.DBConnectionError

        self.patch(schedule_rows, 'replace', fail)
        self.assertRaises(db_exception.DBConnectionError, keeper.look)
        self.patch(schedule_rows, 'replace', replace)
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())

    def test_a_place_is_left_before_engines_look_for_an_operation(self):
        places = []

        def look_for(operation_id):
            places.append(operation_id)
            self.assertEqual(1, len(fleet_watching._OFFERS._taken))

        self.patch(fleet_watching, '_OFFERS', process.Places(16, 4))
        self.patch(fleet_watching, 'look_for', look_for)
        self.started()
        self.assertEqual(self.ids(1), places)
        self.assertTrue(self.record().created)

    def test_failures_in_a_row_pause_it(self):
        self.scheduled(pause_after_failures=2)
        keeper = self.keeper()
        for hour in (1, 2):
            self.at(hour)
            keeper.look()
            self.finish(*self.ids(hour), fail=[0, 1])
            self.now += 5
            keeper.look()
        self.assertEqual('2 failures in a row', self.get(self.made, 'paused'))
        self.at(3)
        keeper.look()
        self.assertEqual(self.ids(1, 2), self.operations())
        self.signal(self.made, {'do': 'resume'})
        self.at(4)
        keeper.look()
        self.assertEqual(self.ids(1, 2, 4), self.operations())

    def test_a_run_at_once_needs_no_tick(self):
        self.scheduled(paused=True)
        self.signal(self.made, {'do': 'run'})
        self.keeper().look()
        self.assertEqual(self.ids(0), self.operations())

    def test_a_record_that_cannot_be_read_stops_no_other(self):
        self.scheduled()
        self.heat.create(
            base.template(cron='@hourly', stack_tag='prod'), name='other'
        )
        other = next(r for r in self.rows() if r.stack_id != self.made.id)
        for text in ('x', '{}', '[]', other.text.replace('@hourly', 'x')):
            (row,) = (r for r in self.rows() if r.number == other.number)
            schedule_rows.replace(
                heat_context.get_admin_context(), row.number, row.text, text
            )
            keeper = self.keeper()
            keeper.look()
        self.at(1)
        keeper.look()
        self.assertEqual(self.ids(1), self.operations())

    def test_a_forged_head_hides_no_tick(self):
        self.scheduled()
        self.at(1)
        (wanted,) = self.ids(1)
        tools = self.world.tools()
        tools.sign(tools.records.container)
        tools.records.heads.write(operations.Head(id=wanted, created_at=1))
        self.keeper().look()
        self.assertTrue(self.record().created)
        self.assertEqual(4, len(self.finish(wanted).attempts))

    def test_thousand_that_are_not_due_cost_little(self):
        self.scheduled()
        (row,) = self.rows()
        many = [
            schedule_rows.ScheduleRow(
                **{**vars(row), 'number': number, 'text': row.text}
            )
            for number in range(1000)
        ]
        self.patch(schedule_rows, 'kept', lambda context, numbers: many)
        keeper = self.keeper()
        keeper.look()
        begun = time.process_time()
        keeper.look()
        self.assertLess(time.process_time() - begun, 0.1)
        self.assertEqual(0, self.world.requests)


class ScanTest(base.ScheduleCase):
    def test_it_looks_until_an_error_of_the_database(self):
        looks = []

        def look(keeper):
            looks.append(keeper)
            if len(looks) == 3:
                raise errors.Unavailable('away')
            return 0.001

        self.patch(schedule_keeping.Keeper, 'look', look)
        self.assertRaises(errors.Unavailable, schedule_keeping.SCAN.begin())
        self.assertEqual(3, len(looks))

    def test_an_ended_operation_is_known_without_the_store(self):
        context = heat_context.get_admin_context()
        self.assertEqual({('p', 'x')}, scans.ended(context, {('p', 'x')}))
        self.assertEqual(set(), scans.ended(context, set()))

    def test_a_stack_can_run_what_it_orders(self):
        made = self.created(targets=['db*'], input_values={'level': 9})
        stack = self.heat.load(made)
        wanted, order, limits = stack['nightly'].ordered()
        self.assertEqual(
            ((stack.id,), ('db*',), {'level': 9}, 'BACKUP'),
            (
                wanted.stacks,
                wanted.resources,
                order.inputs,
                order.action,
            ),
        )
        self.assertIsNone(limits.cut_off)
