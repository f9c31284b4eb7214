# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareSchedule."""

import collections
import itertools
import json
import types
from unittest import mock

from heat.common import exception
from heat.engine import api
from heat.engine import support

from heat_plugins.engine import callers
from heat_plugins.engine.database import schedule_rows
from heat_plugins.resources import software_schedule
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from tests.unit import heat_fixture
from tests.unit.resources import deployments

OWNER = callers.Signaller(user_id='owner', is_of_project=True, may_update=True)
READER = callers.Signaller(user_id='reader', is_of_project=True)
SERVER = callers.Signaller(user_id='server', is_of_project=False)

#: 2027-01-15T08:00:00Z, a Friday.
NOW = 1_800_000_000
_numbers = itertools.count()
DAY = 86400


def template(**given):
    values = {'cron': '30 2 * * *', 'action': 'BACKUP', **given}
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'nightly': {
                'type': 'OS::Heat::SoftwareSchedule',
                'properties': {
                    name: value
                    for name, value in values.items()
                    if value is not None
                },
            }
        },
    }


class ScheduleCase(heat_fixture.HeatTestCase):
    TYPES = {'OS::Heat::SoftwareSchedule': software_schedule.SoftwareSchedule}

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        self.now = NOW + 0.25
        clock = types.SimpleNamespace(time=lambda: self.now)
        self.patch(software_schedule, 'time', clock)
        self.patch(schedule_rows, 'time', clock)
        #: The schedules of which this process is to hear.
        self.patch(schedule_rows, '_changed', set())

    def created(self, **given):
        return self.heat.create(template(**given))

    def kept(self, stack):
        found = self.heat.load(stack)['nightly']
        text = schedule_rows.read(stack.context, found.id)
        return schedule_deciding.KeptSchedule.read(text)

    def get(self, stack, name):
        found = self.heat.load(stack)
        return found['nightly'].FnGetAtt(name)

    def signal(self, stack, details, signaller=OWNER):
        found = self.heat.load(stack)
        with mock.patch.object(callers, 'of', return_value=signaller):
            found['nightly'].signal(details)

    def rows(self):
        return schedule_rows.kept(self.heat.context)


class ValidationTest(ScheduleCase):
    def refused(self, said, **given):
        stack = self.heat.stack(template(**given), name=f's{next(_numbers)}')
        exc = self.assertRaises(
            exception.StackValidationFailed, stack.validate
        )
        assert said in str(exc)

    def test_a_cloud_where_no_run_can_start_is_told_at_once(self):
        whole = template()
        stack = self.heat.create(whole)
        del self.heat.auth.endpoints['cloudformation']
        self.heat.context = heat_fixture.new_context()
        self.refused('Servers cannot send the results of runs')
        # Heat validates a new one before it stores its credentials.
        new = self.heat.stack(whole, name='new')
        new.user_creds_id = None
        self.assertRaises(exception.StackValidationFailed, new.validate)
        # An update continues with what exists.
        self.heat.preview(stack, whole)

    def test_a_mistake_is_named_before_the_night(self):
        self.refused('give five fields', cron='30 2 * *')
        self.refused('did you mean "max_errors"', limits={'max_eror': 1})
        self.refused('only Heat runs CREATE', action='CREATE')
        self.refused('start_within', start_within=119)
        self.refused('cut_off', cut_off=2**37)
        self.refused('pause_after', pause_after_failures=2**37)
        self.refused('overlap', overlap='wait')
        self.refused('note', note='x' * 1001)

    def test_what_another_resource_supplies_is_not_judged_yet(self):
        found = template(cron={'get_attr': ['value', 'value']})
        found['resources']['value'] = {
            'type': 'OS::Heat::Value',
            'properties': {'value': '@daily'},
        }
        stack = self.heat.create(found)
        assert self.kept(stack).schedule.cron == '@daily'
        # It is no type of Heat's.
        kind = software_schedule.SoftwareSchedule
        assert kind.support_status.status == support.UNSUPPORTED


