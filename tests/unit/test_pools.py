# SPDX-License-Identifier: Apache-2.0
"""Many requests are made at a time, but not too many."""

import threading
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins import pools


def test_so_many_are_made_at_a_time_and_no_more():
    together = threading.Barrier(3)
    running, most = [], []

    def call(number):
        running.append(number)
        most.append(len(running))
        together.wait(10)
        running.remove(number)

    pools.Pool(workers=3).each(call, range(9))
    assert max(most) == 3


@pytest.mark.parametrize('workers', [1, 3])
def test_progress_is_told_until_an_error_and_no_call_begins_after_it(workers):
    told = mock.Mock()
    pools.Pool(workers).each(str, 'abc', told)
    assert told.mock_calls == [mock.call(n, 3) for n in (1, 2, 3)]
    call = mock.Mock(side_effect=ZeroDivisionError)
    with pytest.raises(ZeroDivisionError):
        pools.Pool(workers).each(call, range(99))
    assert call.call_count in range(1, workers + 1)


def test_no_thread_is_started_for_calls_that_cannot_overlap():
    for workers, items in ((1, [1, 2]), (3, [1])):
        pool = pools.Pool(workers)
        seen = pool.each(lambda item: threading.get_ident(), items)
        assert set(seen) == {threading.get_ident()}


def test_an_outage_is_ridden_out_for_a_while():
    pool = pools.Pool(wait=0)
    away = errors.Unavailable('later')
    call = mock.Mock(side_effect=[away] * 3 + ['done'])
    assert pool.insist(call, 'a') == 'done'
    assert call.call_args_list == [mock.call('a')] * 4
    for error, times in ((away, 4), (KeyError(), 1)):
        call = mock.Mock(side_effect=error)
        with pytest.raises(type(error)):
            pool.insist(call, 'a')
        assert call.call_count == times
