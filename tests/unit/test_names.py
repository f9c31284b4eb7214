# SPDX-License-Identifier: Apache-2.0
"""What a module takes from another one is there, typed or not."""

import ast
import importlib
import pathlib

import pytest

import heat_plugins

ROOT = pathlib.Path(heat_plugins.__file__).parent
MODULES = sorted(
    path
    for path in ROOT.rglob('*.py')
    # Loaded by Heat, by its path.
    if 'plugin_dir' not in path.parts
)


def taken(nodes):
    """Return (alias, module) of our modules that a module imports."""
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            'heat_plugins'
        ):
            for one in node.names:
                yield one.asname or one.name, f'{node.module}.{one.name}'


@pytest.mark.parametrize(
    'path', MODULES, ids=lambda path: str(path.relative_to(ROOT))
)
def test_each_name_that_it_takes_exists(path):
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {}
    for alias, name in taken(nodes):
        try:
            modules[alias] = importlib.import_module(name)
        except ModuleNotFoundError as exc:
            # A name out of a module, and no module itself.
            if exc.name != name:
                raise
    bound = {
        node.id
        for node in nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    } | {node.arg for node in nodes if isinstance(node, ast.arg)}
    lost = [
        f'{node.value.id}.{node.attr}, line {node.lineno}'
        for node in nodes
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id in modules.keys() - bound
        and not hasattr(modules[node.value.id], node.attr)
    ]
    assert not lost
