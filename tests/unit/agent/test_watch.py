# SPDX-License-Identifier: Apache-2.0
"""A server begins at once what it is given."""

import dataclasses
import fcntl
import os
import time

import pytest
import requests

from tests.unit.agent import conftest

from heat_config_supervisor import places, watch  # isort: skip

URL = 'https://swift.example/v1/AUTH_a/c/metadata?temp_url_sig=m3ta'


@dataclasses.dataclass
class Service:
    """Serves the configs of a server; as strict as a real store."""

    etag: str = 'one'
    failing: object = None

    def __post_init__(self):
        self.asked = []

    def get(self, url, *, headers, timeout, allow_redirects, stream):
        assert url == URL
        assert stream and not allow_redirects
        wanted = (headers or {}).get('If-None-Match')
        self.asked.append(wanted)
        status = 304 if wanted == self.etag else 200
        response = conftest.respond(self.failing or status)
        response.headers['ETag'] = self.etag
        return response


@pytest.fixture
def service(monkeypatch):
    found = Service()
    monkeypatch.setattr(requests.Session, 'get', found.get)
    return found


@pytest.fixture
def watcher(server, monkeypatch):
    """A server with a URL, that is quick; what it runs notes that it ran."""
    (server.path / 'collect.conf').write_text(
        f'[DEFAULT]\ncommand=x\n[request]\nmetadata_url = {URL}\n'
    )
    script = f'cd {server.path}\necho "$@" >>woken\n[ ! -e fails ]\n'
    program = server.program('collect', f'#!/bin/sh\n{script}')
    for name, value in (
        ('QUICK', 'always'),
        ('COLLECT', f"{program} --one-time 'a b'"),
        ('COLLECT_CONF', server.path / 'collect.conf'),
        ('REFRESH_LOCK', server.path / 'lock'),
    ):
        monkeypatch.setenv(f'HEAT_CONFIG_{name}', str(value))
    slept = []
    found = watch.Watcher(slept.append)
    found.slept = slept
    return found


def woken(server):
    file = server.path / 'woken'
    return file.read_text().splitlines() if file.exists() else []


def test_it_wakes_when_configs_have_changed(server, service, watcher):
    for _ in range(3):
        watcher.step()
    assert (service.asked, woken(server)) == ([None, 'one', 'one'], [])
    service.etag = 'two'
    for _ in range(3):
        watcher.step()
    (arguments,) = woken(server)
    assert arguments.startswith('--one-time a b ')
    assert service.asked[3:] == ['one', 'two', 'two']
    assert set(watcher.slept) == {1.0}
    # What it collects is not noted as seen by the service.
    own = places.state() / 'collected'
    assert f' --cachedir {own} --backup-cachedir {own}-backup' in arguments


def test_it_waits_while_configs_run_and_wakes_again_what_failed(
    server, service, watcher
):
    watcher.step()
    service.etag = 'two'
    with (server.path / 'lock').open('a') as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        watcher.step()
        assert woken(server) == []
    watcher.step()
    assert len(woken(server)) == 1
    service.etag = 'three'
    (server.path / 'fails').touch()
    watcher.step()
    (server.path / 'fails').unlink()
    watcher.step()
    watcher.step()
    assert len(woken(server)) == 3


@pytest.mark.parametrize(
    'failing', [503, 401, 404, 302, requests.ConnectionError(URL)]
)
def test_it_asks_less_often_what_fails(service, watcher, failing, caplog):
    service.failing = failing
    for _ in range(8):
        watcher.step()
    assert watcher.slept == [2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0, 30.0]
    service.failing = None
    watcher.step()
    assert watcher.slept[-1] == 1.0
    assert 'm3ta' not in caplog.text


def test_it_asks_after_a_recent_config_alone(
    server, service, watcher, monkeypatch
):
    monkeypatch.setenv('HEAT_CONFIG_QUICK', 'recent')
    watcher.step()
    assert service.asked == [None]
    long_ago = time.time() - 700
    os.utime(server.path / 'deployed', (long_ago, long_ago))
    watcher.step()
    assert (service.asked, watcher.slept) == ([None], [1.0, 5.0])
    server.begun()
    watcher.step()
    # What has changed meanwhile the agent has found by itself.
    assert service.asked == [None, None]
    assert woken(server) == []


@pytest.mark.parametrize(
    'text',
    ['', '[request]\n', '[cfn]\nmetadata_url=x\n', 'no file', '\0\xff[', None],
)
def test_without_a_url_of_its_own_nobody_is_asked(
    server, service, watcher, text
):
    file = server.path / 'collect.conf'
    file.unlink()
    if text is not None:
        file.write_bytes(text.encode('latin-1'))
    watcher.step()
    assert (service.asked, watcher.slept) == ([], [5.0])
