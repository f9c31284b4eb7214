# SPDX-License-Identifier: Apache-2.0
"""How long the clean-up behind a deployment waits for others."""

from unittest import mock

from heat_plugins import errors
from heat_plugins.engine import run_room
from heat_plugins.engine import sweeping
from tests.unit.resources import deployments


class SweepingTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.made = self.created()['deployment']

    def test_runs_have_a_minute_to_end(self):
        room = mock.Mock()
        room.has_left.return_value = False
        self.patch(run_room, 'room', lambda: room)
        sweep = sweeping.Sweep(self.made)
        for seconds, is_done in ((0, False), (59, False), (1, True)):
            self.now += seconds
            assert sweep.run() is is_done

    def test_a_fault_of_the_store_is_ridden_out_for_its_budget(self):
        self.configure(swift_error_budget=300)
        fail = mock.Mock(side_effect=errors.Unavailable('503'))
        self.patch(sweeping.Sweep, 'run', fail)
        removal = sweeping.Removal(self.made, lambda: None)
        for seconds, is_done in ((0, False), (300, False), (1, True)):
            self.now += seconds
            assert removal(None) is is_done
