# SPDX-License-Identifier: Apache-2.0
"""Where people run Heat: from its installation to its removal, by the pages.

A host of each kind is a chroot. Its own Heat uses a mini cloud's Keystone and
Swift, and its servers are real agents.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import importlib.metadata
import json
import pathlib
import re
import shlex
import shutil
import time

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import debian
from tests.functional import heat_host
from tests.functional import servers
from tests.unit import environments

pytestmark = [pytest.mark.installations, pytest.mark.timeout(1800)]

#: How each type's class is named, once heat-plugins is used.
OURS = {
    one.name: one.value
    for one in importlib.metadata.entry_points(group='heat_plugins.resources')
}

#: What the pages promise: commands and seconds to the first deployment.
COMMANDS, SECONDS = 6, 600

_CONSTRAINTS = f'{debian.SOURCE}/contrib/minicloud/constraints.txt'

#: Lists what heat-plugins has on a host, next to its source.
_FILES = (
    f'find / -xdev \\( -path /proc -o -path {debian.SOURCE} \\) -prune '
    "-o -name '*heat?plugins*' -print"
)

#: What a server's agent asks. Heat 24 has it in the cloud's Keystone check
#: signatures without saying who asks, which Keystone no longer permits.
_CFN, _TEMP_URL = 'POLL_SERVER_CFN', 'POLL_TEMP_URL'


@dataclasses.dataclass(frozen=True)
class Lane:
    """A kind of host.

    :ivar heat: the first number of its Heat's release.
    :ivar python: that of its heat-engine.
    :ivar section: of the page install.
    :ivar programs: the folder of Heat's programs.
    :ivar packages: prints those that are installed.
    :ivar prepare: lines that bring Heat there, if it is no package.
    """

    suite: str
    heat: str
    python: str
    section: str
    include: Sequence[str] = ('heat-engine', 'systemd')
    programs: str = '/usr/bin'
    paste: str = '/etc/heat/api-paste.ini'
    packages: str = 'dpkg-query --show; dpkg --verify | grep -v /share/ || :'
    prepare: str = ''
    transport: str = _CFN


_VENV = f"""\
useradd --system --create-home --home-dir /var/lib/heat heat
python3 -m venv /opt/heat
/opt/heat/bin/pip install --constraint {_CONSTRAINTS} openstack-heat
/opt/heat/bin/pip install PyMySQL
"""

#: By default apt brings it along with Heat, whose openvswitch recommends it,
#: and so keeps it when heat-plugins goes. The trees are made without that.
_RECOMMENDED = """\
apt install python3-rich
apt-mark auto python3-rich
"""

LANES = {
    'debian-13': Lane(
        'trixie',
        '24',
        '3.13',
        'Debian and Ubuntu',
        prepare=_RECOMMENDED,
        transport=_TEMP_URL,
    ),
    'debian-forky': Lane(
        'forky', '26', '3.14', 'Debian and Ubuntu', prepare=_RECOMMENDED
    ),
    'ubuntu-26.04': Lane(
        'resolute',
        '26',
        '3.14',
        'Debian and Ubuntu',
        ('apt', 'heat-engine', 'systemd'),
        prepare=_RECOMMENDED,
    ),
    'venv-ubuntu-24.04': Lane(
        'noble',
        '27',
        '3.12',
        'With pip, in the environment of heat-engine',
        ('apt',),
        programs='/opt/heat/bin',
        paste='/opt/heat/etc/heat/api-paste.ini',
        packages='/opt/heat/bin/pip list --format freeze',
        prepare=_VENV,
    ),
}


@dataclasses.dataclass(frozen=True)
class Site:
    """A host with Heat, and what types commands there."""

    lane: Lane
    host: debian.Host
    heat: heat_host.Heat

    def type(self, commands):
        """Type what a page has; systemd's part is played here."""
        said = self.host.run(commands, debian.SOURCE)
        if 'systemctl restart heat-engine' in commands:
            self.heat.restart_engine()
        return said

    def as_heat(self, command):
        """Run a program of heat-engine's environment as its user."""
        return self.host.run(f'{self.lane.programs}/{command}', '/', 'heat')

    def classes(self):
        """Return the classes of our types that heat-engine loads."""
        probe = pathlib.Path(environments.PROBE)
        shutil.copy(probe, self.host.path / 'tmp/probe.py')
        said = self.host.run(
            f'echo /{heat_host.CONF} | {self.lane.programs}/python3 -P '
            '/tmp/probe.py 2>/dev/null',
            '/',
            'heat',
        )
        found = json.loads(said)['classes']
        return {name: found[name] for name in OURS if name in found}

    def waiting(self):
        """Return what heat-plugins-status says of deployments that wait."""
        said = self.as_heat(
            'heat-plugins-status upgrade check --json 2>/dev/null || :'
        )
        checks = {
            one['check']: one['details'] for one in json.loads(said)['checks']
        }
        return str(checks['Waiting deployments'])

    def features(self):
        """Return what heat-plugins-status says works here."""
        login = ' '.join(
            f'{name}={shlex.quote(value)}'
            for name, value in self.heat.cloud.env().items()
            if name.startswith('OS_')
        )
        said = self.host.run(
            f'env {login} {self.lane.programs}/heat-plugins-status '
            'feature list -f json 2>/dev/null',
            '/',
            'heat',
        )
        return {one['name']: one['works'] for one in json.loads(said)}

    def traces(self):
        """Return what a removal restores: configuration, packages, files."""
        conf = (self.host.path / heat_host.CONF).read_text()
        packages = self.host.run(self.lane.packages)
        return {*(conf + packages + self.host.run(_FILES)).splitlines()}

    @property
    def has_ours(self):
        """Whether the engine that runs has our types; the page's check."""
        shown = self.heat.cloud.session().get(
            'orchestration', '/resource_types/OS::Heat::SoftwareDeployment'
        )
        assert shown.ok, shown
        return 'signal_url_lifetime' in shown.json()['properties']


