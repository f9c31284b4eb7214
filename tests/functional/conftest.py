# SPDX-License-Identifier: Apache-2.0
"""Clouds for the functional tests.

``cloud`` has our classes, loaded the way an operator does it; ``heats_own``
has Heat's, for comparison. Both begin empty. After a failure they stay as
they are, stopped, so that their logs can be read. ``FUNCTIONAL_PREFIX`` in
the environment goes before their names, for several runs side by side, and
``FUNCTIONAL_PROFILE`` is their profile. ``FUNCTIONAL_STORE=rgw`` puts Ceph's
gateway in the place of Swift.
"""

from collections.abc import Generator, Iterator
import contextlib
import itertools
import os
import signal
from typing import Any

import pytest

from tests.functional import base
from tests.functional import failure_logs
from tests.functional import flows
from tests.functional import warm_openstack

# `base` has put them on the path.
from minicloud_lib import layout  # isort: skip
from minicloud_lib import warm  # isort: skip

OURS = (
    'OS::Heat::SoftwareComponent',
    'OS::Heat::SoftwareConfig',
    'OS::Heat::SoftwareDeployment',
    'OS::Heat::SoftwareDeploymentGroup',
    'OS::Heat::SoftwareDeployments',
    'OS::Heat::StructuredConfig',
    'OS::Heat::StructuredDeployment',
    'OS::Heat::StructuredDeploymentGroup',
    'OS::Heat::StructuredDeployments',
)

# Who starts the tests in the background may have had it ignored, and so would
# whatever they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

PROFILE = os.environ.get('FUNCTIONAL_PROFILE', 'small')
STORE = os.environ.get('FUNCTIONAL_STORE', 'swift')

# What only makes sense where there are several engines.
collect_ignore = [] if PROFILE == 'production' else ['production']
if STORE != 'rgw':
    collect_ignore.append('test_rgw.py')

#: Engines that nobody has changed count nothing, and keep no list of their
#: classes.
counted = pytest.mark.skipif(
    PROFILE != 'small', reason='the engines of the profile small count'
)
#: heatclient, by which agents talk to Heat's API, and Heat's own requests for
#: TempURLs know of the authorities of the machine alone.
trusted = pytest.mark.skipif(
    PROFILE != 'small', reason='the machine does not trust the authority'
)

#: Heat signs the metadata of a server, with POLL_TEMP_URL.
signed_by_heat = pytest.mark.skipif(
    STORE == 'rgw', reason="Ceph's gateway refuses Heat's own TempURLs"
)

#: For tests of both kinds of groups, of which `make test` runs the newer one.
#: That nested ones work, others of its tests show.
single_is_quick = pytest.mark.parametrize(
    'members',
    [pytest.param('single', marks=pytest.mark.quick), 'nested'],
    indirect=True,
)

#: Whose key signs TempURLs: its header, the digest, and what comes of a
#: signature that is not of that key.
KEY_HEADER, DIGEST, REFUSED = {
    'swift': ('X-Container-Meta-Temp-Url-Key', 'sha256', 401),
    'rgw': ('X-Account-Meta-Temp-Url-Key', 'sha1', 403),
}[STORE]

#: Mistral's processes take half a minute to start where all cores are busy.
CONF = """\
[DEFAULT]
enable_stack_abandon = true
enable_stack_adopt = true

[heat_plugins]
swift_error_budget = 30
mistral_error_budget = 120
signal_direct_look_interval = 10
"""

