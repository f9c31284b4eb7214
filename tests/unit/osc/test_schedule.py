# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment schedule``."""

import pathlib
import types

import fixtures

from heat_plugins import errors
from heat_plugins.clients import runs
from heat_plugins.osc import common
from heat_plugins.osc.runs import schedule_commands
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedule_signals
from heat_plugins.runs.schedules import schedules
from tests import pages
from tests.unit.osc import base
from tests.unit.runs import fake_heat

# 2027-01-15T08:00:00Z
CLOCK = types.SimpleNamespace(time=lambda: 1800000000.5)
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
        self.patch(schedule_commands, 'time', CLOCK)
        code, rows = self.json(f'{NIGHTLY} -n 2')
        assert code == 0
        for day, row in zip((16, 17), rows, strict=True):
            utc = f'2027-01-{day}T01:30:00Z'
            assert row['local'] == f'2027-01-{day}T02:30:00+01:00'
            assert (row['utc'], row['latest_start']) == (utc, utc)
            assert row['note'] == ''
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
        names = 'stack', 'schedule', 'next_at', 'missed'
        assert [tuple(each[name] for name in names) for each in rows] == [
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
        names = 'when', 'timezone', 'next_times', 'last_run'
        expected = {name: SHOWN[name] for name in names}
        more = {'id': 'id-of-nightly', 'last_at': SHOWN['last_time']}
        assert (expected | more).items() <= shown.items()
        said = 'no schedule nihgtly; there are: nightly; did you mean "nig'
        self.assert_refused('schedule show shop nihgtly', said)
        self.assert_refused('schedule show shup nightly', 'no stack shup')

    def test_a_pause_has_a_note_and_a_resumption_ends_it(self):
        self.heat.signalled = lambda resource, details: self.followed(
            paused=details.get('note', '')
        )
        _, shown = self.json('schedule pause shop nightly --note "a release"')
        assert shown['paused'] == 'a release'
        asked = "signal nightly {'do': 'pause', 'note': 'a release'}"
        assert asked in self.heat.asked
        _, shown = self.json('schedule resume shop nightly')
        assert shown['paused'] == ''

    def test_a_run_that_is_not_started_is_an_error_with_the_reason(self):
        line, events = 'schedule run shop nightly', 'stack event list shop'
        said = 'has not followed "run" within 20 s'
        self.assert_refused(line, said, events)
        self.change(last_outcome='running')
        self.assert_refused(line, '000000000000 of the schedule has not')
        old = {'last_outcome': 'complete', 'reason': ''}
        start = {'last_outcome': 'starting'}
        self.heat.signalled = lambda *args: self.followed(**start)
        for outcome, reason, seconds, said in (
            ('running', '', 0, ''),
            ('starting', 'no store', 0, 'not started: no store'),
            ('missed', 'too late', 0, 'not started: too late'),
            ('starting', '', 20, 'no heat-engine has created it'),
        ):
            self.change(**old)
            became = {'last_outcome': outcome, 'reason': reason}
            self.slept = lambda became=became: self.change(**became)
            began = self.now
            with fixtures.FakeLogger() as logged:
                code, shown = self.json(line)
            assert (code, shown['reason']) == (int(bool(said)), reason)
            assert said in logged.output
            assert seconds <= self.now - began <= seconds + 1
        # A reason of an earlier time says nothing of this run.
        self.change(last_outcome='complete', reason='no store')
        self.slept = lambda: self.change(last_outcome='running', reason='')
        assert self.json(line)[0] == 0


LINE = 'schedule backfill shop nightly --from 2027-01-11 --to 2027-01-13'
BERLIN = schedules.Schedule(
    cron='30 2 * * *', timezone='Europe/Berlin', key='id-of-nightly'
)
#: 2027-01-12T01:30:00Z
SECOND = 1799717400
#: The runs of the three nights.
FIRST, MIDDLE, LAST = (
    schedules.run_id('id-of-nightly', SECOND + days * 86400)
    for days in (-1, 0, 1)
)


class BackfillTest(SignalCase):
    def setUp(self):
        super().setUp()
        self.patch(schedule_commands, 'time', CLOCK)
        self.patch(schedule_commands, '_POLL', 0)
        self.change(times=BERLIN.times, backfill=0)
        #: The states of runs, by their IDs.
        self.states = {MIDDLE: 'complete'}
        client = types.SimpleNamespace(list=self.listed)
        self.patch(common, 'runs', lambda manager: client)
        self.heat.signalled = self.follow
        #: What an engine does after the next polls.
        self.later = []
        attribute = self.heat.attribute

        def poll(resource, name):
            shown = dict(attribute(resource, name))
            if self.later:
                self.later.pop(0)()
            return shown

        self.heat.attribute = poll
        #: What becomes of the runs of a backfill.
        self.phase = 'complete'

    def listed(self, *, schedule, since, until=None):
        assert schedule == 'id-of-nightly'
        assert since < SECOND
        begun, ended = map(summary.time, (SECOND, SECOND + 60))
        times = {'created_at': begun, 'ended_at': ended}
        for run_id, state in self.states.items():
            yield runs.Run(id=run_id, action='BACKUP', state=state, **times)

    def follow(self, resource, details):
        """Be an engine that has started the first one."""
        self.followed(backfill=2)
        for _ in range(2):
            self.later.append(self.end)

    def end(self):
        new = next(each for each in (FIRST, LAST) if each not in self.states)
        self.states[new] = self.phase
        self.change(backfill=1 if new == FIRST else 0, last_run=new)

    def signals(self):
        return [each for each in self.heat.asked if 'signal' in each]

    def test_a_dry_run_lists_what_would_start(self):
        code, rows = self.json(f'{LINE} --dry-run')
        assert code == 0
        assert [(row['local'], row['run'], row['state']) for row in rows] == [
            ('2027-01-11T02:30:00+01:00', FIRST, 'not started'),
            ('2027-01-12T02:30:00+01:00', MIDDLE, 'complete'),
            ('2027-01-13T02:30:00+01:00', LAST, 'not started'),
        ]
        assert self.signals() == []
        # Without that it waits for the end.
        code, rows = self.json(f'{LINE} --wait')
        assert code == 0
        assert [row['state'] for row in rows] == ['complete'] * 3
        (signal,) = self.signals()
        assert "'from': '2027-01-11', 'to': '2027-01-13'" in signal
        # All have run.
        code, rows = self.json(LINE)
        assert (code, len(self.signals())) == (0, 1)

    def test_the_week_is_drawn(self):
        _, drawn = self.run_command('schedule show shop nightly --week')
        assert '02:30 not started within 1 h' in drawn
        _, rows = self.json('schedule show shop nightly --week')
        states = {row['Resource'][-2:]: row['State'] for row in rows}
        assert (states['12'], states['16']) == ('complete', 'next, within')
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).join('x.svg'))
        line = f'schedule show shop nightly --output {path}'
        assert self.run_command(line)[1] == ''
        assert 'Fri 2027-01-15' in path.read_text()

    def test_the_end_of_the_wait(self):
        self.heat.signalled = lambda *args: self.followed(backfill=0)
        # It ended before the first poll.
        assert self.json(LINE)[0] == 0
        self.heat.signalled, self.phase = self.follow, 'failed'
        code, rows = self.json(f'{LINE} --wait')
        assert (code, rows[0]['state']) == (3, 'failed')
        del self.states[FIRST]
        more = {'backfill': 2, 'paused': 'a release'}
        self.heat.signalled = lambda *args: self.followed(**more)
        self.assert_refused(f'{LINE} --wait', 'is paused (a release)')
        # A refusal during another backfill is a failure.
        self.heat.signalled = lambda *args: None
        self.assert_refused(LINE, 'has not followed "backfill"')
        del self.heat.attributes['nightly', 'show']['times']
        self.assert_refused(LINE, 'upgrade heat-plugins')

    def test_it_stops_and_a_range_is_needed(self):
        self.change(backfill=2)
        self.heat.signalled = lambda *args: self.followed(backfill=1)
        code, _ = self.json('schedule backfill shop nightly --stop')
        assert code == 0
        assert "{'do': 'stop-backfill'}" in self.signals()[0]
        said = 'either --from and --to, or --stop'
        self.assert_refused('schedule backfill shop nightly', said)
        self.assert_refused(f'{LINE} --stop', said)
        self.assert_refused(LINE.replace('01-11', '02-01'), 'no time from')