class LifeTest(ScheduleCase):
    def test_it_is_due_from_its_creation_on(self):
        stack = self.created(timezone='Europe/Berlin', jitter=3600)
        kept = self.kept(stack)
        assert kept.record.since == NOW
        (row,) = self.rows()
        found = self.heat.load(stack)['nightly']
        assert (row.number, row.id, row.name, row.stack_id, kept.text()) == (
            found.id,
            found.uuid,
            'nightly',
            stack.id,
            row.text,
        )
        assert found.resource_id == found.uuid
        assert kept.schedule.key == found.uuid
        assert schedule_rows.woken.is_set()
        assert [*schedule_rows.take_changed()] == [found.id]
        # The next times are those of the starts.
        self.now += 3 * DAY
        start = kept.schedule.next(1, self.now)[0].start
        assert summary.time(start) in self.get(stack, 'next_times')[:2]
        # It ends with its stack.
        self.heat.delete(stack)
        assert self.rows() == []

    def test_its_attributes_say_what_it_does(self):
        stack = self.created()
        assert self.get(stack, 'next_times') == [
            f'2027-01-{day}T02:30:00Z' for day in range(16, 21)
        ]
        assert self.get(stack, 'last_time') is None
        for name in ('last_run', 'last_operation'):
            assert self.get(stack, name) is None
        for name in ('last_outcome', 'paused', 'reason'):
            assert self.get(stack, name) == ''
        assert self.get(stack, 'missed') == 0
        assert self.get(stack, 'skipped') == 0
        # All with one request, for commands.
        shown = self.get(stack, 'show')
        assert (shown['when'], shown['timezone']) == ('30 2 * * *', 'UTC')
        assert len(shown['next_times']) == 5
        loaded = self.heat.load(stack)
        found = api.format_stack_resource(
            loaded['nightly'], with_attr=['show']
        )
        answer = json.loads(json.dumps(found['attributes']))
        assert answer['show'] == shown

    def test_an_update_starts_again_and_loses_no_tick_that_is_due(self):
        stack = self.created()
        # 2027-01-16T02:30:00Z; no engine has decided it.
        tick = NOW + 18 * 3600 + 1800
        self.now = tick + 1
        self.heat.update(stack, template(cron='0 4 * * *'))
        kept = self.kept(stack)
        assert kept.schedule.cron == '0 4 * * *'
        assert (
            kept.record.since,
            kept.record.running,
            kept.record.created,
        ) == (tick + 1, tick, False)
        assert self.get(stack, 'last_outcome') == 'starting'
        uuid = self.heat.load(stack)['nightly'].uuid
        for name in ('last_run', 'last_operation'):
            assert self.get(stack, name) == schedules.run_id(uuid, tick)
        self.heat.update(stack, template())
        assert self.kept(stack).schedule.cron == '30 2 * * *'

    def test_a_schedule_whose_times_have_passed_is_an_event(self):
        said = 'No time of the schedule is left'
        stack = self.created()
        before = self.heat.load(stack)['nightly'].uuid
        self.heat.update(
            stack, template(at='2027-02-01T02:00', cron=None, overlap='queue')
        )
        assert said not in str(deployments.events(stack))
        self.heat.update(stack, template(at='2027-01-01T02:00', cron=None))
        assert said in str(deployments.events(stack))
        # Each is in place.
        assert self.heat.load(stack)['nightly'].uuid == before

    def test_a_suspended_stack_has_no_schedule(self):
        stack = self.created()
        self.heat.run(stack, stack.SUSPEND)
        assert self.rows() == []
        assert self.get(stack, 'next_times') == []
        assert 'suspended' in self.get(stack, 'paused')
        self.now += 3 * DAY
        self.heat.run(stack, stack.RESUME)
        assert self.get(stack, 'paused') == ''
        # What was due meanwhile is forgotten.
        assert self.kept(stack).record.since == NOW + 3 * DAY
        assert len(self.rows()) == 1
        # No tick is decided while it resumes.
        loaded = self.heat.load(stack)
        found = loaded['nightly']
        found.state_set('RESUME', 'IN_PROGRESS')
        assert self.rows() == []
        found.state_set('RESUME', 'COMPLETE')
        assert len(self.rows()) == 1
        assert schedule_rows.kept(self.heat.context, {found.id}) == self.rows()
        assert schedule_rows.kept(self.heat.context, {-1}) == []
        # One that is half deleted starts nothing.
        loaded.state_set(loaded.DELETE, loaded.FAILED, 'a server stays')
        assert self.get(stack, 'next_times') == []
        assert 'deleted' in self.get(stack, 'paused')

    def set(self, stack, text):
        found = self.heat.load(stack)['nightly']
        before = schedule_rows.read(stack.context, found.id)
        schedule_rows.replace(stack.context, found.id, before, text)

    def test_an_update_mends_an_unreadable_record(self):
        stack = self.created()
        self.set(stack, '{}')
        assert 'unreadable' in self.get(stack, 'reason')
        assert self.get(stack, 'next_times') is None
        self.heat.update(stack, template(cron='0 4 * * *'))
        assert self.kept(stack).schedule.cron == '0 4 * * *'
        assert self.get(stack, 'reason') == ''
        # An adopted schedule has no past.
        self.set(stack, '[]')
        found = self.heat.load(stack)['nightly']
        found.handle_adopt({'resource_data': {schedule_rows.KEY: 'x'}})
        assert self.kept(stack).record.since == NOW
        # The record of a later release is left.
        self.set(stack, '{"version": 3}')
        found = self.heat.load(stack)['nightly']
        self.assertRaises(ValueError, found.restore_prev_rsrc)

    def test_a_rollback_forgets_what_was_due_meanwhile(self):
        stack = self.created()
        self.now += 3 * DAY
        self.heat.load(stack)['nightly'].restore_prev_rsrc(convergence=True)
        assert self.kept(stack).record.since == NOW + 3 * DAY
        # A failed one is replaced only without a record.
        found = self.heat.load(stack)['nightly']
        assert not found.needs_replace_failed()
        found.handle_delete()
        assert found.needs_replace_failed()
        # A rollback finds none, either.
        found.restore_prev_rsrc()


