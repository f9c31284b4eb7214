# SPDX-License-Identifier: Apache-2.0
"""A result is sent until it has been accepted."""

import fcntl
import itertools
import json
import logging
from unittest import mock

import pytest

from heat_config_supervisor import delivery  # isort: skip
from heat_config_supervisor import places  # isort: skip
from heat_config_supervisor import results  # isort: skip

POST = {'deploy_signal_id': 'http://cfn/v1?Signature=s3cret'}


class Clock:
    """Time that passes only where somebody sleeps."""

    now = 1000.0

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(delivery.time, 'monotonic', lambda: found.now)
    return found


@pytest.fixture
def spawned(monkeypatch):
    """The processes that are to go on, instead of them."""
    found = []
    monkeypatch.setattr(
        delivery.subprocess,
        'Popen',
        lambda command, **options: found.append(command),
    )
    return found


def pend(server, config_id='c1', **inputs):
    server.begun(config_id, **inputs)
    results.pending().put(config_id, {'deploy_status_code': 0})


def pending():
    return list(results.pending())


def test_it_is_on_disk_until_it_is_accepted(server, http, spawned):
    pend(server)
    on_disk = []
    http.meanwhile = lambda: on_disk.append(pending())
    delivery.deliver_now('c1')
    assert http.sent[0].body == {'deploy_status_code': 0}
    assert (on_disk, pending(), spawned) == ([['c1']], [], [])
    # If it is not accepted, it is left to a process.
    pend(server)
    http.answers = [503]
    delivery.deliver_now('c1')
    assert pending() == ['c1']
    assert spawned == [places.command('deliver')]


def test_no_other_user_can_hold_what_sends(server, http, spawned):
    # As the former release has left it, held by another user.
    server.state.mkdir(mode=0o755, exist_ok=True)
    server.state.chmod(0o755)
    lock = server.state / 'delivery.lock'
    lock.touch(mode=0o644)
    lock.chmod(0o644)
    with lock.open() as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        pend(server)
        delivery.deliver_now('c1')
    assert len(http.sent) == 1
    for path in (server.state, *server.state.rglob('*')):
        assert not path.stat().st_mode & 0o077, path


def test_it_is_sent_again_ever_more_seldom(server, http, clock):
    pend(server)
    times = []
    http.meanwhile = lambda: times.append(clock.now)
    http.answers = [503] * 12
    delivery.deliver_all(clock.sleep)
    assert pending() == []
    pauses = [b - a for a, b in itertools.pairwise(times)]
    assert [*pauses[:3], pauses[-1]] == [2, 4, 8, 300]
    assert pauses == sorted(pauses)
    # One does not wait for another.
    del http.sent[:]
    http.answers = [503, 201, 503, 503]
    pend(server, 'c1')
    pend(server, 'c2', deploy_signal_id='http://h/p', deploy_signal_verb='PUT')
    delivery.deliver_all(clock.sleep)
    assert [one.url for one in http.sent].index('http://h/p') == 1


def test_one_that_is_refused_is_given_up_after_the_stores_memory(
    server, http, clock, caplog
):
    pend(server)
    http.otherwise = 401
    began = clock.now
    with caplog.at_level(logging.INFO):
        delivery.deliver_all(clock.sleep)
    assert len(http.sent) == delivery.REFUSALS
    assert clock.now - began > 60
    assert 'no longer sent: HTTP status 401' in caplog.text
    assert 'swift.example/v1/AUTH_a/c/signals/d/c1' in caplog.text
    assert 's3cret' not in caplog.text


def test_it_goes_only_while_its_url_works_and_the_server_is_given_it(
    server, http, caplog
):
    url = 'http://h/p?temp_url_sig=a&temp_url_expires=1000000000'
    pend(server, deploy_signal_id=url, deploy_signal_verb='PUT')
    delivery.deliver_now('c1')
    assert (http.sent, pending()) == ([], [])
    assert 'expired' in caplog.text
    for given in ('c1', 'c2'):
        pend(server, **POST)
        server.given(given)
        delivery.deliver_now('c1')
        assert (len(http.sent), pending()) == (1, [])


def test_what_cannot_be_read_is_dropped(server, http, caplog):
    for number, text in enumerate(('', '[]', '{"a"')):
        pend(server, f'c{number}')
        file = server.state / f'pending/c{number}.json'
        file.write_text(text)
    results.pending().put('stranger', {})
    delivery.deliver_all(lambda _: None)
    assert (http.sent, pending()) == ([], [])
    assert caplog.text.count('cannot read it') == 4


def test_one_process_at_a_time_delivers(server, http, spawned):
    pend(server)

    def meanwhile():
        # What another one does at the same time.
        http.meanwhile = lambda: None
        delivery.deliver_all(lambda _: None)
        pend(server, 'c2')
        delivery.deliver_now('c2')

    http.meanwhile = meanwhile
    delivery.deliver_now('c1')
    assert len(http.sent) == 1
    # It is seen by the one that was at it.
    assert pending() == ['c2']
    assert len(spawned) == 1


def test_what_is_half_written_is_not_taken_for_a_result(server, monkeypatch):
    lose_power = mock.Mock(side_effect=OSError('no power'))
    monkeypatch.setattr(results.os, 'fsync', lose_power)
    with pytest.raises(OSError, match='no power'):
        results.pending().put('c1', {})
    assert pending() == []


def test_what_was_interrupted_has_failed(server):
    server.begun('c1')
    server.begun('c2', name='not signalled')
    for config_id in ('c1', 'c2', 'gone'):
        results.running().put(config_id, {})
    assert results.note_interrupted() == ['c1']
    assert list(results.running()) == []
    found = json.loads((server.state / 'pending/c1.json').read_text())
    assert found['deploy_status_code'] == 1
    assert 'will not run again' in found['deploy_stderr']
