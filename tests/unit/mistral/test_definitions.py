# SPDX-License-Identifier: Apache-2.0
"""Whatever a template says of workflows, and a signal asks of them."""

import hypothesis
from hypothesis import strategies as st
import pytest
import yaml

from heat_plugins.mistral import definitions
from heat_plugins.mistral import workflow_requests
from tests.unit.bad_input import anything

workflow = anything.map_of(
    input=anything.json_value,
    tasks=st.one_of(
        st.dictionaries(
            anything.spelled('one', 'two'),
            anything.map_of(workflow=anything.json_value),
            max_size=3,
        ),
        anything.json_value,
    ),
)

definition = st.one_of(
    st.dictionaries(
        anything.spelled('one', 'workflows', 'actions', 'version'),
        workflow,
        max_size=3,
    ).map(lambda content: yaml.safe_dump(content, allow_unicode=True)),
    anything.odd_text,
)


@hypothesis.given(
    definition,
    anything.plain_text.filter(bool),
    st.dictionaries(anything.spelled('a', 'b'), anything.json_value),
)
@hypothesis.example('a: !!bool x', 'b', {})
@hypothesis.example('actions: 5', 'b', {})
@hypothesis.example('a: {input: {a: 1}, tasks: [b]}', 'b', {'a': 2})
@hypothesis.example("a: {tasks: {b: {workflow: ''}}}", 'b', {})
def test_a_definition_is_written_under_other_names_or_refused(
    text, prefix, defaults
):
    try:
        workflows = definitions.read(text)
    except definitions.InvalidDefinition:
        return
    names = definitions.workflow_names(workflows, prefix, None)
    written = definitions.write(workflows, names, defaults, list(names))
    assert yaml.safe_load(written).keys() >= set(names.values())


@hypothesis.given(
    st.one_of(
        anything.json_value,
        anything.map_of(
            workflow=anything.json_value,
            input=anything.json_value,
            params=anything.json_value,
            description=anything.scalar,
        ),
    ),
    workflow.filter(lambda value: isinstance(value, dict)),
    st.booleans(),
)
def test_a_signal_runs_a_workflow_or_is_refused(body, spec, is_whole):
    offer = workflow_requests.WorkflowOffer(
        workflows={'one': spec},
        names={'one': 'stack.one'},
        inputs={'a': 1},
        params={},
        body_is_input=is_whole,
    )
    try:
        run = workflow_requests.asked(body, offer)
    except workflow_requests.RunError:
        return
    assert run.workflow == 'stack.one'


def test_a_workbook_is_refused_as_one():
    text = 'name: b\nworkflows: {w: {tasks: {t: {action: std.noop}}}}'
    with pytest.raises(definitions.InvalidDefinition, match='is a workbook'):
        definitions.read(text)
