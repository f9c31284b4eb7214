# SPDX-License-Identifier: Apache-2.0
"""Run what ``make test`` leaves out: the other half of CI.

``python -m tests.rest run [VERSION...]`` runs at the same time, as each waits
for much of its time:

- the functional tests that are not marked ``quick``;
- the unit tests under each older Python, with an older Heat;
- the tests on other services, each when Debian's packages are installed;
- the tests in a browser, if that is installed.

The output of the first appears as it comes, that of the others in the end.

``python -m tests.rest prepare [VERSION...]`` installs the older Heats before,
and the browser.

``python -m tests.rest sum LOG`` adds up what the runs of pytest in a log say
in their closing lines.
"""

from concurrent import futures
import dataclasses
import os
import pathlib
import re
import subprocess
import sys

from tests import pythons

#: The Heat that the unit tests have under an older Python.
HEATS = {'3.12': 'heat26', '3.11': 'heat24'}

#: The functional tests of `make test-rest`: none of them computes for long.
FUNCTIONAL = (
    'FUNCTIONAL=not quick and not server and not installations '
    'and not browser',
    'JOBS=4',
)

#: One of the functional tests that fail runs once more, and one of each lane
#: on other services: services have races, and a loaded machine's clock is no
#: defect of the package. Both tries are shown, and counted.
RETRY = ('RERUNS=1', 'RERUNS_AT_MOST=1')

#: How nice the older Heats' tests are. If nicer, they miss their deadlines.
NICE = 5

#: How nice their installation is meanwhile: nothing waits for it yet.
LAST = 19

#: The exit code of minicloud where root or Debian's packages are missing.
UNAVAILABLE = 4


#: Tests on other services, which root installs from Debian's packages: by the
#: target of the Makefile their title, the variable of the Makefile that
#: selects some, and the arguments of minicloud. Those of a lane run one after
#: another, the lanes at the same time.
LANES = (
    {
        'test-production': (
            'the tests with several engines, RabbitMQ, MariaDB and TLS',
            'PRODUCTION=tests/functional/production',
            'install --profile production',
        ),
    },
    {
        'test-rgw': (
            "the tests on Ceph's gateway",
            'RGW=tests/functional/test_rgw.py',
            'install --profile rgw',
        ),
        'test-server': (
            'the tests on virtual machines',
            # All of them take half an hour.
            'SERVER=tests/functional/test_server.py'
            '::test_they_run_what_their_user_data_leads_them_to',
            'server build',
        ),
        'test-browser': (
            'the pages in Horizon',
            'BROWSER=tests/functional/test_dashboard.py',
            'install --with dashboard --browser',
        ),
    },
)


@dataclasses.dataclass
class Ending:
    """How a job ended.

    :ivar output: what is not shown yet.
    :ivar not_run: sentences on tests that have not run, each with the reason.
    """

    succeeded: bool = True
    output: str = ''
    not_run: list[str] = dataclasses.field(default_factory=list)

    def add(self, command):
        self.output += command.stdout or ''
        self.succeeded &= command.returncode == 0


def older(versions, *, nice, options=''):
    """Run the unit tests under each older Python that is installed.

    :param options: of tox.
    """
    paths = pythons.installed(versions)
    ending = Ending()
    for version in versions:
        if version not in paths:
            ending.not_run.append(pythons.missing(version))
    heats = {
        f'py{version.replace(".", "")}-{HEATS[version]}': path
        for version, path in paths.items()
        if version in HEATS
    }
    if heats:
        ending.add(
            _run(
                *('nice', '-n', str(nice), *_MAKE, 'test-heats', 'JOBS=2'),
                *(f'HEATS={",".join(heats)}', f'TOX={options}'),
                f'DISCOVER={" ".join(heats.values())}',
                # pytest compiles what it imports, on both cores. Nothing else
                # runs there: the mini cloud's services write no bytecode, and
                # would compile all of theirs at each start.
                PIP_COMPILE='0',
            )
        )
    return ending


def on_services(lane, installations):
    """Run the tests of a lane, each once its packages are installed."""
    ending = Ending()
    retry = RETRY
    for target, (title, selection, _) in lane.items():
        installation = installations[target].result()
        ending.output += installation.stdout
        if installation.returncode:
            reason = 'its packages are unavailable'
            if installation.returncode != UNAVAILABLE:
                ending.succeeded = False
                reason = 'its installation has failed'
            ending.not_run.append(
                f'Not run, as {reason}: "make {target}", {title}.'
            )
            continue
        tests = _run(
            *(*_MAKE, target, 'JOBS=1', selection, *retry),
            FUNCTIONAL_PREFIX='apart-',
        )
        ending.add(tests)
        if count(tests.stdout, 'rerun'):
            retry = ()
    return ending


def _install(words):
    # Not by make, which has one exit code for whatever goes wrong.
    minicloud = os.environ.get('MINICLOUD', 'contrib/minicloud/minicloud')
    return _run(*minicloud.split(), *words.split())


_MAKE = ('make', '--no-print-directory')


def _run(*command, stdout=subprocess.PIPE, **env):
    return subprocess.run(
        command,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT if stdout else None,
        text=True,
        errors='replace',
    )


def run(versions):
    """Run all of it; the exit code is 0 if all that ran succeeded."""
    with (
        futures.ThreadPoolExecutor() as executor,
        # One at a time, as dpkg wants it.
        futures.ThreadPoolExecutor(1) as installer,
    ):
        installations = {
            target: installer.submit(_install, words)
            for lane in LANES
            for target, (_, _, words) in lane.items()
        }
        others = [
            executor.submit(older, versions, nice=NICE),
            *(
                executor.submit(on_services, lane, installations)
                for lane in LANES
            ),
        ]
        shown = Ending()
        shown.add(_run(*_MAKE, 'functional', *FUNCTIONAL, *RETRY, stdout=None))
        endings = [shown, *(other.result() for other in others)]
    for ending in endings:
        print(ending.output, end='')
    for ending in endings:
        print(''.join(f'{line}\n' for line in ending.not_run), end='')
    return 0 if all(ending.succeeded for ending in endings) else 1


# Summing up -----------------------------------------------------------------

#: What pytest says in the end, of each of its runs.
_CLOSING = re.compile(r'^=+ .* in [0-9.]+s.* =+$', re.MULTILINE)


def count(log, outcome):
    """Return how many tests ended so, by pytest's closing lines in a log.

    :param outcome: a word of pytest's, as a regular expression.
    """
    return sum(
        int(number)
        for closing in _CLOSING.findall(log)
        for number in re.findall(rf'(\d+) (?:{outcome})\b', closing)
    )


def summary(log):
    """Return the last lines of CI."""
    passed, failed = count(log, 'passed'), count(log, 'failed|errors?')
    return [
        f'{count(log, "rerun")} of the tests tried once more',
        f'{passed} passed, {failed} failed',
    ]


def main(arguments):
    verb, *rest = arguments
    versions = rest or pythons.SUPPORTED
    if verb == 'run':
        return run(versions)
    if verb == 'prepare':
        with futures.ThreadPoolExecutor() as executor:
            executor.submit(
                _run, 'nice', '-n', str(LAST), *_MAKE, 'install-browser'
            )
            older(versions, nice=LAST, options='--notest')
        return 0
    (log,) = rest
    text = pathlib.Path(log).read_text(errors='replace')
    print('\n'.join(summary(text)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
