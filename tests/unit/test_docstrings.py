# SPDX-License-Identifier: Apache-2.0
"""What a docstring refers to is there."""

import ast
import builtins
import collections
import importlib
import inspect
import pathlib
import re

import pytest

import heat_plugins

ROOT = pathlib.Path(heat_plugins.__file__).parent
MODULES = sorted(
    path
    for path in ROOT.rglob('*.py')
    # Loaded by Heat and by alembic, by their paths.
    if not {'plugin_dir', 'revisions'} & {*path.parts}
)

# `name`, `module.Name` and :class:`~module.Name`, but not ``literal``.
REFERENCE = re.compile(
    r'(?<![`\w])(?::\w+:)?`~?([A-Za-z_][\w.]*\w|\w)(?:\(\))?`(?!`)'
)
LITERAL = re.compile(r'``(heat_plugins\.[\w.]*\w)(?:\(\))?``')
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix('').parts
    return '.'.join(part for part in parts if part != '__init__')


NAMES = collections.defaultdict(list)
for each in MODULES:
    NAMES[module_name(each).rpartition('.')[2]].append(module_name(each))


def docstrings(node, outer=()):
    """Yield (docstring, what encloses it) of a module and all in it."""
    for child in ast.iter_child_nodes(node):
        yield from docstrings(child, (*outer, node))
    if isinstance(node, DOCUMENTED) and (text := ast.get_docstring(node)):
        yield text, (*outer, node)


def bound_in(node):
    """Return the names that a class or a function binds."""
    names = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.arg):
            names.add(inner.arg)
        elif isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            names.add(inner.id)
        elif isinstance(inner, ast.Attribute) and isinstance(
            inner.ctx, ast.Store
        ):
            names.add(inner.attr)
        elif isinstance(inner, DOCUMENTED[1:]):
            names.add(inner.name)
    return names


def has(value, names):
    """Say whether a chain of attributes leads somewhere."""
    for name in names:
        annotated = any(
            name in inspect.get_annotations(cls)
            for cls in getattr(value, '__mro__', ())
        )
        if annotated:
            # The value of a field has no attributes before there is one.
            return True
        if not hasattr(value, name):
            return set_by(value, name)
        value = getattr(value, name)
    return True


def set_by(value, name):
    """Say whether methods of a class set an attribute."""
    return any(
        f'self.{name}'
        in pathlib.Path(
            importlib.import_module(cls.__module__).__file__
        ).read_text()
        for cls in getattr(value, '__mro__', ())
        if cls.__module__.startswith('heat_plugins')
    )


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def resolves(reference, module, enclosing):
    first, *rest = reference.split('.')
    for node in enclosing[1:]:
        if first in bound_in(node):
            return True
        # What the class inherits.
        cls = isinstance(node, ast.ClassDef) and getattr(
            module, node.name, None
        )
        if cls and has(cls, [first, *rest]):
            return True
    for scope in (module, builtins):
        if hasattr(scope, first):
            return has(getattr(scope, first), rest)
    if any(has(importlib.import_module(n), rest) for n in NAMES[first]):
        return True
    for length in range(len(rest) + 1, 0, -1):
        outside = imported('.'.join([first, *rest][:length]))
        if outside is not None:
            return has(outside, [first, *rest][length:])
    return False


@pytest.mark.parametrize(
    'path', MODULES, ids=lambda path: str(path.relative_to(ROOT))
)
def test_each_reference_resolves(path):
    module = importlib.import_module(module_name(path))
    lost = [
        f'`{reference}` in {getattr(enclosing[-1], "name", "the module")}'
        for text, enclosing in docstrings(ast.parse(path.read_text()))
        for reference in (*REFERENCE.findall(text), *LITERAL.findall(text))
        if not resolves(reference, module, enclosing)
    ]
    assert not lost
