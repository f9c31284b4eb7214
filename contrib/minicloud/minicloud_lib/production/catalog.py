# SPDX-License-Identifier: Apache-2.0
"""The processes of the profile, in the order in which they start.

Arguments and variables may name a port, or one of the places that
`minicloud_lib.launching` knows.
"""

from minicloud_lib import catalog

Service = catalog.Service

#: How many heat-engine services there are, as if on as many hosts.
ENGINES = ('heat-engine-1', 'heat-engine-2')

#: Parts of mistral-server, each a process of its own. The event engine is left
#: to those who need it: minicloud start mistral-event-engine.
MISTRAL = ('api', 'engine', 'executor', 'notifier', 'periodic')
EVENT_ENGINE = 'mistral-event-engine'


def _engine(name: str) -> Service:
    return Service(
        name,
        (),
        '',
        ('heat.conf', f'{name}.conf'),
        group='heat',
        program=('{venv}/bin/heat-engine', '{config_files}'),
        trusts_all=False,
    )


def _mistral(part: str) -> Service:
    return Service(
        f'mistral-{part}',
        ('mistral',) if part == 'api' else (),
        '/' if part == 'api' else '',
        ('mistral.conf',),
        group='mistral',
        program=(
            '{venv}/bin/mistral-server',
            '{config_files}',
            '--server',
            part,
        ),
    )


SERVICES = {
    service.name: service
    for service in (
        Service(
            'mariadb',
            ('mariadb',),
            '',
            ('mariadb.cnf',),
            program=(
                '/usr/sbin/mariadbd',
                '--defaults-file={conf}/mariadb.cnf',
                '--user={user}',
            ),
            stage=0,
        ),
        Service(
            'epmd',
            ('epmd',),
            '',
            (),
            program=('epmd', '-port', '{epmd}', '-address', '127.0.0.1'),
            stage=0,
        ),
        Service(
            'rabbitmq',
            ('rabbitmq',),
            '',
            ('rabbitmq.conf', 'rabbitmq-plugins'),
            program=('/usr/lib/rabbitmq/bin/rabbitmq-server',),
            env={
                'ERL_EPMD_PORT': '{epmd}',
                'RABBITMQ_CONFIG_FILE': '{conf}/rabbitmq.conf',
                'RABBITMQ_DIST_PORT': '{rabbitmq_nodes}',
                'RABBITMQ_ENABLED_PLUGINS_FILE': '{conf}/rabbitmq-plugins',
                'RABBITMQ_LOG_BASE': '{logs}',
                'RABBITMQ_LOGS': '-',
                'RABBITMQ_MNESIA_BASE': '{data}/rabbitmq',
                'RABBITMQ_NODENAME': 'minicloud-{name}@localhost',
            },
            stage=0,
        ),
        Service(
            'memcached',
            ('memcached',),
            '',
            (),
            program=(
                *('/usr/bin/memcached', '-u', '{user}', '-U', '0'),
                *('-l', '127.0.0.1', '-p', '{memcached}'),
            ),
            stage=0,
        ),
        Service(
            'haproxy',
            (
                'keystone_tls',
                'heat_tls',
                'heat_cfn_tls',
                'swift_tls',
                'mistral_tls',
            ),
            '',
            ('haproxy.cfg',),
            program=('/usr/sbin/haproxy', '-db', '-f', '{conf}/haproxy.cfg'),
            stage=0,
        ),
        catalog.SMALL['keystone'],
        catalog.SMALL['swift'],
        *(_mistral(part) for part in MISTRAL),
        Service(
            EVENT_ENGINE,
            (),
            '',
            ('mistral.conf',),
            group='mistral',
            on_demand=True,
        ),
        Service(
            'heat-api',
            ('heat', 'heat_cfn'),
            '/healthcheck',
            ('heat.conf',),
            group='heat',
        ),
        *(_engine(name) for name in ENGINES),
    )
}

#: Ports that are not waited for.
PORTS = ('rabbitmq_nodes',)