@pytest.fixture(params=[pytest.param(lane, id=n) for n, lane in LANES.items()])
def site(request, tmp_path):
    """A host with Heat as it comes, and the files of a release."""
    lane = request.param
    include = (*lane.include, *heat_host.PACKAGES)
    made = contextlib.contextmanager(conftest.clouds)
    with (
        debian.host(tmp_path, lane.suite, include) as host,
        made(request, lane.suite, plugin='none') as cloud,
    ):
        host.run(lane.prepare or ':')
        debian.release(host.path / debian.SOURCE[1:], tmp_path)
        cloud.stop('heat')
        heat = heat_host.Heat(host, cloud, lane.programs, lane.paste)
        try:
            heat.start()
            yield Site(lane, host, heat)
        finally:
            heat.stop()


@contextlib.contextmanager
def installed(site):
    """Install heat-plugins, and remove it, as the pages say.

    Yields how many commands were typed.
    """
    section = pages.read('install', site.lane.section)
    install, *remove = pages.blocks(section)
    remove += [
        ' '.join(command.split())
        for command in re.findall(r'``(apt\s+remove[^`]*)``', section)
    ]
    conf = site.host.path / heat_host.CONF
    before = conf.read_text()
    said = site.type(install)
    restarts = install.count('systemctl restart heat-engine')
    line = said.splitlines()[-1]
    if line.startswith('plugin_dirs = '):
        # Pasted into the file that is there, with its owner and mode.
        conf.write_text(
            before.replace('[DEFAULT]\n', f'[DEFAULT]\n{line}\n', 1)
        )
    if not restarts:
        site.heat.restart_engine()
    yield len(install.splitlines()) + (not restarts)
    conf.write_text(before)
    (commands,) = remove
    site.type(commands)
    site.heat.restart_engine()


def test_from_the_installation_to_the_removal(site):
    template = base.software(
        signal_transport='TEMP_URL_SIGNAL',
        server={'software_config_transport': site.lane.transport},
    )

    def make(name):
        return base.Stack(site.heat.cloud.session(), template, name=name)

    before = site.traces()
    assert not site.has_ours
    begun = time.monotonic()
    with installed(site) as commands:
        first = make('first')
        with servers.agent(site.heat.cloud, first):
            first.wait('CREATE_COMPLETE')
        print(f'{time.monotonic() - begun:.0f} s to the first deployment')
        assert time.monotonic() - begun < SECONDS
        # One more creates the stack.
        assert commands + 1 <= COMMANDS
        assert first.outputs['deployment_greeting'] == 'hello world'
        assert site.has_ours
        assert site.classes() == OURS
        works = site.features()
        assert works['Deployments by TEMP_URL_POLL']
        assert works['Deployments by CFN_SIGNAL'] == (
            site.lane.transport == _CFN
        )
        waiting = make('waiting')
        waiting.waiting()
        assert 'waiting.' in site.waiting()
        assert 'first' not in site.waiting()
    assert before ^ site.traces() == set()
    assert not site.has_ours
    assert not set(site.classes().items()) & set(OURS.items())
    # As the status has said: in progress, until an update repeats it.
    assert waiting.status == 'CREATE_IN_PROGRESS'
    waiting.update(template)
    with servers.agent(site.heat.cloud, waiting):
        waiting.wait('UPDATE_COMPLETE', 300)
    assert waiting.outputs['deployment_greeting'] == 'hello world'
    base.purge([first, waiting])
