# SPDX-License-Identifier: Apache-2.0
"""The processes of the profile, in the order in which they start."""

from minicloud_lib import catalog

Service = catalog.Service

#: The gateway and the proxy before it: where Swift is in the profile small.
GROUP = 'swift'

SERVICES = {
    service.name: service
    for service in (
        Service('ceph-mon', ('ceph_mon',), '', ('ceph.conf',), stage=0),
        Service('ceph-osd', (), '', ('ceph.conf',), stage=0),
        Service(
            'radosgw',
            ('radosgw',),
            '/swift/healthcheck',
            ('radosgw.conf',),
            group=GROUP,
            program=(
                *('/usr/bin/radosgw', '-f', '-n', 'client.rgw'),
                *('-c', '{conf}/radosgw.conf'),
            ),
        ),
        Service('rgw-proxy', ('swift',), '', ('rgw-proxy.conf',), group=GROUP),
        *(
            service
            for service in catalog.SMALL.values()
            if service.name != 'swift'
        ),
    )
}

#: Ports that are not waited for. The OSD chooses its own, from 6800 on.
PORTS = ()
