# SPDX-License-Identifier: Apache-2.0
"""heat-engine finds our classes, and starts whatever is wrong with them."""

import contextlib
import functools
import importlib.metadata
import shutil

import pytest

from heat_plugins import registry
from tests.unit import environments

OURS = {
    entry_point.name: entry_point.value
    for entry_point in importlib.metadata.entry_points(
        group=registry.ENTRY_POINT_GROUP
    )
}


class Host:
    """A host of heat-engine; to make one takes seconds, as an engine does."""

    def __init__(self, folder):
        self.environment = environments.Environment(folder)
        self.default_dir = self.environment.prefix / 'lib' / 'heat'
        self.engine = functools.cache(self.environment.start_engine)

    def by_default(self, *lines):
        """Start an engine with Heat's own directories.

        Heat has no option for its prefix: so the default, with another one,
        is written out here.
        """
        dirs = f'plugin_dirs = /usr/lib/heat,{self.default_dir}'
        return self.engine(dirs, *lines)


@pytest.fixture(scope='module')
def installed(tmp_path_factory):
    host = Host(tmp_path_factory.mktemp('installed'))
    host.environment.install()
    with contextlib.closing(host.environment):
        yield host


def ours(engine):
    """Return the types that our classes serve, with the classes."""
    return {
        name: cls
        for name, cls in engine['classes'].items()
        if cls.startswith('heat_plugins.')
    }


def warnings(engine):
    """Return what our own modules warn about."""
    return [
        message
        for logger, message in engine['warnings']
        if 'heat_plugins' in logger
    ]


def test_the_printed_line_replaces_each_type_of_heat(installed):
    heat_conf = installed.environment.prefix / 'operator.conf'
    heat_conf.write_text('[DEFAULT]\nplugin_dirs = /srv/heat\n')
    line = installed.environment.plugin_dirs_line(heat_conf)
    assert line.startswith('plugin_dirs = /srv/heat,'), line
    engine = installed.engine(line)
    assert (ours(engine), warnings(engine)) == (OURS, [])
    assert 'heat_plugins_swift' in engine['clients']
    assert 'heat_plugins_mistral' in engine['clients']


def test_a_directory_that_heat_searches_by_default_is_enough(installed):
    engine = installed.by_default()
    assert (ours(engine), warnings(engine)) == (OURS, [])
    # It scans for dead engines where an engine starts.
    loaded, child, parent, started = engine['looking']
    assert (loaded, child, parent, started) == (0, 1, 0, 1)


def test_a_disabled_type_and_the_scans_are_heats_own(installed):
    engine = installed.by_default(
        '[heat_plugins]',
        'disabled_resource_types = OS::Heat::StructuredDeployments',
    )
    assert engine['looking'] == [0] * 4
    assert ours(engine).keys() == OURS.keys() - registry.DEPLOYMENT_TYPES
    (warning,) = warnings(engine)
    assert 'disabled_resource_types' in warning


def test_a_missing_library_of_a_client_takes_that_client_alone(installed):
    package = installed.environment.site_packages / 'heat_plugins'
    client = package / 'clients/heat_swift.py'
    client.write_text('import a_library_that_is_not_there\n')
    # The environment is that of all tests here.
    with contextlib.ExitStack() as stack:
        whole = environments.CHECKOUT / 'heat_plugins/clients/heat_swift.py'
        stack.callback(shutil.copy, whole, client)
        engine = installed.environment.start_engine('plugin_dirs = /srv/heat')
    assert 'heat_plugins_swift' not in engine['clients']
    assert {'heat_plugins_mistral', 'swift'} <= {*engine['clients']}


def test_the_loader_alone_costs_one_warning(tmp_path):
    host = Host(tmp_path)
    host.default_dir.mkdir(parents=True)
    loader = 'heat_plugins/plugin_dir/heat_plugins_loader.py'
    shutil.copy(environments.CHECKOUT / loader, host.default_dir)
    with contextlib.closing(host.environment):
        engine = host.by_default()
    assert ours(engine) == {}
    (warning,) = warnings(engine)
    assert "No module named 'heat_plugins'" in warning
