# SPDX-License-Identifier: Apache-2.0
"""Services that are forks of a process that has imported them."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

from minicloud_lib import layout
from minicloud_lib import processes
from minicloud_lib import warm
import testtools

#: Stands for a service: writes down how it is started, and stays.
SERVICE = """\
import json, os, sys, time
from minicloud_lib.services import serving

IMPORTED_BY = os.getpid()

def main(*arguments):
    print(json.dumps({
        'arguments': arguments,
        'argv': sys.argv[1:],
        'folder': os.getcwd(),
        'variables': dict(os.environ),
        'leads': os.getsid(0) == os.getpid(),
        'imported_by': IMPORTED_BY,
    }), flush=True)
    time.sleep(100)

if __name__ == '__main__':
    main(*sys.argv[1:])
"""

#: Serves it as those of the mini cloud are served.
SERVE = """\
import socket, sys
from minicloud_lib import warm

warm._PACKAGE = 'fakes'
warm._serve('web', socket.socket(fileno=int(sys.argv[1])))
"""


class WarmTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        service = self.folder / 'fakes/web.py'
        service.parent.mkdir()
        service.write_text(SERVICE)
        (self.folder / 'python').write_text(sys.executable)
        self.patch(warm, '_PACKAGE', 'fakes')
        self.patch(
            os, 'environ', {**os.environ, warm.FOLDER: str(folder.name)}
        )
        self.env = {
            'WHO': 'world',
            'PATH': os.environ['PATH'],
            'PYTHONPATH': f'{layout.SOURCE}:{self.folder}',
        }

    def serve(self):
        """Have the process that waits; its PID."""
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.folder / 'web'))
            listener.listen()
            process = subprocess.Popen(
                [sys.executable, '-c', SERVE, str(listener.fileno())],
                env=self.env,
                pass_fds=[listener.fileno()],
            )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process.pid

    def spawn(self):
        """Start the service; its process, and what it says of itself."""
        log = self.folder / 'web.log'
        process = processes.spawn(
            [sys.executable, '-m', 'fakes.web', 'web.conf'],
            pid_file=self.folder / 'web.pid',
            log=log,
            env=self.env,
            folder=self.folder / 'data',
        )
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 30
        while not log.read_text().endswith('}\n'):
            self.assertTrue(time.monotonic() < deadline)
            time.sleep(0.02)
        return process, json.loads(log.read_text())

    def test_a_fork_is_what_a_start_would_be(self):
        waiting = self.serve()
        process, shown = self.spawn()
        self.assertEqual(waiting, shown.pop('imported_by'))
        self.assertEqual(process, processes.find(self.folder / 'web.pid'))
        self.assertTrue(process.stop(5))
        (self.folder / 'web.log').unlink()
        self.patch(os, 'environ', self.env)
        process, started = self.spawn()
        self.assertEqual(process.pid, started.pop('imported_by'))
        for each in (shown, started):
            # A shell's own.
            each['variables'].pop('LC_CTYPE', None)
        self.assertEqual(started, shown)

    def test_what_has_died_is_started(self):
        pid = self.serve()
        os.kill(pid, 9)
        process, shown = self.spawn()
        self.assertEqual(process.pid, shown['imported_by'])
