# SPDX-License-Identifier: Apache-2.0
"""The disk that cloud-init reads at a machine's first boot (NoCloud)."""

from collections.abc import Mapping
import json
import pathlib
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

_VENDOR_DATA = """\
#cloud-config
bootcmd:
  - [sh, -c, 'printf "%s\\n" LC_ALL=C PYTHONUTF8=1
    >/etc/default/heat-config-supervisor']
  - [mkdir, -p, /run/seed]
  - [mount, -o, ro, /dev/disk/by-label/cidata, /run/seed]
  - [/run/seed/agent/install]
  - [umount, /run/seed]
"""


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


def make(
    path: pathlib.Path, *, name: str, user_data: str, supervised: bool
) -> None:
    """Make the disk.

    :param name: the machine's host name.
    :param supervised: whether vendor data, as a cloud may have it for all of
        its machines, installs the add-on to the agents.
    """
    with tempfile.TemporaryDirectory(dir=path.parent) as made:
        folder = pathlib.Path(made)
        (folder / 'user-data').write_text(user_data)
        (folder / 'meta-data').write_text(
            f'instance-id: {uuid.uuid4()}\nlocal-hostname: {name}\n'
        )
        if supervised:
            (folder / 'vendor-data').write_text(_VENDOR_DATA)
            shutil.copytree(ADD_ON, folder / 'agent')
        command = [
            *('genisoimage', '-quiet', '-volid', 'cidata', '-joliet'),
            *('-rock', '-output', str(path), made),
        ]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
