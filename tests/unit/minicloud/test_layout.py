# SPDX-License-Identifier: Apache-2.0
"""Folders, settings, ports and configuration of an instance."""

import pathlib
import stat
import tempfile

from minicloud_lib import catalog
from minicloud_lib import cloud
from minicloud_lib import configuration
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import settings
import testtools


class InstanceTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = layout.Home(pathlib.Path(folder.name))
        self.instance = self.home.instance('one')

    def prepared(self, profile=None):
        found = settings.prepare(self.instance, profile)
        found.save(self.instance)
        configuration.write(self.instance, found)
        return found

    def test_names_cannot_lead_elsewhere(self):
        for name in ('..', 'a/b', '', 'venv', '-x', 'A'):
            self.assertRaises(errors.UsageError, self.home.instance, name)

    def test_ports_and_secrets_are_kept(self):
        first = self.prepared()
        assert settings.prepare(self.instance) == first
        assert self.home.instances() == [self.instance]

    def test_passwords_are_for_the_owner_alone(self):
        self.prepared()
        for path in (
            self.instance.settings,
            *self.instance.conf.iterdir(),
        ):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        mode = self.instance.path.stat().st_mode
        assert stat.S_IMODE(mode) == 0o700

    def test_what_is_not_asked_for_is_not_in_the_catalog(self):
        found = self.prepared()
        assert 'heat' in found.offered
        for absent in ('ironic', 'glance', 'nova', 'placement', 'dashboard'):
            assert absent not in found.offered
        found.extras = ['compute']
        assert 'placement' in found.offered
        assert 'ironic' not in found.offered
        found.extras = ['baremetal', 'compute', 'dashboard']
        found.save(self.instance)
        again = settings.prepare(self.instance)
        assert again.offered == again.ports

    def test_the_form_of_the_gateway_restarts_the_gateway_alone(self):
        found = self.prepared('rgw')
        services = catalog.services('rgw')

        def versions():
            return {
                name: configuration.version(self.instance, service)
                for name, service in services.items()
                if name != 'ironic'
            }

        before = versions()
        found.rgw_url, found.implicit_tenants = 'default', True
        configuration.write(self.instance, found)
        after = versions()
        changed = {name for name in before if before[name] != after[name]}
        assert changed == {'radosgw'}
        found.save(self.instance)
        again = settings.prepare(self.instance)
        assert again.object_store_path == '/swift/v1'
        assert again.implicit_tenants

    def test_options_of_the_gateway_need_the_gateway(self):
        for options in ({'rgw_url': 'default'}, {'implicit_tenants': False}):
            exc = self.assertRaises(
                errors.UsageError, cloud.up, self.instance, **options
            )
            assert '--store rgw' in exc.remedy


class FilesTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name, 'a/file')

    def test_write_leaves_nothing_else_behind(self):
        files.write_json(self.file, [1])
        files.write_json(self.file, [2])
        assert files.read_json(self.file) == [2]
        assert list(self.file.parent.iterdir()) == [self.file]
