# SPDX-License-Identifier: Apache-2.0
"""Whatever is ordered of heat-engine, or asked, is an order or refused."""

import contextlib
from urllib import parse

import hypothesis
from hypothesis import strategies as st

from heat_plugins import errors
from heat_plugins.runs import ordering
from tests.unit.bad_input import anything

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
