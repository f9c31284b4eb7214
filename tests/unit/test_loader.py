# SPDX-License-Identifier: Apache-2.0
"""The one module in the plugin directory."""

import importlib.util
import pathlib

import testtools

from heat_plugins import __main__ as main
from heat_plugins import registry


class LoaderTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        (self.path,) = pathlib.Path(main.PLUGIN_DIR).glob('*.py')
        # Heat gives a module in plugin_dirs such a name.
        name = f'heat.engine.plugins.{self.path.stem}'
        spec = importlib.util.spec_from_file_location(name, self.path)
        self.loader = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.loader)

    def test_it_offers_what_the_registry_loads(self):
        self.patch(registry, 'load', lambda conf: {'OS::Test::Thing': object})
        assert self.loader.resource_mapping() == {'OS::Test::Thing': object}

    def test_an_error_of_the_registry_does_not_get_out(self):
        def fail(conf):
            raise ValueError('no such colour')

        self.patch(registry, 'load', fail)
        with self.assertLogs(self.loader.__name__, 'WARNING') as logs:
            assert self.loader.resource_mapping() == {}
        (record,) = logs.records
        assert 'ValueError: no such colour' in record.getMessage()
