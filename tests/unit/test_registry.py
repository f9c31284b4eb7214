# SPDX-License-Identifier: Apache-2.0
"""Which resource types the registry loads, and what it says of the others."""

import importlib.metadata
import importlib.util
import logging
import pathlib
from unittest import mock

from oslo_config import cfg
import pytest

from heat_plugins import __main__ as main
from heat_plugins import registry

# Any classes.
Good, Other = int, str
GOOD, OTHER = 'builtins:int', 'builtins:str'
ABSENT = 'heat_plugins_has_no_such_module:Thing'

SET = registry.DEPLOYMENT_TYPES
ONE = 'OS::Heat::StructuredDeployments'
MINE = 'OS::Test::Mine'


@pytest.fixture
def load(monkeypatch, caplog):
    """Load with the six types and others; return classes and warnings."""

    def run(*others, without=(), disabled=()):
        offered = [(name, GOOD) for name in SET if name not in without]
        monkeypatch.setattr(
            importlib.metadata,
            'entry_points',
            lambda group: [
                importlib.metadata.EntryPoint(name, value, group)
                for name, value in (*offered, *others)
            ],
        )
        conf = cfg.ConfigOpts()
        conf([], project='heat', default_config_files=[])
        registry.load(conf)  # registers the options
        conf.set_override(
            'disabled_resource_types', list(disabled), 'heat_plugins'
        )
        caplog.clear()
        with caplog.at_level(logging.WARNING):
            classes = registry.load(conf)
        return classes, [record.getMessage() for record in caplog.records]

    return run


def test_every_type_that_loads_is_returned_without_a_word(load, monkeypatch):
    # An entry point may be found twice.
    classes, warnings = load((MINE, OTHER), (MINE, OTHER))
    assert classes == {**dict.fromkeys(SET, Good), MINE: Other}
    assert warnings == []
    # A Heat that is too old keeps its types.
    monkeypatch.setattr(registry, 'release', lambda: 22)
    classes, warnings = load((MINE, OTHER))
    assert classes == {}
    assert len(warnings) == 2
    for warning in warnings:
        assert 'needs Heat 24 (2025.1) or later, and' in warning


@pytest.mark.parametrize(
    ('others', 'disabled', 'said'),
    [
        ([(MINE, ABSENT)], (), 'ModuleNotFoundError'),
        ([(MINE, 'broken_colour:Thing')], (), 'ValueError: none'),
        ([(MINE, OTHER), (MINE, GOOD)], (), f'{GOOD} and {OTHER}'),
        # It is not even imported.
        ([(MINE, ABSENT)], (MINE,), 'disabled_resource_types'),
    ],
)
def test_a_type_that_cannot_load_is_left_out_alone(
    load, tmp_path, monkeypatch, others, disabled, said
):
    (tmp_path / 'broken_colour.py').write_text('raise ValueError("none")\n')
    monkeypatch.syspath_prepend(tmp_path)
    classes, (warning,) = load(*others, disabled=disabled)
    assert classes == dict.fromkeys(SET, Good)
    assert MINE in warning
    assert said in warning
    assert not disabled or 'ModuleNotFound' not in warning


@pytest.mark.parametrize(
    ('more', 'without', 'disabled', 'said'),
    [
        ([(ONE, ABSENT)], (ONE,), (), ABSENT),
        ([], (ONE,), (), f'offers {ONE}'),
        ([], (), (ONE,), f'disabled_resource_types names {ONE}'),
    ],
)
def test_one_deployment_type_that_fails_takes_the_set_with_it(
    load, more, without, disabled, said
):
    classes, (warning,) = load(
        (MINE, OTHER), *more, without=without, disabled=disabled
    )
    assert classes == {MINE: Other}
    assert said in warning
    for name in SET:
        assert name in warning


def test_an_error_of_the_registry_does_not_get_out(monkeypatch, caplog):
    (path,) = pathlib.Path(main.PLUGIN_DIR).glob('*.py')
    # Heat gives a module in plugin_dirs such a name.
    name = f'heat.engine.plugins.{path.stem}'
    spec = importlib.util.spec_from_file_location(name, path)
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    load = mock.Mock(return_value={'OS::Test::Thing': object})
    monkeypatch.setattr(registry, 'load', load)
    assert loader.resource_mapping() == {'OS::Test::Thing': object}
    load.side_effect = ValueError('no such colour')
    assert loader.resource_mapping() == {}
    assert 'ValueError: no such colour' in caplog.text
