# SPDX-License-Identifier: Apache-2.0
"""Where people run Heat: from its installation to its removal, by the pages.

A host of each kind is a chroot. Its own Heat uses a mini cloud's Keystone and
Swift, and its servers are real agents. MariaDB, RabbitMQ, heat-engine and
Heat's APIs run in the host's tree, each as its own user, and listen where the
mini cloud's Heat would: Keystone's catalog names them, and agents find them.
"""

from collections.abc import Mapping, Sequence
import configparser
import contextlib
import dataclasses
import io
import json
import pathlib
import re
import shlex
import time

import pytest

from tests import pages
from tests.functional import base
from tests.functional import conftest
from tests.functional import debian
from tests.functional import servers

# `base` has put them on the path.
from minicloud_lib import layout  # isort: skip
from minicloud_lib import ports  # isort: skip
from minicloud_lib import processes  # isort: skip
from minicloud_lib import rest  # isort: skip
from minicloud_lib import settings  # isort: skip

pytestmark = [pytest.mark.installations, pytest.mark.timeout(1800)]

#: The packages of what Heat needs on a host.
PACKAGES = ('mariadb-server', 'rabbitmq-server')

CONF = 'etc/heat/heat.conf'

#: What a mini cloud's heat.conf has that a host has otherwise.
_DEFAULTS = ('environment_dir', 'plugin_dirs', 'template_dir')

_DATABASE = """\
mkdir -p /run/mysqld
chown mysql /run/mysqld
exec mariadbd --user=mysql --bind-address={address} --port={database} \\
    --socket=/run/mysqld/mysqld.sock
"""

_TABLES = """\
mariadb --execute "CREATE DATABASE heat; \\
    GRANT ALL ON heat.* TO heat@localhost IDENTIFIED BY 'heat'; \\
    GRANT ALL ON heat.* TO heat@'{address}' IDENTIFIED BY 'heat'"
"""

_BROKER = """\
export HOME=/var/lib/rabbitmq ERL_EPMD_PORT={names}
export RABBITMQ_NODENAME=heat@localhost RABBITMQ_DIST_PORT={nodes}
export RABBITMQ_NODE_IP_ADDRESS={address} RABBITMQ_NODE_PORT={broker}
export RABBITMQ_LOGS=-
epmd -port {names} -address {address} &
exec /usr/lib/rabbitmq/bin/rabbitmq-server
"""

_QUEUES = """\
export HOME=/var/lib/rabbitmq ERL_EPMD_PORT={names}
rabbitmqctl --node heat@localhost --quiet list_queues name || :
"""


@dataclasses.dataclass(frozen=True)
class Heat:
    """Heat on a host.

    :ivar programs: the folder of Heat's programs there.
    :ivar paste: the file of its APIs' pipelines there.
    """

    host: debian.Host
    cloud: base.Cloud
    programs: str
    paste: str

    def start(self) -> None:
        """Start all, once heat.conf and the tables are there."""
        chosen = ports.choose(('database', 'broker', 'names', 'nodes'), {}, ())
        places = {name: str(port) for name, port in chosen.items()}
        places['address'] = ports.ADDRESS
        self._spawn('mariadb', _DATABASE.format_map(places), 'root')
        self._spawn('rabbitmq', _BROKER.format_map(places), 'root')
        self._write_conf(places)
        base.until(lambda: self._succeeds('mariadb --execute ""'), 60)
        self.host.run(_TABLES.format_map(places))
        self.host.run(f'{self.programs}/heat-manage db_sync', '/', 'heat')
        base.until(lambda: not ports.is_free(chosen['broker']), 60)
        self._spawn_engine()
        # A request is lost that comes before heat-engine's first start.
        queues = _QUEUES.format_map(places)
        base.until(lambda: 'engine' in self.host.run(queues).split(), 60)
        found = settings.require(self._instance)
        for api, port in (('api', 'heat'), ('api-cfn', 'heat_cfn')):
            self._spawn(
                f'heat-{api}',
                f'exec {self.programs}/heat-wsgi-{api} --host {ports.ADDRESS} '
                f'--port {found.ports[port]}',
            )
        base.until(self._answers, 60)

    def restart_engine(self) -> None:
        """Restart heat-engine as systemd does; return once it answers."""
        processes.stop_all([self._pid_file('heat')], 15)
        self._spawn_engine()
        base.until(self._answers, 60)

    def stop(self) -> None:
        """Stop all that runs."""
        names = 'heat-api-cfn', 'heat-api', 'heat', 'rabbitmq', 'mariadb'
        for name in names:
            processes.stop_all([self._pid_file(name)], 15)

    @property
    def _instance(self) -> layout.Instance:
        return self.cloud._instance

    def _pid_file(self, name: str) -> pathlib.Path:
        return self._instance.run / f'{name}.pid'

    def _spawn_engine(self) -> None:
        # Under this name agents look for it.
        self._spawn('heat', f'exec {self.programs}/heat-engine')

    def _spawn(self, name: str, script: str, user: str = 'heat') -> None:
        processes.spawn(
            self.host.command(script, '/', user),
            pid_file=self._pid_file(name),
            log=self._instance.log(name),
            env=self.host.env,
            folder=self.host.path,
        )

    def _succeeds(self, command: str) -> bool:
        with contextlib.suppress(AssertionError):
            self.host.run(command)
            return True
        return False

    def _answers(self) -> bool:
        """Whether both APIs and the engine do."""
        try:
            answer = self.cloud.session().get('orchestration', '/stacks')
            cfn = settings.require(self._instance).url('heat_cfn')
            return answer.ok and rest.send('GET', cfn, timeout=5).status > 0
        except OSError:
            return False

    def _write_conf(self, places: Mapping[str, str]) -> None:
        """Write heat.conf, with what the mini cloud says of itself."""
        conf = configparser.RawConfigParser(strict=False)
        conf.read(self._instance.conf / 'heat.conf')
        for name in _DEFAULTS:
            conf.remove_option('DEFAULT', name)
        address = places['address']
        conf['DEFAULT']['transport_url'] = (
            f'rabbit://guest:guest@{address}:{places["broker"]}/'
        )
        conf['DEFAULT']['num_engine_workers'] = '1'
        # An engine tells others dead by it.
        conf['DEFAULT']['periodic_interval'] = '5'
        conf['database'] = {
            'connection': f'mysql+pymysql://heat:heat@{address}:'
            f'{places["database"]}/heat?charset=utf8'
        }
        conf['paste_deploy']['api_paste_config'] = self.paste
        text = io.StringIO()
        conf.write(text)
        file = self.host.path / CONF
        file.parent.mkdir(exist_ok=True)
        file.write_text(text.getvalue())
        self.host.run(f'chown root:heat /{CONF}; chmod 640 /{CONF}')


