# SPDX-License-Identifier: Apache-2.0
"""What a script prints, from the real supervisor to the reader.

The supervisor runs as on a server, in processes of its own, and sends over
HTTP to the strict fake of an object store, which fails now and then.
"""

import concurrent.futures
import hashlib
import http.server
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time

import fixtures

from heat_plugins import errors
from heat_plugins.objectstore import wire
from heat_plugins.runs import runs
from heat_plugins.runs.start import orders
from tests.unit import agent
from tests.unit.agent import test_hook
from tests.unit.runs import base

_PROGRAM = agent.PROGRAMS / 'heat-config-supervisor'

# Seconds for anything that takes a moment.
_PATIENCE = 90

# Bytes without ends of lines, and a secret now and then.
_BYTES = """\
#!{python}
import hashlib, sys, time
seed = {seed!r}.encode()
for number in range({pieces}):
    seed = hashlib.sha512(seed).digest()
    sys.stdout.buffer.write(seed * 40)
    sys.stdout.flush()
    time.sleep({rest})
"""


def expected(seed, pieces):
    found, seed = [], seed.encode()
    for _ in range(pieces):
        seed = hashlib.sha512(seed).digest()
        found.append(seed * 40)
    return b''.join(found)


class Handler(http.server.BaseHTTPRequestHandler):
    """Hands requests of servers on to the fake, or fails them."""

    def do_PUT(self):
        length = int(self.headers['Content-Length'])
        self._serve(self.rfile.read(length))

    def do_GET(self):
        self._serve(b'')

    def _serve(self, body):
        case = self.server.case
        if case.away.is_set():
            # As a connection that breaks.
            self.close_connection = True
            return
        status = 503
        if case.chance.random() >= case.failing:
            url = case.url + self.path
            request = wire.Request(
                method=self.command, url=url, authenticated=False
            )
            status = case.cluster.serve(None, request, body).status
        self.send_response(status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


class JourneyTest(base.RunsTestCase):
    """Servers with the supervisor, and one store.

    :ivar away: set while the store does not answer servers.
    :ivar failing: the part of their requests that fail.
    """

    def setUp(self):
        super().setUp()
        self.chance = random.Random(1)
        self.failing = 0.0
        self.away = threading.Event()
        self.server = http.server.ThreadingHTTPServer(
            ('127.0.0.1', 0), Handler
        )
        self.server.daemon_threads = True
        self.server.case = self
        self.url = f'http://127.0.0.1:{self.server.server_port}'
        self.cluster.endpoint = f'{self.url}/v1/AUTH_%(project_id)s'
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def begin(self, script, number=0):
        """Start a run; the run, and what its server does with a script."""
        name, server = f'db{number}', f'server-{number}'
        row = self.heat.add_deployment(self.stack, name=name, server=server)
        (target,) = self.runs.find('shop', row.id)
        run = self.runs.start(target, orders.RunOrder(action='BACKUP'))
        (given,) = self.heat.given(server)
        folder = self.path / server
        (folder / 'deployed').mkdir(parents=True)
        hook = folder / 'script'
        python = f'#!{sys.executable}'
        hook.write_text(
            test_hook.HOOK.replace('#!/usr/bin/env python3', python)
        )
        hook.write_text(
            hook.read_text().replace('.decode()', ".decode('latin-1')")
        )
        hook.chmod(0o700)
        program = folder / 'program'
        program.write_text(script)
        program.chmod(0o700)
        text = json.dumps(
            {
                'id': run.config_id,
                'config': f'exec {program}',
                'inputs': list(given.inputs),
                'options': dict(given.options),
                'creation_time': time.strftime(
                    '%Y-%m-%dT%H:%M:%SZ', time.gmtime()
                ),
            }
        )
        file = folder / 'deployed' / f'{run.config_id}.json'
        file.write_text(text)
        return run, lambda: self._serve(folder, file, hook)

    def _serve(self, folder, file, hook):
        """Do what 55-heat-config does, until the result is accepted."""
        env = {
            'PATH': os.environ['PATH'],
            'HEAT_CONFIG_SUPERVISOR_STATE': str(folder / 'state'),
            'HEAT_CONFIG_DEPLOYED': str(folder / 'deployed'),
        }
        done = subprocess.run(
            [sys.executable, _PROGRAM, 'hook', hook],
            input=file.read_bytes(),
            env=env,
            capture_output=True,
            check=True,
        )
        subprocess.run(
            [sys.executable, _PROGRAM, 'notify', file],
            input=done.stdout,
            env=env,
            capture_output=True,
            check=True,
        )
        end = time.monotonic() + _PATIENCE
        while list((folder / 'state/pending').glob('[!.]*.json')):
            assert time.monotonic() < end, 'the result is not accepted'
            time.sleep(0.2)
        return json.loads(done.stdout)

    def read(self, found, done):
        """Read the output of runs until their servers are done."""
        readers = {run.id: self.runs.log(run) for run in found}
        content = dict.fromkeys(readers, b'')
        is_last = False
        while True:
            # A listing holds for less than a second of the readers' clock.
            self.now += 1
            for run_id, reader in readers.items():
                for part in reader.read():
                    self.assertEqual(0, part.left_out)
                    content[run_id] += part.content
            if is_last:
                break
            is_last = done()
            time.sleep(0.2)
        for reader in readers.values():
            self.assertTrue(reader.finished)
        return content

    def test_nothing_is_lost_or_mixed_up_on_the_way(self):
        """Several servers at once; the store fails, and is away a while."""
        self.failing = 0.3
        number, pieces = 4, 60
        begun = [
            self.begin(
                _BYTES.format(
                    python=sys.executable,
                    seed=str(one),
                    pieces=pieces,
                    rest=0.1,
                ),
                one,
            )
            for one in range(number)
        ]
        with concurrent.futures.ThreadPoolExecutor(number) as executor:
            served = [executor.submit(serve) for _, serve in begun]

            def lose_store():
                self.away.set()
                time.sleep(4)
                self.away.clear()

            timer = threading.Timer(3, lose_store)
            timer.start()
            content = self.read(
                [run for run, _ in begun],
                lambda: all(one.done() for one in served),
            )
            timer.join()
            results = [one.result() for one in served]
        for one, (run, _) in enumerate(begun):
            whole = expected(str(one), pieces)
            self.assertEqual(
                hashlib.md5(whole).hexdigest(),
                hashlib.md5(content[run.id]).hexdigest(),
            )
            self.assertEqual(
                whole, results[one]['deploy_stdout'].encode('latin-1')
            )
            self.assertEqual(runs.State.COMPLETE, self.show(run).state)
            # It goes with the run, wherever it lay.
            self.runs.delete('shop', run.id)
            left = list((self.path / f'server-{one}/state/logs').iterdir())
            self.assertEqual([], left)
        self.assertEqual([], self.objects('runs/logs/'))
        self.assertEqual([], self.objects('signals/'))

    def test_a_run_is_cancelled_while_its_server_runs_it(self):
        for script, told in (
            ('#!/bin/sh\necho half\nexec sleep 600\n', 'stopped'),
            (
                "#!/bin/sh\ntrap '' TERM\necho half\n"
                'while :; do sleep 1; done\n',
                'stopped by force',
            ),
        ):
            run, serve = self.begin(script, len(told))
            with concurrent.futures.ThreadPoolExecutor(1) as executor:
                served = executor.submit(serve)
                reader = self.runs.log(run)
                end = time.monotonic() + _PATIENCE
                while not list(reader.read()):
                    assert time.monotonic() < end
                    time.sleep(0.2)
                    self.now += 1
                cancelled = self.runs.cancel('shop', run.id)
                served.result(_PATIENCE)
            found = self.runs.await_stop(cancelled, 60)
            self.assertTrue(found.reason.endswith(f'; {told}'), found.reason)
            self.assertEqual('half\n', found.late.outputs['deploy_stdout'])
            with self.assertRaisesRegex(errors.AlreadyEnded, 'has ended'):
                self.runs.cancel('shop', run.id)
