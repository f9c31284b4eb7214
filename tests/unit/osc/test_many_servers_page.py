# SPDX-License-Identifier: Apache-2.0
"""What the page on operations says is typed here, in its order."""

import re
import shlex
import types

import fixtures

from heat_plugins.osc import common
from heat_plugins.osc.runs import following
from heat_plugins.runs.fleet import fleets
from tests.unit.osc import base
from tests.unit.runs.fleet import simulation

PAGE = base.ROOT / 'doc/source/many-servers.rst'

_BLOCK = re.compile(
    r'^\.\. code-block:: console\n\n((?:(?: {3}.*)?\n)+)', re.MULTILINE
)
_PREFIX = '$ openstack software deployment '
# The operation that the page speaks of.
_EXAMPLE = '00f2c40a'


def typed():
    """Return the commands of the page, in words."""
    for block in _BLOCK.findall(PAGE.read_text()):
        text = block.replace('\\\n', ' ')
        for line in text.splitlines():
            command = line.strip()
            if command.startswith(_PREFIX):
                yield shlex.split(command.removeprefix(_PREFIX))


class PageTestCase(base.CommandCase):
    def setUp(self):
        super().setUp()
        folder = self.useFixture(fixtures.TempDir()).path
        self.useFixture(fixtures.MonkeyPatch('os.getcwd', lambda: folder))
        self.folder = folder
        self.world = simulation.World(
            8, names=['blue', 'green', 'shop'], actions=['BACKUP', 'RESTART']
        )
        shop = self.world.stacks[2]
        self.world.heat.tags[shop.id] = ['production']
        self.patch(common, 'fleets', lambda manager: self.door())
        self.patch(common, 'orchestration', lambda manager: self.world.heat)
        self.patch(common, 'service', self.world.service)
        self.patch(
            following,
            'time',
            types.SimpleNamespace(
                time=lambda: self.world.now,
                monotonic=lambda: self.world.now,
                sleep=self.world.sleep,
            ),
        )

    def door(self):
        return fleets.Fleets(self.world.heat, self.world.tools())

    def go_on(self, operation_id):
        """Let an engine advance an operation as far as it can."""
        advancer = self.door().advancer(operation_id)
        for _ in range(400):
            found = advancer.step()
            waits = found.control.phase.value == 'waiting-for-approval'
            if waits or advancer.is_over:
                break
            self.world.sleep(1)
        advancer.release()
        return found

    def test_the_commands_do_what_the_page_says(self):
        script = f'{self.folder}/fix.sh'
        with open(script, 'w') as file:
            file.write('#!/bin/sh\necho fixed\n')
        files = {
            'fix.sh': script,
            'logs': f'{self.folder}/logs',
            'run.html': f'{self.folder}/run.html',
        }
        ids, phases = [], []
        for words in typed():
            wanted = [files.get(word, word) for word in words]
            wanted = [
                ids[-1] if word.endswith(_EXAMPLE) else word for word in wanted
            ]
            code, _ = self.run_command(shlex.join(wanted))
            self.assertEqual(0, code, words)
            if words[:2] == ['run', 'start']:
                self.world.sleep(1)
                ids.append(self.door().history(fleets.Filter())[0].id)
                phases.append(self.go_on(ids[-1]).control.phase.value)
        self.assertEqual(
            ['complete', 'complete', 'complete', 'waiting-for-approval'],
            phases,
        )
        restart = self.door().show(ids[-1])
        self.assertEqual('complete', restart.control.phase.value)
        self.assertEqual('RESTART', restart.order.action)
        self.assertEqual(['blue', 'green'], restart.order.stacks)
        starts = sorted(one.started_at for one in restart.attempts)
        # One canary, then batches of two with a minute between.
        self.assertTrue(
            all(
                later - one >= 60
                for one, later in zip(starts[1::2], starts[3::2], strict=False)
            )
        )
