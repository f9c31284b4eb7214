# SPDX-License-Identifier: Apache-2.0
"""Servers with heat-config-supervisor, without the agent around it.

Each runs the supervisor's own commands with the hook of heat-agents, as
55-heat-config does, on a disk of its own.
"""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

from tests.bench import engine_state
from tests.functional import base

AGENT = base.ROOT / (
    'contrib/agent/heat-config-supervisor/install.d/heat-config-supervisor'
)
_HOOK = base.ROOT / (
    '.minicloud/heat-agents/heat-config-script/install.d/hook-script.py'
)

# The result of the hook goes to what sends it, as 55-heat-config does it.
_RUN = '"$0" hook "$1" <"$2" >result && "$0" notify "$2" <result'


class Servers:
    """The servers that were given an action, each as processes.

    :param folder: of their disks.
    """

    def __init__(self, folder):
        self._folder = folder
        self._hook = folder / 'hook-script.py'
        text = _HOOK.read_text()
        # A server's own Python has what the hook needs.
        _, _, rest = text.partition('\n')
        self._hook.write_text(f'#!{sys.executable}\n{rest}')
        self._hook.chmod(0o700)
        self._processes = []

    @contextlib.contextmanager
    def running(self, configs, script):
        """Let each server run a script as the config that it was given."""
        try:
            for number, config in enumerate(configs):
                self._processes.append(self._begin(number, config, script))
            yield
        finally:
            self._kill()
            for process in self._processes:
                process.wait()
            self._processes = []

    def begun(self):
        """Return how many scripts have started."""
        return len(list(self._folder.glob('*/begun')))

    def ends(self, limit):
        """Wait until all have ended; return when each did, as a time."""
        left = {one.pid: one for one in self._processes}
        found = []
        deadline = time.time() + limit
        while left and time.time() < deadline:
            for pid, process in list(left.items()):
                if process.poll() is not None:
                    found.append(time.time())
                    del left[pid]
            time.sleep(engine_state.INTERVAL)
        if left:
            raise engine_state.TooLongError(
                f'{len(left)} servers have not ended within {limit:.0f} s'
            )
        return found

    def _kill(self):
        """Kill all that runs of them, by the disk that it knows."""
        mark = f'BENCH_BEGUN={self._folder}/'.encode()
        for path in pathlib.Path('/proc').glob('[0-9]*/environ'):
            with contextlib.suppress(OSError):
                if mark in path.read_bytes():
                    os.kill(int(path.parent.name), signal.SIGKILL)

    def _begin(self, number, config, script):
        disk = self._folder / str(config['id'])
        (disk / 'deployed').mkdir(parents=True)
        file = disk / 'deployed' / f'{config["id"]}.json'
        given = {'name': f'n{number}', 'group': 'script', 'config': script}
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
                ['/bin/sh', '-c', _RUN, program, self._hook, file],
                cwd=disk,
                env=env,
                stdout=log,
                stderr=log,
            )
