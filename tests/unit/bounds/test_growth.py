# SPDX-License-Identifier: Apache-2.0
"""The growth check finds what it is there for."""

import pytest

from tests.unit import growth


def test_work_that_grows_with_the_square_is_found(monkeypatch):
    # The clock would say less of it on a machine that is busy.
    monkeypatch.setattr(growth, 'seconds_of', lambda read, text: read(text))
    with pytest.raises(AssertionError, match='s of CPU'):
        # What is too small to be measured, and far above it, is left out.
        growth.check(lambda text: 1e-8 * len(text) ** 2, 'a'.__mul__)
