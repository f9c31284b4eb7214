# SPDX-License-Identifier: Apache-2.0
"""What runs cost: their starts, their waits, and the death of their leader."""

import contextlib
import itertools
import subprocess
import time

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import figures
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import running

#: Targets at once in many stacks, and those stacks; targets at once in one;
#: and runs that a project has in its past.
MANY, STACKS, COUNT, PAST = 1000, 20, 50, 10_000

_ACTION, _TAG = 'BACKUP', 'bench'
_LIMIT = 600


class _Bench:
    def __init__(self, lab, state, say):
        self._lab, self._state, self._say = lab, state, say
        self.user = running.client(lab.cloud)
        self._meter = counting.Meter(lab.cloud)
        self.rows = []

    def add(self, what, count, value, most=None):
        """Note what was measured, and what it may be at most."""
        self._say(f'{what}, {count}: {value:.1f}')
        self.rows.append((what, count, value, most))

    def command(self, *words):
        """Start runs by a command."""
        subprocess.run(
            ['openstack', *words],
            # What pip installs is compiled; what is edited, by the first
            # command.
            env={**self._lab.cloud.env(), 'PYTHONDONTWRITEBYTECODE': ''},
            capture_output=True,
            check=True,
        )

    @contextlib.contextmanager
    def group(self, targets, count):
        """Create stacks with some targets in all; yield their names."""
        servers = self._lab.servers
        each = targets // count
        templates = [
            scenarios.components(
                # Some servers are in several stacks.
                [servers[(first + n) % len(servers)] for n in range(each)],
                _ACTION,
                group=count > 1,
            )
            for first in range(0, targets, each)
        ]
        found = stacks.Stacks(self._lab, self._state, templates, targets)
        found.create(tags=_TAG)
        found.signal('CREATE')
        yield found.names
        found.delete()

    def start(self, targets):
        """Start a run by tag; return the seconds until all servers have it."""
        before = self._meter.mark()
        begun = time.time()
        self.command(
            *('software', 'deployment', 'run', 'start', _ACTION, '--yes'),
            *('--stack-tag', _TAG),
            *('--max-concurrent', '100%', '--max-errors', '100%'),
        )
        self._say(f'the command: {time.time() - begun:.1f} s')
        self._given(targets)
        seconds = time.time() - begun
        return seconds, self._meter.between(before, self._meter.mark())

    def _given(self, targets):
        """Wait until servers see their runs; the rows are cheaper to read."""
        engine_state.until(
            lambda: (
                len(self._state.triggered(_ACTION)) == targets
                and len(self._state.told(_ACTION)) == targets
            ),
            _LIMIT,
            'all servers to have the run',
        )

    def end(self):
        return stacks.end_runs(self._state, _ACTION)

    def few(self):
        """Measure a start on one target, and on some by their tag."""
        with self.group(COUNT, 1) as (name,):
            before, begun = self._meter.mark(), time.time()
            self.command(
                *('software', 'deployment', 'run', 'start', _ACTION),
                *('--stack', name, '--resource', 'deployment0'),
            )
            time.sleep(5)
            counts = self._meter.between(before, self._meter.mark())
            swift = [
                one
                for one in self._lab.cloud.swift_requests(begun)
                # Polls go on as long as the server works.
                if 'prefix=signals' not in one['query']
            ]
            what = 'start by a command: requests to '
            # Heat makes an RPC message of each.
            self.add(what + 'Heat', 1, sum(counts['rpc'].values()), 1)
            self.add(what + 'Swift', 1, len(swift), 2)
            self.end()
            seconds, counts = self.start(COUNT)
            self.add('until all servers have the run, s', COUNT, seconds)
            requests = sum(counts['swift'].values())
            self.add('requests to Swift until then', COUNT, requests, 160)
            messages = sum(counts['rpc'].values())
            self.add('RPC messages until then', COUNT, messages, 20)
            self.end()

    def past(self):
        """Measure a list of the newest runs, with few and with many."""
        few = self._listing()
        with contextlib.closing(self._lab.database()) as database, database:
            _copy_runs(database)
        what = 'a list, with that many runs: time over that before'
        self.add(what, PAST, self._listing() / few, 1.1)

    def _listing(self):
        seconds = []
        for _ in range(5):
            begun = time.monotonic()
            list(itertools.islice(self.user.list(), 100))
            seconds.append(time.monotonic() - begun)
        return min(seconds)

    def many(self):
        """Measure a run on many targets, whose leader dies."""
        with self.group(MANY, STACKS):
            memory = self._memory()
            seconds, _ = self.start(MANY)
            self.add('until all servers have the run, s', MANY, seconds, 6)
            memory = self._memory() - memory
            self.add('memory of heat-engine, MB', MANY, memory)
            begun = time.time()
            self._lab.cloud.crash('heat')
            stacks.answer_runs(self._state, _ACTION)
            self._lab.cloud.start('heat')
            engine_state.until(
                lambda: len(self._state.triggered(_ACTION)) < MANY,
                _LIMIT,
                'another leader',
            )
            what = 'leader killed: another continues after, s'
            self.add(what, MANY, time.time() - begun, 45)
            self.add('until all results were read, s', MANY, self.end())

    def _memory(self):
        """Return the MB that heat-engine holds."""
        return float(self._lab.cloud.usage('heat')['rss_bytes']) / 1e6


def measure(lab, say):
    """Return a table: what was measured, and the goals."""
    lab.start()
    with lab.state() as state:
        bench = _Bench(lab, state, say)
        rounds.warm_up(lab, state)
        bench.few()
        bench.past()
        bench.many()
    return figures.measured(bench.rows)


def _copy_runs(database):
    """Let a project have many past runs: copies of one."""
    changed = {
        'id': "printf('%08x-0000-4000-8000-000000000000', :n)",
        'created_at': 'created_at - :n - 1',
    }
    columns = [
        row[1]
        for row in database.execute('PRAGMA table_info(heat_plugins_run)')
    ]
    values = ', '.join(changed.get(name, f'"{name}"') for name in columns)
    database.executemany(
        f'INSERT INTO heat_plugins_run ({", ".join(columns)})'
        f' SELECT {values} FROM heat_plugins_run LIMIT 1',
        [{'n': number} for number in range(PAST)],
    )
