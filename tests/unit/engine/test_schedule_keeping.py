# SPDX-License-Identifier: Apache-2.0
"""Which engine starts what a schedule has due, and when."""

import contextlib
import dataclasses
import time
import types
from unittest import mock
import uuid

from heat.common import context as heat_context
from heat.common import exception
from heat.db import api as db_api
from keystoneauth1 import exceptions as ks_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exception
from oslo_upgradecheck import upgradecheck
import sqlalchemy

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
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from tests.unit import counted
from tests.unit import threads
from tests.unit.engine import led
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_software_schedule as base
from tests.unit.runs import store_contract

HOUR, MINUTE = 3600, 60
NOW = base.NOW
ENGINE = 'engine-1'


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
        self.leader = leading.Leader(
            engine_id,
            self.store,
            lambda settle: None,
            places=process.Places(1, 1),
        )
        leading.install(self.leader)
        self.addCleanup(leading.install, None)

    def renew_places(self):
        self.patch(schedule_keeping, 'PLACES', process.Places(32, 4))

    def start(self, target):
        if self.later is None:
            target()
        else:
            self.later.append(target)

    def load_stack(self, stack_id, project_id):
        if not self.is_trusted:
            raise errors.Denied('no stored credentials')
        # A resource does not keep its stack alive.
        self.stack = self.heat.load(types.SimpleNamespace(id=stack_id))
        return self.stack

    def choose(self, stacks, wanted, action):
        self.selections.append(wanted)
        if not self.servers:
            raise errors.Refused('There is no target')
        return types.SimpleNamespace(
            targets=[
                types.SimpleNamespace(with_action=lambda *_, it=each: it)
                for each in store_contract.order(targets=self.servers).members
            ],
            description='stack tag prod',
            unmet=self.unmet,
        )

    def keeper(self):
        return schedule_keeping.Keeper(lambda: self.now)

    def scheduled(self, **given):
        given = {'cron': '@hourly', 'stack_tag': 'prod', **given}
        self.made = self.created(**given)
        return self.keeper()

    def at(self, hours, *keepers):
        self.now = NOW + hours * HOUR
        self.after(0, *keepers)

    def after(self, seconds, *keepers):
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
        uuid = self.heat.load(self.made)['nightly'].uuid
        wanted = ordering.Query(schedule=uuid)
        heads = self.store.heads(self.made.tenant_id, wanted)
        return [each.id for each in heads][::-1]

    def finish(self, run_id, fail=()):
        """Let its leader lead a run to its end; return it."""
        before, phase = self.store.load(run_id), run_records.Phase
        states = run_records.State.COMPLETE, run_records.State.FAILED
        ended = {'ended_at': int(self.now)}
        ends = {
            number: {'number': 1, 'state': states[number in fail], **ended}
            for number in range(len(before.run.attempts))
        }
        after = before.run.attempted(ends).changed(
            phase=phase.FAILED if fail else phase.COMPLETE, **ended
        )
        return self.store.step(before, after, str(uuid.uuid4())).run

    def record(self):
        return self.kept(self.made).record


