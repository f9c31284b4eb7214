# SPDX-License-Identifier: Apache-2.0
"""Which resource types the registry loads, and what it says of the others."""

import importlib.metadata
import pathlib
import sys
import tempfile

from oslo_config import cfg
import testtools

from heat_plugins import registry


class Good:
    """Stands for a resource class."""


class Other:
    """Stands for another one."""


GOOD = f'{__name__}:Good'
OTHER = f'{__name__}:Other'
ABSENT = 'heat_plugins_has_no_such_module:Thing'


class RegistryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        self.conf([], project='heat', default_config_files=[])
        self.entry_points = dict.fromkeys(registry.DEPLOYMENT_TYPES, GOOD)
        self.duplicates = []

    def find(self, *, group):
        return [
            importlib.metadata.EntryPoint(name, value, group)
            for name, value in [*self.entry_points.items(), *self.duplicates]
        ]

    def load(self):
        """Load with these entry points; return classes and warnings."""
        self.patch(importlib.metadata, 'entry_points', self.find)
        with self.assertLogs(registry.__name__) as logs:
            registry.LOG.info('assertLogs wants at least one record')
            classes = registry.load(self.conf)
        return classes, [record.getMessage() for record in logs.records[1:]]

    def test_a_heat_that_is_too_old_keeps_its_types(self):
        self.patch(registry, 'release', lambda: 22)
        self.entry_points['OS::Test::Other'] = OTHER
        classes, warnings = self.load()
        assert classes == {}
        assert len(warnings) == 2
        for warning in warnings:
            assert 'needs Heat 24 (2025.1) or later, and' in warning

    def disable(self, *names):
        self.load()  # registers the options
        self.conf.set_override(
            'disabled_resource_types', list(names), 'heat_plugins'
        )

    def test_every_type_that_loads_is_returned_without_a_word(self):
        self.entry_points['OS::Test::Other'] = OTHER
        classes, warnings = self.load()
        assert {*classes} == {*registry.DEPLOYMENT_TYPES, 'OS::Test::Other'}
        assert classes['OS::Test::Other'] is Other
        assert warnings == []

    def test_a_missing_library_leaves_out_its_type_alone(self):
        self.entry_points['OS::Test::Absent'] = ABSENT
        self.entry_points['OS::Test::Other'] = OTHER
        classes, (warning,) = self.load()
        assert 'OS::Test::Absent' not in classes
        assert classes['OS::Test::Other'] is Other
        assert 'OS::Test::Absent' in warning
        assert 'ModuleNotFoundError' in warning

    def test_one_deployment_type_that_fails_takes_the_set_with_it(self):
        self.entry_points['OS::Heat::StructuredDeployments'] = ABSENT
        self.entry_points['OS::Test::Other'] = OTHER
        classes, (warning,) = self.load()
        assert classes == {'OS::Test::Other': Other}
        for name in registry.DEPLOYMENT_TYPES:
            assert name in warning
        assert ABSENT in warning

    def test_a_deployment_type_that_nobody_offers_takes_the_set_with_it(self):
        del self.entry_points['OS::Heat::SoftwareDeployments']
        classes, (warning,) = self.load()
        assert classes == {}
        assert 'offers OS::Heat::SoftwareDeployments' in warning

    def test_a_disabled_type_is_left_out(self):
        self.entry_points['OS::Test::Other'] = OTHER
        self.disable('OS::Test::Other')
        classes, (warning,) = self.load()
        assert classes.keys() == registry.DEPLOYMENT_TYPES
        assert 'disabled_resource_types' in warning

    def test_one_disabled_deployment_type_takes_the_set_with_it(self):
        self.disable('OS::Heat::SoftwareDeployment')
        classes, (warning,) = self.load()
        assert classes == {}
        assert (
            'disabled_resource_types names OS::Heat::SoftwareDeployment'
            in warning
        )

    def test_a_disabled_type_is_not_even_imported(self):
        self.entry_points['OS::Test::Absent'] = ABSENT
        self.disable('OS::Test::Absent')
        _, (warning,) = self.load()
        assert 'ModuleNotFoundError' not in warning

    def test_an_entry_point_found_twice_counts_once(self):
        self.entry_points['OS::Test::Other'] = OTHER
        self.duplicates = [('OS::Test::Other', OTHER)]
        classes, warnings = self.load()
        assert classes['OS::Test::Other'] is Other
        assert warnings == []

    def test_a_type_with_two_different_classes_is_left_out(self):
        self.entry_points['OS::Test::Other'] = OTHER
        self.duplicates = [('OS::Test::Other', GOOD)]
        classes, (warning,) = self.load()
        assert 'OS::Test::Other' not in classes
        assert f'{GOOD} and {OTHER}' in warning

    def test_any_exception_on_import_leaves_out_its_type(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        module = pathlib.Path(folder.name, 'heat_plugins_test_broken.py')
        module.write_text("raise ValueError('no such colour')\n")
        self.patch(sys, 'path', [folder.name, *sys.path])
        self.entry_points['OS::Test::Broken'] = f'{module.stem}:Thing'
        classes, (warning,) = self.load()
        assert 'OS::Test::Broken' not in classes
        assert 'ValueError: no such colour' in warning
