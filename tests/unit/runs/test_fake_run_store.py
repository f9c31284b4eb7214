# SPDX-License-Identifier: Apache-2.0
"""The strict store of runs in memory, and its faults."""

import testtools

from heat_plugins import errors
from heat_plugins.runs import run_store
from tests.unit.runs import fake_run_store
from tests.unit.runs import store_contract


class FakeRunStoreTest(store_contract.RunStoreContract, testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.store = fake_run_store.FakeRunStore()

    def deployments(self):
        return {
            row_id: self.store.settled[row_id].state.name
            if row_id in self.store.settled
            else 'IN_PROGRESS'
            for row_id in self.store.given
        }

    def keep(self, targets):
        self.store.targets_kept = targets

    def keep_record(self, text):
        self.store.records[1] = text
        return 1

    def record(self):
        return self.store.records[1]

    def test_any_transaction_is_cut_off(self):
        kept = self.begin()
        self.store.aborts = 1
        self.assertRaises(
            errors.Unavailable,
            self.store.step,
            kept,
            kept.run.changed(paused_by='ann'),
            'pause',
            taken=['run-1-row-0'],
        )
        assert kept == self.store.load('run-1')
        assert len(self.deployments()) == 2

    def test_a_commit_has_no_answer(self):
        kept = self.begin()
        self.store.silent = 1
        after = kept.run.changed(paused_by='ann')
        self.assertRaises(
            errors.Unavailable, self.store.step, kept, after, 'pause'
        )
        assert after == self.store.step(kept, after, 'pause').run
        assert self.store.steps == 2

    def test_any_step_is_lost(self):
        kept = self.begin()
        self.store.losing = 1
        self.assertRaises(
            run_store.Stale, self.store.step, kept, kept.run, 'lost'
        )
        kept = self.store.load('run-1')
        self.store.step(kept, kept.run, 'again')

    def test_commits_are_shown_late(self):
        kept = self.begin()
        self.store.is_late = True
        self.store.step(kept, kept.run.changed(paused_by='ann'), 'pause')
        assert kept == self.store.load('run-1')
        self.store.is_late = False
        assert self.store.load('run-1').run.control.paused_by == 'ann'
