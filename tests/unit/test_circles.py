# SPDX-License-Identifier: Apache-2.0
"""No module needs another one that needs it, not even for its types."""

import ast
import graphlib
import pathlib

import heat_plugins

_ROOT = pathlib.Path(heat_plugins.__file__).parent


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)
            yield from (f'{node.module}.{each.name}' for each in node.names)


def test_no_imports_form_a_circle():
    paths = {
        '.'.join(path.relative_to(_ROOT.parent).with_suffix('').parts): path
        for path in _ROOT.rglob('*.py')
    }
    graph = {
        name.removesuffix('.__init__'): set(_imports(path))
        for name, path in paths.items()
    }
    assert len(graph) > 100
    graphlib.TopologicalSorter(
        {name: imports & graph.keys() for name, imports in graph.items()}
    ).prepare()
