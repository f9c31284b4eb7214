# SPDX-License-Identifier: Apache-2.0
"""Whatever the files of a plan hold, and whatever names it is given."""

import json

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from tests.unit.bad_input import anything

PATH = 'plan-environment.yaml'


def yaml_of(value):
    """Return YAML texts of values, and others."""
    return st.one_of(
        value.map(anything.dumped),
        value.map(json.dumps),
        anything.odd_text,
        st.sampled_from(anything.YAML),
        st.builds(
            '{}: {}'.format,
            st.sampled_from(['template', 'name', 'environments', 'version']),
            st.sampled_from(anything.YAML),
        ),
    )


path = anything.spelled(
    'shop.yaml', 'a/b.yaml', '/etc/passwd', '../x', 'http://x/y', 'a' * 2000
)

plan_environment = anything.map_of(
    version=anything.scalar,
    name=anything.scalar,
    description=anything.scalar,
    template=st.one_of(path, anything.json_value),
    environments=st.one_of(
        st.lists(
            anything.map_of(path=path, data=anything.json_value), max_size=4
        ),
        anything.json_value,
    ),
    parameter_defaults=anything.json_value,
    passwords=anything.json_value,
    derived_parameters=anything.json_value,
    resource_registry=anything.json_value,
)


@hypothesis.given(yaml_of(plan_environment))
@hypothesis.example('a: !!bool x')
@hypothesis.example('a: !!int ""')
@hypothesis.example('? [a]\n: b')
@hypothesis.example('name: 0x' + 'f' * 5000)
def test_a_plans_environment_is_read_or_refused(text):
    try:
        found = environments.PlanEnvironment.from_text(text, 'shop.yaml')
    except errors.Invalid:
        return
    again = environments.PlanEnvironment.from_text(found.to_text())
    assert again.enabled == found.enabled
    assert again.template == found.template


@hypothesis.given(st.one_of(path, anything.json_value))
def test_a_path_is_within_the_plan_or_refused(value):
    try:
        found = texts.path(value, 'file')
    except errors.Invalid:
        return
    assert not found.startswith(('/', '..'))
    assert texts.path(found, 'file') == found
    assert found.encode()
