# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareSchedule in Heat's engine.

What it decides is tested in ``tests/unit/runs``, and what engines do at each
tick in ``tests/unit/engine``.
"""

import collections
import json
import pathlib
import types
from unittest import mock

from heat.common import exception
from heat.engine import api
from oslo_config import cfg
import yaml

from heat_plugins import config
from heat_plugins.engine import callers
from heat_plugins.engine.database import schedule_rows
from heat_plugins.resources import software_schedule
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_deciding
from heat_plugins.runs.schedules import schedules
from tests.unit import heat_fixture
from tests.unit.resources import deployments

TYPE = 'OS::Heat::SoftwareSchedule'
OWNER = callers.Signaller(user_id='owner', is_of_project=True, may_update=True)

#: 2027-01-15T08:00:00Z, a Friday.
NOW = 1_800_000_000
DAY = 86400


def template(**given):
    given = {'cron': '30 2 * * *', 'action': 'BACKUP', **given}
    given = {name: value for name, value in given.items() if value is not None}
    return {
        'heat_template_version': '2021-04-16',
        'resources': {'nightly': {'type': TYPE, 'properties': given}},
    }


class ScheduleCase(heat_fixture.HeatTestCase):
    TYPES = {TYPE: software_schedule.SoftwareSchedule}

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
        return self.heat.create(template(**given), self.getUniqueString())

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


def examples():
    root, found = pathlib.Path(__file__).parents[3] / 'contrib/examples', []
    for name in ('schedules.yaml', 'notices/schedule.yaml'):
        content = yaml.safe_load((root / name).read_text())
        found += content['resources'].values()
    return [each['properties'] for each in found if each['type'] == TYPE]


def test_each_property_has_an_example():
    used = {name for given in examples() for name in given}
    assert used == {*software_schedule.SoftwareSchedule.properties_schema}


class ScheduleTest(ScheduleCase):
    def refused(self, said, **given):
        assert said in self.why_invalid(template(**given))

    def test_a_mistake_is_named_before_the_night(self):
        self.refused('give five fields', cron='30 2 * *')
        self.refused('did you mean "max_errors"', limits={'max_eror': 1})
        self.refused('no key cut_off', limits={'cut_off': 60})
        self.refused('"limits": ', limits={'canary': 'x'})
        self.refused('only Heat runs CREATE', action='CREATE')
        self.refused('start_within', start_within=119)
        self.refused('overlap', overlap='wait')
        # What another resource supplies is not judged yet.
        found = template(cron={'get_attr': ['value', 'value']})
        found['resources']['value'] = {
            'type': 'OS::Heat::Value',
            'properties': {'value': '@daily'},
        }
        assert self.kept(self.heat.create(found)).schedule.cron == '@daily'
        # Nor can there be one on a cloud where no run can start.
        whole = template()
        stack = self.heat.create(whole, 'there')
        del self.heat.auth.endpoints['cloudformation']
        self.heat.context = heat_fixture.new_context()
        self.refused('Servers cannot send the results of runs')
        # Heat validates a new one before it stores its credentials.
        new = self.heat.stack(whole, name='new')
        new.user_creds_id = None
        self.assertRaises(exception.StackValidationFailed, new.validate)
        # An update continues with what exists.
        self.heat.preview(stack, whole)

    def test_each_example_is_created(self):
        hosts = ['hooks.example.com']
        cfg.CONF.set_override('notify_hosts', hosts, config.GROUP)
        paused = []
        for given in examples():
            targets = {'targets': ['deployment']} if 'targets' in given else {}
            given = {'cron': None, **given, **targets}
            if 'notify' in given:
                given['notify'] |= {
                    'url': 'https://hooks.example.com/p4th',
                    'secret': 'a secret that is long',
                }
            paused.append(self.get(self.created(**given), 'paused'))
        assert paused == ['', 'until the release', '']

    def test_it_is_due_from_its_creation_on(self):
        stack = self.created(timezone='Europe/Berlin', jitter=3600)
        kept = self.kept(stack)
        assert kept.record.since == NOW
        (row,) = self.rows()
        found = self.heat.load(stack)['nightly']
        assert (row.number, row.id) == (found.id, found.uuid)
        assert (row.stack_id, row.text) == (stack.id, kept.text())
        assert found.resource_id == kept.schedule.key == found.uuid
        assert schedule_rows.woken.is_set()
        assert [*schedule_rows.take_changed()] == [found.id]
        # The next times are those of the starts.
        self.now += 3 * DAY
        start = kept.schedule.next(1, self.now)[0].start
        assert summary.time(start) in self.get(stack, 'next_times')[:2]
        # It ends with its stack.
        self.heat.delete(stack)
        assert self.rows() == []
        # Its attributes say what it does.
        self.now = NOW
        stack = self.created()
        days = range(16, 21)
        for name, value in {
            'next_times': [f'2027-01-{day}T02:30:00Z' for day in days],
            **dict.fromkeys(('last_time', 'last_run', 'last_operation')),
            **dict.fromkeys(('last_outcome', 'paused', 'reason'), ''),
            **dict.fromkeys(('missed', 'skipped', 'backfill'), 0),
        }.items():
            assert self.get(stack, name) == value, name
        # All with one request, for commands.
        shown = self.get(stack, 'show')
        assert (shown['when'], len(shown['next_times'])) == ('30 2 * * *', 5)
        loaded = self.heat.load(stack)
        named = {'with_attr': ['show']}
        found = api.format_stack_resource(loaded['nightly'], **named)
        assert json.loads(json.dumps(found['attributes']))['show'] == shown

    def test_an_update_starts_again_and_loses_no_tick_that_is_due(self):
        stack = self.created()
        uuid = self.heat.load(stack)['nightly'].uuid
        # 2027-01-16T02:30:00Z; no engine has decided it.
        tick = NOW + 18 * 3600 + 1800
        self.now = tick + 1
        self.heat.update(stack, template(cron='0 4 * * *'))
        kept = self.kept(stack)
        record = kept.record
        assert kept.schedule.cron == '0 4 * * *'
        assert (record.since, record.running) == (tick + 1, tick)
        assert not record.created
        assert self.get(stack, 'last_outcome') == 'starting'
        for name in ('last_run', 'last_operation'):
            assert self.get(stack, name) == schedules.run_id(uuid, tick)
        # Times that have all passed are an event.
        said = 'No time of the schedule is left'
        self.heat.update(stack, template(at='2027-02-01T02:00', cron=None))
        assert said not in str(deployments.events(stack))
        self.heat.update(stack, template(at='2027-01-01T02:00', cron=None))
        assert said in str(deployments.events(stack))
        # Each is in place.
        assert self.heat.load(stack)['nightly'].uuid == uuid

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
        # A resource refers to its stack by a weak reference.
        self.loaded = self.heat.load(stack)
        self.loaded['nightly'].data_set(schedule_rows.KEY, text)
        return self.loaded['nightly']

    def test_an_update_mends_an_unreadable_record(self):
        stack = self.created()
        self.set(stack, '{}')
        assert 'unreadable' in self.get(stack, 'reason')
        assert self.get(stack, 'next_times') is None
        self.heat.update(stack, template(cron='0 4 * * *'))
        assert self.kept(stack).schedule.cron == '0 4 * * *'
        assert self.get(stack, 'reason') == ''
        # That of a former release is taken over, and runs no engine's tick.
        former = self.kept(stack).with_record(running=NOW, acted=NOW - 10)
        former = {**json.loads(former.text()), 'version': 1}
        self.set(stack, json.dumps(former))
        self.signal(stack, {'do': 'pause', 'note': 'a release'})
        (row,) = self.rows()
        assert json.loads(row.text)['version'] == 2
        record = self.kept(stack).record
        assert (record.paused, record.running) == ('a release', None)
        # An adopted schedule has no past.
        self.set(stack, '[]').handle_adopt({})
        assert self.kept(stack).record.since == NOW
        # A rollback forgets what was due meanwhile.
        self.now += 3 * DAY
        self.heat.load(stack)['nightly'].restore_prev_rsrc(convergence=True)
        assert self.kept(stack).record.since == NOW + 3 * DAY
        # The record of a later release is left.
        found = self.set(stack, '{"version": 3}')
        self.assertRaises(ValueError, found.restore_prev_rsrc)
        # A failed one is replaced only without a record.
        assert not found.needs_replace_failed()
        found.handle_delete()
        assert found.needs_replace_failed()
        # A rollback finds none, either.
        found.restore_prev_rsrc()

    def test_a_signal_is_followed_or_refused_by_an_event(self):
        stack = self.created()

        def refused(said, details, sender=OWNER):
            before = collections.Counter(deployments.events(stack))
            self.signal(stack, details, sender)
            after = collections.Counter(deployments.events(stack))
            (event,) = after - before
            assert event.startswith('Not triggered: '), event
            assert said in event

        refused('{"do": "pause", "note": "…"}', None)
        # Only who may update the stack may signal it.
        run = {'do': 'run'}
        reader = callers.Signaller(user_id='reader', is_of_project=True)
        server = callers.Signaller(user_id='server', is_of_project=False)
        for sender in (reader, server, callers.UNKNOWN):
            refused('may not update', run, sender)
        assert self.kept(stack).record.signals == 0
        with mock.patch.object(schedule_rows, 'replace', return_value=False):
            refused('Other processes change', run)
        self.signal(stack, {'do': 'pause', 'note': 'a release'})
        assert self.get(stack, 'paused') == 'a release'
        assert 'Signal: the schedule is paused' in deployments.events(stack)
        self.signal(stack, run)
        refused('has not ended', run)
        # One that was never created follows nothing.
        self.heat.load(stack)['nightly'].data_delete(schedule_rows.KEY)
        refused('was never created', run)
