# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: what QEMU is told."""

import itertools
import subprocess

from minicloud_lib.virtual import image
from minicloud_lib.virtual import qemu


def values(folder, option, **options):
    """Return the values of an option of the command for a machine."""
    machine = qemu.Machine(
        image=image.Image(folder / 'image'),
        accelerator='tcg',
        disk=folder / 'a, disk',
        **options,
    )
    pairs = itertools.pairwise(machine.command())
    return [value for name, value in pairs if name == option]


def test_a_machine_reaches_the_services_and_nothing_else(tmp_path):
    services = {'services': [20001, 20002]}
    (network,) = values(tmp_path, '-netdev', **services)
    kind, _, restrict, _, *relays = network.split(',')
    assert (kind, restrict) == ('user', 'restrict=on')
    # No port of this machine leads to it.
    assert relays == [
        f'guestfwd=tcp:10.0.2.100:{port}-cmd:socat STDIO TCP4:127.0.0.1:{port}'
        for port in (20001, 20002)
    ]
    assert 'tcp:' not in ' '.join(values(tmp_path, '-chardev', **services))


def test_a_path_ends_no_option_and_is_one_word_of_a_shell(tmp_path):
    disk, seed_disk = values(tmp_path, '-drive', seed=tmp_path / 'b,c')
    assert disk.endswith('/a,, disk')
    assert seed_disk.endswith('/b,,c')
    assert 'readonly=on' in seed_disk
    state = tmp_path / "it's mine; rm"
    (incoming,) = values(tmp_path, '-incoming', resumes=state)
    assert incoming[:5] == 'exec:'
    state.write_text('state')
    found = subprocess.check_output(['/bin/sh', '-c', incoming[5:]])
    assert found == b'state'