#: What the pages promise: commands and seconds to the first deployment.
COMMANDS, SECONDS = 6, 600

_CONSTRAINTS = f'{debian.SOURCE}/contrib/minicloud/constraints.txt'

#: Lists what heat-plugins has on a host, next to its source.
_FILES = (
    f'find / -xdev \\( -path /proc -o -path /var/lib/mysql -o -path '
    f'{debian.SOURCE} \\) -prune '
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
    heat: Heat

    def type(self, commands):
        """Type what a page has; systemd's part is played here."""
        said = self.host.run(commands, debian.SOURCE)
        if 'systemctl restart heat-engine' in commands:
            self.heat.restart_engine()
        return said

    def status(self, words):
        """Return what heat-plugins-status says here, as JSON."""
        login = ' '.join(
            f'{name}={shlex.quote(value)}'
            for name, value in self.heat.cloud.env().items()
            if name.startswith('OS_')
        )
        said = self.host.run(
            f'env {login} {self.lane.programs}/heat-plugins-status {words} '
            '2>/dev/null || :',
            '/',
            'heat',
        )
        return json.loads(said)

    def traces(self):
        """Return what a removal restores: configuration, packages, files."""
        conf = (self.host.path / CONF).read_text()
        packages = self.host.run(self.lane.packages)
        return {*(conf + packages + self.host.run(_FILES)).splitlines()}


@pytest.fixture(params=[pytest.param(lane, id=n) for n, lane in LANES.items()])
def site(request, tmp_path):
    """A host with Heat as it comes, and the files of a release."""
    lane = request.param
    include = (*lane.include, *PACKAGES)
    made = contextlib.contextmanager(conftest.clouds)
    with (
        debian.host(tmp_path, lane.suite, include) as host,
        made(request, lane.suite, plugin='none') as cloud,
    ):
        host.run(lane.prepare or ':')
        debian.release(host.path / debian.SOURCE[1:], tmp_path)
        cloud.stop('heat')
        heat = Heat(host, cloud, lane.programs, lane.paste)
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
    conf = site.host.path / CONF
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
    assert not base.has_ours(site.heat.cloud)
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
        assert base.has_ours(site.heat.cloud)
        listed = site.status('feature list -f json')
        works = {one['name']: one['works'] for one in listed}
        assert works['Deployments by TEMP_URL_POLL']
        assert works['Deployments by CFN_SIGNAL'] == (
            site.lane.transport == _CFN
        )
        waiting = make('waiting')
        waiting.waiting()
        said = {
            one['check']: str(one['details'])
            for one in site.status('upgrade check --json')['checks']
        }
        assert 'serves 16 resource types' in said['Resource types']
        assert 'waiting.' in said['Waiting deployments']
        assert 'first' not in said['Waiting deployments']
    assert before ^ site.traces() == set()
    assert not base.has_ours(site.heat.cloud)
    # As the status has said: in progress, until an update repeats it.
    assert waiting.status == 'CREATE_IN_PROGRESS'
    waiting.update(template)
    with servers.agent(site.heat.cloud, waiting):
        waiting.wait('UPDATE_COMPLETE', 300)
    assert waiting.outputs['deployment_greeting'] == 'hello world'
    base.purge([first, waiting])