#: An engine looks often, and is known to be dead soon.
ALONE = """\
[DEFAULT]
periodic_interval = 5

[heat_plugins]
rescue_interval = 3
"""


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
    to last, with nothing left for the others, is not to take minutes.
    """
    workers = int(getattr(config, 'workerinput', {}).get('workercount', 1))
    parts = {True: [], False: []}
    for item in items:
        parts[item.get_closest_marker('long') is not None].append(item)
    modules = [
        list(part)
        for _, part in itertools.groupby(parts[True], lambda item: item.path)
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
    request: pytest.FixtureRequest, name: str, **options: Any
) -> Iterator[base.Cloud]:
    found = base.Cloud(base.cloud_name(name))
    found.down(purge=True)
    failed_before = request.session.testsfailed
    found.up(profile='rgw' if STORE == 'rgw' else PROFILE, **options)
    failure_logs.clouds.append(found)
    yield found
    failure_logs.clouds.remove(found)
    found.clear_faults()
    found.down(purge=request.session.testsfailed == failed_before)


def pytest_runtest_logstart(nodeid: str) -> None:
    """Remember where the services' logs end; keep a module's stacks."""
    failure_logs.begin()
    module = nodeid.partition('::')[0]
    base.Stack.forget(but_of=module)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[
    None, pytest.TestReport, pytest.TestReport
]:
    """Add the ends of the services' logs to a failure, of each try."""
    report = yield
    add = getattr(report.longrepr, 'addsection', None)
    if report.failed and add is not None:
        for title, text in failure_logs.sections(base.Stack.made):
            add(title, text)
        add('to run it alone', failure_logs.command(report.nodeid))
    return report


@pytest.fixture
def alone(request, tmp_path):
    """A cloud of one module's tests, whose engine is one process."""
    conf = tmp_path / 'heat.conf'
    conf.write_text(ALONE)
    name = request.path.stem.removeprefix('test_')
    yield from clouds(request, name, plugin=base.ROOT, conf=[conf])


@pytest.fixture(scope='session')
def cloud(request, tmp_path_factory):
    """A cloud whose nine types are ours."""
    conf = tmp_path_factory.mktemp('conf') / 'heat.conf'
    conf.write_text(CONF)
    for found in clouds(request, 'functional', plugin=base.ROOT, conf=[conf]):
        if PROFILE == 'production':
            # Engines that nobody has changed keep no list of their classes.
            yield found
            continue
        classes = found.resource_classes()
        theirs = [
            name
            for name in OURS
            if not classes[name].startswith('heat_plugins.')
        ]
        assert not theirs, f'Heat serves these itself: {theirs}'
        yield found


@pytest.fixture(scope='session')
def heats_own(request):
    """A cloud with Heat's own classes."""
    yield from clouds(request, 'heats-own', plugin='none')


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


def _clean_stacks(cloud: base.Cloud) -> Iterator[base.Make]:
    before = base.Leftovers.of(cloud)
    yield from _stacks(cloud)
    before.hold(cloud)


@pytest.fixture
def stacks(cloud):
    """Makes stacks; deletes them, and holds that nothing stays behind."""
    yield from _clean_stacks(cloud)


@pytest.fixture
def folder(cloud):
    """A container for servers' metadata; Heat would leave its own."""
    demo = cloud.session()
    assert demo.put('object-store', '/servers').ok
    yield {'container': 'servers', 'object': 'metadata'}
    assert demo.delete('object-store', '/servers/metadata').ok
    assert demo.delete('object-store', '/servers').ok


@pytest.fixture(params=['single', 'nested'])
def members(request):
    """Return what the members of a group are: its property of that name."""
    return str(request.param)


@pytest.fixture(scope='module')
def module_stacks(cloud):
    """Makes stacks that all tests of a module look at."""
    yield from _clean_stacks(cloud)


@pytest.fixture
def heats_own_stacks(heats_own):
    """Makes stacks with Heat's own classes.

    They go, or do not: the cloud does so in the end.
    """
    made: list[base.Stack] = []

    def make(template, **options):
        made.append(base.Stack(heats_own.session(), template, **options))
        return made[-1]

    yield make
    heats_own.clear_faults()
    for stack in made:
        stack.delete()


@pytest.fixture(
    params=[
        'ours',
        pytest.param(
            "Heat's",
            marks=[
                pytest.mark.heats_classes,
                pytest.mark.xfail(strict=True, raises=AssertionError),
            ],
        ),
    ]
)
def either(request):
    """Return a cloud, and what makes stacks there: ours, then Heat's.

    With Heat's own classes the test has to fail.
    """
    ours = request.param == 'ours'
    cloud = request.getfixturevalue('cloud' if ours else 'heats_own')
    stacks = request.getfixturevalue('stacks' if ours else 'heats_own_stacks')
    return cloud, stacks


@pytest.fixture
def mistral(cloud):
    """What the project has in Mistral."""
    return flows.Mistral(cloud)


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
