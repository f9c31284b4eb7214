# SPDX-License-Identifier: Apache-2.0
"""Fill Keystone with what the cloud needs, over its plain REST API.

Every step looks first, so it can run again at each start; the catalog then
follows ports that have changed.
"""

from collections.abc import Mapping
from typing import Any
import urllib.parse

from minicloud_lib import errors
from minicloud_lib import rest
from minicloud_lib.settings import REGION
from minicloud_lib.settings import USERS
from minicloud_lib.settings import Settings

SERVICE_USERS = ('heat', 'mistral', 'swift', 'ironic', 'glance', 'nova')

#: name, type, and the path behind the address of the port of that name; that
#: of the object store is in the settings
ENDPOINTS = (
    ('keystone', 'identity', 'keystone', '/v3'),
    ('heat', 'orchestration', 'heat', '/v1/%(project_id)s'),
    ('heat-cfn', 'cloudformation', 'heat_cfn', '/v1'),
    ('swift', 'object-store', 'swift', None),
    ('mistral', 'workflowv2', 'mistral', '/v2'),
    ('ironic', 'baremetal', 'ironic', ''),
    ('glance', 'image', 'glance', ''),
    ('nova', 'compute', 'nova', '/v2.1'),
    ('placement', 'placement', 'placement', ''),
    # A stub, as Nova and Heat ask for ports.
    ('neutron', 'network', 'placement', '/network'),
)


class Client:
    """Keystone as one user; just enough of HTTP for that."""

    def __init__(self, auth_url: str, user: str, password: str) -> None:
        self._url = auth_url
        self.token: str | None = None
        body = {
            'auth': {
                'identity': {
                    'methods': ['password'],
                    'password': {
                        'user': {
                            'name': user,
                            'password': password,
                            'domain': {'id': 'default'},
                        }
                    },
                },
                'scope': {
                    'project': {'name': user, 'domain': {'id': 'default'}}
                },
            }
        }
        answer = self._send('POST', '/auth/tokens', body)
        self.token = answer.headers['X-Subject-Token']
        content = answer.json()['token']
        self.project_id: str = content['project']['id']
        self.user_id: str = content['user']['id']
        self.catalog: list[dict[str, Any]] = content['catalog']

    def endpoint(self, service_type: str) -> str:
        """The public address of a service."""
        for service in self.catalog:
            if service['type'] == service_type:
                for endpoint in service['endpoints']:
                    if endpoint['interface'] == 'public':
                        url: str = endpoint['url']
                        return url
        raise errors.MinicloudError(f'no {service_type} in the catalog')

    def get(self, path: str, **query: str) -> Any:
        if query:
            path += '?' + urllib.parse.urlencode(query)
        return self._send('GET', path).json()

    def put(self, path: str) -> None:
        self._send('PUT', path)

    def patch(self, path: str, body: Any) -> None:
        self._send('PATCH', path, body)

    def ensure(self, kind: str, keys: Mapping[str, str], **other: Any) -> str:
        """Return the ID of the one with these keys.

        It is made with the other values, too, if it is missing.
        """
        matching = self.get(f'/{kind}s', **keys)[f'{kind}s']
        if matching:
            identity: str = matching[0]['id']
            return identity
        return self.make(kind, {**keys, **other})

    def make(self, kind: str, values: Mapping[str, Any]) -> str:
        """Make one with some values; return its ID."""
        answer = self._send('POST', f'/{kind}s', {kind: values})
        identity: str = answer.json()[kind]['id']
        return identity

    def _send(self, method: str, path: str, body: Any = None) -> rest.Answer:
        try:
            answer = rest.send(
                method, self._url + path, token=self.token, body=body
            )
        except OSError as error:
            raise errors.MinicloudError(
                f'Keystone does not answer at {self._url}: {error}',
                'See minicloud status.',
            ) from error
        if not answer.ok:
            raise errors.MinicloudError(
                f'Keystone answered to {method} {path}: {answer}'
            )
        return answer


def set_up(settings: Settings) -> None:
    """Make projects, users, roles and the catalog as they should be."""
    keystone = Client(settings.auth_url, 'admin', settings.secrets['admin'])
    roles = {
        role['name']: role['id'] for role in keystone.get('/roles')['roles']
    }
    for name in ('heat_stack_user', 'heat_stack_owner', 'swiftoperator'):
        if name not in roles:
            roles[name] = keystone.ensure('role', {'name': name})

    def grant(scope: str, owner: str, user: str, *names: str) -> None:
        for role in names:
            keystone.put(f'/{scope}/{owner}/users/{user}/roles/{roles[role]}')

    service = _project(keystone, 'service')
    for name in SERVICE_USERS:
        if name not in settings.offered:
            continue
        user = _user(keystone, name, settings.secrets[name])
        grant('projects', service, user, 'admin', 'service')
    for person in USERS.values():
        if person.name != 'admin':
            project = _project(keystone, person.project)
            user = _user(keystone, person.name, settings.secrets[person.name])
            grant('projects', project, user, *person.roles)
    domain = keystone.ensure('domain', {'name': 'heat'})
    admin = keystone.ensure(
        'user',
        {'name': 'heat_domain_admin', 'domain_id': domain},
        password=settings.secrets['heat_domain_admin'],
    )
    grant('domains', domain, admin, 'admin')
    _register(keystone, settings)


def _project(keystone: Client, name: str) -> str:
    keys = {'name': name, 'domain_id': 'default'}
    return keystone.ensure('project', keys)


def _user(keystone: Client, name: str, password: str) -> str:
    keys = {'name': name, 'domain_id': 'default'}
    return keystone.ensure('user', keys, password=password)


def _register(keystone: Client, settings: Settings) -> None:
    """Bring the catalog's addresses up to date."""
    # Listed once: to ask for each by its keys is most of a first start.
    services = {
        service['type']: service['id']
        for service in keystone.get('/services')['services']
    }
    endpoints = {
        (endpoint['service_id'], endpoint['interface']): endpoint
        for endpoint in keystone.get('/endpoints')['endpoints']
        if endpoint['region_id'] == REGION
    }
    for name, service_type, port, path in ENDPOINTS:
        if port not in settings.offered:
            continue
        service_id = services.get(service_type) or keystone.make(
            'service', {'name': name, 'type': service_type}
        )
        for interface in ('public', 'internal', 'admin'):
            base = settings.url(port)
            if interface == 'public':
                base = settings.public_url(port)
            url = base + (settings.object_store_path if path is None else path)
            known = endpoints.get((service_id, interface))
            if known is None:
                values = {
                    'service_id': service_id,
                    'interface': interface,
                    'region_id': REGION,
                    'url': url,
                }
                keystone.make('endpoint', values)
            elif known['url'] != url:
                body = {'endpoint': {'url': url}}
                keystone.patch(f'/endpoints/{known["id"]}', body)
