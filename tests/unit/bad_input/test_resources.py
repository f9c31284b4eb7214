# SPDX-License-Identifier: Apache-2.0
"""Whatever a template gives our resource types for a property."""

from importlib import metadata
import traceback
from unittest import mock

from heat.common import exception
from heat.engine import environment
from heat.engine import stack as heat_stack
from heat.engine import template as heat_template
import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import registry
from heat_plugins.clients import heat_mistral
from tests.unit import heat_fixture
from tests.unit.bad_input import anything
from tests.unit.mistral import test_definitions
from tests.unit.resources import fake_mistral

TYPES = {
    entry.name: entry.load()
    for entry in metadata.entry_points(group=registry.ENTRY_POINT_GROUP)
}

#: Properties that a type needs before it reads the others.
NEEDED = {
    'OS::Mistral::Action': {'base': 'std.echo'},
    'OS::Mistral::CronTrigger': {
        'pattern': '* * * * *',
        'workflow': {'name': 'w'},
    },
    'OS::Mistral::Workflow': {
        'type': 'direct',
        'tasks': [{'name': 'one', 'action': 'std.noop'}],
    },
    'OS::Heat::SoftwareComponent': {
        'configs': [{'actions': ['CREATE'], 'tool': 'script', 'config': ''}]
    },
}

config = anything.map_of(
    actions=st.lists(anything.spelled('CREATE', 'BACKUP')),
    tool=anything.spelled('script', 'ansible', 'puppet', 'salt'),
    config=anything.json_value,
)

#: Values of properties, and items of lists.
value = st.one_of(
    anything.json_value,
    anything.json_map,
    anything.plain_text,
    st.integers(),
    st.lists(anything.plain_text, max_size=3),
    st.lists(config, min_size=1, max_size=3),
    anything.spelled('script', '@hourly', '0 0 31 2 *', '* * * * * 2199'),
    test_definitions.definition,
)


@pytest.fixture(scope='module')
def heat():
    found = heat_fixture.Heat(TYPES)
    found.setup()
    found.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'
    plugin, made = heat_mistral.MistralClientPlugin, fake_mistral.Mistral()
    with mock.patch.object(plugin, '_create', return_value=made):
        yield found
    found.cleanup()


@pytest.mark.parametrize('kind', sorted(TYPES))
@hypothesis.given(data=st.data())
def test_properties_are_taken_or_refused_as_heat_does(heat, kind, data):
    names = st.sampled_from(sorted(TYPES[kind].properties_schema))
    odd = st.dictionaries(names | anything.odd_text, value, max_size=2)
    given = NEEDED.get(kind, {}) | data.draw(odd)
    template = {
        'heat_template_version': '2021-04-16',
        'resources': {'one': {'type': kind, 'properties': given}},
    }
    env = environment.Environment({})
    made = heat_template.Template(template, env=env)
    stack = heat_stack.Stack(heat.context, 'stack', made)
    try:
        stack.validate()
    except exception.HeatException:
        return
    except Exception as exc:
        # What Heat itself stumbles over is its own.
        frames = traceback.extract_tb(exc.__traceback__)
        if any('/heat_plugins/' in each.filename for each in frames):
            raise
