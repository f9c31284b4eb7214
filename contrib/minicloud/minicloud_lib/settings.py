# SPDX-License-Identifier: Apache-2.0
"""The settings of an instance: ports, secrets and options of its start."""

import dataclasses
import secrets
from typing import Any

from minicloud_lib import catalog
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import ports

REGION = 'RegionOne'

#: Forms of RGW's URL: with the account in it, or RGW's default.
RGW_URLS = {
    'account': '/swift/v1/AUTH_%(project_id)s',
    'default': '/swift/v1',
}

#: Secrets that are made once for each instance.
_SECRETS = (
    'admin',
    'heat',
    'heat_domain_admin',
    'mistral',
    'swift',
    'ironic',
    'glance',
    'nova',
    'dashboard',
    'demo',
    'other',
    'reader',
    'auth_encryption_key',
    'swift_hash',
    'ceph_cluster',
    'temp_url_secret',
    'database',
    'broker',
)


@dataclasses.dataclass(frozen=True)
class User:
    """A user of the cloud, in the project of the same name."""

    name: str
    purpose: str
    roles: tuple[str, ...]

    @property
    def project(self) -> str:
        return self.name


USERS = {
    user.name: user
    for user in (
        User('demo', 'owns stacks', ('member', 'heat_stack_owner')),
        User(
            'other',
            'the same in a project of its own',
            ('member', 'heat_stack_owner'),
        ),
        User(
            'reader',
            'owns stacks, but may not use Swift',
            ('reader', 'heat_stack_owner'),
        ),
        User('admin', 'administrator', ('admin',)),
    )
}


@dataclasses.dataclass
class Settings:
    """The content of instance.json."""

    ports: dict[str, int]
    secrets: dict[str, str]
    #: The Heat plugin's source tree; none for Heat's own classes.
    plugin: str | None = None
    #: The line that the plugin wants to have in heat.conf.
    plugin_dirs: str = 'plugin_dirs ='
    #: Changes with the plugin's entry points, which Mistral reads as well.
    plugin_version: str = ''
    executor_threads: int = 256
    #: Which services there are; see the catalog.
    profile: str = 'small'
    #: A key of RGW_URLS, and RGW's option of that name; for RGW alone.
    rgw_url: str = 'account'
    implicit_tenants: bool = False
    #: What there is as well as its services; see the catalog.
    extras: list[str] = dataclasses.field(default_factory=list)
    #: Which of its services there are not; see the catalog.
    omitted: list[str] = dataclasses.field(default_factory=list)
    #: The authority that clients of the public side must trust;
    #: without it the public side is the services' own.
    ca_file: str | None = None
    #: The ports that Keystone's catalog was last given.
    registered: dict[str, int] = dataclasses.field(default_factory=dict)

    @property
    def offered(self) -> dict[str, int]:
        """The ports that Keystone's catalog is to have."""
        absent = [
            service
            for name, extra in catalog.EXTRAS.items()
            if name not in self.extras
            for service in extra.services
        ]
        unused = {
            port
            for service in [*absent, *self.omitted]
            for port in catalog.SMALL[service].ports
        }
        return {
            name: port
            for name, port in self.ports.items()
            if name not in unused
        }

    def url(self, port: str) -> str:
        return f'http://{ports.ADDRESS}:{self.ports[port]}'

    def public_url(self, port: str) -> str:
        """What the catalog tells users and servers."""
        if self.ca_file is None:
            return self.url(port)
        return f'https://{ports.ADDRESS}:{self.ports[port + "_tls"]}'

    @property
    def object_store_path(self) -> str:
        """What follows the object store's address in the catalog."""
        if self.profile == 'rgw':
            return RGW_URLS[self.rgw_url]
        return '/v1/AUTH_%(project_id)s'

    @property
    def auth_url(self) -> str:
        return self.url('keystone') + '/v3'

    def user_env(self, name: str) -> dict[str, str]:
        """What the openstack command reads to be that user."""
        if name not in USERS:
            raise errors.UsageError(
                f'there is no user {name!r}',
                'The users are ' + ', '.join(USERS) + '.',
            )
        authority = {'OS_CACERT': self.ca_file} if self.ca_file else {}
        return {
            **authority,
            'OS_AUTH_TYPE': 'password',
            'OS_AUTH_URL': self.public_url('keystone') + '/v3',
            'OS_IDENTITY_API_VERSION': '3',
            'OS_INTERFACE': 'public',
            'OS_PASSWORD': self.secrets[name],
            'OS_PROJECT_DOMAIN_ID': 'default',
            'OS_PROJECT_NAME': USERS[name].project,
            'OS_REGION_NAME': REGION,
            'OS_USERNAME': name,
            'OS_USER_DOMAIN_ID': 'default',
        }

    def save(self, instance: layout.Instance) -> None:
        files.write_json(instance.settings, dataclasses.asdict(self))


def load(instance: layout.Instance) -> Settings | None:
    record: dict[str, Any] | None = files.read_json(instance.settings)
    if not record:
        return None
    # One written by another version of this program may hold other things.
    known = {field.name for field in dataclasses.fields(Settings)}
    return Settings(
        **{name: value for name, value in record.items() if name in known}
    )


def require(instance: layout.Instance) -> Settings:
    """The settings of an instance that must have been up before."""
    found = load(instance)
    if found is None:
        raise errors.NotRunningError(
            f'there is no instance {instance.name!r} in {instance.home.path}',
            f'Start it: minicloud up --name {instance.name}',
        )
    return found


def prepare(instance: layout.Instance, profile: str | None = None) -> Settings:
    """Settings for a start: old secrets, and ports that are free now.

    :param profile: None for the one that the instance has already, or small.
    """
    found = load(instance)
    profile = profile or (found.profile if found else 'small')
    if found and found.profile != profile:
        raise errors.UsageError(
            f'the instance {instance.name} has the profile {found.profile}',
            'Choose another --name, or forget this one: minicloud down '
            f'--purge --name {instance.name}',
        )
    made = found.secrets if found else {}
    remembered = found.ports if found else {}
    # A service that is up holds its own ports, and keeps them.
    held = {
        port: remembered[port]
        for service in catalog.running(instance)
        for port in catalog.services(profile)[service].ports
    }
    others = {
        port
        for other in instance.home.instances()
        if other.name != instance.name
        for port in (load(other) or Settings({}, {})).ports.values()
    }
    chosen = ports.choose(
        [name for name in catalog.ports(profile) if name not in held],
        remembered,
        {*others, *held.values()},
    )
    return Settings(
        ports={**held, **chosen},
        secrets={
            **{name: secrets.token_hex(16) for name in _SECRETS},
            **made,
        },
        registered=found.registered if found else {},
        profile=profile,
        rgw_url=found.rgw_url if found else Settings.rgw_url,
        implicit_tenants=found.implicit_tenants if found else False,
        extras=found.extras if found else [],
        omitted=found.omitted if found else [],
    )
