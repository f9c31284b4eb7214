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
    graph = {}
    for path in _ROOT.rglob('*.py'):
        parts = path.relative_to(_ROOT.parent).with_suffix('').parts
        graph['.'.join(parts).removesuffix('.__init__')] = {*_imports(path)}
    assert len(graph) > 100
    ours = {name: imports & graph.keys() for name, imports in graph.items()}
    graphlib.TopologicalSorter(ours).prepare()
