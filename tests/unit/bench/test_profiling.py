# SPDX-License-Identifier: Apache-2.0
"""How the bench attributes what heat-engine does."""

import testtools

from tests.bench import profiling
from tests.bench import tables

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
            {
                'heat.engine.worker.check': (1.0, 0.0),
                'heat.engine.resource.create': (1.0, 0.6),
                'heat_plugins.resources.deployment.hand_over': (0.4, 0.4),
            },
            {
                name: (one.share, one.own)
                for name, one in found.functions.items()
            },
        )


class TableTest(testtools.TestCase):
    def profiled(self, n, samples, seconds):
        line = f'{CHECK};{HAND_OVER};{LIBRARY} {samples}\n'
        idle = f'{CHECK} {samples}\n'
        return profiling.Profiled(
            n=n,
            cpu={'idle': 1.0, 'create': seconds},
            profiles={'create': profiling.read([line, idle])},
        )

    def test_shows_what_each_deployment_takes(self):
        table = tables.profile(
            [self.profiled(10, 100, 1.0), self.profiled(20, 100, 3.0)]
        )
        check = 'heat.engine.worker.check'
        hand_over = 'heat_plugins.resources.deployment.hand_over'
        self.assertEqual(
            [
                ['phase', 'function', '10:ms', '10:own', '20:ms', '20:own'],
                ['create', 'everything', '100.0', '', '150.0', ''],
                ['create', 'heat_plugins', '', '50.0', '', '75.0'],
                ['create', 'heat', '', '50.0', '', '75.0'],
                ['create', check, '100.0', '50.0', '150.0', '75.0'],
                ['create', hand_over, '50.0', '50.0', '75.0', '75.0'],
            ],
            table,
        )
