# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment schedule``."""

import types

import fixtures

from heat_plugins import errors
from heat_plugins.osc import common
from heat_plugins.osc.runs import schedule_commands
from heat_plugins.runs.schedules import schedule_signals
from tests import pages
from tests.unit.osc import base
from tests.unit.runs import fake_heat

NIGHTLY = "schedule preview --cron '30 2 * * *' --timezone Europe/Berlin"


class PreviewTest(base.CommandCase):
    def test_what_the_page_shows_is_printed(self):
        (block,) = pages.blocks(pages.read('schedules', 'Preview the times'))
        typed, _, shown = block.replace('\\\n', '').partition('\n')
        line = typed.removeprefix('openstack software deployment ')
        _, output = self.run_command(line)
        assert shown.split() == output.split()

    def test_it_lists_the_next_times_from_now_without_a_cloud(self):
        assert schedule_commands.PreviewSchedule.auth_required is False
        # 2027-01-15T08:00:00Z
        clock = types.SimpleNamespace(time=lambda: 1800000000.5)
        self.patch(schedule_commands, 'time', clock)
        code, rows = self.json(f'{NIGHTLY} -n 2')
        assert code == 0
        assert [
            {
                'local': f'2027-01-{day}T02:30:00+01:00',
                'utc': f'2027-01-{day}T01:30:00Z',
                'latest_start': f'2027-01-{day}T01:30:00Z',
                'note': '',
            }
            for day in (16, 17)
        ] == rows
        assert len(self.json(NIGHTLY)[1]) == 5
        # A jitter has a column of its own.
        assert 'Latest start' not in self.run_command(NIGHTLY)[1]
        _, output = self.run_command(f'{NIGHTLY} --jitter 600')
        assert 'Latest start' in output
        assert '2027-01-16T01:40:00Z' in output

    def test_the_first_time_is_from_where_it_begins_with_a_note(self):
        _, (row,) = self.json(f'{NIGHTLY} -n 1 --from 2027-03-28')
        assert row['local'] == '2027-03-28T03:00:00+02:00'
        assert row['note'] == 'the clock skips 02:30 on this day'
        _, (row,) = self.json(f'{NIGHTLY} -n 1 --from 2027-10-31')
        assert row['note'] == 'the clock shows 02:30 twice; the first'
        once = 'schedule preview --at 2027-01-01T02:00'
        assert len(self.json(f'{once} --from 2027-01-01')[1]) == 1
        self.assert_refused(f'{once} --from 2027-01-02', 'has no time after')
        self.assert_refused('schedule preview --cron 1', 'give five')


SHOWN = {
    'when': '30 2 * * *',
    'timezone': 'Europe/Berlin',
    'next_times': ['2027-01-16T01:30:00Z', '2027-01-17T01:30:00Z'],
    'last_time': '2027-01-15T01:30:00Z',
    'last_run': '00c0ffee-0000-4000-8000-000000000000',
    'last_outcome': 'complete',
    'missed': 0,
    'paused': '',
    'reason': '',
    'signals': 7,
}


class SignalCase(base.CommandCase):
    """Commands about the schedules of stacks, through Heat's API."""

    def setUp(self):
        super().setUp()
        self.now = 1_800_000_000.0
        self.heat = fake_heat.Heat()
        self.stack = self.heat.add_stack('shop')
        self.patch(common, 'orchestration', lambda manager: self.heat)
        real = schedule_signals.Schedules
        self.patch(
            schedule_signals,
            'Schedules',
            lambda heat, pool: real(
                heat, pool, clock=lambda: self.now, sleep=self.sleep
            ),
        )
        self.slept = lambda: None
        self.add(self.stack, 'nightly')
        #: What an engine does with a signal.
        self.heat.signalled = lambda resource, details: None

    def sleep(self, seconds):
        self.now += seconds
        self.slept()

    def add(self, stack, name, **more):
        kind = 'OS::Heat::SoftwareSchedule'
        self.heat.add_resource(stack, name, kind, f'id-of-{name}')
        self.heat.attributes[name, 'show'] = {**SHOWN, **more}

    def change(self, name='nightly', **more):
        self.heat.attributes[name, 'show'].update(more)

    def followed(self, **more):
        """Let an engine have followed one more signal to "nightly"."""
        number = self.heat.attributes['nightly', 'show']['signals'] + 1
        self.change(signals=number, **more)


