# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian that some profiles need."""

import os
import shutil
import subprocess

from minicloud_lib import cli
from minicloud_lib import errors
from minicloud_lib import packages
import testtools


class PackagesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        programs = {'/no/such/program': 'its-package'}
        self.patch(
            packages, 'PROGRAMS', {'production': programs, 'rgw': programs}
        )
        self.patch(os, 'geteuid', lambda: 1000)

    def test_what_is_missing_is_installed_by_a_command_that_is_told(self):
        # All else is made as the user: what root has made is not theirs.
        for ask in (packages.require, packages.install):
            exc = self.assertRaises(errors.MinicloudError, ask, 'rgw')
            self.assertIn('its-package', str(exc))
            self.assertTrue(
                exc.remedy.endswith(
                    'sudo apt-get install -y --no-install-recommends '
                    'its-package'
                )
            )

    def test_without_root_it_is_known_that_it_cannot_be_installed(self):
        self.assertEqual(4, self.install())

    def test_a_package_that_cannot_be_had_is_told_from_a_failure(self):
        for said, code in (
            ('E: Unable to locate package its-package', 4),
            ("E: Package 'its-package' has no installation candidate", 4),
            ('E: Unable to fetch some archives, maybe run apt-get update', 4),
            ('E: Could not get lock /var/lib/dpkg/lock-frontend', 1),
            ('E: Sub-process /usr/bin/dpkg returned an error code (1)', 1),
        ):
            self.assertEqual((said, code), (said, self.install(said)))
            found = self.install(said, '--store', 'rgw')
            self.assertEqual((said, code), (said, found))

    def install(self, said=None, *options):
        """Install as root if apt-get is to say something; the exit code."""
        if said is not None:
            self.patch(os, 'geteuid', lambda: 0)
            self.patch(shutil, 'which', lambda program: '/bin/apt-get')
            self.patch(
                subprocess,
                'run',
                lambda command, **given: subprocess.CompletedProcess(
                    command, 100, '', said
                ),
            )
        options = options or ('--profile', 'production')
        return cli.main(['install', *options])
