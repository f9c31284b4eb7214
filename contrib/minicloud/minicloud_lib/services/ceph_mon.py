# SPDX-License-Identifier: Apache-2.0
"""Ceph's monitor; its store is made at the first start."""

import configparser
import os
import pathlib
import subprocess
import sys

PROGRAM = 'ceph-mon'


def main(conf: str) -> None:
    options = configparser.ConfigParser(interpolation=None)
    options.read(conf)
    cluster = options['global']
    data = pathlib.Path(options['mon']['mon data'])
    data.mkdir(parents=True, exist_ok=True)
    # Asked for by all of Ceph, and empty as there is no authentication.
    pathlib.Path(cluster['keyring']).touch()
    monmap = data.with_name('monmap')
    subprocess.run(
        [
            *('monmaptool', '--create', '--clobber'),
            *('--fsid', cluster['fsid'], '--addv', 'a', cluster['mon host']),
            monmap,
        ],
        check=True,
    )
    # The last thing that is made.
    made = data / 'made'
    command = [PROGRAM, '-c', conf, '-i', 'a']
    # Its port may have changed, which it knows from there alone.
    way = '--inject-monmap' if made.exists() else '--monmap'
    first = [] if made.exists() else ['--mkfs']
    subprocess.run([*command, *first, way, monmap], check=True)
    made.touch()
    os.execvp(PROGRAM, [*command, '-f'])  # noqa: S606 # nosec B606


if __name__ == '__main__':
    main(*sys.argv[1:])
