# SPDX-License-Identifier: Apache-2.0
"""Whatever playbooks hold, stacks say of servers, and runs are given."""

import json

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from tests.unit.bad_input import anything
from tests.unit.bad_input import test_plans

play = anything.map_of(
    hosts=anything.json_value,
    vars=st.one_of(
        anything.map_of(
            metadata=st.one_of(
                anything.map_of(
                    name=anything.json_value,
                    description=anything.json_value,
                    groups=anything.json_value,
                    products=anything.json_value,
                ),
                anything.json_value,
            )
        ),
        anything.json_value,
    ),
)

playbook = test_plans.yaml_of(st.lists(play, max_size=3))


@hypothesis.given(playbook)
def test_a_playbook_is_read_or_refused(text):
    content = text.encode('utf-8', 'surrogatepass')
    try:
        found = catalogue.playbook(content, 'validations/x.yaml')
    except errors.Invalid:
        return
    if found is not None:
        assert found.id == 'x'
        assert all(isinstance(one, str) for one in found.groups)
        assert len(found.name) <= 2000


class Servers:
    """A stack whose output is what a test says."""

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
