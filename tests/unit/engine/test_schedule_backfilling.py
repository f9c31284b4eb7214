# SPDX-License-Identifier: Apache-2.0
"""How engines start what a schedule has to run for times of the past."""

import collections

from tests.unit.engine import test_schedule_keeping as keeping
from tests.unit.resources import deployments

HOUR, NOW = keeping.HOUR, keeping.NOW

#: The two hours before the schedule was created.
RANGE = {'from': '2027-01-15T06:00', 'to': '2027-01-15T07:00'}


class BackfillTest(keeping.KeepingCase):
    def backfill(self, **more):
        self.signal(self.made, {'do': 'backfill', **RANGE, **more})

    def refused(self, details):
        before = collections.Counter(deployments.events(self.made))
        self.signal(self.made, details)
        (event,) = collections.Counter(deployments.events(self.made)) - before
        assert 'Not triggered: ' in event

    def end(self, keeper, *hours, fail=()):
        """Let runs end, one after another."""
        for made in self.ids(*hours):
            keeper.look()
            assert made in self.runs()
            self.now += 60
            self.finish(made, fail)
            keeper.look()

    def test_a_range_becomes_one_run_after_another(self):
        self.scheduled(cut_off=600)
        keeper = self.keeper()
        self.backfill()
        assert self.get(self.made, 'backfill') == 2
        keeper.look()
        assert self.runs() == self.ids(-2)
        (first,) = self.ids(-2)
        # The cut-off counts from the start, not from the time of the past.
        order = self.store.load(first).run.order
        assert order.limits.cut_off == 600
        self.end(keeper, -2, -1)
        assert self.runs() == self.ids(-2, -1)
        self.assert_record(backfill=(), outcome='complete', missed=0)

    def test_what_has_run_is_left_out(self):
        self.scheduled(cron='0 6,7 * * *')
        keeper = self.keeper()
        self.backfill()
        self.end(keeper, -2, -1)
        last = self.record().last
        self.backfill()
        for _ in range(4):
            keeper.look()
        assert self.runs() == self.ids(-2, -1)
        self.assert_record(
            backfill=(),
            running=None,
            last=last,
            outcome='complete',
            failures=0,
        )

    def test_it_stops_and_a_bad_range_is_refused(self):
        self.scheduled()
        self.backfill()
        self.signal(self.made, {'do': 'stop-backfill'})
        assert self.get(self.made, 'backfill') == 0
        self.keeper().look()
        assert self.runs() == []
        for details in (
            {'do': 'backfill'},
            {'do': 'backfill', 'from': '2027-01-15'},
            {'do': 'backfill', 'from': '2027-01-15', 'to': 3},
            {'do': 'backfill', 'from': '2027-02-01', 'to': '2027-02-02'},
            {'do': 'run', 'to': '2027-02-02'},
        ):
            self.refused(details)
        assert self.get(self.made, 'backfill') == 0
        # What is refused does not count.
        assert self.record().signals == 2
