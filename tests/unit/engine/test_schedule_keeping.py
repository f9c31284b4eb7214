# SPDX-License-Identifier: Apache-2.0
"""Which engine starts what a schedule has due, and when."""

import dataclasses
import logging
import time
import types
from unittest import mock
import uuid

import fixtures
from heat.common import context as heat_context
from heat.common import exception
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_upgradecheck import upgradecheck

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.checks import engine as checks
from heat_plugins.engine import heat_types
from heat_plugins.engine import process
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import schedule_rows
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import schedule_keeping
from heat_plugins.resources import software_schedule
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from tests.unit import counted
from tests.unit import threads
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_software_schedule as base

HOUR = 3600
NOW = base.NOW
ENGINE = 'engine-1'


class Target:
    """What `door.choose` selects, as far as a run needs it."""

    def __init__(self, number):
        self.number = number

    def with_action(self, action, hooks):
        return run_records.RunTarget(
            stack_id='s',
            stack_name='s0',
            resource=f'db{self.number}',
            deployment_id=f'deployment{self.number}',
            server_id=f'server{self.number}',
        )


class KeepingCase(base.ScheduleCase):
    """Engines over Heat's database, whose selection of targets is a fake.

    :ivar servers: how many targets are selected.
    """

    def setUp(self):
        super().setUp()
        cfg.CONF.set_override('rescue_interval', 60, config.GROUP)
        self.store = run_rows.RunRows()
        self.lead()
        self.patch(process, 'threading', threads.stand_in(self.start))
        self.renew_places()
        self.patch(run_fleet, 'load_stack', self.load_stack)
        self.patch(door, 'choose', self.choose)
        self.servers, self.unmet, self.selections = 4, (), []
        #: Whether Keystone refuses the trust of the stack.
        self.is_trusted = True
        #: What the threads of engines do that have not run.
        self.later = None

    def lead(self, engine_id=ENGINE):
        """Let this process be an engine that leads runs."""
        self.leader = leading.Leader(
            engine_id,
            self.store,
            lambda settle: None,
            places=process.Places(1, 1),
        )
        leading.install(self.leader)
        self.addCleanup(leading.install, None)

    def renew_places(self):
        """Forget the threads of an engine that has died."""
        self.patch(schedule_keeping, 'PLACES', process.Places(32, 4))

    def start(self, target):
        if self.later is None:
            target()
        else:
            self.later.append(target)

    def load_stack(self, stack_id, project_id):
        if not self.is_trusted:
            return None
        # A resource does not keep its stack alive.
        self.stack = self.heat.load(types.SimpleNamespace(id=stack_id))
        return self.stack

    def choose(self, stacks, wanted, action):
        self.selections.append(wanted)
        if not self.servers:
            raise errors.Refused('There is no target')
        return types.SimpleNamespace(
            targets=[Target(number) for number in range(self.servers)],
            description='stack tag prod',
            unmet=self.unmet,
        )

    def keeper(self):
        return schedule_keeping.Keeper(clock=lambda: self.now)

    def scheduled(self, **given):
        """Create a stack with a schedule."""
        given = {'cron': '@hourly', 'stack_tag': 'prod', **given}
        self.made = self.created(**given)
        return self.made

    def at(self, hours, *keepers):
        """Let keepers look some hours after the creation."""
        self.now = NOW + hours * HOUR
        self.after(0, *keepers)

    def after(self, seconds, *keepers):
        """Let time pass, and keepers look."""
        self.now += seconds
        for each in keepers:
            each.look()

    def assert_record(self, **expected):
        record = self.record()
        assert {name: getattr(record, name) for name in expected} == expected

    def ids(self, *hours):
        uuid = self.heat.load(self.made)['nightly'].uuid
        return [schedules.run_id(uuid, NOW + h * HOUR) for h in hours]

    def runs(self):
        """Return the IDs of the runs of the schedule, in their order."""
        uuid = self.heat.load(self.made)['nightly'].uuid
        wanted = ordering.Query(schedule=uuid)
        heads = self.store.heads(self.made.tenant_id, wanted)
        return [each.id for each in heads][::-1]

    def finish(self, run_id, fail=()):
        """Let its leader lead a run to its end; return it."""
        before = self.store.load(run_id)
        ends = {
            number: {
                'number': 1,
                'state': run_records.State.FAILED
                if number in fail
                else run_records.State.COMPLETE,
                'ended_at': int(self.now),
            }
            for number in range(len(before.run.attempts))
        }
        phase = (
            run_records.Phase.FAILED if fail else run_records.Phase.COMPLETE
        )
        after = before.run.attempted(ends).changed(
            phase=phase, ended_at=int(self.now)
        )
        return self.store.step(before, after, str(uuid.uuid4())).run

    def record(self):
        return self.kept(self.made).record


