# SPDX-License-Identifier: Apache-2.0
"""``openstack software deployment schedule backfill``."""

import pathlib
import tempfile
import types

from heat_plugins.clients import runs
from heat_plugins.osc import common
from heat_plugins.osc.runs import schedule_commands
from heat_plugins.runs import summary
from heat_plugins.runs.schedules import schedules
from tests.unit.osc import test_schedule

LINE = 'schedule backfill shop nightly --from 2027-01-11 --to 2027-01-13'
NIGHTLY = schedules.Schedule(
    cron='30 2 * * *', timezone='Europe/Berlin', key='id-of-nightly'
)
#: 2027-01-12T01:30:00Z
SECOND = 1799717400
#: The runs of the three nights.
FIRST, MIDDLE, LAST = (
    schedules.run_id('id-of-nightly', SECOND + days * 86400)
    for days in (-1, 0, 1)
)


#: Days of the week.
PART = ('12', '13', '16')


class BackfillTest(test_schedule.SignalCase):
    def setUp(self):
        super().setUp()
        # 2027-01-15T08:00:00Z
        clock = types.SimpleNamespace(time=lambda: 1800000000.5)
        self.patch(schedule_commands, 'time', clock)
        self.patch(schedule_commands, '_POLL', 0)
        self.change(times=NIGHTLY.times, backfill=0)
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
        for run_id, state in self.states.items():
            yield runs.Run(
                id=run_id,
                action='BACKUP',
                state=state,
                created_at=summary.time(SECOND),
                ended_at=summary.time(SECOND + 60),
            )

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
        _, table = self.run_command(f'{LINE} --dry-run')
        assert '| Local ' in table
        assert self.signals() == []

    def test_it_waits_for_the_end(self):
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
        assert 'shop nightly 30 2 * * *' in drawn
        assert '02:30 not started within 1 h' in drawn
        assert '02:30 next, within 1 h' in drawn
        _, rows = self.json('schedule show shop nightly --week')
        assert [
            row['State'] for row in rows if row['Resource'][-2:] in PART
        ] == ['complete', 'not started within', 'next, within']
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'week.svg')
            _, said = self.run_command(
                f'schedule show shop nightly --output {path}'
            )
            assert said == ''
            assert 'Fri 2027-01-15' in path.read_text()

    def test_the_end_of_the_wait(self):
        self.heat.signalled = lambda *args: self.followed(backfill=0)
        # It ended before the first poll.
        assert self.json(LINE)[0] == 0
        self.heat.signalled, self.phase = self.follow, 'failed'
        code, rows = self.json(f'{LINE} --wait')
        assert (code, rows[0]['state']) == (3, 'failed')
        del self.states[FIRST]
        self.heat.signalled = lambda *args: self.followed(
            backfill=2, paused='a release'
        )
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
