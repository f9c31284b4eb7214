# SPDX-License-Identifier: Apache-2.0
"""What CI runs, and what it makes of what goes wrong."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import fixtures
import testtools

from tests import pythons
from tests import rest

ROOT = pathlib.Path(__file__).resolve().parents[2]

#: Says what pytest says in the end, of each of the runs.
MAKE = """\
#!/bin/sh
echo "make $*"
case "$2" in
    '' | venv) exit ;;
    test-rest) exec python3 -m tests.rest run ;;
    --keep-going) closing='1 failed, 20 passed' ;;
    *) closing='20 passed, 3 skipped, 1 rerun' ;;
esac
echo "== $closing in 1.50s (0:00:01) =="
case "$closing" in *failed*) exit 2 ;; esac
"""

#: Says its version, and runs the fake of minicloud in a shell.
PYTHON = """\
#!/bin/sh
[ "$1" != -c ] || { echo VERSION; exit; }
exec sh "$@"
"""

#: What .ci/run and what it starts may find on PATH, with the fakes.
PROGRAMS = ('dirname', 'mktemp', 'nice', 'rm', 'sh', 'tee', 'touch')


class RunTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in (
            *('.ci/run', 'tests/__init__.py'),
            *('tests/rest.py', 'tests/pythons.py'),
        ):
            target = self.root / name
            target.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, target)
        self.program('bin/make', MAKE)
        self.program('bin/python3', f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        for version in pythons.SUPPORTED:
            self.program(
                f'bin/python{version}', PYTHON.replace('VERSION', version)
            )
        for name in PROGRAMS:
            (self.root / 'bin' / name).symlink_to(shutil.which(name))

    def program(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run_ci(self, installed=0):
        """Run it, if installations end so; its exit code and output."""
        self.program(
            'contrib/minicloud/minicloud', f'#!/bin/sh\nexit {installed}\n'
        )
        done = subprocess.run(
            [self.root / '.ci/run'],
            env={
                'PATH': str(self.root / 'bin'),
                'PYENV_ROOT': str(self.root),
            },
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    def passing(self):
        """Let no test fail."""
        self.program('bin/make', MAKE.replace('1 failed, 20', '20'))

    def test_all_is_run_and_summed_up_in_the_last_line(self):
        self.passing()
        code, output = self.run_ci()
        assert code == 0
        assert re.findall(
            r'make --no-print-directory (--keep-going test|[\w-]+)', output
        ) == [
            *('venv', '--keep-going test', 'test-rest', 'functional'),
            *('test-heats', 'test-production', 'test-rgw', 'test-server'),
            'test-browser',
        ]
        assert 'Not run' not in output
        assert output.splitlines()[-2:] == [
            '6 of the tests tried once more',
            '140 passed, 0 failed',
        ]

    def test_a_failure_of_make_test_counts_and_the_rest_runs(self):
        code, output = self.run_ci()
        assert code == 1
        assert 'make --no-print-directory test-server' in output
        assert output.splitlines()[-1] == '140 passed, 1 failed'

    def test_packages_that_cannot_be_had_are_no_failure(self):
        self.passing()
        code, output = self.run_ci(4)
        assert code == 0
        for target in (
            'test-production',
            'test-rgw',
            'test-server',
            'test-browser',
        ):
            assert (
                f'Not run, as its packages are unavailable: "make {target}"'
                in output
            )
            assert f'directory {target}' not in output
        assert output.splitlines()[-1] == '60 passed, 0 failed'

    def test_an_installation_that_fails_is_a_failure(self):
        self.passing()
        for installed in (1, 2, 127):
            code, output = self.run_ci(installed)
            assert (installed, code) == (installed, 1)
            assert 'Not run, as its installation has failed' in output
            assert 'directory test-production' not in output


class SumTest(testtools.TestCase):
    def test_closing_lines_alone_count(self):
        log = (
            'said: 3 passed in 1.50s\n'
            '=========== 2 passed, 1 error in 3.10s ===========\n'
            'FAILED tests/a.py - 4 failed, 9 passed\n'
            '= 1 failed, 20 passed, 4 xpassed, 1 rerun in 61.0s (0:01:01) =\n'
            '=========== no tests ran in 0.10s ===========\n'
        )
        assert rest.summary(log) == [
            '1 of the tests tried once more',
            '22 passed, 2 failed',
        ]


#: An index that knows of one vulnerability, in every version of pip. It is a
#: process of its own, as Heat lets eventlet replace threads in this one.
INDEX = """\
import http.server, json

class Advisories(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers['Content-Length'])
        asked = json.loads(self.rfile.read(size))
        hole = {'id': 'PYSEC-0-1', 'summary': 'It has a hole', 'affected': []}
        known = asked['package']['name'] == 'pip'
        body = json.dumps({'vulns': [hole]} if known else {}).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Advisories)
print(server.server_port, flush=True)
server.serve_forever()
"""


class AuditTest(testtools.TestCase):
    def audit(self, index):
        cache = self.useFixture(fixtures.TempDir()).path
        done = subprocess.run(
            [ROOT / '.ci/audit', sys.executable],
            env={**os.environ, 'OSV_URL': index, 'XDG_CACHE_HOME': cache},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    def test_a_known_vulnerability_fails_it(self):
        index = subprocess.Popen(
            [sys.executable, '-c', INDEX],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.addCleanup(index.communicate)
        self.addCleanup(index.terminate)
        port = int(index.stdout.readline())
        code, output = self.audit(f'http://127.0.0.1:{port}')
        assert code == 1
        assert 'PYSEC-0-1' in output

    def test_an_index_that_cannot_be_reached_is_named_in_one_line(self):
        code, output = self.audit('http://127.0.0.1:9/query')
        assert output == (
            'pip-audit: not run, as http://127.0.0.1:9/query cannot be '
            'reached\n'
        )
        assert code == 0
