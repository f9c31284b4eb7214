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

RUN = pathlib.Path(__file__).resolve().parents[2] / '.ci/run'

#: What pytest says in the end, of each of the runs.
MAKE = """\
#!/bin/sh
echo "make $*"
case "$*" in *RERUNS=1*) rerun=', 1 rerun' ;; esac
echo "== 1 failed, 20 passed, 3 skipped$rerun in 1.50s (0:00:01) =="
"""


#: Finds the Pythons in a list, and runs what is no Python in a shell.
PYTHON = """\
#!/bin/sh
case "$*" in
    'tests/pythons.py find 3.12') [ ! -e without-3.12 ] || exit 1; echo "$0";;
    'tests/pythons.py find '*) echo "$0";;
    *) exec sh "$@";;
esac
"""


class RunTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.root = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        (self.root / '.ci').mkdir()
        shutil.copy(RUN, self.root / '.ci/run')
        self.program('bin/make', MAKE)
        self.program('bin/python3', PYTHON)

    def program(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755)

    def run_ci(self, installed):
        """Run it, if the installation ends so; its exit code and output."""
        self.program(
            'contrib/minicloud/minicloud', f'#!/bin/sh\nexit {installed}\n'
        )
        path = f'{self.root / "bin"}:{os.environ["PATH"]}'
        done = subprocess.run(
            [self.root / '.ci/run'],
            env={**os.environ, 'PATH': path},
            capture_output=True,
            text=True,
        )
        return done.returncode, done.stdout

    def test_all_is_run_and_summed_up_in_the_last_line(self):
        code, output = self.run_ci(0)
        self.assertEqual(0, code)
        self.assertIn('make --no-print-directory test-production', output)
        self.assertIn('make --no-print-directory test-rgw', output)
        self.assertIn('make --no-print-directory test-server', output)
        self.assertNotIn('Not run', output)
        self.assertEqual(
            ['2 of the tests tried once more', '180 passed, 9 failed'],
            output.splitlines()[-2:],
        )

    def test_two_functional_tests_are_tried_once_more(self):
        _, output = self.run_ci(0)
        calls = re.findall(
            r'make \S+ (\S+) .*RERUNS=1 RERUNS_AT_MOST=(\d+)', output
        )
        self.assertEqual(
            {'functional': '1', 'test-production': '1'}, dict(calls)
        )

    def test_a_missing_python_is_named_in_the_end(self):
        (self.root / 'without-3.12').touch()
        _, output = self.run_ci(4)
        (said,) = [
            number
            for number, one in enumerate(output.splitlines()[-6:])
            if one.startswith('Not run: the tests under Python 3.12, ')
        ]
        self.assertEqual(0, said)

    def test_the_newest_python_has_an_environment_of_its_own(self):
        self.program(
            'bin/make', '#!/bin/sh\necho "$1 $MINICLOUD_HOME: $MINICLOUD"\n'
        )
        _, output = self.run_ci(0)
        self.assertIn(f'{self.root}/.tox/ci-3.13: ', output)
        self.assertIn('/python3 contrib/minicloud/minicloud\n', output)

    def test_each_older_python_has_an_older_heat(self):
        _, output = self.run_ci(0)
        self.assertIn('test-heats HEATS=py312-heat26,py311-heat24', output)
        (self.root / 'without-3.12').touch()
        _, output = self.run_ci(0)
        self.assertIn('test-heats HEATS=py311-heat24 ', output)

    def test_packages_that_cannot_be_had_are_no_failure(self):
        code, output = self.run_ci(4)
        self.assertEqual(0, code)
        for target in ('test-production', 'test-rgw', 'test-server'):
            self.assertIn(
                f'Not run, as its packages are unavailable: "make {target}"',
                output,
            )
            self.assertNotIn(f'directory {target}', output)
        self.assertEqual('120 passed, 6 failed', output.splitlines()[-1])

    def test_an_installation_that_fails_is_a_failure(self):
        for installed in (1, 2, 127):
            code, output = self.run_ci(installed)
            self.assertEqual((installed, 1), (installed, code))
            self.assertIn('Not run, as its installation has failed', output)
            self.assertNotIn('directory test-production', output)

    def test_what_make_says_is_wrong_is_a_failure(self):
        self.program('bin/make', '#!/bin/sh\nexit 2\n')
        self.assertEqual((1, '0 passed, 0 failed'), self.last(4))

    def last(self, installed):
        code, output = self.run_ci(installed)
        return code, output.splitlines()[-1]


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
            [RUN.with_name('audit'), sys.executable],
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
        self.assertEqual(1, code)
        self.assertIn('PYSEC-0-1', output)

    def test_an_index_that_cannot_be_reached_is_named_in_one_line(self):
        code, output = self.audit('http://127.0.0.1:9/query')
        self.assertEqual(
            'pip-audit: not run, as http://127.0.0.1:9/query cannot be '
            'reached\n',
            output,
        )
        self.assertEqual(0, code)
