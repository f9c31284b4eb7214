# SPDX-License-Identifier: Apache-2.0
"""The services: their ports, their programs, and how to find them.

The profile says which ones there are: ``small`` has four, each of them one
process of ours, and more on demand; ``rgw`` and ``production`` are packages
of their own.
"""

from collections.abc import Callable, Mapping
import dataclasses
import importlib
import pathlib
from typing import Any

from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib import processes


@dataclasses.dataclass(frozen=True)
class Service:
    """One process of the cloud, with those that it forks."""

    name: str
    #: Names of the ports it listens on; the first tells when it is ready.
    #: Without any it is ready at once.
    ports: tuple[str, ...]
    #: Answers 200 (or 300, as version lists do) without a token; without it
    #: a connection tells.
    health: str
    #: The configuration files it reads; a change means a restart.
    conf: tuple[str, ...]
    #: A name for several services, which share a log.
    group: str = ''
    #: The command; without it the service is a module of ours. Places and
    #: ports in braces are filled in.
    program: tuple[str, ...] = ()
    #: More variables of its environment, filled in likewise.
    env: Mapping[str, str] = dataclasses.field(
        default_factory=dict, hash=False
    )
    #: Whether it trusts the cloud's own certificates without being told to.
    trusts_all: bool = True
    #: Those of stage 0 are ready before those of stage 1 start; those of
    #: stage 2 start when Keystone knows their users.
    stage: int = 1
    #: Whether ``up`` leaves its start to the code that needs it.
    on_demand: bool = False

    @property
    def module(self) -> str:
        return f'minicloud_lib.services.{self.name.replace("-", "_")}'

    @property
    def log_name(self) -> str:
        return self.group or self.name

    def pid_file(self, instance: layout.Instance) -> pathlib.Path:
        return instance.run / f'{self.name}.pid'

    def process(self, instance: layout.Instance) -> processes.Process | None:
        return processes.find(self.pid_file(instance))

    def about(self, instance: layout.Instance) -> dict[str, Any]:
        """Whether it runs, and what it uses; as JSON has it."""
        process = self.process(instance)
        usage = process.usage() if process else None
        return {
            'name': self.name,
            'running': process is not None,
            'pid': process.pid if process else None,
            'cpu_seconds': usage.cpu_seconds if usage else None,
            'rss_bytes': usage.rss_bytes if usage else None,
            'peak_rss_bytes': usage.peak_rss_bytes if usage else None,
            'threads': usage.threads if usage else None,
        }


SMALL = {
    service.name: service
    for service in (
        Service('keystone', ('keystone',), '/v3', ('keystone.conf',)),
        Service(
            'swift',
            ('swift', 'swift_account', 'swift_container', 'swift_object'),
            '/healthcheck',
            (
                'swift.conf',
                'proxy.conf',
                'account.conf',
                'container.conf',
                'object.conf',
            ),
        ),
        Service('mistral', ('mistral',), '/', ('mistral.conf',)),
        Service('heat', ('heat', 'heat_cfn'), '/healthcheck', ('heat.conf',)),
        Service('ironic', ('ironic',), '/', ('ironic.conf',), on_demand=True),
        Service(
            'glance',
            ('glance',),
            '/',
            ('glance-api.conf',),
            stage=2,
            on_demand=True,
        ),
        Service(
            'nova',
            ('nova', 'placement'),
            '/',
            ('nova.conf', 'placement.conf'),
            env={
                'MINICLOUD_HOME': '{home}',
                'MINICLOUD_NAME': '{name}',
                'MINICLOUD_PLACEMENT_URL': 'http://127.0.0.1:{placement}',
            },
            stage=2,
            on_demand=True,
        ),
        Service(
            'dashboard',
            ('dashboard',),
            '/auth/login/',
            ('dashboard.json',),
            program=(
                '{home}/dashboard/bin/python',
                '-m',
                'django',
                'runserver',
                '--insecure',
                '--noreload',
                '127.0.0.1:{dashboard}',
            ),
            env={
                'DJANGO_SETTINGS_MODULE': 'minicloud_lib.horizon_settings',
                'MINICLOUD_DASHBOARD': '{conf}/dashboard.json',
                'PYTHONPATH': '{source}',
                'VIRTUAL_ENV': '{home}/dashboard',
            },
            stage=2,
            on_demand=True,
        ),
    )
}


@dataclasses.dataclass(frozen=True)
class Extra:
    """What ``up --with`` adds to a cloud, from then on.

    ``requirements-NAME.txt`` names its packages, which are installed with
    the others, or as its module's ``install`` does that.
    """

    #: For the help: what it is.
    about: str
    #: Services of the profile ``small``, all of them on demand.
    services: tuple[str, ...]
    #: A module whose ``fill`` makes what the services are to have.
    module: str = ''

    @property
    def install(self) -> Callable[[layout.Home], None] | None:
        """What installs its packages; None if they are like others."""
        module = importlib.import_module(self.module) if self.module else None
        return getattr(module, 'install', None)

    def fill(self, settings: Any) -> None:
        if self.module:
            importlib.import_module(self.module).fill(settings)


#: What ``up --with`` knows; a line and a file of requirements make another.
EXTRAS = {
    'baremetal': Extra('Ironic with simulated machines', ('ironic',)),
    'compute': Extra(
        'Nova, Placement and Glance, with agents as servers',
        ('glance', 'nova'),
        'minicloud_lib.compute.images',
    ),
    'dashboard': Extra(
        'Horizon with the pages of heat-plugins',
        ('dashboard',),
        'minicloud_lib.dashboard',
    ),
}

#: What ``up --without`` leaves out of the profile ``small``.
OMITTABLE = ('mistral', 'swift')

PROFILES = ('small', 'rgw', 'production')

#: What ``up --store`` names, and the profile that has it.
STORES = {'swift': 'small', 'rgw': 'rgw'}


def services(profile: str) -> Mapping[str, Service]:
    """The services of a profile by their names, in the order of starting."""
    if profile == 'small':
        return SMALL
    found: Mapping[str, Service] = _more(profile).SERVICES
    return found


def ports(profile: str) -> list[str]:
    """The names of all ports of a profile."""
    more = () if profile == 'small' else _more(profile).PORTS
    return [
        *(
            port
            for service in services(profile).values()
            for port in service.ports
        ),
        *more,
    ]


def _more(profile: str) -> Any:
    # It is made of what is above.
    return importlib.import_module(f'minicloud_lib.{profile}.catalog')


def find(profile: str, name: str) -> list[Service]:
    """The services that a name means: one, or a group."""
    known = services(profile)
    found = [
        service
        for service in known.values()
        if name in (service.name, service.group)
    ]
    if not found:
        groups = {one.group for one in known.values() if one.group}
        raise errors.UsageError(
            f'there is no service {name!r}',
            'The services are ' + ', '.join([*known, *sorted(groups)]) + '.',
        )
    return found


def running(instance: layout.Instance) -> list[str]:
    """The names of the services that are up, whatever the profile."""
    return [
        file.stem
        for file in sorted(instance.run.glob('*.pid'))
        if processes.find(file)
    ]
