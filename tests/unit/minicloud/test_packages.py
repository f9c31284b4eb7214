# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian that the profile of several engines needs."""

import os

from minicloud_lib import errors
from minicloud_lib.production import packages
import testtools


class PackagesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.patch(packages, 'PROGRAMS', {'/no/such/program': 'its-package'})
        self.patch(os, 'geteuid', lambda: 1000)

    def test_what_is_missing_is_installed_by_a_command_that_is_told(self):
        # All else is made as the user: what root has made is not theirs.
        for ask in (packages.require, packages.install):
            exc = self.assertRaises(errors.MinicloudError, ask)
            self.assertIn('its-package', str(exc))
            self.assertTrue(
                exc.remedy.endswith(
                    'sudo apt-get install -y --no-install-recommends '
                    'its-package'
                )
            )
