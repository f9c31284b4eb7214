# SPDX-License-Identifier: Apache-2.0
"""Whatever files of a plan hold, its names are, and its stack says."""

import functools
import json

import hypothesis
from hypothesis import strategies as st
import yaml

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.validations import inventory
from tests.unit.bad_input import anything


def yaml_of(value):
    how = {'allow_unicode': True, 'sort_keys': False}
    return st.one_of(
        value.map(functools.partial(yaml.safe_dump, **how)),
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
    environments=st.lists(
        anything.map_of(path=path, data=anything.json_value), max_size=4
    )
    | anything.json_value,
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


class Servers:
    def __init__(self, said):
        self._said = said

    def output(self, stack, name):
        return self._said


host = st.one_of(
    anything.map_of(address=anything.json_value, groups=anything.json_value),
    st.just('10.0.0.1'),
    anything.json_value,
)


@hypothesis.given(
    st.one_of(
        st.dictionaries(anything.odd_text, host, max_size=3),
        anything.json_value.filter(lambda value: value is not None),
    )
)
@hypothesis.example({'a': {'address': '10.0.0.1', 'groups': ['{{ x }}']}})
@hypothesis.example({'a': {'address': 'fe80::1%{{ x }}'}})
def test_nothing_that_ansible_would_run_comes_from_a_stack(said):
    try:
        found = inventory.hosts(Servers(said), 'stack')
    except errors.Invalid:
        return
    text = json.dumps(inventory.write(found, inventory.Login()))
    for mark in ('{{', '{%', '{#'):
        assert mark not in text
