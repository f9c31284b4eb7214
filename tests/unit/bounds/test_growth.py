# SPDX-License-Identifier: Apache-2.0
"""The growth check finds what it is there for."""

import re

import pytest

from tests.unit import growth


def _pairs(text):
    return [a + b for a in text for b in text]


def test_work_that_grows_with_the_square_is_found():
    with pytest.raises(AssertionError, match='s of CPU'):
        # What is too small to be measured, and far above it, is left out.
        growth.check(_pairs, 'a'.__mul__, start=800)


def test_an_expression_that_goes_back_is_found():
    expression = re.compile(r'\w+_id')
    with pytest.raises(AssertionError, match='s of CPU'):
        growth.check(expression.search, 'a'.__mul__)


def test_linear_work_is_in_order():
    growth.check(str.split, 'a '.__mul__, largest=2**22)


def test_work_with_a_limit_is_in_order():
    growth.check(lambda text: _pairs(text[:100]), 'a'.__mul__)
