# SPDX-License-Identifier: Apache-2.0
"""The page for the person on call says what the commands print."""

import contextlib
import itertools
import re
import shlex
import subprocess
import textwrap

import pytest

from tests import pages
from tests import pipelines
from tests.functional import base
from tests.functional import running
from tests.functional import servers

EXAMPLES = base.ROOT / 'contrib/examples'

_RUNS = 'openstack software deployment run'

_PARTS = re.compile(
    r'^\.\. ((?:a disk|the disk|server off|the clock|it runs|the canary'
    r'|the colleague|you again).*)$'
    r'|^\.\. code-block:: console\n\n((?:(?: {3}.*)?\n)+)',
    re.MULTILINE,
)
# IDs of runs and others, and of projects.
_ID = re.compile(
    r'[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[0-9a-f]{32}\b'
)

# What differs each time, and the width of a table that comes of it.
_SAME = (
    (_ID.pattern, 'ID'),
    (r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ', 'TIME'),
    (r'/\S+/web-\d{8}T\d{6}', 'PATH'),
    (r'\b(\d+ min )?\d+ (s\b|min\b)', 'N s'),
    (r'\b\d+ bytes', 'N bytes'),
    (r'\| +\d+ ', '| N '),
    (r'-+', '-'),
    (r' +', ' '),
)

# What a command says in the meantime where it takes long.
_MEANWHILE = re.compile(r'[^|]*: N s')


def same(text):
    """Return the lines of an output without what differs each time."""
    for pattern, instead in _SAME:
        text = re.sub(pattern, instead, text)
    lines = text.split('\n')
    return [line for line in lines if not _MEANWHILE.fullmatch(line)]


def parts(page):
    """Return what a page says, in its order.

    That is what happens, and commands with their outputs.
    """
    for event, block in _PARTS.findall(page):
        if event:
            yield event, ''
        block = re.sub(r' \\\n +', ' ', textwrap.dedent(block))
        for typed in re.split(r'^\$ ', block, flags=re.M)[1:]:
            command, _, output = typed.strip('\n').partition('\n')
            yield command, output


class Typist:
    """Types the commands of the page.

    :param folder: where they write files.
    :ivar env: of the user who types.
    :ivar runs: the IDs on the page, also their beginnings and ends, and the
        real ones.
    """

    def __init__(self, env, folder=None):
        self.env = env
        self._folder = folder
        self._code = 0
        self.runs = {}

    def run(self, command):
        """Run a command with the real ids."""
        for shown, real in self.runs.items():
            command = command.replace(shown, real)
        return subprocess.run(
            shlex.split(command),
            env=self.env,
            cwd=self._folder,
            capture_output=True,
            text=True,
        )

    def type(self, command, expected):
        """Type a command, and hold that it prints what the page says.

        Where the page does not say, the command has to succeed.
        """
        if command == 'echo $?':
            assert str(self._code) == expected
            return
        done = self.run(command)
        self._code = done.returncode
        printed = (done.stderr + done.stdout).strip('\n')
        if not expected:
            assert self._code == 0, f'{command}\n{printed}'
            return
        assert same(printed) == same(expected), f'{command}\n{printed}'
        found = _ID.findall(printed)
        for shown, real in zip(_ID.findall(expected), found, strict=True):
            for part in slice(None), slice(8), slice(-8, None):
                self.runs[shown[part]] = real[part]


@contextlib.contextmanager
def databases(cloud, *stacks):
    """Switch the databases of stacks on; in the end the stacks go."""
    names = 'orders', 'stock', 'users'
    with running.switched_on(cloud, stacks, names) as agents:
        for stack in stacks:
            stack.wait('CREATE_COMPLETE', 200)
        yield agents
        base.purge(stacks)


@pytest.mark.long
def test_the_commands_of_the_page_print_what_it_says(cloud, stacks, tmp_path):
    stack = stacks((EXAMPLES / 'software.yaml').read_text(), name='web')
    shop = stacks(
        (EXAMPLES / 'databases.yaml').read_text(),
        name='shop',
        tags='production',
    )
    typist, page = Typist(cloud.env(), tmp_path), pages.read('on-call')
    with (
        servers.agent(cloud, stack, 'web_server') as agent,
        databases(cloud, shop) as (orders, *_),
    ):
        stack.wait('CREATE_COMPLETE', 200)

        def run_schedule():
            """Let a schedule start its run now, and wait for the end."""
            words = 'software deployment schedule run web nightly'
            cloud.openstack(*words.split())
            base.until(lambda: stack.outputs['night'] == 'complete')

        # A device where each write finds no space.
        backup = orders.path / 'tmp/database/backup'
        events = {
            'a disk is full': lambda: backup.symlink_to('/dev/full'),
            'the disk has room again': backup.unlink,
            'the clock': run_schedule,
            'server off': agent.stop,
        }
        typed = 0
        for command, expected in parts(page):
            if command in events:
                events.pop(command)()
            else:
                typist.type(command, expected)
                typed += 1
        assert not events
        for kind in pipelines.KINDS:
            typist.env = {**cloud.env(), **pipelines.ENV}
            done = typist.run(shlex.join(pipelines.argv(kind)))
            assert done.returncode == 0, f'{done.stdout}\n{done.stderr}'
        for name in 'backup.json', 'run.html':
            assert 'complete' in (tmp_path / name).read_text()
        assert typed == page.count('\n   $ ')
        # By the ID: runs outlive the stacks of other tests that had this name.
        listed = typist.run(f'{_RUNS} list --stack {shop.id} -f value -c ID')
        ids = listed.stdout.split()
        # That of the page, and those of the pipelines.
        assert len(ids) == 1 + len(pipelines.KINDS)
        listed = typist.run(f'{_RUNS} list --stack {stack.id} -f value -c ID')
        ids += listed.stdout.split()
        typist.type(shlex.join([*_RUNS.split(), 'delete', *ids]), '')
        agent.start()
        stack.remove()


@pytest.mark.long
def test_a_rolling_restart_over_two_stacks(cloud, stacks):
    section = pages.read('many-servers')
    section = section.partition('\nA rolling restart over ')[2]
    section = section.partition('\nWatch it, and come back later\n')[0]
    # The test does not wait for whole minutes.
    section = section.replace('--pause 60', '--pause 4')
    text = (EXAMPLES / 'databases.yaml').read_text()
    found = [stacks(text, name=name) for name in ('blue', 'green')]
    typist = Typist(cloud.env())

    def run_id():
        return next(iter(typist.runs.values()))

    def state():
        shown = typist.run(f'{_RUNS} show {run_id()} -f value -c state')
        return shown.stdout.strip()

    def restarts():
        return sorted(
            float(line)
            for agent in agents
            for file in (agent.path / 'tmp/database').glob('restarts')
            for line in file.read_text().split()
        )

    with databases(cloud, *found) as agents:
        typed = 0
        for command, expected in parts(section):
            if command.startswith('the canary'):
                base.until(lambda: state() == 'waiting-for-approval', 200)
                assert len(restarts()) == 1
            else:
                typist.type(command, expected)
                typed += 1
        assert typed == section.count('\n   $ ')
        assert state() == 'complete'
        times = restarts()
        assert len(times) == len(agents)
        # One, then two at a time.
        batches = [times[:1], times[1:3], times[3:5], times[5:]]
        for batch, following in itertools.pairwise(batches):
            assert following[0] - batch[-1] >= 4
        typist.type(f'{_RUNS} delete {run_id()}', '')
