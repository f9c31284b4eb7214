# SPDX-License-Identifier: Apache-2.0
"""Clouds for the functional tests.

``cloud`` has our classes, loaded the way an operator does it, and begins
empty. After a failure it stays as it is, stopped, so that its logs can be
read. ``FUNCTIONAL_PREFIX`` in the environment goes before the names of clouds,
for several runs side by side, and ``FUNCTIONAL_PROFILE`` is their profile.
``FUNCTIONAL_STORE=rgw`` puts Ceph's gateway in the place of Swift.
"""

from collections.abc import Generator, Iterator
import contextlib
from importlib import metadata
import itertools
import os
import pathlib
import re
import signal
import socket
import sys
from typing import Any

import pytest

from tests.functional import base
from tests.functional import flows
from tests.functional import warm_openstack

# `base` has put them on the path.
from minicloud_lib import layout  # isort: skip
from minicloud_lib import warm  # isort: skip

# Who starts the tests in the background may have had it ignored, and so would
# whatever they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROFILE = os.environ.get('FUNCTIONAL_PROFILE', 'small')
STORE = os.environ.get('FUNCTIONAL_STORE', 'swift')

# What only makes sense where there are several engines.
collect_ignore = [] if PROFILE == 'production' else ['production']
if STORE != 'rgw':
    collect_ignore.append('test_rgw.py')

#: heatclient, by which agents talk to Heat's API, and Heat's own requests for
#: TempURLs know of the authorities of the machine alone.
trusted = pytest.mark.skipif(
    PROFILE != 'small', reason='the machine does not trust the authority'
)

#: Heat signs the metadata of a server, with POLL_TEMP_URL.
signed_by_heat = pytest.mark.skipif(
    STORE == 'rgw', reason="Ceph's gateway refuses Heat's own TempURLs"
)

#: Whose key signs TempURLs: its header, the digest, and what comes of a
#: signature that is not of that key.
KEY_HEADER, DIGEST, REFUSED = {
    'swift': ('X-Container-Meta-Temp-Url-Key', 'sha256', 401),
    'rgw': ('X-Account-Meta-Temp-Url-Key', 'sha1', 403),
}[STORE]

#: Mistral's processes take half a minute to start where all cores are busy.
CONF = """\
[heat_plugins]
swift_error_budget = 30
mistral_error_budget = 120
signal_direct_look_interval = 10
"""

#: An engine looks often, and is known to be dead soon. With no secret of their
#: own the keys of TempURLs are derived from Heat's.
ALONE = """\
[DEFAULT]
periodic_interval = 5
auth_encryption_key = 0123456789abcdef0123456789abcdef
encrypt_parameters_and_properties = true

[heat_plugins]
rescue_interval = 3
temp_url_secret =
"""


#: The seconds that a test may take, if it does not say so.
_PATIENCE = 600

#: The most lines of each service's log that a failure shows.
_LINES = 60

_TROUBLE = re.compile(r' (?:WARNING|ERROR|CRITICAL) |^Traceback ')
#: How a line of a log begins; what follows without it belongs to that line.
_ENTRY = re.compile(r'^\d{4}-\d\d-\d\d ')

# The clouds that run, and how long their logs were as the test began.
_clouds: list[base.Cloud] = []
_sizes: dict[pathlib.Path, int] = {}


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start what the command openstack and services are forks of.

    Once for all workers.
    """
    if not hasattr(session.config, 'workerinput'):
        stack = contextlib.ExitStack()
        stack.enter_context(warm_openstack.serving())
        if PROFILE != 'production':
            stack.enter_context(warm.serving(layout.Home.find()))
        session.config.add_cleanup(stack.close)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Begin each worker's share with some of the modules that take long.

    pytest-xdist deals the tests out in their order; what a worker would come
    to last, with nothing left for the others, is not to take minutes. Those
    of the cloud ``alone`` are one worker's.
    """

    def module(item: Any) -> Any:
        return 'alone' in item.fixturenames or item.path

    workers = int(getattr(config, 'workerinput', {}).get('workercount', 1))
    parts = {True: [], False: []}
    for item in items:
        if not item.get_closest_marker('timeout'):
            item.add_marker(pytest.mark.timeout(_PATIENCE))
        is_long = item.get_closest_marker('long') or module(item) is True
        parts[bool(is_long)].append(item)
    parts[True].sort(key=lambda item: module(item) is not True)
    modules = [
        list(part) for _, part in itertools.groupby(parts[True], module)
    ]
    others = iter(parts[False])
    dealt: list[pytest.Item] = []
    for number in range(workers):
        share = (len(items) - len(dealt)) // (workers - number)
        first = list(itertools.chain(*modules[number::workers]))
        dealt += first
        dealt += itertools.islice(others, max(0, share - len(first)))
    items[:] = [*dealt, *others]


