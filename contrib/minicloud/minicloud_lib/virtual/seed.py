# SPDX-License-Identifier: Apache-2.0
"""The disk that cloud-init reads at a machine's first boot."""

from collections.abc import Mapping
import dataclasses
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
from typing import Any
import uuid

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import layout

#: What the image of a server may have as well as the agents.
ADD_ON = layout.SOURCE.parent / 'agent'

#: What a cloud may have as vendor data for all of its machines.
_VENDOR_DATA = """\
#cloud-config
bootcmd:
  - [sh, -c, 'printf "%s\\n" LC_ALL=C PYTHONUTF8=1
    >/etc/default/heat-config-supervisor']
  - [mkdir, -p, /run/seed]
  - [mount, -o, ro, /dev/disk/by-label/{label}, /run/seed]
  - [/run/seed/agent/install]
  - [umount, /run/seed]
"""

#: What is in the folder of each version of OpenStack's metadata.
_VERSION = re.compile('(openstack/[^/]+/)meta_data.json')


@dataclasses.dataclass(frozen=True, kw_only=True)
class Seed:
    """The files on the disk.

    :ivar label: tells cloud-init which source of data it is.
    :ivar files: by their paths.
    :ivar supervised: whether the add-on to the agents is on it, for vendor
        data to install.
    """

    label: str
    files: Mapping[str, bytes]
    supervised: bool


def no_cloud(name: str, user_data: str, *, supervised: bool) -> Seed:
    """Return the seed of the source NoCloud.

    :param name: the machine's host name.
    """
    label = 'cidata'
    meta_data = f'instance-id: {uuid.uuid4()}\nlocal-hostname: {name}\n'
    files = {
        'user-data': user_data.encode(),
        'meta-data': meta_data.encode(),
    }
    if supervised:
        files['vendor-data'] = _VENDOR_DATA.format(label=label).encode()
    return Seed(label=label, files=files, supervised=supervised)


def config_drive(drive: Mapping[str, bytes], *, supervised: bool) -> Seed:
    """Return the seed of the source ConfigDrive.

    :param drive: the files that Nova writes for a server, by their paths.
    """
    label = 'config-2'
    more = {}
    if supervised:
        vendor_data = {'cloud-init': _VENDOR_DATA.format(label=label)}
        # cloud-init reads the newest version that it knows.
        more = {
            f'{version[1]}vendor_data.json': json.dumps(vendor_data).encode()
            for version in map(_VERSION.fullmatch, drive)
            if version
        }
    return Seed(label=label, files={**drive, **more}, supervised=supervised)


def user_data(
    home: layout.Home, os_collect_config: Mapping[str, Any], given: str
) -> str:
    """Return what Heat makes for a server with SOFTWARE_CONFIG.

    :param os_collect_config: as the server resource has it.
    :param given: the ``user_data`` of a template, or nothing.
    """
    metadata = {
        'deployments': [],
        'os-collect-config': dict(os_collect_config),
    }
    result = subprocess.run(
        [str(home.python), '-m', 'minicloud_lib.virtual.user_data'],
        input=json.dumps({'metadata': metadata, 'user_data': given}),
        env={
            **environment.clean(home),
            'PYTHONPATH': str(layout.SOURCE),
        },
        capture_output=True,
        text=True,
    )
    if result.returncode:
        raise errors.MinicloudError(
            f'Heat could not make user data: {result.stderr[-500:]}'
        )
    return result.stdout


def make(path: pathlib.Path, seed: Seed) -> None:
    """Make the disk."""
    with tempfile.TemporaryDirectory(dir=path.parent) as made:
        folder = pathlib.Path(made)
        for name, content in seed.files.items():
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        if seed.supervised:
            shutil.copytree(ADD_ON, folder / 'agent')
        command = [
            *('genisoimage', '-quiet', '-volid', seed.label, '-joliet'),
            *('-rock', '-output', str(path), made),
        ]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
