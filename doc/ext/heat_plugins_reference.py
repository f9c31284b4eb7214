# SPDX-License-Identifier: Apache-2.0
"""Sphinx directives that write the reference from the code.

``.. resource-types::`` describes each resource type, ``.. mistral-actions::``
each action, ``.. mistral-workflows::`` each workflow that Mistral
preinstalls, and ``.. metrics::`` each metric. What a type's
section shows as an example is a resource of the templates in
``contrib/examples``, which tests run.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
import inspect
import pathlib
import re
import textwrap
from typing import Any

from docutils import nodes
from sphinx import application
from sphinx.util import docutils
from sphinx.util import rst
import yaml

from heat_plugins import metrics

EXAMPLES = pathlib.Path(__file__).parents[2] / 'contrib/examples'


class _Section(docutils.SphinxDirective):
    """A directive whose content is text that it makes."""

    def run(self) -> list[nodes.Node]:
        text = '\n'.join(self.lines())
        return self.parse_text_to_nodes(text, allow_section_headings=True)

    def lines(self) -> Iterator[str]:
        raise NotImplementedError


class ResourceTypes(_Section):
    def lines(self) -> Iterator[str]:
        for name, kind in _loaded('heat_plugins.resources'):
            yield from _heading(name, '-')
            yield inspect.getdoc(kind) or ''
            yield from _example(name)
            yield from _table(
                'Properties',
                '18 10 14 58',
                ('Name', 'Type', 'When it changes', 'What it is'),
                map(_property, *_pairs(kind.properties_schema)),
            )
            yield from _table(
                'Attributes',
                '18 10 72',
                ('Name', 'Type', 'What it is'),
                map(_attribute, *_pairs(kind.attributes_schema)),
            )


class MistralActions(_Section):
    def lines(self) -> Iterator[str]:
        for name, kind in _loaded('mistral.actions'):
            yield from _heading(name, '-')
            inputs = inspect.signature(kind).parameters.values()
            shown = ', '.join(
                one.name
                if one.default is one.empty
                else f'{one.name}={one.default!r}'
                for one in inputs
                if one.kind is not one.VAR_KEYWORD
            )
            yield f'Input: ``{shown}``' if shown else 'It takes no input.'
            yield ''
            yield from _fields(inspect.getdoc(kind) or '')


class MistralWorkflows(_Section):
    def lines(self) -> Iterator[str]:
        (entry,) = metadata.entry_points(
            group='mistral.preinstalled_workflows', name='heat_plugins'
        )
        for path in sorted(entry.load()()):
            definition = yaml.safe_load(pathlib.Path(path).read_text())
            definition.pop('version')
            for name, workflow in definition.items():
                yield from _heading(name, '-')
                yield rst.escape(workflow.get('description', ''))
                yield ''
                inputs = ', '.join(map(_input, workflow.get('input', ())))
                yield f'Input: ``{inputs}``'
                yield ''
                outputs = ', '.join(workflow.get('output', ()))
                yield f'Output: ``{outputs}``' if outputs else ''
                yield ''


class Metrics(_Section):
    def lines(self) -> Iterator[str]:
        return _table(
            'Metrics',
            '40 12 18 30',
            ('Name', 'Kind', 'Label and its values', 'What it is'),
            map(_metric, metrics.TABLE),
        )


def _metric(metric: metrics.Metric) -> tuple[str, ...]:
    values = ', '.join(f'``{value}``' for value in metric.values)
    label = f'``{metric.label}``: {values}' if metric.label else 'none'
    return f'``{metric.name}``', metric.kind.value, label, metric.help


def setup(app: application.Sphinx) -> dict[str, Any]:
    app.add_directive('resource-types', ResourceTypes)
    app.add_directive('mistral-actions', MistralActions)
    app.add_directive('mistral-workflows', MistralWorkflows)
    app.add_directive('metrics', Metrics)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


def _loaded(group: str) -> list[tuple[str, Any]]:
    """Return what this distribution offers in a group, by name.

    Heat's and Mistral's own entry points are in some of them, too.
    """
    found = metadata.entry_points(group=group)
    ours = (one for one in found if one.value.startswith('heat_plugins.'))
    return [(one.name, one.load()) for one in sorted(ours)]


def _heading(name: str, line: str) -> Iterator[str]:
    yield from ('', name, line * len(name), '')


def _pairs(schema: Mapping[str, Any]) -> tuple[list[str], list[Any]]:
    names = sorted(schema)
    return names, [schema[name] for name in names]


def _property(name: str, schema: Any) -> tuple[str, ...]:
    change = 'in place' if schema.update_allowed else 'replaces the resource'
    said = [_sentence(schema.description)]
    if schema.required:
        said.append('Required.')
    if schema.default is not None:
        said.append(f'Default: ``{_value(schema.default)}``.')
    said += [_sentence(str(one)) for one in _constraints(schema)]
    if schema.support_status.status not in ('SUPPORTED', 'UNSUPPORTED'):
        status = schema.support_status
        said.append(f'{status.status.capitalize()}: {status.message}')
    nested = schema.schema or {}
    # Of a list there is one schema, under the name *.
    if set(nested) == {'*'}:
        nested = nested['*'].schema or {}
    said += [
        f'\n\n``{key}``: {_sentence(inner.description)}'
        for key, inner in nested.items()
    ]
    return f'``{name}``', schema.type.lower(), change, ' '.join(said)


def _attribute(name: str, schema: Any) -> tuple[str, ...]:
    kind = (schema.type or 'any').lower()
    return f'``{name}``', kind, _sentence(schema.description)


def _constraints(schema: Any) -> Iterator[str]:
    for one in schema.constraints:
        allowed = getattr(one, 'allowed', None)
        if allowed is not None:
            yield 'One of ' + ', '.join(map(str, allowed))
        elif getattr(one, 'description', None):
            yield str(one.description)


def _sentence(text: Any) -> str:
    # In many of Heat's own descriptions the end is forgotten.
    said = rst.escape(' '.join(str(text or '').split()))
    return said if said.endswith(('.', '!')) or not said else f'{said}.'


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _input(given: Any) -> str:
    if isinstance(given, str):
        return given
    ((name, default),) = given.items()
    return f'{name}={default!r}'


def _table(
    title: str,
    widths: str,
    heads: tuple[str, ...],
    rows: Iterable[tuple[str, ...]],
) -> Iterator[str]:
    found = list(rows)
    if not found:
        return
    yield from ('', f'.. rubric:: {title}', '', '.. list-table::')
    yield from ('   :header-rows: 1', f'   :widths: {widths}', '')
    for row in (heads, *found):
        for number, cell in enumerate(row):
            begin = '   * - ' if number == 0 else '     - '
            yield begin + textwrap.indent(cell, ' ' * 7).lstrip()
    yield ''


def _fields(doc: str) -> Iterator[str]:
    """Return a docstring, its parameters as a list."""
    text, *fields = re.split(r'^:(?=param|returns)', doc, flags=re.MULTILINE)
    yield text
    for field in fields:
        head, _, said = field.partition(':')
        name = head.removeprefix('param ').strip()
        shown = 'Returns' if name == 'returns' else f'``{name}``'
        yield from ('', shown, textwrap.indent(textwrap.dedent(said), '   '))
    yield ''


def _example(kind: str) -> Iterator[str]:
    """Return the first resource of a type that the examples have."""
    for path in sorted(EXAMPLES.rglob('*.yaml')):
        text = path.read_text()
        found = re.search(
            rf'^  (\w+):\n    type: {re.escape(kind)}\n(?:(?:    .*)?\n)*',
            text,
            re.MULTILINE,
        )
        if found:
            shown = textwrap.indent(found[0].rstrip(), '   ')
            name = path.relative_to(EXAMPLES)
            yield from ('', f'From ``contrib/examples/{name}``:', '')
            yield from ('.. code-block:: yaml', '', shown, '')
            return