class KeepingTest(KeepingCase):
    """What becomes of a tick, whatever fails."""

    def test_each_tick_is_counted_once(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(start_within=120)
        keepers = self.keeper(), self.keeper()
        self.at(1, *keepers)
        self.finish(*self.ids(1))
        # The end is seen; two missed and one late; one that finds it running.
        for hours in (1.01, 4.02, 5):
            self.at(hours, *keepers)
        assert counts.of(metrics.TICKS) == {
            'started': 1,
            'late': 1,
            'missed': 2,
            'skipped': 1,
        }

    def test_what_another_engine_has_started_is_not_counted(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled()
        self.at(1)
        start = self.leader.start

        def lose(*args):
            raise run_store.Stale('another engine was first')

        self.patch(self.leader, 'start', lose)
        keeper = self.keeper()
        keeper.look()
        assert counts.of(metrics.TICKS) == {}
        assert self.record().reason == ''
        self.patch(self.leader, 'start', start)
        self.after(15, keeper)
        assert counts.of(metrics.TICKS) == {'started': 1}

    def test_of_two_engines_that_give_up_one_counts_and_tells(self):
        counts = self.useFixture(counted.Counted())
        self.is_trusted = False
        self.scheduled(start_within=120)
        self.at(1)
        keepers = self.keeper(), self.keeper()
        for hours in (1, 1.1):
            self.at(hours, *keepers)
        assert counts.of(metrics.TICKS) == {'missed': 1}
        events = deployments.events(self.made)
        assert len([e for e in events if 'missed' in e]) == 1

    def test_a_tick_becomes_a_run(self):
        self.scheduled(
            limits={'max_concurrent': '1', 'max_errors': '50%'},
            input_values={'level': 9},
            cut_off=600,
        )
        keeper = self.keeper()
        assert keeper.look() == 60
        self.at(1)
        assert keeper.look() < 60
        assert self.runs() == self.ids(1)
        (made,) = self.ids(1)
        kept = self.store.load(made)
        order = kept.run.order
        assert kept.engine_id == ENGINE
        assert len(self.leader) == 1
        assert (
            order.action,
            order.inputs,
            len(order.members),
            order.created_by,
            order.targets,
        ) == ('BACKUP', {'level': 9}, 4, 'schedule nightly', 'stack tag prod')
        assert (
            str(order.limits.max_concurrent),
            str(order.limits.max_errors),
            order.limits.cut_off,
        ) == ('1', '50%', 600)
        assert self.get(self.made, 'last_outcome') == 'running'
        self.finish(made)
        self.after(30, keeper)
        self.assert_record(
            outcome='complete', running=None, last=NOW + HOUR, missed=0
        )
        assert self.get(self.made, 'last_run') == made

    def test_a_tick_starts_if_the_run_before_it_has_just_ended(self):
        self.scheduled()
        keeper = self.keeper()
        self.at(1, keeper)
        self.at(2)
        self.now -= 1
        self.finish(*self.ids(1))
        self.after(1, keeper)
        assert self.runs() == self.ids(1, 2)
        assert self.record().skipped == 0

    def test_the_end_of_its_run_is_seen_at_once(self):
        self.scheduled(overlap='queue')
        keepers = self.keeper(), self.keeper()
        self.at(1, *keepers, *keepers)
        self.finish(*self.ids(1))
        for keeper in keepers:
            keeper.look()
            assert self.record().running is not None
        schedule_rows.wake('of no schedule')
        schedule_rows.wake(*self.ids(1))
        assert schedule_rows.woken.is_set()
        keepers[1].look()
        assert self.record().running is None

    def test_it_wakes_for_the_tick_and_not_much_before(self):
        self.scheduled()
        keeper = self.keeper()
        self.now = NOW + HOUR - 7.5
        assert keeper.look() == 7.5
        self.at(2)
        # Another engine has stored none, and there is none.
        self.heat.delete(self.made)
        assert keeper.look() == 60

    def test_what_is_not_due_is_read_once_and_selects_nothing(self):
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
        assert len(read) == 1
        assert self.selections == []

    def test_of_engines_that_decide_at_the_same_time_one_does(self):
        self.scheduled()
        self.at(1)
        replace, before = schedule_rows.replace, []

        def other_first(context, number, old, new):
            if not before:
                before.append(new)
                # It has threads of its own.
                ours = schedule_keeping.PLACES
                self.renew_places()
                self.keeper().look()
                schedule_keeping.PLACES = ours
            return replace(context, number, old, new)

        self.patch(schedule_rows, 'replace', other_first)
        assert self.keeper().look() == 0.1
        assert self.runs() == self.ids(1)

    def test_a_dead_engine_that_has_decided_has_a_successor(self):
        self.scheduled()
        self.at(1)
        self.later = []
        self.keeper().look()
        # Its thread never runs.
        (_,) = self.later
        self.later = None
        self.renew_places()
        successor = self.keeper()
        assert successor.look() == 15
        assert self.runs() == []
        self.after(15, successor)
        assert self.runs() == self.ids(1)
        assert self.record().created

    def test_of_two_engines_that_start_a_tick_one_does(self):
        counts = self.useFixture(counted.Counted())
        for last in (0, -1):
            self.scheduled()
            self.at(1)
            self.later = []
            self.keeper().look()
            self.renew_places()
            self.after(15, self.keeper())
            # One has decided, and one after it that it is late.
            stuck, later = self.later
            self.later = None
            for begin in (stuck, later) if last else (later, stuck):
                self.lead(f'engine-{begin is later}')
                begin()
            assert self.runs() == self.ids(1)
            self.assert_record(created=True, reason='')
            # The one whose record was the last.
            (made,) = self.ids(1)
            assert self.store.load(made).engine_id == 'engine-True'
            self.heat.delete(self.made)
            self.renew_places()
            self.now = NOW
        assert counts.of(metrics.TICKS) == {'started': 2}

    def test_an_outage_delays_a_tick_and_then_misses_it(self):
        self.scheduled(cron='0 */6 * * *', start_within=600)
        keeper = self.keeper()
        self.is_trusted = False
        self.at(4)
        assert keeper.look() == 15
        assert 'with its stored credentials' in self.record().reason
        self.is_trusted = True
        self.after(15, keeper)
        assert self.runs() == self.ids(4)
        assert self.record().reason == ''
        assert 'No schedule has missed' in checks.schedules().details
        self.finish(*self.ids(4))
        self.after(5, keeper)
        self.is_trusted = False
        self.at(10, keeper)
        self.after(601, keeper)
        self.assert_record(running=None, missed=1, outcome='missed')
        assert 'stored credentials' in self.record().reason
        (event,) = (
            each
            for each in deployments.events(self.made)
            if each.startswith('Not triggered: ')
        )
        assert 'missed 2027-01-15T18:00:00Z: heat-engine cannot load' in event
        assert (
            f'Project {self.made.tenant_id}: {self.made.name}'
            in checks.schedules().details
        )
        assert len(self.runs()) == 1

    def test_a_daily_check_knows_before_the_night_what_is_wrong(self):
        self.servers = 0
        self.scheduled(cron='0 7 * * *')
        keeper = self.keeper()
        self.at(0.9, keeper)
        assert self.record().reason == ''
        self.at(1, keeper)
        assert 'There is no target' in self.record().reason
        assert self.record().missed == 0
        # It is checked once an hour then, by one engine.
        self.keeper().look()
        self.at(1.9, keeper)
        assert len(self.selections) == 1
        self.at(2, keeper)
        assert len(self.selections) == 2

    def test_a_named_target_that_is_gone_is_a_reason_that_stays(self):
        self.unmet = ['gone']
        self.scheduled(cron='@daily', targets=['db', 'gone'])
        keeper = self.keeper()
        self.at(1, keeper)
        reason = self.record().reason
        assert reason == 'There is no target for BACKUP in gone'
        # It starts on what is there.
        self.at(16, keeper)
        self.finish(*self.ids(16))
        self.after(30, keeper)
        self.assert_record(outcome='complete', reason=reason)

    def test_a_check_that_a_temporary_failure_stops_is_retried(self):
        self.servers = 0
        self.scheduled(cron='0 0 1 * *')
        load = self.load_stack

        def fail(*args):
            raise errors.Unavailable('away')

        self.patch(run_fleet, 'load_stack', fail)
        keeper = self.keeper()
        self.at(1, keeper)
        self.patch(run_fleet, 'load_stack', load)
        self.after(599, keeper)
        assert self.record().reason == ''
        self.after(60, keeper)
        assert 'There is no target' in self.record().reason

    def test_a_check_keeps_why_a_tick_was_missed(self):
        self.scheduled(cron='0 7 1,15 * *', start_within=120)
        keeper = self.keeper()
        self.at(24 * 17, keeper)
        self.at(24 * 18, keeper)
        self.assert_record(outcome='missed', reason=schedule_deciding.LATE)
        assert self.record().checked == NOW + 24 * 18 * HOUR

    def test_the_daily_check_withdraws_a_reason(self):
        self.scheduled(cron='0 0 1 * *')
        keeper = self.keeper()
        self.is_trusted = False
        self.at(1, keeper)
        assert 'stored credentials' in self.record().reason
        self.is_trusted = True
        self.at(25, keeper)
        assert self.record().reason == ''
        assert self.runs() == []

    def test_a_check_for_which_there_is_no_thread_comes_later(self):
        self.servers = 0
        self.scheduled(cron='0 0 1 * *')
        self.patch(schedule_keeping, 'PLACES', process.Places(0, 0))
        self.at(1)
        keeper = self.keeper()
        assert keeper.look() < 3
        assert self.record().reason == ''
        self.patch(schedule_keeping, 'PLACES', process.Places(32, 4))
        self.after(60, keeper)
        assert 'There is no target' in self.record().reason

    def test_the_only_thread_is_for_what_is_due_and_for_each_in_turn(self):
        made = [
            self.heat.create(
                base.template(cron=cron, stack_tag='prod'), name=name
            )
            for name, cron in (
                ('first', '@hourly'),
                ('second', '@hourly'),
                ('checked', '0 0 1 * *'),
            )
        ]
        self.patch(schedule_keeping, 'PLACES', process.Places(1, 1))
        self.patch(schedule_keeping.random, 'shuffle', list.reverse)
        self.at(1, self.keeper())
        started = []
        for self.made in made:
            started.append(len(self.runs()))
        assert started == [0, 1, 0]

    def test_a_tick_may_cancel_the_former(self):
        self.scheduled(overlap='cancel')
        keeper = self.keeper()
        self.at(1, keeper)
        self.at(2, keeper)
        (first,) = self.ids(1)
        found = self.store.load(first).run
        assert [(each.do, each.who) for each in found.control.asked] == [
            ('cancel', 'schedule nightly')
        ]
        assert found.control.phase is run_records.Phase.CANCELLED
        keeper.look()
        assert self.runs() == self.ids(1, 2)

    def test_a_run_that_is_cancelled_already_is_waited_for(self):
        self.scheduled(overlap='cancel')
        keeper = self.keeper()
        self.at(1, keeper)
        asked = []

        def follow(door, project_id, who, ask):
            asked.append(ask.do)
            raise errors.Refused('it is stopping')

        self.patch(door.Door, 'follow', follow)
        self.at(2, keeper)
        self.after(5, keeper)
        assert asked == ['cancel']
        self.after(25, keeper)
        assert asked == ['cancel'] * 2
        assert self.record().waiting == NOW + 2 * HOUR

    def started(self, **given):
        """Return an engine that has created the run of a tick."""
        self.scheduled(**given)
        keeper = self.keeper()
        self.at(1, keeper)
        return keeper

    def test_a_failure_is_one_warning(self):
        logged = self.useFixture(fixtures.FakeLogger(level=logging.WARNING))
        self.scheduled()
        self.is_trusted = False
        keeper = self.keeper()
        self.at(1)
        for _ in range(3):
            keeper.look()
            self.now += 60
        assert (
            logged.output.count('Cannot start the run of schedule nightly')
            == 1
        )

    def test_what_no_engine_keeps_is_named_by_the_status(self):
        self.scheduled(start_within=120)
        clock = types.SimpleNamespace(time=lambda: self.now)
        self.patch(schedule_rows, 'time', clock)
        assert self.made.name not in checks.schedules().details
        self.at(1.5)
        found = checks.schedules()
        assert found.code == upgradecheck.Code.WARNING
        assert self.made.name in found.details
        self.now = NOW
        cfg.CONF.set_override('rescue_interval', 0, config.GROUP)
        found = checks.schedules()
        assert found.code == upgradecheck.Code.WARNING
        assert 'that no engine keeps' in found.details

    def test_between_scans_only_what_is_due_is_read(self):
        keeper = self.started()
        kept, wanted = schedule_rows.kept, []

        def read(context, numbers):
            wanted.append(numbers)
            return kept(context, numbers)

        (row,) = self.rows()
        self.patch(schedule_rows, 'kept', read)
        for _ in range(29):
            self.after(1, keeper)
        assert None not in wanted
        assert {row.number} in wanted
        assert set() in wanted
        # A clock that is set back delays no scan.
        self.now -= 9 * HOUR
        keeper.look()
        assert wanted[-1] is None

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
        self.at(1, self.keeper())
        assert self.runs() == self.ids(1)

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
        self.at(1, keeper)
        assert self.runs() == self.ids(1)
        self.after(30, keeper)
        assert len(failures) == 1
        self.after(31, keeper)
        assert len(failures) == 2

    def test_what_another_resource_has_stored_starts_nothing(self):
        self.scheduled()
        kind = software_schedule.SoftwareSchedule
        self.patch(kind, 'type', lambda resource: 'OS::Heat::Value')
        self.at(1, self.keeper())
        assert self.runs() == []
        assert 'no schedule' in self.record().reason

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
        self.at(1, keeper)
        assert self.runs() == self.ids(1)
        kept = self.kept(self.made).with_record(acted=ahead)
        schedule_rows.change(
            heat_context.get_admin_context(), row.number, lambda _: kept
        )
        self.finish(*self.ids(1))
        self.after(60, keeper)
        assert self.record().outcome == 'complete'

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
        assert self.runs() == self.ids(1)

    def test_failures_in_a_row_pause_it(self):
        self.scheduled(pause_after_failures=2)
        keeper = self.keeper()
        for hour in (1, 2):
            self.at(hour, keeper)
            self.finish(*self.ids(hour), fail=[0, 1])
            self.after(5, keeper)
        assert self.get(self.made, 'paused') == '2 failures in a row'
        self.at(3, keeper)
        assert self.runs() == self.ids(1, 2)
        self.signal(self.made, {'do': 'resume'})
        self.at(4, keeper)
        assert self.runs() == self.ids(1, 2, 4)

    def test_a_run_that_has_just_ended_keeps_none_from_being_asked_for(self):
        self.scheduled(paused=True)
        self.signal(self.made, {'do': 'run'})
        keeper = self.keeper()
        keeper.look()
        assert self.get(self.made, 'last_outcome') == 'running'
        self.finish(*self.ids(0))
        # No engine has recorded the end.
        assert self.get(self.made, 'last_outcome') == 'complete'
        self.now += 5
        self.signal(self.made, {'do': 'run'})
        keeper.look()
        assert len(self.runs()) == 2

    def test_a_record_that_cannot_be_read_stops_no_other(self):
        self.scheduled()
        self.heat.create(
            base.template(cron='@hourly', stack_tag='prod'), name='other'
        )
        other = next(r for r in self.rows() if r.stack_id != self.made.id)
        for text in (
            *('x', '{}', '[]', other.text.replace('@hourly', 'x')),
            other.text.replace('@hourly', 'x' * 40_000),
        ):
            (row,) = (r for r in self.rows() if r.number == other.number)
            schedule_rows.replace(
                heat_context.get_admin_context(), row.number, row.text, text
            )
            keeper = self.keeper()
            keeper.look()
        self.at(1, keeper)
        assert self.runs() == self.ids(1)

    def test_a_trust_that_is_gone_is_a_reason_with_a_remedy(self):
        for failure, reason in (
            (exception.AuthorizationFailure(), 'update the stack as another'),
            (ks_exceptions.ConnectFailure(), 'Keystone does not answer'),
        ):

            def fail(*args, failure=failure, **more):
                raise failure

            with mock.patch.object(heat_types, 'in_project', fail):
                self.scheduled()
                self.at(1, self.keeper())
            assert reason in self.record().reason
            assert self.runs() == []
            self.heat.delete(self.made)
            self.now = NOW


class SelectionTest(deployments.DeploymentTestCase):
    """What a schedule runs, on the deployments of stacks."""

    TYPES = {
        **deployments.DeploymentTestCase.TYPES,
        'OS::Heat::SoftwareSchedule': software_schedule.SoftwareSchedule,
    }

    def look(self, **given):
        """Create a stack whose schedule runs at once; return the runs."""
        given = {'cron': '@yearly', 'action': 'BACKUP', **given}
        stack = self.created(
            deployments.template(
                resources={
                    'config': triggers.CONFIG,
                    'nightly': {
                        'type': 'OS::Heat::SoftwareSchedule',
                        'properties': given,
                    },
                }
            )
        )
        self.patch(run_fleet, 'load_stack', lambda *args: stack)
        store = run_rows.RunRows()
        leading.install(
            leading.Leader(
                ENGINE,
                store,
                lambda settle: None,
                places=process.Places(1, 1),
            )
        )
        self.addCleanup(leading.install, None)
        self.patch(process, 'threading', threads.stand_in(lambda do: do()))
        before = len(self.swift.seen)
        schedule_rows.change(
            self.heat.context,
            stack['nightly'].id,
            lambda kept: dataclasses.replace(
                kept,
                record=schedule_deciding.run_now(
                    kept.schedule, kept.record, int(time.time())
                ),
            ),
        )
        schedule_keeping.Keeper().look()
        assert len(self.swift.seen) == before
        self.shown = stack['nightly'].FnGetAtt('show')
        return stack, [
            store.load(each.id)
            for each in store.heads(stack.tenant_id, ordering.Query())
        ]

    def test_it_runs_on_the_deployments_of_its_stack(self):
        stack, (kept,) = self.look(input_values={'level': 9})
        (member,) = kept.run.order.members
        assert (member.stack_id, member.resource, member.server_id) == (
            stack.id,
            'deployment',
            stack['server'].resource_id,
        )
        assert self.shown['last_run'] == kept.run.id
        assert self.shown['last_outcome'] == 'running'

    def test_an_action_that_is_not_there_is_a_reason(self):
        _, started = self.look(action='BACKPU')
        assert started == []
        assert 'did you mean "BACKUP"' in self.shown['reason']
        assert self.shown['last_outcome'] == 'starting'


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
        assert len(looks) == 3

    def test_a_stack_can_run_what_it_orders(self):
        made = self.created(targets=['db*'], input_values={'level': 9})
        stack = self.heat.load(made)
        wanted = stack['nightly'].ordered('x')
        assert (
            wanted.run,
            wanted.stacks,
            wanted.resources,
            wanted.inputs,
            wanted.action,
        ) == ('x', (stack.id,), ('db*',), {'level': 9}, 'BACKUP')
