# SPDX-License-Identifier: Apache-2.0
"""Whatever stacks say of servers, Ansible only reads."""

import json

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.validations import inventory
from tests.unit.bad_input import anything


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
