# SPDX-License-Identifier: Apache-2.0
"""Ceph's OSD, which keeps objects in memory; made at the first start.

It writes them to its folder when it is stopped, and reads them at the next
start. What came after that is lost when it is killed.
"""

import configparser
import os
import pathlib
import subprocess
import sys
import uuid

PROGRAM = 'ceph-osd'


def main(conf: str) -> None:
    options = configparser.ConfigParser(interpolation=None)
    options.read(conf)
    data = pathlib.Path(options['osd']['osd data'])
    command = [PROGRAM, '-c', conf, '-i', '0']
    # Written at the end of what makes it.
    if not (data / 'ready').exists():
        data.mkdir(parents=True, exist_ok=True)
        # The same at each try, so that the monitor takes it for the same.
        identity = str(uuid.uuid5(uuid.UUID(options['global']['fsid']), '0'))
        # It waits for the monitor.
        subprocess.run(
            [
                *('/usr/bin/ceph', '-c', conf, '--connect-timeout', '60'),
                *('osd', 'new', identity, '0'),
            ],
            check=True,
        )
        subprocess.run(
            [*command, '--mkfs', '--osd-uuid', identity], check=True
        )
    os.execvp(PROGRAM, [*command, '-f'])  # noqa: S606 # nosec B606


if __name__ == '__main__':
    main(*sys.argv[1:])
