# SPDX-License-Identifier: Apache-2.0
"""What runs cost: their starts, their waits, and the death of their leader."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
import re
import subprocess
import time

from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.bench import tables
from tests.functional import base
from tests.functional import running

#: Targets at once in many stacks, and those stacks; targets at once in one;
#: runs that wait; and runs that a project has in its past.
MANY, STACKS, COUNT, WAITING, PAST = 1000, 20, 50, 200, 10_000

_ACTION = 'BACKUP'
_LIMIT = 600

# Seconds in which writes are counted.
_WATCHED = 60

_WRITES = ('INSERT', 'UPDATE', 'DELETE')

# A request that openstack --debug shows.
_REQUEST = re.compile(rb"REQ: curl .*-X (GET|POST) '?(\S+)")


class _Bench:
    def __init__(self, lab: labs.Lab, say: Callable[[str], None]) -> None:
        self._lab, self._say = lab, say
        self.user = running.client(lab.cloud)
        self._meter = counting.Meter(lab.cloud)

    def command(self, *words: str) -> tuple[bytes, bytes]:
        """Run a command on runs; return what it prints, and what it says."""
        done = subprocess.run(
            ['openstack', *words],
            # What pip installs is compiled; what is edited, by the first
            # command.
            env={**self._lab.cloud.env(), 'PYTHONDONTWRITEBYTECODE': ''},
            capture_output=True,
            check=True,
        )
        return done.stdout, done.stderr

    @contextlib.contextmanager
    def group(
        self, state: engine_state.EngineState, targets: int, count: int
    ) -> Iterator[list[str]]:
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
        found = stacks.Stacks(self._lab, state, templates, targets)
        found.create()
        found.signal('CREATE')
        yield found.names
        found.delete()

    def start(
        self, state: engine_state.EngineState, targets: int, names: list[str]
    ) -> tuple[float, counting.Counts]:
        """Start a run; return the seconds until all servers have it."""
        words = [word for name in names for word in ('--stack', name)]
        before = self._meter.mark()
        begun = time.time()
        self.command(
            *('software', 'deployment', 'run', 'start', _ACTION, *words),
            *('--yes', '--max-concurrent', '100%', '--max-errors', '100%'),
        )
        self._say(f'the command: {time.time() - begun:.1f} s')
        engine_state.until(
            # The first is the cheaper one.
            lambda: (
                len(state.triggered(_ACTION)) == targets
                and len(state.told(_ACTION)) == targets
            ),
            _LIMIT,
            'all servers to have the run',
        )
        seconds = time.time() - begun
        return seconds, self._meter.between(before, self._meter.mark())

    def answer(self, state: engine_state.EngineState) -> None:
        given = state.triggered(_ACTION)
        for url in state.signal_urls(given).values():
            base.put(url, stacks.BODY)

    def end(self, state: engine_state.EngineState) -> float:
        """Answer for all servers; return the seconds until the run ends."""
        self.answer(state)
        begun = time.time()
        engine_state.until(lambda: not state.has_runs(), _LIMIT, 'the end')
        return time.time() - begun

    def requests(self, stack: str) -> tuple[int, int]:
        """Start a run on one target; return the requests to Heat and Swift."""
        begun = time.time()
        _, said = self.command(
            *('--debug', 'software', 'deployment', 'run', 'start', _ACTION),
            *('--stack', stack, '--resource', 'deployment0'),
        )
        heat = self._lab.cloud.session().endpoint('orchestration').encode()
        asked = [each[1] for each in _REQUEST.findall(said)]
        time.sleep(5)
        swift = self._lab.cloud.swift_requests(begun)
        return sum(heat in url for url in asked), len(swift)

    def writes(self) -> int:
        """Return how often heat-engine writes without a request."""
        before = self._meter.mark()
        time.sleep(_WATCHED)
        db = self._meter.between(before, self._meter.mark()).db
        return sum(db.get(verb, 0) for verb in _WRITES)

    def listing(self) -> float:
        """Return the seconds of a list of the newest runs."""
        seconds = []
        for _ in range(5):
            begun = time.monotonic()
            list(zip(range(100), self.user.list(), strict=False))
            seconds.append(time.monotonic() - begun)
        return min(seconds)

    def memory(self) -> float:
        """Return the MB that heat-engine holds."""
        pid = self._lab.cloud.usage('heat')['pid']
        with open(f'/proc/{pid}/statm') as file:
            pages = int(file.read().split()[1])
        return pages * os.sysconf('SC_PAGE_SIZE') / 1e6


def measure(lab: labs.Lab, say: Callable[[str], None]) -> tables.Table:
    """Return a table: what was measured, and the goals."""
    lab.start(labs.SIDES['ours'])
    bench = _Bench(lab, say)
    rows: list[tuple[str, int, float, float | None]] = []

    def add(*row: object) -> None:
        say(f'{row}')
        rows.append(row)  # type: ignore[arg-type]

    with lab.state() as state:
        rounds.warm_up(lab, state)
        with bench.group(state, COUNT, 1) as names:
            heat, swift = bench.requests(names[0])
            add('start by a command: requests to Heat', 1, heat, 1)
            add('start by a command: requests to Swift', 1, swift, 2)
            bench.end(state)
            seconds, counts = bench.start(state, COUNT, names)
            add('until all servers have the run, s', COUNT, seconds, None)
            requests = sum(counts.swift.values())
            add('requests to Swift until then', COUNT, requests, 160)
            add('RPC messages until then', COUNT, sum(counts.rpc.values()), 20)
            bench.end(state)
        with bench.group(state, WAITING, 1) as names:
            idle = bench.writes()
            for number in range(WAITING):
                resources = [f'deployment{number}']
                bench.user.start(_ACTION, stacks=names, resources=resources)
            engine_state.until(
                lambda: len(state.told(_ACTION)) == WAITING, _LIMIT, 'all runs'
            )
            more = bench.writes() - idle
            add('runs that wait: writes a minute', WAITING, more, 0)
            bench.end(state)
        few = bench.listing()
        _past(lab)
        ratio = bench.listing() / few
        add(
            'a list, with that many runs: time over that before',
            PAST,
            ratio,
            1.1,
        )
        with bench.group(state, MANY, STACKS) as names:
            memory = bench.memory()
            seconds, _ = bench.start(state, MANY, names)
            add('until all servers have the run, s', MANY, seconds, 6)
            memory = bench.memory() - memory
            add('memory of heat-engine, MB', MANY, memory, None)
            begun = time.time()
            lab.cloud.crash('heat')
            bench.answer(state)
            lab.cloud.start('heat')
            engine_state.until(
                lambda: len(state.triggered(_ACTION)) < MANY,
                _LIMIT,
                'another leader',
            )
            seconds = time.time() - begun
            add('leader killed: another continues after, s', MANY, seconds, 45)
            seconds = bench.end(state)
            add('until all results were read, s', MANY, seconds, None)
    return [
        ['', 'N', 'measured', 'goal'],
        *(
            [what, f'{n:,}', f'{value:.1f}', _goal(goal)]
            for what, n, value, goal in rows
        ),
    ]


def _goal(goal: float | None) -> str:
    return '' if goal is None else f'{goal:g}'


def _past(lab: labs.Lab) -> None:
    """Let a project have many past runs: copies of one."""
    with contextlib.closing(lab.database()) as database, database:
        columns = [
            row[1]
            for row in database.execute('PRAGMA table_info(heat_plugins_run)')
        ]
        values = ', '.join(_copied(columns))
        database.executemany(
            f'INSERT INTO heat_plugins_run ({", ".join(columns)})'
            f' SELECT {values} FROM heat_plugins_run LIMIT 1',
            [{'n': number} for number in range(PAST)],
        )


def _copied(columns: Sequence[str]) -> list[str]:
    changed = {
        'id': "printf('%08x-0000-4000-8000-000000000000', :n)",
        'created_at': 'created_at - :n - 1',
    }
    return [changed.get(name, f'"{name}"') for name in columns]
