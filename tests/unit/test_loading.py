# SPDX-License-Identifier: Apache-2.0
"""heat-engine finds our classes, and starts whatever is wrong with them."""

import functools
import importlib.metadata
import shutil
import tempfile

import testtools

from heat_plugins import registry
from tests.unit import environments

OURS = {
    entry_point.name: entry_point.value
    for entry_point in importlib.metadata.entry_points(
        group=registry.ENTRY_POINT_GROUP
    )
}


class LoadingTest(testtools.TestCase):
    """One environment for each class of tests: making it takes seconds."""

    installed = True

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        folder = tempfile.TemporaryDirectory(prefix='heat-plugins-')
        cls.addClassCleanup(folder.cleanup)
        cls.environment = environments.Environment(folder.name)
        if cls.installed:
            cls.environment.install()
        cls.addClassCleanup(cls.environment.close)
        cls.default_dir = cls.environment.prefix / 'lib' / 'heat'
        # An engine takes seconds, too; tests may look at the same one.
        cls.engine = staticmethod(
            functools.cache(cls.environment.start_engine)
        )

    def assert_ours(self, names, engine):
        """Check that these types are ours, and no others."""
        ours = {
            name: cls
            for name, cls in engine['classes'].items()
            if cls.startswith('heat_plugins.')
        }
        assert ours == {name: OURS[name] for name in names}

    def warnings(self, engine):
        """Return what our own modules warn about."""
        return [
            message
            for logger, message in engine['warnings']
            if 'heat_plugins' in logger
        ]


class InstalledTest(LoadingTest):
    def test_the_printed_line_replaces_each_type_of_heat(self):
        heat_conf = self.environment.prefix / 'operator.conf'
        heat_conf.write_text('[DEFAULT]\nplugin_dirs = /srv/heat\n')
        line = self.environment.plugin_dirs_line(heat_conf)
        assert line.startswith('plugin_dirs = /srv/heat,'), line
        engine = self.engine(line)
        self.assert_ours(OURS, engine)
        assert self.warnings(engine) == []
        assert 'heat_plugins_swift' in engine['clients']
        assert 'heat_plugins_mistral' in engine['clients']

    def test_a_directory_that_heat_searches_by_default_is_enough(self):
        # Heat has no option for its prefix: so the default, with another
        # one, is written out here.
        engine = self.engine(f'plugin_dirs = /usr/lib/heat,{self.default_dir}')
        self.assert_ours(OURS, engine)
        assert self.warnings(engine) == []

    def test_it_looks_for_dead_engines_where_an_engine_starts(self):
        engine = self.engine(f'plugin_dirs = /usr/lib/heat,{self.default_dir}')
        loaded, child, parent, started = engine['looking']
        assert (loaded, child, parent, started) == (0, 1, 0, 1)

    def test_a_disabled_type_and_the_looking_are_heats_own(self):
        engine = self.engine(
            f'plugin_dirs = {self.default_dir}',
            '[heat_plugins]',
            'disabled_resource_types = OS::Heat::StructuredDeployments',
        )
        assert engine['looking'] == [0] * 4
        self.assert_ours(OURS.keys() - registry.DEPLOYMENT_TYPES, engine)
        (warning,) = self.warnings(engine)
        assert 'disabled_resource_types' in warning

    def break_module(self, name):
        """Let a module of the installed package miss a library."""
        path = self.environment.site_packages / 'heat_plugins' / name
        # The environment is that of all tests of the class.
        self.addCleanup(path.write_text, path.read_text())
        path.write_text('import a_library_that_is_not_there\n')

    def test_a_missing_library_of_a_client_takes_that_client_alone(self):
        self.break_module('clients/heat_swift.py')
        engine = self.environment.start_engine('plugin_dirs = /srv/heat')
        assert 'heat_plugins_swift' not in engine['clients']
        assert 'heat_plugins_mistral' in engine['clients']
        assert 'swift' in engine['clients']


class NotInstalledTest(LoadingTest):
    installed = False

    def test_the_loader_alone_costs_one_warning(self):
        self.default_dir.mkdir(parents=True)
        loader = 'heat_plugins/plugin_dir/heat_plugins_loader.py'
        shutil.copy(environments.CHECKOUT / loader, self.default_dir)
        engine = self.environment.start_engine(
            f'plugin_dirs = {self.default_dir}'
        )
        self.assert_ours([], engine)
        (warning,) = self.warnings(engine)
        assert "No module named 'heat_plugins'" in warning