def clouds(
    request: pytest.FixtureRequest,
    name: str,
    conf: str = '',
    plugin: str | os.PathLike[str] | None = base.ROOT,
    **options: Any,
) -> Iterator[base.Cloud]:
    """Yield a cloud whose Heat has some options."""
    worker = os.environ.get('PYTEST_XDIST_WORKER')
    prefix = os.environ.get('FUNCTIONAL_PREFIX', '')
    found = base.Cloud(prefix + (f'{worker}-{name}' if worker else name))
    folder = request.getfixturevalue('tmp_path_factory').mktemp('conf')
    found.conf = folder / 'heat.conf'
    found.conf.write_text(conf)
    found.down(purge=True)
    failed_before = request.session.testsfailed
    profile = 'rgw' if STORE == 'rgw' else PROFILE
    found.again(profile=profile, plugin=plugin, **options)
    _clouds.append(found)
    yield found
    _clouds.remove(found)
    found.clear_faults()
    found.down(purge=request.session.testsfailed == failed_before)


def _logs() -> list[pathlib.Path]:
    folders = [cloud.path / 'logs' for cloud in _clouds]
    return [log for folder in folders for log in sorted(folder.glob('*.log'))]


def pytest_runtest_logstart() -> None:
    """Remember where the services' logs end."""
    _sizes.clear()
    _sizes.update({log: log.stat().st_size for log in _logs()})


def _that_matter(log: pathlib.Path) -> list[str]:
    """Return the newest lines of a log: heat-engine's, or on trouble."""
    with log.open('rb') as stream:
        stream.seek(_sizes.get(log, 0))
        text = stream.read().decode(errors='replace')
    lines, wanted = [], False
    for line in text.splitlines():
        matters = log.name.startswith('heat') or bool(_TROUBLE.search(line))
        wanted = matters or (wanted and not _ENTRY.match(line))
        lines += [line] * wanted
    return lines[-_LINES:]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Add the ends of the services' logs to a failure, of each try."""
    report = yield
    add = getattr(report.longrepr, 'addsection', None)
    if report.failed and add is not None:
        for log in _logs():
            if lines := _that_matter(log):
                add(f'end of {log}', '\n'.join(lines))
        settings = ''.join(
            f'{name}={os.environ[name]} '
            for name in ('FUNCTIONAL_PROFILE', 'FUNCTIONAL_STORE')
            if name in os.environ
        )
        command = f"{settings}{sys.executable} -m pytest '{report.nodeid}'"
        add('to run it alone', command)
    return report


@pytest.fixture(scope='session')
def _alone(request):
    yield from clouds(request, 'alone', ALONE)


@pytest.fixture
def alone(_alone):
    """A cloud whose engine is one process, which tests kill and change."""
    yield _alone
    # A test that fails may leave it in disorder.
    _alone.revive()
    if not base.has_ours(_alone):
        _alone.again(plugin=base.ROOT)


@pytest.fixture(scope='session')
def hook_port():
    """The port of this machine at which heat-engine may tell of runs."""
    with socket.create_server(('127.0.0.1', 0)) as found:
        return found.getsockname()[1]


@pytest.fixture(scope='session')
def cloud(request, hook_port):
    """A cloud whose types are ours."""
    hosts = f'http://127.0.0.1,http://127.0.0.1:{hook_port}'
    for found in clouds(
        request, 'functional', f'{CONF}notify_hosts = {hosts}\n'
    ):
        # The production profile's engines keep no list of their classes.
        if PROFILE != 'production':
            classes = found.resource_classes()
            group = 'heat_plugins.resources'
            theirs = [
                name
                for name in metadata.entry_points(group=group).names
                if not classes[name].startswith('heat_plugins.')
            ]
            assert not theirs, f'Heat serves these itself: {theirs}'
        yield found


def _stacks(cloud: base.Cloud) -> Iterator[base.Make]:
    made: list[base.Stack] = []

    def make(
        template: base.Template, user: str = 'demo', **options: Any
    ) -> base.Stack:
        made.append(base.Stack(cloud.session(user), template, **options))
        return made[-1]

    yield make
    # A test that fails may leave the cloud in disorder.
    cloud.clear_faults()
    cloud.revive()
    base.purge(made)


def clean_stacks(cloud: base.Cloud) -> Iterator[base.Make]:
    before = base.Leftovers.of(cloud)
    yield from _stacks(cloud)
    before.hold(cloud)


@pytest.fixture
def stacks(cloud):
    """Makes stacks; deletes them, and holds that nothing stays behind."""
    yield from clean_stacks(cloud)


@pytest.fixture(scope='module')
def module_stacks(cloud):
    """Makes stacks that all tests of a module look at."""
    yield from clean_stacks(cloud)


@pytest.fixture
def mistral(cloud):
    """What the project has in Mistral."""
    return flows.Mistral(cloud.session())


@pytest.fixture
def made(mistral, stacks):
    """Makes stacks and waits for them; in the end nothing is left."""
    before = mistral.left()
    found: list[base.Stack] = []

    def make(*args, status='CREATE_COMPLETE', **options):
        stack = stacks(*args, **options)
        found.append(stack)
        stack.wait(status)
        return stack

    yield make
    base.purge(found)
    assert mistral.left() == before
