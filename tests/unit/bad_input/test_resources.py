# SPDX-License-Identifier: Apache-2.0
"""Whatever a template gives our resource types for properties."""

import functools
from importlib import metadata
import traceback
from unittest import mock

from heat.common import exception
from heat.engine import environment
from heat.engine import properties
from heat.engine import stack as heat_stack
from heat.engine import template as heat_template
import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import registry
from heat_plugins.clients import heat_mistral
from heat_plugins.resources.workflows import workflow_schema
from tests.unit import heat_fixture
from tests.unit.bad_input import anything
from tests.unit.mistral import test_definitions
from tests.unit.resources import fake_mistral

#: The values that are more than their schema says.
SPECIAL = {
    'definition': test_definitions.definition,
    'pattern': st.one_of(
        anything.odd_text,
        st.sampled_from(
            ['@hourly', '@reboot', '0 0 31 2 *', '* * * * * 2199']
        ),
    ),
    'workflow': st.one_of(
        anything.odd_text,
        anything.map_of(
            name=anything.scalar,
            input=anything.json_value,
            params=anything.json_value,
        ),
    ),
    'configs': st.lists(
        anything.map_of(
            actions=st.lists(anything.spelled('CREATE', 'BACKUP')),
            tool=anything.spelled('script', 'ansible', 'puppet', 'salt'),
            config=anything.json_value,
        ),
        min_size=1,
        max_size=3,
    ),
    'tool': anything.spelled('script', 'ansible', 'puppet', 'salt'),
    'group': anything.spelled('script', 'ansible', 'puppet', 'component'),
}

_S = properties.Schema


def right_for(name, schema):
    """Return values of a property that are of its type."""
    allowed = [
        value
        for constraint in schema.constraints
        for value in getattr(constraint, 'allowed', ())
    ]
    lowest = [getattr(one, 'min', None) for one in schema.constraints]
    if name in SPECIAL and (name != 'workflow' or schema.type == _S.ANY):
        return SPECIAL[name]
    if allowed:
        return st.sampled_from(allowed)
    if schema.type == _S.INTEGER:
        return st.integers(min_value=max(lowest, default=None))
    if schema.type == _S.MAP and schema.schema:
        return properties_of(schema.schema)
    if schema.type == _S.LIST and schema.schema:
        return st.lists(right_for(name, schema.schema[0]), max_size=3)
    return {
        _S.STRING: anything.plain_text,
        _S.NUMBER: st.floats(allow_nan=False, allow_infinity=False),
        _S.BOOLEAN: st.booleans(),
        _S.LIST: st.lists(anything.json_value, max_size=3),
        _S.MAP: anything.json_map,
    }.get(schema.type, anything.json_value)


def sensible(kind, given):
    """Return properties without those that cannot go together."""
    if kind == 'OS::Mistral::CronTrigger':
        return {'pattern': '* * * * *', **given}
    if kind == 'OS::Mistral::Action' and 'definition' in given:
        names = ('name', 'definition', 'scope')
        return {name: given[name] for name in names if name in given}
    if kind == 'OS::Mistral::Action':
        return {'base': 'std.echo', **given}
    if kind == 'OS::Mistral::Workflow' and 'definition' in given:
        return {
            name: value
            for name, value in given.items()
            if name not in workflow_schema.STRUCTURE
        }
    if kind == 'OS::Mistral::Workflow':
        task = {'name': 'one', 'action': 'std.noop'}
        return {'type': 'direct', 'tasks': [task], **given}
    return given


def properties_of(schemas):
    """Return maps of properties; one of those may be anything."""
    right, optional = {}, {}
    for name, schema in sorted(dict(schemas).items()):
        into = right if schema.required else optional
        into[name] = right_for(name, schema)
    found = st.fixed_dictionaries(right, optional=optional)
    wrong = st.dictionaries(
        st.one_of(st.sampled_from([*right, *optional]), anything.odd_text),
        anything.json_value,
        max_size=1,
    )
    return st.one_of(
        found,
        found,
        found,
        st.builds(lambda one, two: one | two, found, wrong),
    )


TYPES = {
    entry.name: entry.load()
    for entry in metadata.entry_points(group=registry.ENTRY_POINT_GROUP)
}


@functools.cache
def properties_for(kind):
    """Return the properties of a type; to prepare these takes a while."""
    return properties_of(properties.schemata(TYPES[kind].properties_schema))


@pytest.fixture(scope='module')
def heat():
    found = heat_fixture.Heat(TYPES)
    found.setup()
    found.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'
    with mock.patch.object(
        heat_mistral.MistralClientPlugin,
        '_create',
        return_value=fake_mistral.Mistral(),
    ):
        yield found
    found.cleanup()


@pytest.mark.parametrize('kind', sorted(TYPES))
@hypothesis.given(data=st.data())
def test_properties_are_taken_or_refused_as_heat_does(heat, kind, data):
    given = data.draw(properties_for(kind))
    if data.draw(st.booleans()):
        given = sensible(kind, given)
    template = {
        'heat_template_version': '2021-04-16',
        'resources': {'one': {'type': kind, 'properties': given}},
    }
    stack = heat_stack.Stack(
        heat.context,
        'stack',
        heat_template.Template(template, env=environment.Environment({})),
    )
    assert unexpected(stack.validate) is None


def unexpected(call):
    """Return what our code raises that is none of Heat's exceptions."""
    try:
        call()
    except exception.HeatException:
        return None
    except Exception as exc:
        frames = traceback.extract_tb(exc.__traceback__)
        ours = [one for one in frames if '/heat_plugins/' in one.filename]
        # What Heat itself stumbles over is its own.
        return (exc, ours[-1]) if ours else None
    return None
