# SPDX-License-Identifier: Apache-2.0
"""What requests may cost."""

import pytest

from heat_plugins import errors
from heat_plugins.objectstore import wire
from tests.unit import fake_swift


class Case:
    def __init__(self, requests=3, seconds=10.0, size=None):
        self.now = 0.0
        self.cluster = fake_swift.Cluster()
        self.cluster.store().put_container('box', {})
        self.budget = wire.Budget(
            'operation X',
            requests=requests,
            seconds=seconds,
            size=size,
            clock=lambda: self.now,
        )
        self.store = self.cluster.store().within(self.budget)


def test_it_has_a_number_of_requests():
    case = Case()
    for _ in range(3):
        case.store.has_object('box', 'x')
    before = len(case.cluster.seen)
    with pytest.raises(
        errors.OverBudget, match='operation X takes more than 3 requests'
    ):
        case.store.has_object('box', 'x')
    assert len(case.cluster.seen) == before


def test_it_has_a_number_of_seconds():
    case = Case()
    case.now = 10.0
    with pytest.raises(errors.OverBudget, match='takes more than 10 s'):
        case.store.has_object('box', 'x')


def test_a_request_has_the_time_that_is_left():
    case = Case()
    timeouts = []
    case.cluster.before = lambda request: timeouts.append(request.timeout)
    for case.now in (0.0, 4.0, 9.5):
        case.store.has_object('box', 'x')
    assert timeouts == [10.0, 6.0, 1.0]


def test_a_request_that_hangs_is_over_budget():
    case = Case()

    def hang(request):
        case.now += request.timeout
        raise errors.Unavailable('no answer')

    case.cluster.before = hang
    with pytest.raises(errors.OverBudget):
        case.store.has_object('box', 'x')


def test_it_has_a_number_of_bytes_of_all_responses():
    case = Case(size=25)
    case.cluster.store().put_object('box', 'x', b'x' * 10)
    for _ in range(2):
        assert case.store.get_object('box', 'x', 10) == b'x' * 10
    with pytest.raises(errors.OverBudget, match='takes more than 25 bytes'):
        case.store.get_object('box', 'x', 10)


def test_an_outage_within_it_is_an_outage():
    case = Case()
    case.cluster.fail()
    with pytest.raises(errors.Unavailable):
        case.store.has_object('box', 'x')


def test_what_is_lifted_counts_no_longer():
    case = Case()
    case.budget.lift()
    case.now = 100.0
    for _ in range(10):
        case.store.has_object('box', 'x')
    case.budget.check()
