# SPDX-License-Identifier: Apache-2.0
"""What users boot: images of Glance, and flavors of Nova."""

from minicloud_lib import errors
from minicloud_lib import identity
from minicloud_lib import rest
from minicloud_lib.settings import Settings
from minicloud_lib.virtual import qemu

#: Two images with the agents, the second one with what contrib/agent adds.
PLAIN = 'agent'
SUPERVISED = 'agent-supervised'

#: The flavor of virtual machines, whatever their image; the others are agents.
MACHINE = 'vm'

#: Flavors, by their names: memory in MiB and virtual CPUs. No host has room
#: for the last one.
FLAVORS = {
    'small': (512, 1),
    'medium': (2048, 2),
    MACHINE: (qemu.MEMORY, 1),
    'huge': (1 << 24, 2),
}


def fill(settings: Settings) -> None:
    """Make those that are missing."""
    admin = identity.Client(
        settings.auth_url, 'admin', settings.secrets['admin']
    )
    _make_images(admin)
    _make_flavors(admin)


def _make_images(admin: identity.Client) -> None:
    known = {
        image['name']: image['status']
        for image in _send(admin, 'GET', 'image', '/v2/images').json()[
            'images'
        ]
    }
    for name in (PLAIN, SUPERVISED):
        # One without its file is left by an `up` that was interrupted.
        if known.get(name) != 'active':
            values = {
                'name': name,
                'visibility': 'public',
                'disk_format': 'raw',
                'container_format': 'bare',
            }
            made = _send(admin, 'POST', 'image', '/v2/images', values).json()
            _send(
                *(admin, 'PUT', 'image', f'/v2/images/{made["id"]}/file'),
                b'The driver knows this image by its name.\n',
            )


def _make_flavors(admin: identity.Client) -> None:
    path = '/flavors'
    known = {
        flavor['name']
        for flavor in _send(admin, 'GET', 'compute', path).json()['flavors']
    }
    for name, (memory, cpus) in FLAVORS.items():
        if name not in known:
            flavor = {'name': name, 'ram': memory, 'vcpus': cpus, 'disk': 1}
            _send(admin, 'POST', 'compute', path, {'flavor': flavor})


def _send(
    admin: identity.Client,
    method: str,
    service_type: str,
    path: str,
    body: object = None,
) -> rest.Answer:
    headers = {}
    if isinstance(body, bytes):
        headers['Content-Type'] = 'application/octet-stream'
    answer = rest.send(
        method,
        admin.endpoint(service_type) + path,
        token=admin.token,
        body=body,
        headers=headers,
    )
    if not answer.ok:
        raise errors.MinicloudError(
            f'{service_type} answered to {method} {path}: {answer}',
            'See minicloud logs.',
        )
    return answer
