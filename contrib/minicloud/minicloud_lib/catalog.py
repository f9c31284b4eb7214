# SPDX-License-Identifier: Apache-2.0
"""The four services: their ports, their modules, and how to find them."""

import dataclasses
import pathlib
from typing import Any

from minicloud_lib import errors
from minicloud_lib import layout
from minicloud_lib import processes


@dataclasses.dataclass(frozen=True)
class Service:
    """One process of the cloud."""

    name: str
    #: Names of the ports it listens on; the first tells when it is ready.
    ports: tuple[str, ...]
    #: Answers 200 (or 300, as version lists do) without a token.
    health: str
    #: The configuration files it reads; a change means a restart.
    conf: tuple[str, ...]

    @property
    def module(self) -> str:
        return f'minicloud_lib.services.{self.name}'

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


SERVICES = {
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
    )
}

PORTS = tuple(port for service in SERVICES.values() for port in service.ports)


def get(name: str) -> Service:
    try:
        return SERVICES[name]
    except KeyError:
        raise errors.UsageError(
            f'there is no service {name!r}',
            'The services are ' + ', '.join(SERVICES) + '.',
        ) from None


def running(instance: layout.Instance) -> list[str]:
    """The names of the services that are up."""
    return [
        service.name
        for service in SERVICES.values()
        if service.process(instance)
    ]
