# SPDX-License-Identifier: Apache-2.0
"""heat-engine finds our classes, and starts whatever is wrong with them."""

import contextlib
import importlib.metadata

import pytest

from heat_plugins import registry
from tests.unit import environments

PACKAGE = 'heat_plugins'
OURS = {
    each.name: each.value
    for each in importlib.metadata.entry_points(
        group=registry.ENTRY_POINT_GROUP
    )
}


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """A host of heat-engine; to make one takes seconds, as an engine does."""
    made = environments.Environment(tmp_path_factory.mktemp('venv'))
    made.install()
    with contextlib.closing(made):
        yield made


@pytest.fixture
def by_default(environment):
    """Start an engine with Heat's own directories.

    Heat has no option for its prefix: so the default, with another one, is
    written out here.
    """
    dirs = f'plugin_dirs = /usr/lib/heat,{environment.prefix}/lib/heat'
    return lambda *lines: environment.start_engine(dirs, *lines)


@contextlib.contextmanager
def absent(environment, name):
    path = environment.site_packages / 'heat_plugins' / name
    hidden = environment.prefix / 'hidden'
    path.rename(hidden)
    yield
    hidden.rename(path)


def ours(engine):
    classes = engine['classes'].items()
    return {name: cls for name, cls in classes if cls.startswith(PACKAGE)}


def warnings(engine):
    return [said for logger, said in engine['warnings'] if PACKAGE in logger]


def test_the_printed_line_replaces_each_type_of_heat(environment):
    heat_conf = environment.prefix / 'operator.conf'
    heat_conf.write_text('[DEFAULT]\nplugin_dirs = /srv/heat\n')
    line = environment.plugin_dirs_line(heat_conf)
    assert line.startswith('plugin_dirs = /srv/heat,'), line
    engine = environment.start_engine(line)
    assert (ours(engine), warnings(engine)) == (OURS, [])
    assert 'heat_plugins_swift' in engine['clients']
    assert 'heat_plugins_mistral' in engine['clients']


def test_a_directory_that_heat_searches_by_default_is_enough(by_default):
    engine = by_default()
    assert (ours(engine), warnings(engine)) == (OURS, [])
    # It scans for dead engines where an engine starts.
    loaded, child, parent, started = engine['looking']
    assert (loaded, child, parent, started) == (0, 1, 0, 1)


def test_a_disabled_type_and_the_scans_are_heats_own(by_default):
    engine = by_default(
        '[heat_plugins]',
        'disabled_resource_types = OS::Heat::StructuredDeployments',
    )
    assert engine['looking'] == [0] * 4
    assert ours(engine).keys() == OURS.keys() - registry.DEPLOYMENT_TYPES
    (warning,) = warnings(engine)
    assert 'disabled_resource_types' in warning


def test_a_missing_part_costs_a_client_or_a_warning(environment, by_default):
    with absent(environment, 'clients/heat_swift.py'):
        engine = by_default()
    assert 'heat_plugins_swift' not in engine['clients']
    assert {'heat_plugins_mistral', 'swift'} <= {*engine['clients']}
    # The loader alone.
    with absent(environment, ''):
        engine = by_default()
    assert ours(engine) == {}
    (warning,) = warnings(engine)
    assert "No module named 'heat_plugins'" in warning
