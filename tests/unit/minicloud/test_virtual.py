# SPDX-License-Identifier: Apache-2.0
"""Virtual machines: what QEMU is told, and who talks to it."""

import email
import itertools
import json
import pathlib
import subprocess
import sys

import fixtures
from minicloud_lib import layout
from minicloud_lib.virtual import image
from minicloud_lib.virtual import qemu
from minicloud_lib.virtual import seed
import testtools


class Folder(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path)


class CommandTest(Folder):
    def command(self, **options):
        return qemu.Machine(
            image=image.Image(self.path / 'image'),
            accelerator='tcg',
            disk=self.path / 'a, disk',
            **options,
        ).command()

    def values(self, command, option):
        pairs = itertools.pairwise(command)
        return [value for name, value in pairs if name == option]

    def test_a_machine_reaches_the_services_and_nothing_else(self):
        command = self.command(services=[20001, 20002])
        (network,) = self.values(command, '-netdev')
        kind, _, restrict, _, *relays = network.split(',')
        assert (kind, restrict) == ('user', 'restrict=on')
        assert relays == [
            f'guestfwd=tcp:10.0.2.100:{port}-cmd:'
            f'socat STDIO TCP4:127.0.0.1:{port}'
            for port in (20001, 20002)
        ]
        # No port of this machine leads to it.
        assert 'hostfwd' not in ' '.join(command)
        assert 'tcp:' not in ' '.join(self.values(command, '-chardev'))

    def test_a_comma_in_a_path_is_no_end_of_an_option(self):
        disk, seed_disk = self.values(
            self.command(seed=self.path / 'b,c'), '-drive'
        )
        assert disk.endswith('/a,, disk')
        assert seed_disk.endswith('/b,,c')
        assert 'readonly=on' in seed_disk

    def test_a_path_of_a_state_is_one_word_of_a_shell(self):
        state = self.path / "it's mine; rm"
        (incoming,) = self.values(self.command(resumes=state), '-incoming')
        assert incoming[:5] == 'exec:'
        state.write_text('state')
        found = subprocess.run(
            ['/bin/sh', '-c', incoming[5:]], capture_output=True, text=True
        )
        assert found.stdout == 'state'


class SeedTest(Folder):
    def test_the_user_data_is_what_heat_gives_to_nova(self):
        given = '#cloud-config\nruncmd: [id]\n'
        home = layout.Home(pathlib.Path(sys.prefix).parent)
        self.patch(layout.Home, 'python', pathlib.Path(sys.executable))
        found = email.message_from_string(
            seed.user_data(home, {'request': {'metadata_url': 'url'}}, given)
        )
        parts = {
            part.get_filename(): part.get_payload()
            for part in found.get_payload()
        }
        assert json.loads(parts['cfn-init-data']) == {
            'deployments': [],
            'os-collect-config': {'request': {'metadata_url': 'url'}},
        }
        assert 'list_types' in parts['part-handler.py']
        assert given in parts.values()

    def test_the_add_on_comes_with_what_installs_it(self):
        drive = {
            'openstack/2018-08-27/meta_data.json': b'{}',
            'openstack/2018-08-27/user_data': b'user data',
            'ec2/latest/meta-data.json': b'{}',
        }
        for plain, supervised in (
            (
                seed.no_cloud('web', 'user data', supervised=False),
                seed.no_cloud('web', 'user data', supervised=True),
            ),
            (
                seed.config_drive(drive, supervised=False),
                seed.config_drive(drive, supervised=True),
            ),
        ):
            assert b'user data' in plain.files.values()
            assert not plain.supervised
            (more,) = supervised.files.keys() - plain.files.keys()
            assert 'vendor' in more
            mounted = f'/dev/disk/by-label/{plain.label},'.encode()
            assert mounted in supervised.files[more]
