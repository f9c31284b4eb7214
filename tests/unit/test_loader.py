# SPDX-License-Identifier: Apache-2.0
"""The one module in the plugin directory."""

import importlib.util
import pathlib
from unittest import mock

import pytest

from heat_plugins import __main__ as main
from heat_plugins import registry


@pytest.fixture
def loader():
    (path,) = pathlib.Path(main.PLUGIN_DIR).glob('*.py')
    # Heat gives a module in plugin_dirs such a name.
    name = f'heat.engine.plugins.{path.stem}'
    spec = importlib.util.spec_from_file_location(name, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_an_error_of_the_registry_does_not_get_out(
    loader, monkeypatch, caplog
):
    load = mock.Mock(return_value={'OS::Test::Thing': object})
    monkeypatch.setattr(registry, 'load', load)
    assert loader.resource_mapping() == {'OS::Test::Thing': object}
    load.side_effect = ValueError('no such colour')
    assert loader.resource_mapping() == {}
    assert 'ValueError: no such colour' in caplog.text