class KeepingTest(KeepingCase):
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

    def test_of_two_engines_that_give_up_one_counts_and_tells(self):
        counts = self.useFixture(counted.Counted())
        self.is_trusted = False
        self.scheduled(start_within=120)
        keepers = self.keeper(), self.keeper()
        with self.assertLogs('heat_plugins', 'WARNING') as logs:
            for hours in (1, 1.01, 1.02, 1.1):
                self.at(hours, *keepers)
        cannot, _missed = logs.output
        assert 'Cannot start the run of schedule nightly' in cannot
        assert counts.of(metrics.TICKS) == {'missed': 1}
        events = deployments.events(self.made)
        assert len([e for e in events if 'missed' in e]) == 1

    def test_a_tick_becomes_a_run(self):
        keeper = self.scheduled(
            limits={'max_concurrent': '1', 'max_errors': '50%'},
            input_values={'level': 9},
            cut_off=600,
            stack_tag=None,
            targets=['db*'],
        )
        assert keeper.look() == 60
        self.at(1)
        assert keeper.look() < 60
        assert self.runs() == self.ids(1)
        (made,) = self.ids(1)
        (wanted,) = self.selections
        assert wanted.run == made
        assert (*wanted.stacks, *wanted.resources) == (self.made.id, 'db*')
        kept = self.store.load(made)
        order, limits = kept.run.order, kept.run.order.limits
        assert kept.engine_id == ENGINE
        assert (order.action, order.inputs) == ('BACKUP', {'level': 9})
        assert len(order.members) == 4
        assert order.created_by == 'schedule nightly'
        assert order.targets == 'stack tag prod'
        assert str(limits.max_concurrent) == '1'
        assert (str(limits.max_errors), limits.cut_off) == ('50%', 600)
        assert self.get(self.made, 'last_outcome') == 'running'
        self.finish(made)
        self.after(30, keeper)
        self.assert_record(
            outcome='complete', running=None, last=NOW + HOUR, missed=0
        )
        assert self.get(self.made, 'last_run') == made

    def test_a_tick_starts_if_the_run_before_it_has_just_ended(self):
        keeper = self.scheduled()
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

    def test_it_wakes_for_the_tick_and_reads_it_once_until_then(self):
        keeper, read = self.scheduled(), []
        kind = schedule_deciding.KeptSchedule
        parse = kind.read
        self.patch(kind, 'read', lambda text: read.append(text) or parse(text))
        for minutes in range(50):
            self.now = NOW + minutes * 60
            keeper.look()
        self.now = NOW + HOUR - 7.5
        assert keeper.look() == 7.5
        assert (len(read), self.selections) == (1, [])
        self.at(2)
        # Another engine has stored none, and there is none.
        self.heat.delete(self.made)
        assert keeper.look() == 60

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
        keeper = self.scheduled(cron='0 */6 * * *', start_within=600)
        self.is_trusted = False
        self.at(4)
        assert keeper.look() == 15
        assert 'stored credentials' in self.record().reason
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
        event = 'Not triggered: missed 2027-01-15T18:00:00Z: no stored'
        assert event in str(deployments.events(self.made))
        assert (
            f'Project {self.made.tenant_id}: {self.made.name}'
            in checks.schedules().details
        )
        assert len(self.runs()) == 1

    def test_a_daily_check_knows_before_the_night_what_is_wrong(self):
        self.servers = 0
        keeper = self.scheduled(cron='0 7 * * *')
        self.at(0.9, keeper)
        assert self.record().reason == ''
        self.at(1, keeper)
        assert 'There is no target' in self.record().reason
        assert self.record().missed == 0
        # It is checked once an hour then, by one engine.
        self.keeper().look()
        self.at(1.9, keeper)
        assert len(self.selections) == 1
        self.servers = 1
        self.at(2, keeper)
        assert len(self.selections) == 2
        assert self.record().reason == ''
        assert self.runs() == []

    def test_a_named_target_that_is_gone_is_a_reason_that_stays(self):
        self.unmet = ['gone']
        keeper = self.scheduled(cron='@daily', targets=['db', 'gone'])
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
        keeper = self.scheduled(cron='0 0 1 * *')
        away = mock.Mock(side_effect=errors.Unavailable('away'))
        with mock.patch.object(run_fleet, 'load_stack', away):
            self.at(1, keeper)
        self.after(599, keeper)
        assert self.record().reason == ''
        self.after(60, keeper)
        assert 'There is no target' in self.record().reason

    def test_a_check_keeps_why_a_tick_was_missed(self):
        keeper = self.scheduled(cron='0 7 1,15 * *', start_within=120)
        self.at(24 * 17, keeper)
        self.at(24 * 18, keeper)
        self.assert_record(outcome='missed', reason=schedule_deciding.LATE)
        assert self.record().checked == NOW + 24 * 18 * HOUR

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
        self.at(1)
        assert self.keeper().look() < 3
        for self.made, started in zip(made, (0, 1, 0), strict=True):
            assert len(self.runs()) == started

    def test_a_tick_may_cancel_the_former(self):
        keeper = self.scheduled(overlap='cancel')
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
        keeper = self.scheduled(overlap='cancel')
        self.at(1, keeper)
        follow = mock.Mock(side_effect=errors.Refused('it is stopping'))
        self.patch(door.Door, 'follow', follow)
        self.at(2, keeper)
        self.after(5, keeper)
        assert follow.call_count == 1
        self.after(25, keeper)
        assert follow.call_count == 2
        assert self.record().waiting == NOW + 2 * HOUR

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
        keeper = self.scheduled()
        self.at(1, keeper)
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

    def test_what_is_hostile_or_cannot_be_recorded_stops_no_other(self):
        self.scheduled()
        content = base.template(cron='@hourly', stack_tag='prod', note='bad')
        other = self.heat.create(content, name='other')
        (bad,) = (each for each in self.rows() if each.stack_id == other.id)
        due, replace, failures = (
            schedule_deciding.due,
            schedule_rows.replace,
            [],
        )

        def decide(schedule, record, now):
            if schedule.note:
                raise OverflowError('it is hostile')
            return due(schedule, record, now)

        def fail(context, number, *texts):
            if number == bad.number:
                failures.append(self.now)
                raise db_exception.DBDataError(ValueError('it is too long'))
            return replace(context, number, *texts)

        with mock.patch.object(schedule_deciding, 'due', decide):
            self.at(0.5, self.keeper())
        text = bad.text
        for changed in (
            *('x', '{}', '[]', bad.text.replace('@hourly', 'x')),
            *(bad.text.replace('@hourly', 'x' * 40_000), bad.text),
        ):
            context = heat_context.get_admin_context()
            assert replace(context, bad.number, text, changed)
            keeper, text = self.keeper(), changed
            keeper.look()
        self.patch(schedule_rows, 'replace', fail)
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

    def test_a_trust_that_is_gone_is_a_reason_with_a_remedy(self):
        for failure, reason in (
            (exception.AuthorizationFailure(), 'update the stack as another'),
            (ks_exceptions.ConnectFailure(), 'Keystone does not answer'),
        ):
            refuse = mock.Mock(side_effect=failure)
            with mock.patch.object(heat_types, 'in_project', refuse):
                self.scheduled()
                self.at(1, self.keeper())
            assert reason in self.record().reason
            assert self.runs() == []
            self.heat.delete(self.made)
            self.now = NOW


