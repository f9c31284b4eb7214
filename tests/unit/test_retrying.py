# SPDX-License-Identifier: Apache-2.0
"""How often, and after which pauses, a call is repeated."""

import pytest

from heat_plugins import errors
from heat_plugins import retrying


class Service:
    """Is unavailable for some calls, and notes the pauses between them."""

    def __init__(self, failures, error=errors.Unavailable):
        self.pauses = []
        self.now = 0.0
        self._failures = failures
        self._error = error

    def call(self, *args):
        self._failures -= 1
        if self._failures >= 0:
            raise self._error(f'{self._failures}')
        return args

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def insist(self, **options):
        return retrying.insist(self.call, 'a', sleep=self.sleep, **options)


def test_it_waits_twice_as_long_each_time_up_to_a_limit():
    service = Service(5)
    assert service.insist(attempts=6, wait=1.0, most=5.0) == ('a',)
    assert service.pauses == [1.0, 2.0, 4.0, 5.0, 5.0]
    # The last error is raised after so many attempts.
    for attempts in (1, 4):
        service = Service(9)
        with pytest.raises(errors.Unavailable, match=str(9 - attempts)):
            service.insist(attempts=attempts)
        assert len(service.pauses) == attempts - 1


def test_a_budget_of_seconds_takes_the_place_of_a_number(monkeypatch):
    service = Service(9999)
    monkeypatch.setattr(retrying.time, 'monotonic', lambda: service.now)
    with pytest.raises(errors.Unavailable):
        service.insist(seconds=100.0, most=10.0)
    assert 100 <= service.now <= 110


def test_people_learn_once_of_what_is_retried_and_for_how_long():
    notes = []
    Service(3).insist(seconds=100.0, note=notes.append)
    with pytest.raises(errors.Unavailable):
        Service(1).insist(seconds=0.0, note=notes.append)
    assert notes == ['2. Retrying for 100 s']


def test_another_error_ends_it():
    service = Service(1, errors.NotFound)
    with pytest.raises(errors.NotFound):
        service.insist()
    assert service.pauses == []
    assert Service(1, errors.NotFound).insist(on=(errors.NotFound,)) == ('a',)
