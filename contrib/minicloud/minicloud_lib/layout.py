# SPDX-License-Identifier: Apache-2.0
"""Where everything lies: one home folder, one folder for each instance."""

import dataclasses
import os
import pathlib
import re

from minicloud_lib import errors

#: The folder that holds the launcher and this package.
SOURCE = pathlib.Path(__file__).resolve().parent.parent
#: The source tree that the mini cloud is a part of.
CHECKOUT = SOURCE.parent.parent

#: Folders of the home that no instance may be named after.
SHARED = (
    'bin',
    'cache',
    'dashboard',
    'heat-agents',
    'locks',
    'server-image',
    'venv',
)


@dataclasses.dataclass(frozen=True)
class Home:
    """The folder that holds all that the mini cloud ever writes."""

    path: pathlib.Path

    @classmethod
    def find(cls, given: str | None = None) -> 'Home':
        """The one given, else $MINICLOUD_HOME, else one in the checkout."""
        name = given or os.environ.get('MINICLOUD_HOME')
        path = pathlib.Path(name) if name else CHECKOUT / '.minicloud'
        return cls(path.expanduser().resolve())

    @property
    def venv(self) -> pathlib.Path:
        return self.path / 'venv'

    @property
    def python(self) -> pathlib.Path:
        return self.venv / 'bin/python'

    @property
    def bin(self) -> pathlib.Path:
        """The commands for a user's PATH, and no others."""
        return self.path / 'bin'

    @property
    def cache(self) -> pathlib.Path:
        return self.path / 'cache'

    @property
    def heat_agents(self) -> pathlib.Path:
        return self.path / 'heat-agents'

    @property
    def dashboard(self) -> pathlib.Path:
        """Horizon's own environment."""
        return self.path / 'dashboard'

    @property
    def server_image(self) -> pathlib.Path:
        return self.path / 'server-image'

    def lock(self, name: str) -> pathlib.Path:
        return self.path / 'locks' / name

    def instance(self, name: str) -> 'Instance':
        if name in SHARED or not re.fullmatch(r'[a-z0-9][a-z0-9_-]*', name):
            raise errors.UsageError(
                f'{name!r} cannot name an instance',
                'Use lower-case letters, digits, - and _; not '
                + ', '.join(SHARED)
                + '.',
            )
        return Instance(self, name)

    def instances(self) -> list['Instance']:
        """All instances that have ever been up and were not purged."""
        found = sorted(self.path.glob('*/instance.json'))
        return [Instance(self, file.parent.name) for file in found]


@dataclasses.dataclass(frozen=True)
class Instance:
    """One cloud: its configuration, databases, logs and agents."""

    home: Home
    name: str

    @property
    def path(self) -> pathlib.Path:
        return self.home.path / self.name

    @property
    def settings(self) -> pathlib.Path:
        return self.path / 'instance.json'

    @property
    def conf(self) -> pathlib.Path:
        return self.path / 'conf'

    @property
    def data(self) -> pathlib.Path:
        return self.path / 'data'

    @property
    def logs(self) -> pathlib.Path:
        return self.path / 'logs'

    @property
    def run(self) -> pathlib.Path:
        return self.path / 'run'

    @property
    def agents(self) -> pathlib.Path:
        return self.path / 'agents'

    @property
    def servers(self) -> pathlib.Path:
        return self.path / 'servers'

    @property
    def faults(self) -> pathlib.Path:
        return self.path / 'swift-faults.json'

    @property
    def swift_requests(self) -> pathlib.Path:
        return self.logs / 'swift-requests.jsonl'

    @property
    def heat_counters(self) -> pathlib.Path:
        return self.logs / 'heat-counters.jsonl'

    @property
    def heat_classes(self) -> pathlib.Path:
        return self.run / 'heat-classes.json'

    @property
    def lock(self) -> pathlib.Path:
        return self.home.lock(f'instance-{self.name}')

    def log(self, service: str) -> pathlib.Path:
        return self.logs / f'{service}.log'

    def database(self, service: str) -> pathlib.Path:
        return self.data / f'{service}.sqlite'
