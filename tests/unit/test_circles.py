# SPDX-License-Identifier: Apache-2.0
"""No module needs another one that needs it, not even for its types."""

import ast
import graphlib
import pathlib
import unittest

import heat_plugins

_ROOT = pathlib.Path(heat_plugins.__file__).parent


def _name(path: pathlib.Path) -> str:
    parts = path.relative_to(_ROOT.parent).with_suffix('').parts
    return '.'.join(parts).removesuffix('.__init__')


def _imports(tree: ast.AST) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(str(node.module))
            names |= {f'{node.module}.{each.name}' for each in node.names}
    return names


class CircleTest(unittest.TestCase):
    def test_no_imports_form_a_circle(self):
        found = {
            _name(path): _imports(ast.parse(path.read_text()))
            for path in _ROOT.rglob('*.py')
        }
        graph = {name: names & found.keys() for name, names in found.items()}
        assert len(graph) > 100
        try:
            graphlib.TopologicalSorter(graph).prepare()
        except graphlib.CycleError as exc:
            self.fail(' -> '.join(exc.args[1]))
