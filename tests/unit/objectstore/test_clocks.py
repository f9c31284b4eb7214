# SPDX-License-Identifier: Apache-2.0
"""The time by an object store's own clock."""

from email import utils as email_utils
import threading

import pytest

from heat_plugins.objectstore import wire
from tests.unit import fake_swift

NOW = 1_800_000_000.0


class Host:
    """A host whose clock is wrong, and how it reaches a store."""

    def __init__(self, ahead):
        self.now = NOW + ahead
        self.clock = wire.Clock(lambda: self.now)

    def ask(self, store_now, seconds=0.1):
        sent = self.clock.sent()
        self.now += seconds
        date = email_utils.formatdate(store_now, usegmt=True)
        self.clock.observe(sent, date)


@pytest.fixture(autouse=True)
def not_warned(monkeypatch):
    monkeypatch.setattr(wire, 'warning', threading.Lock())


@pytest.mark.parametrize('ahead', [600, -600, 86400, 5])
def test_the_store_s_time_counts(ahead):
    host = Host(ahead)
    host.ask(NOW + 0.05)
    assert abs(host.clock() - (NOW + 0.1)) < 1.5
    # As time goes by.
    host.now += 3600
    assert abs(host.clock() - (NOW + 3600.1)) < 1.5
    # Once this host's is set right, too.
    host.now -= 3600 + ahead
    host.ask(NOW)
    assert abs(host.clock() - NOW) < 3


def test_a_slow_response_tells_less_than_a_quick_one():
    host = Host(600)
    host.ask(NOW, seconds=60)
    assert abs(host.clock() - (NOW + 60)) <= 31
    host.ask(NOW + 60)
    assert abs(host.clock() - (NOW + 60)) < 3
    # A slow one then changes nothing.
    before = host.clock() - host.now
    host.ask(NOW + 65, seconds=60)
    assert host.clock() - host.now == before


def test_what_is_only_rounded_or_no_time_changes_nothing():
    for ahead in (0, 0.4, -0.4, 1):
        host = Host(ahead)
        host.ask(NOW)
        assert host.clock() == host.now
    odd = ('9' * 5000, 'Mon, 1 Jan 99999')
    for date in (None, '', 'x', 'Thu, 99 Nov 2026', *odd):
        host = Host(600)
        host.clock.observe(host.now, date)
        assert host.clock() == host.now


def test_a_host_whose_clock_is_wrong_is_told_once(caplog):
    for _ in range(2):
        Host(600).ask(NOW)
    (record,) = caplog.records
    assert 'differs from the object store' in record.getMessage()
    assert "correct this host's clock" in record.getMessage()


def test_a_store_learns_from_each_response():
    cluster = fake_swift.Cluster()
    cluster.now = lambda: NOW
    store = cluster.store()
    store.put_container('box', {})
    assert abs(store.now() - NOW) < 3