class BackfillTest(KeepingCase):
    #: The two hours before the schedule was created.
    ORDER = {
        'do': 'backfill',
        'from': '2027-01-15T06:00',
        'to': '2027-01-15T07:00',
    }

    def test_a_range_becomes_one_run_after_another_once(self):
        keeper = self.scheduled(cron='0 6,7 * * *', cut_off=600)
        self.signal(self.made, self.ORDER)
        assert self.get(self.made, 'backfill') == 2
        for number, made in enumerate(self.ids(-2, -1), 1):
            keeper.look()
            assert self.runs() == self.ids(-2, -1)[:number]
            # It counts from the start, not from the time of the past.
            assert self.store.load(made).run.order.limits.cut_off == 600
            self.now += 60
            self.finish(made)
            keeper.look()
        last = self.record().last
        # What has run is left out.
        self.signal(self.made, self.ORDER)
        for _ in range(4):
            keeper.look()
        assert self.runs() == self.ids(-2, -1)
        self.assert_record(
            backfill=(),
            running=None,
            last=last,
            outcome='complete',
            failures=0,
            missed=0,
        )


class SelectionTest(led.LedCase):
    TYPES = {**led.LedCase.TYPES, **base.ScheduleCase.TYPES}

    def look(self, action, **given):
        """Create a stack whose schedule runs at once; return the runs."""
        content = base.template(cron='@yearly', action=action, **given)
        whole = deployments.template(
            resources={'config': triggers.CONFIG, **content['resources']}
        )
        stack = self.created(whole, name=action)
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
        return stack, self.stored_runs()

    def test_it_runs_on_the_deployments_of_its_stack(self):
        _, started = self.look('BACKPU')
        assert started == []
        assert 'did you mean "BACKUP"' in self.shown['reason']
        assert self.shown['last_outcome'] == 'starting'
        stack, (run,) = self.look('BACKUP', input_values={'level': 9})
        (member,) = run.order.members
        assert (member.stack_id, member.resource, member.server_id) == (
            stack.id,
            'deployment',
            stack['server'].resource_id,
        )
        assert self.shown['last_run'] == run.id
        assert self.shown['last_outcome'] == 'running'


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


class OutageTest(KeepingCase):
    def test_an_outage_leaves_one_late_run_and_names_what_it_missed(self):
        self.scheduled(cron='*/10 * * * *', start_within=300).look()
        self.now = NOW + 63 * MINUTE
        keeper = self.keeper()
        with self.assertLogs('heat_plugins', 'WARNING') as logs:
            keeper.look()
        for minutes in range(10, 60, 10):
            assert f'2027-01-15T08:{minutes}:00Z' in logs.output[0]
        assert self.record().missed == 5
        # Clients cut long reasons.
        (event,) = [e for e in deployments.events(self.made) if 'missed' in e]
        assert f'and 3 more: {self.record().reason[:99]}' in event[:200]
        # No engine names or starts anything again.
        self.after(MINUTE, keeper)
        self.keeper().look()
        assert self.runs() == self.ids(1)
        assert self.record().missed == 5
        # An event that cannot be written changes nothing.
        self.patch(schedule_rows, 'add_event', None)
        self.after(19 * MINUTE, keeper)
        assert self.record().missed == 6

    def test_an_error_of_the_database_delays_a_schedule_by_seconds(self):
        keeper = self.scheduled()
        keeper.look()
        self.at(1)
        lose = mock.Mock(side_effect=db_exception.DBDeadlock)
        with mock.patch.object(schedule_rows, 'replace', lose):
            assert keeper.look() <= 2
            lose.side_effect = db_exception.DBConnectionError
            self.now += 2
            self.assertRaises(db_exception.DBConnectionError, keeper.look)
        # Nor has it kept a place.
        keeper.look()
        assert self.runs() == self.ids(1)

    def test_what_an_update_finds_missed_is_an_event(self):
        counts = self.useFixture(counted.Counted())
        self.scheduled(cron='*/10 * * * *', start_within=300)
        self.now = NOW + 49 * MINUTE
        content = base.template(cron='@daily', stack_tag='prod')
        self.heat.update(self.made, content)
        assert self.record().missed == 4
        assert counts.of(metrics.TICKS) == {'missed': 4}
        said = 'The former schedule has missed 4 of its times'
        assert said in str(deployments.events(self.made))
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