class SignalTest(ScheduleCase):
    def refused(self, stack, details, said, signaller=OWNER):
        before = collections.Counter(deployments.events(stack))
        self.signal(stack, details, signaller)
        (event,) = collections.Counter(deployments.events(stack)) - before
        assert event.startswith('Not triggered: '), event
        assert said in event

    def test_it_is_paused_with_a_note_and_resumed(self):
        stack = self.created()
        self.signal(stack, {'do': 'pause', 'note': 'a release'})
        assert self.get(stack, 'paused') == 'a release'
        assert self.get(stack, 'next_times') == []
        assert 'Signal: the schedule is paused' in deployments.events(stack)
        self.now += 3 * DAY
        self.signal(stack, {'do': 'resume'})
        record = self.kept(stack).record
        assert (
            record.since,
            record.paused,
            record.running,
            record.missed,
        ) == (NOW + 3 * DAY, '', None, 0)

        self.signal(stack, {'do': 'pause'})
        assert self.get(stack, 'paused') == 'a signal paused it'
        # What was due before a resume is not started.
        self.now += DAY
        self.signal(stack, {'do': 'resume'})
        assert self.kept(stack).record.running is None

    def test_what_the_template_pauses_an_update_resumes(self):
        stack = self.created(paused=True, note='until March')
        assert self.get(stack, 'paused') == 'until March'
        self.refused(stack, {'do': 'resume'}, 'the template pauses')
        self.signal(stack, {'do': 'pause', 'note': 'a release'})
        assert self.get(stack, 'paused') == 'a release'
        self.heat.update(stack, template())
        self.signal(stack, {'do': 'resume'})
        assert self.get(stack, 'paused') == ''

    def test_it_runs_now(self):
        stack = self.created(paused=True)
        self.signal(stack, {'do': 'run'})
        record = self.kept(stack).record
        assert (record.running, record.forced) == (NOW, True)
        assert self.get(stack, 'last_time') == '2027-01-15T08:00:00Z'
        self.refused(stack, {'do': 'run'}, 'has not ended')

    def test_a_bad_signal_is_refused_with_an_example(self):
        stack = self.created()
        before = self.kept(stack)
        for details in (
            None,
            [],
            'pause',
            {},
            {'do': 'stop'},
            {'do': ['run']},
            {'do': 'run', 'at': 3},
            {'do': {'run': 1}, 'note': 'x'},
        ):
            self.refused(stack, details, '{"do": "pause", "note": "…"}')
        for note in (3, 'x' * 1001, ['x']):
            self.refused(stack, {'do': 'pause', 'note': note}, 'characters')
        self.refused(stack, {'do': 'run', 'note': 'x'}, 'goes with "pause"')
        assert self.kept(stack) == before

        # Only who may update the stack may signal it.
        for details in ({'do': 'run'}, {'do': 'pause'}):
            for sender in (READER, SERVER, callers.UNKNOWN):
                self.refused(stack, details, 'may not update', sender)
        assert self.kept(stack) == before
        with mock.patch.object(schedule_rows, 'replace', return_value=False):
            self.refused(stack, {'do': 'run'}, 'Other processes change')
        # One that was never created follows nothing.
        self.heat.load(stack)['nightly'].data_delete(schedule_rows.KEY)
        self.refused(stack, {'do': 'run'}, 'was never created')


class FormerTest(ScheduleCase):
    """Schedules that engines of a former release have kept."""

    def former(self, stack, **record):
        """Let a schedule be as such an engine has stored it."""
        found = self.heat.load(stack)['nightly']
        kept = json.loads(self.kept(stack).with_record(**record).text())
        found.data_set(schedule_rows.KEY, json.dumps({**kept, 'version': 1}))

    def test_it_goes_on_where_it_was(self):
        stack = self.created()
        self.former(
            stack,
            since=NOW + 9,
            paused='a release',
            missed=3,
            running=NOW,
            created=True,
            last=NOW,
            outcome='complete',
        )
        assert self.get(stack, 'paused') == 'a release'
        assert self.get(stack, 'last_run') is None
        record = self.kept(stack).record
        assert record == schedule_deciding.ScheduleRecord(
            since=NOW + 9,
            paused='a release',
            missed=3,
            checked=record.checked,
        )

    def test_what_no_engine_has_begun_with_starts_here(self):
        stack = self.created()
        self.former(stack, running=NOW, create_until=NOW + 9)
        assert self.kept(stack).record.running == NOW

    def test_a_signal_takes_it_over(self):
        stack = self.created()
        # Its engine may just create the run.
        self.former(stack, running=NOW, acted=NOW - 10, create_until=NOW + 9)
        self.signal(stack, {'do': 'pause', 'note': 'a release'})
        record = self.kept(stack).record
        assert (record.paused, record.running) == ('a release', None)
        (row,) = self.rows()
        assert json.loads(row.text)['version'] == 2
