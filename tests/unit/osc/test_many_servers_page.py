# SPDX-License-Identifier: Apache-2.0
"""What the page on many servers says is typed here, in its order."""

import itertools
import re
import shlex

import fixtures

from heat_plugins.clients import runs
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from tests import pages
from tests.unit.engine import run_world
from tests.unit.osc import run_door

_BLOCK = re.compile(
    r'^\.\. code-block:: console\n\n((?:(?: {3}.*)?\n)+)', re.MULTILINE
)
_PREFIX = '$ openstack software deployment '
# The run that the page speaks of, and the first one on it.
_RUN, _FIRST = '00f2c40a-9d1b-4e76-8a3f-c5b0d2e7f914', run_door.OTHER


def typed():
    """Return the commands of the page, in words."""
    for block in _BLOCK.findall(pages.read('many-servers')):
        text = block.replace('\\\n', ' ')
        for line in text.splitlines():
            command = line.strip()
            if command.startswith(_PREFIX):
                yield shlex.split(command.removeprefix(_PREFIX))


class PageTest(run_door.RunCase):
    """Where it starts a run, that begins in the world in its place."""

    def setUp(self):
        super().setUp()
        self.use(run_world.World(6))
        self.folder = self.useFixture(fixtures.TempDir()).path
        self.orders = []
        self.patch(
            runs.Runs,
            'start',
            lambda *args, **order: self.order(*args, **order),
        )

    def order(self, client, action='', **order):
        del order['run_id']
        order.pop('confirm_above', None)
        values = {
            name: value
            for name, value in order.items()
            if value not in (None, [], {})
        }
        run_id = _FIRST if not self.orders else _RUN
        start = {'do': 'start', 'run': run_id, 'action': action, **values}
        self.orders.append(ordering.read(start))
        limits = run_records.RunLimits.asked(values.get('limits', {}))
        self.world.limits = vars(limits)
        self.world.start(run_id, action=action)
        return client.show(run_id)

    def test_the_commands_do_what_the_page_says(self):
        for words in typed():
            wanted = [
                f'{self.folder}/{word}' if before.startswith('--out') else word
                for before, word in itertools.pairwise(['', *words])
            ]
            code, output = self.run_command(shlex.join(wanted))
            assert code == 0, f'{words}\n{output}\n{self.said()}'
            if words[:2] == ['run', 'start'] and '--wait' not in words:
                while self.world.run(_RUN).control.phase.value == 'running':
                    self.world.pass_time(1)
        first, restart = self.orders
        assert (first.tags, first.resources) == (['production'], ['*db*'])
        assert (first.action, restart.action) == ('BACKUP', 'RESTART')
        assert restart.stacks == ['blue', 'green']
        run = self.world.run(_RUN)
        assert run.control.phase.value == 'complete'
        starts = sorted(each.started_at for each in run.attempts)
        # One canary, then batches of two with a minute between.
        assert len(starts) == 6
        for before, after in ((2, 3), (4, 5)):
            assert starts[after] - starts[before] >= 60
