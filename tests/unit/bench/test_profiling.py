# SPDX-License-Identifier: Apache-2.0
"""How the bench attributes what heat-engine does."""

import testtools

from tests.bench import profiling

_HEAT = '/venv/lib/python3.11/site-packages/heat/engine'
_OURS = '/src/heat_plugins/resources'

CHECK = f'check ({_HEAT}/worker.py:1)'
CREATE = f'create ({_HEAT}/resource.py:1)'
HAND_OVER = f'hand_over ({_OURS}/deployment.py:1)'
LIBRARY = 'execute (/venv/lib/python3.11/site-packages/sqlalchemy/x.py:1)'


class ProfileTest(testtools.TestCase):
    def read(self, *stacks):
        lines = [f'{";".join(frames)} {count}\n' for frames, count in stacks]
        return profiling.read(lines)

    def test_libraries_count_for_their_callers(self):
        found = self.read(
            ([CHECK, CREATE, LIBRARY], 60),
            ([CHECK, CREATE, HAND_OVER, LIBRARY], 30),
            ([LIBRARY], 10),
        )
        self.assertEqual(
            (100, 0.3, 0.6), (found.samples, found.ours, found.heats)
        )

    def test_what_a_function_calls_is_in_its_share(self):
        found = self.read(
            ([CHECK, CREATE, LIBRARY], 60), ([CHECK, CREATE, HAND_OVER], 40)
        )
        self.assertEqual(
            [
                ('heat.engine.resource.create', 1.0, 0.6),
                ('heat_plugins.resources.deployment.hand_over', 0.4, 0.4),
            ],
            [(one.name, one.share, one.own) for one in found.functions],
        )

    def test_nothing_seen_is_nothing_said(self):
        found = self.read()
        self.assertEqual((0, []), (found.samples, found.functions))
