# SPDX-License-Identifier: Apache-2.0
"""Whatever is asked of a run, sent by one, or put among their records."""

import contextlib
import json
from urllib import parse

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs import run_objects
from heat_plugins.runs.targets import targets
from heat_plugins.signals import body
from tests.unit import fake_swift
from tests.unit.bad_input import anything

SIGNATURE = '0123456789abcdef' * 4
UUID = '00000000-0000-0000-0000-000000000001'

names = st.sampled_from(
    ['do', 'run', 'request', 'stacks', 'limits', 'inputs', 'only', 'version']
)
orders = st.dictionaries(
    names | anything.odd_text,
    st.sampled_from(['start', 'cancel', 'delete', UUID]) | anything.json_value,
)


@hypothesis.given(orders | anything.json_value)
def test_an_order_is_read_or_refused(order):
    with contextlib.suppress(errors.Invalid):
        ordering.read(order)


queries = anything.odd_text.map(
    lambda text: parse.urlencode({'stack': text}, errors='surrogatepass')
)


@hypothesis.given(anything.odd_text | queries)
def test_a_query_is_read_or_refused(text):
    with contextlib.suppress(errors.Invalid):
        query = ordering.read_query(text)
        again = query.server_id.partition('?')[2]
        assert ordering.read_query(again) == query


declared_input = st.fixed_dictionaries(
    {'name': anything.plain_text.filter(bool)},
    optional={
        'type': anything.spelled(
            'String', 'Number', 'Json', 'Boolean', 'CommaDelimitedList'
        ),
        'default': anything.json_value,
        'value': anything.json_value,
    },
)


@st.composite
def asked(draw):
    """Return declared inputs, the stack's values, and what is asked for."""
    declared = draw(st.lists(declared_input, max_size=4))
    known = st.sampled_from([one['name'] for one in declared] or ['x'])
    value = st.one_of(anything.json_value, anything.json_text)
    values = st.dictionaries(
        st.one_of(known, known, anything.odd_text), value, max_size=4
    )
    return declared, draw(values), draw(values)


@hypothesis.given(asked())
@hypothesis.example(([{'name': 'a', 'type': 'Json'}], {}, {'a': '[' * 10**5}))
@hypothesis.example(
    ([{'name': 'a', 'type': 'Number'}], {}, {'a': float('inf')})
)
@hypothesis.example(([{'name': 'a', 'type': 'Json'}], {}, {'a': '[NaN]'}))
def test_inputs_fit_what_is_declared_or_are_refused(both):
    declared, current, given = both
    try:
        values = targets.values(declared, given, current)
    except errors.Refused:
        return
    for name in given.keys() & values.keys():
        json.dumps(values[name], allow_nan=False)


@hypothesis.given(anything.json_value, st.sampled_from(['Json', 'Number']))
def test_no_refusal_quotes_a_value(value, kind):
    secret = f'hunter2-correct-{value!r}'
    with pytest.raises(errors.Refused) as caught:
        targets.values(
            [{'name': 'a', 'type': kind}], {'a': secret}, {'a': secret}
        )
    assert 'hunter2' not in str(caught.value)


# What a server sends


@hypothesis.given(
    st.one_of(
        anything.body,
        anything.map_of(
            progress=anything.scalar, message=anything.json_value
        ).map(lambda value: json.dumps(value).encode()),
    )
)
@hypothesis.example(b'{"progress": 1' + b'0' * 400 + b'}')
def test_a_report_can_be_shown_or_is_refused(content):
    try:
        progress, message = run_objects.parse_report(content)
    except errors.BadContent:
        return
    assert progress is None or 0 <= progress <= 100
    assert message is None or message.isprintable()


leaky = st.builds(
    '{}https://swift/v1/c/o?temp_url_sig={}{}{}'.format,
    anything.plain_text,
    st.just(SIGNATURE),
    st.sampled_from(['', '&temp_url_expires=1', '"', "'", '\\', '\n', ' ']),
    anything.plain_text,
)


@hypothesis.given(
    st.dictionaries(
        anything.plain_text,
        anything.nested(st.one_of(leaky, anything.scalar), keys=leaky),
        max_size=4,
    )
)
@hypothesis.example({'out': f'curl "https://x?temp_url_sig={SIGNATURE}"'})
def test_no_run_keeps_a_signature_that_a_server_has_sent(outputs):
    try:
        details = body.as_map(outputs)
    except errors.BadContent:
        return
    cluster = fake_swift.Cluster()
    store = cluster.store()
    its = run_objects.RunObjects(store, 'stack', 'run', 0, 1)
    store.put_container(its.container, {})
    outcome = body.outcome(details, [{'name': name} for name in details])
    its.keep(outcome)
    kept, _ = run_objects.shortened(outcome)
    objects = cluster.container(its.container).objects
    assert SIGNATURE not in json.dumps(kept) + str(objects)
    assert kept.keys() >= details.keys()
