# SPDX-License-Identifier: Apache-2.0
"""What the configuration files have more, or other, than in a small cloud."""

from collections.abc import Mapping

from minicloud_lib import layout
from minicloud_lib import ports
from minicloud_lib.configuration import Sections
from minicloud_lib.production import certificates
from minicloud_lib.production import stores
from minicloud_lib.production.catalog import ENGINES
from minicloud_lib.settings import Settings

#: Processes of each heat-engine service.
WORKERS = 2

#: The ports behind HAProxy.
_PUBLIC = ('keystone', 'heat', 'heat_cfn', 'swift', 'mistral')


def adapt(
    rendered: Mapping[str, Sections],
    instance: layout.Instance,
    settings: Settings,
) -> dict[str, Sections]:
    """Put the profile's own options over those of a small cloud."""
    broker = (
        f'rabbit://minicloud:{settings.secrets["broker"]}@{ports.ADDRESS}:'
        f'{settings.ports["rabbitmq"]}/'
    )
    cache = f'{ports.ADDRESS}:{settings.ports["memcached"]}'
    token_cache = {'memcached_servers': cache}
    proxied = {'enable_proxy_headers_parsing': True}
    heat = {
        'DEFAULT': {
            'transport_url': broker,
            'num_engine_workers': WORKERS,
            # To be stopped in the time that a test has.
            'graceful_shutdown_timeout': 3,
        },
        'database': _database(settings, 'heat'),
        'clients': {'ca_file': certificates.authority(instance)},
        'keystone_authtoken': token_cache,
        'oslo_middleware': proxied,
        'cache': {
            'enabled': True,
            'backend': 'dogpile.cache.pymemcache',
            'memcache_servers': cache,
        },
    }
    mistral = {
        'DEFAULT': {'transport_url': broker, 'graceful_shutdown_timeout': 3},
        'database': _database(settings, 'mistral'),
        'keystone_authtoken': token_cache,
        'oslo_middleware': proxied,
    }
    keystone = {
        'database': _database(settings, 'keystone'),
        'cache': {
            'backend': 'dogpile.cache.pymemcache',
            'memcache_servers': cache,
        },
        'oslo_middleware': proxied,
    }
    return {
        **rendered,
        'heat.conf': _over(rendered['heat.conf'], heat),
        'mistral.conf': _over(rendered['mistral.conf'], mistral),
        'keystone.conf': _over(rendered['keystone.conf'], keystone),
        **{f'{name}.conf': {'DEFAULT': {'host': name}} for name in ENGINES},
        'mariadb.cnf': _mariadb(instance, settings),
    }


def texts(instance: layout.Instance, settings: Settings) -> dict[str, str]:
    """The files that have no sections."""
    return {
        'rabbitmq.conf': _rabbitmq(settings),
        'rabbitmq-plugins': '[].\n',
        'haproxy.cfg': _haproxy(instance, settings),
    }


def _over(below: Sections, above: Sections) -> Sections:
    return {
        name: {**below.get(name, {}), **above.get(name, {})}
        for name in {**below, **above}
    }


def _database(settings: Settings, service: str) -> dict[str, object]:
    password = settings.secrets['database']
    return {
        'connection': (
            f'mysql+pymysql://{service}:{password}@{ports.ADDRESS}:'
            f'{settings.ports["mariadb"]}/{service}?charset=utf8mb4'
        ),
        # To come back from an outage of some length.
        'max_retries': -1,
    }


def _mariadb(instance: layout.Instance, settings: Settings) -> Sections:
    return {
        'mariadbd': {
            'datadir': stores.database_folder(instance),
            'socket': stores.socket(instance),
            'pid_file': stores.database_folder(instance) / 'mariadbd.pid',
            'bind_address': ports.ADDRESS,
            'port': settings.ports['mariadb'],
            'skip_name_resolve': 1,
            'max_connections': 2000,
            'character_set_server': 'utf8mb4',
            # A machine that loses its power is no concern of ours.
            'innodb_flush_log_at_trx_commit': 0,
            'innodb_buffer_pool_size': '256M',
            'performance_schema': 0,
        },
    }


def _rabbitmq(settings: Settings) -> str:
    return (
        f'listeners.tcp.1 = {ports.ADDRESS}:{settings.ports["rabbitmq"]}\n'
        'default_user = minicloud\n'
        f'default_pass = {settings.secrets["broker"]}\n'
        'distribution.listener.interface = 127.0.0.1\n'
        'log.console = true\n'
        'log.console.level = warning\n'
        'disk_free_limit.absolute = 50MB\n'
    )


def _haproxy(instance: layout.Instance, settings: Settings) -> str:
    bundle = certificates.authority(instance).with_name('server.pem')
    lines = [
        'global',
        '    maxconn 4000',
        'defaults',
        '    mode http',
        '    option forwardfor',
        '    timeout connect 5s',
        '    timeout client 300s',
        '    timeout server 300s',
    ]
    for name in _PUBLIC:
        front = f'{ports.ADDRESS}:{settings.ports[f"{name}_tls"]}'
        back = f'{ports.ADDRESS}:{settings.ports[name]}'
        lines += [
            f'listen {name}',
            f'    bind {front} ssl crt {bundle}',
            '    http-request set-header X-Forwarded-Proto https',
            f'    server {name} {back}',
        ]
    return '\n'.join(lines) + '\n'