class SignalTest(SignalCase):
    """Each command, and what it refuses."""

    def test_the_schedules_of_all_stacks_are_listed(self):
        other = self.heat.add_stack('till')
        nested = self.heat.add_stack('till-tier', parent=other.id)
        self.heat.add_resource(
            other, 'tier', 'OS::Heat::Stack', nested.id, nested.id
        )
        self.add(nested, 'weekly', missed=3, paused='a release', next_times=[])
        self.change('weekly', reason='its trust is gone')
        code, rows = self.json('schedule list')
        assert code == 0
        assert [
            (each['stack'], each['schedule'], each['next_at'], each['missed'])
            for each in rows
        ] == [
            ('shop', 'nightly', '2027-01-16T01:30:00Z', 0),
            ('till', 'tier.weekly', None, 3),
        ]
        _, (row,) = self.json('schedule list shop')
        assert row['schedule'] == 'nightly'
        table = ' '.join(self.run_command('schedule list')[1].split())
        for shown in 'Next', 'a release', 'its trust is gone':
            assert shown in table

    def test_one_that_cannot_be_read_hides_no_other(self):
        other = self.heat.add_stack('till')
        self.add(other, 'weekly')
        gone = self.heat.add_stack('gone').id
        locked = self.heat.add_stack('locked').id
        attribute, stack = self.heat.attribute, self.heat.stack

        def fail(resource, name):
            if resource.name == 'nightly':
                raise errors.Denied('403 Forbidden', 403)
            return attribute(resource, name)

        def find(name):
            if name in (gone, 'gone'):
                # It was deleted after the stacks were listed.
                raise errors.NotFound('no stack gone')
            if name == locked:
                raise errors.Unavailable('500 Internal Server Error')
            return stack(name)

        self.heat.attribute, self.heat.stack = fail, find
        code, rows = self.json('schedule list')
        assert code == 1
        named = ('stack', 'schedule', 'reason')
        assert {tuple(row[name] for name in named) for row in rows} == {
            ('shop', 'nightly', 'Cannot read it: 403 Forbidden'),
            ('till', 'weekly', ''),
            (locked, None, 'Cannot read it: 500 Internal Server Error'),
        }
        self.assert_refused('schedule list gone', 'no stack gone')

    def test_one_is_shown(self):
        _, shown = self.json('schedule show shop nightly')
        for name in ('when', 'timezone', 'next_times', 'last_run'):
            assert SHOWN[name] == shown[name]
        assert shown['last_at'] == '2027-01-15T01:30:00Z'
        assert shown['id'] == 'id-of-nightly'
        self.assert_refused(
            'schedule show shop nihgtly',
            'Stack shop has no schedule nihgtly; there are: nightly',
            'did you mean "nightly"',
        )
        self.assert_refused('schedule show shup nightly', 'no stack shup')

    def test_a_pause_has_a_note_and_a_resumption_ends_it(self):
        def follow(resource, details):
            self.followed(paused=details.get('note', ''))

        self.heat.signalled = follow
        _, shown = self.json('schedule pause shop nightly --note "a release"')
        assert shown['paused'] == 'a release'
        assert (
            "signal nightly {'do': 'pause', 'note': 'a release'}"
            in self.heat.asked
        )
        _, shown = self.json('schedule resume shop nightly')
        assert shown['paused'] == ''

    def test_a_run_shows_its_id_or_why_an_engine_refuses(self):
        self.assert_refused(
            'schedule run shop nightly',
            'has not followed "run" within 20 s',
            'openstack stack event list shop',
        )
        self.change(last_outcome='running')
        self.assert_refused(
            'schedule run shop nightly', '000000000000 of the schedule has not'
        )

    def test_a_run_that_is_not_started_is_an_error_with_the_reason(self):
        old = {'last_outcome': 'complete', 'reason': ''}
        for outcome, reason, seconds, said in (
            ('running', '', 0, ''),
            ('starting', 'no store', 0, 'not started: no store'),
            ('missed', 'too late', 0, 'not started: too late'),
            ('starting', '', 20, 'no heat-engine has created it'),
        ):
            self.change(**old)
            self.heat.signalled = lambda resource, details: self.followed(
                last_outcome='starting'
            )
            became = {'last_outcome': outcome, 'reason': reason}
            self.slept = lambda became=became: self.change(**became)
            began = self.now
            with fixtures.FakeLogger() as logged:
                code, shown = self.json('schedule run shop nightly')
            assert int(bool(said)) == code, outcome
            assert reason == shown['reason']
            assert said in logged.output
            assert seconds <= self.now - began <= seconds + 1
        # A reason of an earlier time says nothing of this run.
        self.change(last_outcome='complete', reason='no store')
        self.slept = lambda: self.change(last_outcome='running', reason='')
        assert self.json('schedule run shop nightly')[0] == 0
