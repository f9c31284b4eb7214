# SPDX-License-Identifier: Apache-2.0
"""Live runs: how far behind their output is, and how soon they stop.

The servers run heat-config-supervisor's own commands with the hook of
heat-agents, as 55-heat-config does, each on a disk of its own.
"""

import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

import psutil

from tests.bench import engine_state
from tests.bench import rounds
from tests.bench import scenarios
from tests.bench import stacks
from tests.functional import base
from tests.functional import running

#: Where the supervisor is.
AGENT = base.ROOT / (
    'contrib/agent/heat-config-supervisor/install.d/heat-config-supervisor'
)
_HOOK = base.ROOT / (
    '.minicloud/heat-agents/heat-config-script/install.d/hook-script.py'
)

# The result of the hook goes to what sends it, as 55-heat-config does it.
_RUN = '"$0" hook "$1" <"$2" >result && "$0" notify "$2" <result'

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

#: How many servers print, by the title of that: how many blocks each, of how
#: many lines of 100 bytes, and the seconds between two blocks.
LOADS = {
    '1 server': (1, 90, 0, 0.33),
    '10 servers': (10, 90, 0, 0.33),
    '50 servers, 100 MB': (50, 100, 200, 0.6),
}


def measure(lab, say):
    """Measure all loads; return a table of them."""
    lab.start()
    most = max(count for count, *_ in LOADS.values())
    template = scenarios.components(lab.servers[:most], _ACTION)
    columns = []
    with lab.state() as state:
        rounds.warm_up(lab, state)
        group = stacks.Stacks(lab, state, [template], most)
        group.create()
        group.signal('CREATE')
        bench = _Bench(lab, state, group.names[0])
        for title, (count, *load) in LOADS.items():
            found = bench.follow(count, *load) | bench.stop(count)
            say(f'{title}: {found}')
            columns.append(found)
        group.delete()
    return [
        ['', *LOADS],
        *([row, *(one[row] for one in columns)] for row in columns[0]),
    ]


class _Bench:
    def __init__(self, lab, state, name):
        self._lab = lab
        self._state = state
        self._stack = name
        self._commands = running.Commands(lab.cloud)

    def _begin(self, count, *options):
        """Begin a command that starts a run."""
        words = ['start', _ACTION, '--stack', self._stack, '--yes', *options]
        for n in range(count):
            words += ['--resource', f'deployment{n}']
        return self._commands.begin(*words)

    def _given(self, count):
        """Return the configs that servers were given, once all were."""
        found = {}

        def all_given():
            ids = self._state.triggered(_ACTION)
            found.update(self._state.configs(ids))
            return len(ids) == count

        engine_state.until(all_given, _LIMIT, f'{count} runs to begin')
        return list(found.values())

    def follow(self, count, blocks, lines, rest):
        """Let servers print, and follow all of it."""
        script = _PRINTS.format(blocks=blocks, lines=lines, rest=rest)
        lags, seen = [], {}

        def read():
            for line in command.stderr:
                if match := _LINE.match(line):
                    lags.append(time.time() - float(match[2]))
                    seen.setdefault(match[1], []).append(int(match[3]))

        with self._begin(count, '--follow') as command:
            reader = threading.Thread(target=read)
            reader.start()
            try:
                configs = self._given(count)
                begun = time.time()
                cpu = self._lab.cloud.usage('swift')['cpu_seconds']
                with _servers(configs, script) as (_, processes):
                    ended = _ends(processes)[-1]
                cpu = self._lab.cloud.usage('swift')['cpu_seconds'] - cpu
                command.wait(_LIMIT)
            finally:
                command.kill()
                reader.join()
        whole = list(range(blocks))
        wrong = [name for name, found in seen.items() if found != whole]
        if wrong or len(seen) != count:
            raise RuntimeError(f'The output of {wrong} is not as printed')
        seconds = ended - begun
        sent = [
            one
            for one in self._lab.cloud.swift_requests(begun)
            if one['time'] < ended
        ]

        def rate(method, path):
            found = [
                one
                for one in sent
                if one['method'] == method
                and re.search(path, str(one['path']))
            ]
            return f'{len(found) / count / seconds:.2g}'

        size = blocks * (lines * 100 + len('at 1763841600.000 10 '))
        reads = sum(bool(one['token']) for one in sent)
        lags.sort()
        return {
            'output, MB': f'{count * size / 1e6:.3g}',
            'behind, median, s': f'{lags[len(lags) // 2]:.1f}',
            'behind, 95th of 100, s': f'{lags[int(0.95 * len(lags))]:.1f}',
            'behind, worst, s': f'{lags[-1]:.1f}',
            'PUTs of output a second and server': rate('PUT', '/logs/'),
            'GETs of the order to stop a second and server': rate(
                'GET', r'\.control'
            ),
            'requests of the reader a second and server': (
                f'{reads / count / seconds:.2g}'
            ),
            'Swift, cores': f'{cpu / seconds:.2f}',
        }

    def stop(self, count):
        """Let servers run a script that hangs, and cancel it."""
        with self._begin(count, '-f', 'json') as command:
            _, started = self._commands.end(command)
        configs = self._given(count)
        with _servers(configs, _HANGS) as (folder, processes):
            engine_state.until(
                lambda: len(list(folder.glob('*/begun'))) == count,
                _LIMIT,
                'scripts',
            )
            time.sleep(5)
            begun = time.time()
            command = self._commands.begin('cancel', started['id'], '--wait')
            taken = [end - begun for end in _ends(processes)]
            command.communicate()
        return {
            'cancel to the result of the stopped script, median, s': (
                f'{taken[len(taken) // 2]:.1f}'
            ),
            'the same, worst, s': f'{taken[-1]:.1f}',
        }


