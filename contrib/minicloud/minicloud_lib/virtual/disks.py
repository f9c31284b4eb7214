# SPDX-License-Identifier: Apache-2.0
"""Disks of virtual machines."""

import pathlib
import subprocess


def overlay(path: pathlib.Path, base: pathlib.Path) -> None:
    """Make a disk that holds what differs from another one."""
    command = [
        *('qemu-img', 'create', '-q', '-f', 'qcow2'),
        *('-F', 'qcow2', '-b', str(base), str(path)),
    ]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
