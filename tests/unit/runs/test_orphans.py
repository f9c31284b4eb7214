# SPDX-License-Identifier: Apache-2.0
"""Runs whose stack goes."""

from heat_plugins.runs import orphans
from tests.unit.runs import base


class OrphanTest(base.RunsTestCase):
    def test_those_that_have_not_ended_are_taken_from_their_servers(self):
        ended = self.start()
        self.answer()
        self.show(ended)
        run = self.start(action='FAIL/OVER')
        before = self.objects()
        self.assertEqual([run.id], orphans.withdraw(self.heat, self.records))
        self.assertEqual([], self.heat.given())
        self.assertNotIn(run.config_id, self.heat.configs)
        self.assertEqual(before, self.objects())

    def test_a_container_that_is_gone_has_none(self):
        self.assertEqual([], orphans.withdraw(self.heat, self.records))
