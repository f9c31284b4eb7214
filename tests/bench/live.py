# SPDX-License-Identifier: Apache-2.0
"""Live runs: how far behind their output is, and how soon they stop."""

import contextlib
import dataclasses
import pathlib
import re
import tempfile
import threading
import time

from tests.bench import engine_state
from tests.bench import lab as labs
from tests.bench import live_servers
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import running

_ACTION = 'PRINT'
_LIMIT = 600

# A number of blocks, each after a line with the time and its number.
_PRINTS = """\
#!/usr/bin/env python3
import sys, time
text = ('x' * 99 + '\\n') * {lines}
for number in range({blocks}):
    sys.stdout.write(f'at {{time.time():.3f}} {{number}}\\n' + text)
    sys.stdout.flush()
    time.sleep({rest})
"""
_HANGS = '#!/bin/sh\ntouch "$BENCH_BEGUN"\nsleep 1000\n'

# Before the output of one of several servers are its stack and its name.
_LINE = re.compile(rb'(\S+ \S+: )?at (\d+\.\d+) (\d+)\n')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Load:
    """What a number of servers prints.

    :ivar lines: of 100 bytes in each block.
    :ivar rest: seconds between two blocks.
    """

    title: str
    servers: int
    blocks: int
    lines: int
    rest: float

    @property
    def size(self):
        """The bytes that a server prints."""
        return self.blocks * (self.lines * 100 + len('at 1763841600.000 10 '))

    @property
    def script(self):
        return _PRINTS.format(
            blocks=self.blocks, lines=self.lines, rest=self.rest
        )


LOADS = (
    Load(title='1 server', servers=1, blocks=90, lines=0, rest=0.33),
    Load(title='10 servers', servers=10, blocks=90, lines=0, rest=0.33),
    Load(
        title='50 servers, 100 MB', servers=50, blocks=100, lines=200, rest=0.6
    ),
)


class _Reader:
    """Reads what ``--follow`` shows, and notes when each block came.

    :ivar lags: seconds from the moment when a block was printed.
    :ivar blocks: by server: the numbers of its blocks, as they came.
    """

    def __init__(self, command):
        self._stream = command.stderr
        self.lags = []
        self.blocks = {}
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        for line in self._stream or ():
            if match := _LINE.match(line):
                self.lags.append(time.time() - float(match[2]))
                server = match[1] or b''
                self.blocks.setdefault(server, []).append(int(match[3]))


class _Bench:
    def __init__(self, lab, state, name):
        self._lab = lab
        self._state = state
        self._stack = name
        self._commands = running.Commands(lab.cloud)

    def _given(self, count):
        """Wait until all servers were given the action."""
        ids = engine_state.until(
            lambda: (
                found
                if len(found := self._state.triggered(_ACTION)) == count
                else None
            ),
            _LIMIT,
            f'{count} runs to begin',
        )
        return list(self._state.configs(ids).values())

    def _start(self, count):
        words = ['start', _ACTION, '--stack', self._stack, '--yes']
        for n in range(count):
            words += ['--resource', f'deployment{n}']
        return words

    def follow(self, load):
        """Let servers print, and follow all of it."""
        words = *self._start(load.servers), '--follow'
        with (
            tempfile.TemporaryDirectory(prefix='bench-') as folder,
            self._commands.begin(*words) as command,
            contextlib.ExitStack() as ending,
        ):
            ending.callback(command.kill)
            reader = _Reader(command)
            configs = self._given(load.servers)
            servers = live_servers.Servers(pathlib.Path(folder))
            begun = time.time()
            cpu = self._lab.cloud.usage('swift')['cpu_seconds']
            with servers.running(configs, load.script):
                ended = max(servers.ends(_LIMIT))
            cpu = self._lab.cloud.usage('swift')['cpu_seconds'] - cpu
            command.wait(_LIMIT)
            reader.thread.join()
        whole = list(range(load.blocks))
        wrong = [
            name for name, found in reader.blocks.items() if found != whole
        ]
        if wrong or len(reader.blocks) != load.servers:
            raise RuntimeError(f'The output of {wrong} is not as printed')
        seconds = ended - begun
        sent = self._lab.cloud.swift_requests(begun)
        sent = [one for one in sent if one['time'] < ended]
        per_server = load.servers * seconds
        return {
            'output, MB': f'{load.servers * load.size / 1e6:.3g}',
            **_lags(reader.lags),
            'PUTs of output a second and server': _rate(
                sent, per_server, 'PUT', '/logs/'
            ),
            'GETs of the order to stop a second and server': _rate(
                sent, per_server, 'GET', r'\.control'
            ),
            'requests of the reader a second and server': (
                f'{sum(bool(one["token"]) for one in sent) / per_server:.2g}'
            ),
            'Swift, cores': f'{cpu / seconds:.2f}',
        }

    def stop(self, count):
        """Let servers run a script that hangs, and cancel it."""
        started = running.client(self._lab.cloud).start(
            _ACTION,
            stacks=[self._stack],
            resources=[f'deployment{n}' for n in range(count)],
        )
        configs = self._given(count)
        with tempfile.TemporaryDirectory(prefix='bench-') as folder:
            servers = live_servers.Servers(pathlib.Path(folder))
            with servers.running(configs, _HANGS):
                engine_state.until(
                    lambda: servers.begun() == count, _LIMIT, 'scripts'
                )
                time.sleep(5)
                begun = time.time()
                command = self._commands.begin('cancel', started.id, '--wait')
                ends = sorted(servers.ends(_LIMIT))
                command.communicate()
        taken = [one - begun for one in ends]
        return {
            'cancel to the result of the stopped script, median, s': (
                f'{taken[len(taken) // 2]:.1f}'
            ),
            'the same, worst, s': f'{taken[-1]:.1f}',
        }


def measure(lab, say):
    """Measure all loads; return a table of them."""
    lab.start(labs.SIDES['ours'])
    most = max(load.servers for load in LOADS)
    template = scenarios.components(lab.servers[:most], _ACTION)
    columns = []
    with lab.state() as state:
        rounds.warm_up(lab, state)
        group = stacks.Stacks(lab, state, [template], most)
        group.create()
        group.signal('CREATE')
        bench = _Bench(lab, state, group.names[0])
        for load in LOADS:
            found = bench.follow(load) | bench.stop(load.servers)
            say(f'{load.title}: {found}')
            columns.append(found)
        group.delete()
    rows = list(columns[0])
    return [
        ['', *(load.title for load in LOADS)],
        *([row, *(one[row] for one in columns)] for row in rows),
    ]


def _lags(lags):
    lags = sorted(lags)
    return {
        'behind, median, s': f'{lags[len(lags) // 2]:.1f}',
        'behind, 95th of 100, s': f'{lags[int(0.95 * len(lags))]:.1f}',
        'behind, worst, s': f'{lags[-1]:.1f}',
    }


def _rate(sent, seconds, method, path):
    found = [
        one
        for one in sent
        if one['method'] == method and re.search(path, str(one['path']))
    ]
    return f'{len(found) / seconds:.2g}'