@contextlib.contextmanager
def _servers(configs, script):
    """Let servers run a script as what each was given.

    Yield the folder of their disks, and their processes.
    """
    processes = []
    with tempfile.TemporaryDirectory(prefix='bench-') as name:
        folder = pathlib.Path(name)
        hook = folder / 'hook-script.py'
        # A server's own Python has what the hook needs.
        _, _, rest = _HOOK.read_text().partition('\n')
        hook.write_text(f'#!{sys.executable}\n{rest}')
        hook.chmod(0o700)
        try:
            for config in configs:
                processes.append(_begin(folder, hook, config, script))
            yield folder, processes
        finally:
            # All that runs of them, by the disk that it knows.
            for each in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    disk = each.environ().get('BENCH_BEGUN', '')
                    if disk.startswith(f'{folder}/'):
                        each.kill()
            for process in processes:
                process.wait()


def _begin(folder, hook, config, script):
    """Begin the process of a server."""
    name = config['id']
    disk = folder / name
    file = disk / f'deployed/{name}.json'
    file.parent.mkdir(parents=True)
    given = {'name': name, 'group': 'script', 'config': script}
    file.write_text(json.dumps({**config, **given}))
    env = {
        **os.environ,
        'HEAT_CONFIG_SUPERVISOR_STATE': str(disk / 'state'),
        'HEAT_CONFIG_DEPLOYED': str(disk / 'deployed'),
        'HEAT_SCRIPT_WORKING': str(disk / 'script'),
        'HEAT_SCRIPT_OUTPUTS': str(disk / 'outputs'),
        'BENCH_BEGUN': str(disk / 'begun'),
    }
    program = AGENT / 'heat-config-supervisor'
    with (disk / 'log').open('wb') as log:
        return subprocess.Popen(
            ['/bin/sh', '-c', _RUN, program, hook, file],
            cwd=disk,
            env=env,
            stdout=log,
            stderr=log,
        )


def _ends(processes):
    """Wait until all have ended; return when each did, as a time."""
    ends = {}

    def all_ended():
        for each in processes:
            if each.poll() is not None:
                ends.setdefault(each, time.time())
        return len(ends) == len(processes)

    engine_state.until(all_ended, _LIMIT, 'the ends of all servers')
    return sorted(ends.values())
