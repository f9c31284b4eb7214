# SPDX-License-Identifier: Apache-2.0
"""What a config prints is kept, and sent in order."""

import json
import os
import time

import pytest
import requests

from heat_plugins.signals import live as wire
from tests.unit.agent import conftest

from heat_config_supervisor import config as configs  # isort: skip
from heat_config_supervisor import delivery  # isort: skip
from heat_config_supervisor import logs  # isort: skip
from heat_config_supervisor import main  # isort: skip
from heat_config_supervisor import results  # isort: skip
from heat_config_supervisor import sending  # isort: skip

SLOT = logs.SLOT
# One slot at the beginning, and two that are reused.
LIMIT = 3 * SLOT

INPUTS = {
    'deploy_signal_id': conftest.URL,
    'deploy_signal_verb': 'PUT',
    'deploy_log_url': conftest.LOG_URL,
    'deploy_log_limit': str(LIMIT),
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(logs, 'PACE', 0.1)
    monkeypatch.setattr(logs, 'FIRST', 0.1)
    monkeypatch.setattr(logs, 'MOST', 0.1)
    monkeypatch.setattr(logs, 'INSIST', 0.0)
    monkeypatch.setattr(logs, 'PAUSE', 0.01)


@pytest.fixture
def log(server):
    return logs.Log('c1', LIMIT)


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def joined(objects):
    """Return what a reader makes of objects: bytes by offset."""
    found = {}
    for name, body in objects.items():
        if name != logs.END:
            piece = wire.parse(name, body)
            found[piece.offset] = piece.content
    return found


def finish(server):
    return logs.finish(configs.read(server.begun(**INPUTS).read_bytes()))


def pend(log, server):
    """Let a config have printed something, and ended."""
    log.append(b'rest')
    log.save()
    server.begun(**INPUTS)
    results.pending().put('c1', {})


def test_after_a_power_failure_the_engine_reads_what_is_on_the_disk(
    log, server, http
):
    log.append(b'a\0\xff')
    log.total += 100
    log.save()
    # It is for root alone.
    for file in (server.state / 'logs').iterdir():
        assert file.stat().st_mode & 0o077 == 0
    assert finish(server).fate is sending.Fate.ACCEPTED
    assert joined(http.output()) == {0: b'a\0\xff'}
    assert wire.parse_end(http.output()['end']) == 3
    assert list(results.logs()) == []
    assert list((server.state / 'logs').iterdir()) == []


def test_of_a_long_output_the_beginning_and_the_end_are_kept(
    log, server, http
):
    content = os.urandom(10 * SLOT + 7)
    log.append(content)
    log.save()
    assert (server.state / 'logs/c1').stat().st_size == LIMIT
    finish(server)
    # Nothing was sent of what lies between; the beginning is left out, too,
    # where it was written over before it could be sent.
    found = joined(http.output())
    assert found == {
        start: content[start : start + SLOT]
        for start in (0, 9 * SLOT, 10 * SLOT)
    }
    assert wire.parse_end(http.output()['end']) == len(content)


def test_the_last_of_it_does_not_wait_for_the_result(log, http, monkeypatch):
    monkeypatch.setattr(logs, 'PACE', 60)
    sender = logs.Sender(log, conftest.LOG_URL)
    sender.begin()
    until(lambda: http.sent)
    log.append(b'last')
    sender.end()
    assert joined(http.output()) == {0: b'last'}
    assert results.logs().get('c1')['sent'] == 4


def test_a_store_that_refuses_it_is_left_alone(log, http, caplog):
    http.otherwise = 401
    sender = logs.Sender(log, conftest.LOG_URL)
    sender.begin()
    until(lambda: not sender.thread.is_alive())
    sender.end()
    assert len(http.sent) == 6
    assert 'HTTP status 401' in caplog.text
    assert 'l0g' not in caplog.text


def test_the_rest_comes_before_the_result(log, server, http):
    pend(log, server)
    http.answers = [503]
    assert delivery.deliver('c1').fate is sending.Fate.LATER
    assert delivery.deliver('c1').fate is sending.Fate.ACCEPTED
    paths = [one.url.partition('?')[0] for one in http.sent]
    names = [path.rpartition('/')[2] for path in paths]
    assert names == ['000000', '000000', 'end', 'c1']
    # Not for ever: the result is worth more.
    pend(logs.Log('c1', LIMIT), server)
    os.utime(server.state / 'pending/c1.json', (0, time.time() - 700))
    http.answers = [503, 201]
    assert delivery.deliver('c1').fate is sending.Fate.ACCEPTED


def test_a_store_that_often_fails_does_not_hold_the_result_up(
    log, server, http, monkeypatch
):
    monkeypatch.setattr(logs, 'INSIST', 30.0)
    http.answers = [503, 201, 503, requests.ConnectionError(), 201, 503]
    log.append(b'x' * (SLOT + 1))
    log.save()
    # At the first attempt; the second would come after two seconds.
    assert finish(server).fate is sending.Fate.ACCEPTED
    assert joined(http.output()) == {0: b'x' * SLOT, SLOT: b'x'}
    assert wire.parse_end(http.output()['end']) == SLOT + 1


def test_a_store_that_refuses_the_rest_gets_the_result(
    log, server, http, monkeypatch
):
    monkeypatch.setattr(logs, 'INSIST', 30.0)
    http.answers = [403] * logs.REFUSALS
    pend(log, server)
    assert delivery.deliver('c1').fate is sending.Fate.ACCEPTED
    assert list(results.pending()) == []


def test_after_the_supervisor_was_killed_all_of_it_is_sent(log, server, http):
    sender = logs.Sender(log, conftest.LOG_URL)
    sender.begin()
    until(lambda: http.sent)
    http.otherwise = 503
    log.append(b'x' * (SLOT + 7))
    # It does not come to the end of this.
    killed = json.loads((server.state / 'logs/c1.json').read_text())
    sender.end()
    results.logs().put('c1', killed)
    http.otherwise = 201
    assert finish(server).fate is sending.Fate.ACCEPTED
    assert joined(http.output()) == {0: b'x' * SLOT, SLOT: b'x' * 7}
    assert wire.parse_end(http.output()['end']) == SLOT + 7


def test_what_no_result_will_come_for_goes(log, server, monkeypatch):
    log.save()
    results.running().put('c2', {})
    monkeypatch.setattr(delivery, 'go_on', lambda: None)
    assert main.main(['prepare']) == 0
    assert list(results.logs()) == []
