# SPDX-License-Identifier: Apache-2.0
"""The strict store of runs in memory, and its faults."""

import testtools

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
