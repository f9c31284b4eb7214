# SPDX-License-Identifier: Apache-2.0
"""What operations cost, from ten servers to a thousand.

For each size the servers, Heat and the object store are simulated, in the time
of a clock that the bench turns; what advances the operation is real. So the
requests are exact, and nothing is said of how long services take. The largest
is run by the command on the mini cloud as well, and so is the list of past
operations.
"""

from collections.abc import Callable, Sequence
from concurrent import futures
import dataclasses
import json
import multiprocessing
import os
import resource
import subprocess
import time

from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import layout
from tests.bench import counting
from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import base
from tests.unit.runs.fleet import simulation

#: Servers, and how many of them at a time; None: all.
SIZES = (10, 30, 100, 300, 1000)
AT_ONCE = (10, 50, None)

#: Stacks that the servers are in, at most.
_STACKS = 20

#: Past operations to list, and the targets of each.
_LISTED, _TARGETS = 100, 1000

_ACTION = 'BACKUP'

# No engine looks for operations.
_ALONE = """\
[heat_plugins]
rescue_interval = 0
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Measured:
    """One operation.

    :ivar concurrent: runs at a time.
    :ivar seconds: that it took, of the simulated clock.
    :ivar requests: to the object store, without listings.
    :ivar listings: of the object store.
    :ivar memory: the most MB of the process, the simulated cloud included.
    """

    n: int
    concurrent: int
    seconds: float
    requests: int
    listings: int
    memory: float

    @property
    def requests_per_run(self) -> float:
        return self.requests / self.n

    @property
    def listings_per_second(self) -> float:
        return self.listings / self.seconds


def measure(say: Callable[[str], None]) -> list[Measured]:
    """Run operations of each size, each in a process of its own."""
    cases = [
        (n, at_once or n)
        for at_once in AT_ONCE
        for n in SIZES
        if at_once is None or at_once <= n
    ]
    found = []
    # A process for each: the most memory of one is never less later.
    with futures.ProcessPoolExecutor(
        1,
        mp_context=multiprocessing.get_context('spawn'),
        max_tasks_per_child=1,
    ) as executor:
        for n, concurrent in dict.fromkeys(cases):
            one = executor.submit(_operate, n, concurrent).result()
            say(f'{n} servers, {concurrent} at a time: {one}')
            found.append(one)
    return found


def _operate(n: int, concurrent: int) -> Measured:
    world = simulation.World(n, stacks=min(_STACKS, n))
    order = world.order(max_concurrent=operations.Share(concurrent))
    before = world.now
    advancer = world.begin(order)
    operation = simulation.run(world, [advancer])
    if operation.control.phase.value != 'complete':
        raise RuntimeError(f'{n} servers: {operation.control}')
    ours = [one for one in world.cluster.seen if not one.signed]
    listings = sum('prefix' in one.query for one in ours)
    return Measured(
        n=n,
        concurrent=concurrent,
        seconds=world.now - before,
        requests=len(ours) - listings,
        listings=listings,
        memory=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    )


def _listing(lab: labs.Lab, say: Callable[[str], None]) -> '_Done':
    """Return what ``operation list`` takes."""
    session = lab.cloud.session()
    container = f'/{layout.CONTAINER}-{session.project_id}'
    session.put('object-store', container)
    ids = [
        f'20261121T0{n // 60}{n % 60:02}00Z-00c0ffee' for n in range(_LISTED)
    ]
    for operation_id in ids:
        head = {
            'id': operation_id,
            'action': 'BACKUP',
            'state': 'complete',
            'reason': f'All {_TARGETS} succeeded',
            'stacks': [f'stack{n}' for n in range(_STACKS)],
            'stack_ids': [f'{n:036}' for n in range(_STACKS)],
            'targets': _TARGETS,
            'counts': {'complete': _TARGETS},
            'percent': 100,
            'created_at': 1_795_000_000,
            'created_by': 'demo',
            'ended_at': 1_795_000_900,
        }
        name = f'{container}/{layout.head(operation_id)}'
        session.put('object-store', name, head)
    done = [_command(lab, 'list', '-f', 'json') for _ in range(3)]
    assert len(json.loads(done[0].printed)) >= _LISTED
    say(f'operation list: {done}')
    return min(done, key=lambda one: one.seconds)


def on_cloud(lab: labs.Lab, say: Callable[[str], None]) -> list[list[str]]:
    """Run one on groups in all stacks, by the command; list past ones.

    Once heat-engine advances it, once the command does.

    Returns a table.
    """
    columns = [_advanced(lab, say, conf) for conf in ('', _ALONE)]
    listed = _listing(lab, say)
    by_engine, by_command = columns
    return [
        [
            f'{_TARGETS:,} targets in {_STACKS} stacks, advanced by',
            'heat-engine',
            'the command',
        ],
        *([name, by_engine[name], by_command[name]] for name in by_engine),
        [f'operation list of {_LISTED}, s', f'{listed.seconds:.1f}', ''],
        ['CPU of the command for that, s', f'{listed.cpu:.1f}', ''],
    ]


def _advanced(
    lab: labs.Lab, say: Callable[[str], None], conf: str
) -> dict[str, str]:
    """Return the figures of an operation, by their names."""
    lab.start(labs.SIDES['ours'], conf)
    servers = lab.servers
    each = _TARGETS // _STACKS
    templates = [
        scenarios.components(
            # Some servers are in several stacks.
            [servers[(first + n) % len(servers)] for n in range(each)],
            _ACTION,
            group=True,
        )
        for first in range(0, _TARGETS, each)
    ]
    meter = counting.Meter(lab.cloud)
    with lab.state() as state:
        rounds.warm_up(lab, state)
        group = stacks.Stacks(lab, state, templates, _TARGETS)
        group.create()
        group.signal('CREATE')
        before = meter.mark()
        begun = time.time()
        names = [part for name in group.names for part in ('--stack', name)]
        with futures.ThreadPoolExecutor(1) as executor:
            command = executor.submit(
                _command,
                lab,
                *('run', _ACTION, *names, '--yes', '--max-errors', '100%'),
                *('--max-concurrent', '100%', '-f', 'value', '-c', 'id'),
            )
            engine_state.until(state.has_operation, 120, 'an operation')
            registered = time.time() - begun
            engine_state.until(
                # The first is the cheaper one.
                lambda: (
                    len(state.triggered(_ACTION)) == _TARGETS
                    and len(state.told(_ACTION)) == _TARGETS
                ),
                300,
                'all runs',
            )
            seconds = time.time() - begun
            starting = command.result()
        counts = meter.between(before, meter.mark())
        given = state.triggered(_ACTION)
        if len(given) != _TARGETS:
            raise RuntimeError(f'{len(given)} runs have started')
        for url in state.signal_urls(given).values():
            base.put(url, stacks.BODY)
        ending = _command(lab, 'wait', starting.printed, '-f', 'value')
        container = f'.*/{layout.CONTAINER}.*'
        seen = [
            one
            for one in lab.cloud.swift_requests(begun, path=container)
            # Those of servers are signed.
            if one['token']
        ]
        group.delete()
    listings = sum('prefix' in one['query'] for one in seen)
    say(f'{seconds:.1f} {starting} {ending} {counts.rpc}')
    requests = len(seen) - listings
    messages = sum(counts.rpc.values())
    cpu = counts.cpu['heat'] + counts.cpu['swift']
    return {
        'until the targets were found, s': f'{registered:.1f}',
        'from then until all servers had their run, s': (
            f'{seconds - registered:.1f}'
        ),
        'until the command ended, s': f'{starting.seconds:.0f}',
        'CPU of the command for that, s': f'{starting.cpu:.0f}',
        'CPU of Heat and Swift for that, s': f'{cpu:.0f}',
        "messages to Heat's engines for that": f'{messages}',
        'until all results were read, s': f'{ending.seconds:.0f}',
        'requests to the object store per run': f'{requests / _TARGETS:.1f}',
        'listings': f'{listings}',
        'memory of the command, MB': f'{starting.memory:.0f}',
    }


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Done:
    """A command; `cpu` is in seconds, and `memory` in MB."""

    seconds: float
    cpu: float
    memory: float
    printed: str = dataclasses.field(repr=False)


def _command(lab: labs.Lab, *words: str) -> _Done:
    begun = time.monotonic()
    with subprocess.Popen(
        ['openstack', 'software', 'deployment', 'operation', *words],
        # What pip installs is compiled; what is edited, by the first command.
        env={**lab.cloud.env(), 'PYTHONDONTWRITEBYTECODE': ''},
        stdout=subprocess.PIPE,
        text=True,
    ) as command:
        printed = command.stdout.read()
        _, status, used = os.wait4(command.pid, 0)
        command.returncode = os.waitstatus_to_exitcode(status)
    if command.returncode:
        raise RuntimeError(f'{words[0]}: exit code {command.returncode}')
    return _Done(
        seconds=time.monotonic() - begun,
        cpu=used.ru_utime + used.ru_stime,
        memory=used.ru_maxrss / 1024,
        printed=printed.strip(),
    )


def chosen(found: Sequence[Measured], at_once: int | None) -> list[Measured]:
    """Return the operations with N runs at a time; None: all."""
    return [one for one in found if one.concurrent == (at_once or one.n)]
