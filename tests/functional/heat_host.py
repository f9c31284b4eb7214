# SPDX-License-Identifier: Apache-2.0
"""A Heat of a host's own, with a mini cloud's Keystone and Swift.

MariaDB, RabbitMQ, heat-engine and Heat's APIs run in the host's tree, each as
its own user, and listen where the mini cloud's Heat would: Keystone's catalog
names them, and agents find them.
"""

from collections.abc import Mapping
import configparser
import contextlib
import dataclasses
import io
import pathlib

from tests.functional import base
from tests.functional import debian

# `base` has put them on the path.
from minicloud_lib import layout  # isort: skip
from minicloud_lib import ports  # isort: skip
from minicloud_lib import processes  # isort: skip
from minicloud_lib import rest  # isort: skip
from minicloud_lib import settings  # isort: skip

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
        self._spawn_apis()
        base.until(self._answers, 60)

    def start_engine(self) -> None:
        """Start heat-engine; return once it answers a request."""
        self._spawn_engine()
        base.until(self._answers, 60)

    def stop_engine(self) -> None:
        """Stop heat-engine as systemd does."""
        processes.stop_all([self._pid_file('heat')], 15)

    def restart_engine(self) -> None:
        self.stop_engine()
        self.start_engine()

    def stop(self) -> None:
        """Stop all that runs."""
        for name in ('heat-api-cfn', 'heat-api', 'heat'):
            processes.stop_all([self._pid_file(name)], 5)
        for name in ('rabbitmq', 'mariadb'):
            processes.stop_all([self._pid_file(name)], 15)

    @property
    def _instance(self) -> layout.Instance:
        return self.cloud._instance

    def _pid_file(self, name: str) -> pathlib.Path:
        return self._instance.run / f'{name}.pid'

    def _spawn_engine(self) -> None:
        # Under this name agents look for it.
        self._spawn('heat', f'exec {self.programs}/heat-engine')

    def _spawn_apis(self) -> None:
        found = settings.require(self._instance)
        for api, port in (('api', 'heat'), ('api-cfn', 'heat_cfn')):
            self._spawn(
                f'heat-{api}',
                f'exec {self.programs}/heat-wsgi-{api} --host {ports.ADDRESS} '
                f'--port {found.ports[port]}',
            )

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
