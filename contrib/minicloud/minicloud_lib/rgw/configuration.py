# SPDX-License-Identifier: Apache-2.0
"""The configuration files of Ceph and of the proxy before its gateway."""

import uuid

from minicloud_lib import configuration
from minicloud_lib import layout
from minicloud_lib import ports
from minicloud_lib.configuration import Sections
from minicloud_lib.settings import Settings

#: Bytes that the OSD says it has; it takes memory for what it keeps.
CAPACITY = 4 << 30


def files(
    instance: layout.Instance, settings: Settings
) -> dict[str, Sections]:
    """Return the sections of each file.

    The gateway has one of its own, so that its options restart it alone.
    """
    common = _common(instance, settings)
    return {
        'ceph.conf': {
            'global': common,
            'mon': {
                'mon data': _data(instance, 'mon'),
                # Changes of the cluster wait for others, which never come.
                'paxos propose interval': 0.1,
                'paxos min wait': 0.01,
                'mon allow pool size one': 'true',
                'mon max pg per osd': 1000,
                # A disk that is nearly full is no reason to stop.
                'mon data avail warn': 1,
                'mon data avail crit': 1,
            },
            'osd': {
                'osd data': _data(instance, 'osd'),
                'osd objectstore': 'memstore',
                'memstore device bytes': CAPACITY,
                # Else it would not save what it holds when it is stopped.
                'osd fast shutdown': 'false',
                'osd mon shutdown timeout': 1,
            },
        },
        'radosgw.conf': {
            'global': common,
            'client.rgw': _gateway(instance, settings),
        },
        'rgw-proxy.conf': {
            'pipeline:main': {'pipeline': 'request-log faults gateway'},
            **configuration.filters(instance),
            'app:gateway': {
                'paste.app_factory': (
                    'minicloud_lib.services.rgw_proxy:app_factory'
                ),
                'gateway': settings.url('radosgw'),
            },
        },
    }


def _data(instance: layout.Instance, part: str) -> object:
    return instance.data / 'ceph' / part


def _common(
    instance: layout.Instance, settings: Settings
) -> dict[str, object]:
    address = f'{ports.ADDRESS}:{settings.ports["ceph_mon"]}'
    return {
        'fsid': uuid.UUID(settings.secrets['ceph_cluster']),
        'mon host': f'[v2:{address}]',
        'public addr': ports.ADDRESS,
        'cluster addr': ports.ADDRESS,
        'ms bind msgr1': 'false',
        # Its clients are on this machine, and may read its files.
        'auth cluster required': 'none',
        'auth service required': 'none',
        'auth client required': 'none',
        # The gateway insists on encryption, which needs authentication.
        'ms mon client mode': 'crc',
        'osd pool default size': 1,
        'osd pool default min size': 1,
        'osd pool default pg num': 1,
        'osd pool default pgp num': 1,
        'osd pool default pg autoscale mode': 'off',
        'osd crush chooseleaf type': 0,
        'run dir': instance.run,
        'pid file': '',
        'admin socket': '',
        'log to file': 'false',
        'log to stderr': 'true',
        'err to stderr': 'true',
        'mon cluster log to file': 'false',
        'crash dir': instance.data / 'ceph',
        'keyring': instance.data / 'ceph/keyring',
    }


def _gateway(
    instance: layout.Instance, settings: Settings
) -> dict[str, object]:
    in_url = settings.rgw_url == 'account'
    return {
        'rgw data': _data(instance, 'rgw'),
        'rgw frontends': (
            f'beast endpoint={ports.ADDRESS}:{settings.ports["radosgw"]}'
        ),
        'rgw thread pool size': 128,
        'rgw swift account in url': _boolean(in_url),
        'rgw keystone url': settings.url('keystone'),
        'rgw keystone api version': 3,
        'rgw keystone admin user': 'swift',
        'rgw keystone admin password': settings.secrets['swift'],
        'rgw keystone admin domain': 'Default',
        'rgw keystone admin project': 'service',
        'rgw keystone accepted roles': configuration.SWIFT_ROLES,
        'rgw keystone implicit tenants': _boolean(settings.implicit_tenants),
    }


def _boolean(value: bool) -> str:
    return str(value).lower()
