# SPDX-License-Identifier: Apache-2.0
"""A server's disk, and what a server sends to."""

import dataclasses
import io
import json
import pathlib
from typing import Any
from urllib import parse

import pytest
import requests

URL = (
    'https://swift.example/v1/AUTH_a/c/signals/d/c1'
    '?temp_url_sig=s3cret&temp_url_expires=9999999999'
)

LOG_URL = (
    'https://swift.example/v1/AUTH_a/c/runs/logs/r1/'
    '?temp_url_sig=l0g&temp_url_expires=9999999999'
    '&temp_url_prefix=runs%2Flogs%2Fr1%2F'
)


@dataclasses.dataclass
class Server:
    """A server's disk in a folder."""

    path: pathlib.Path

    @property
    def state(self):
        return self.path / 'state'

    def given(self, *ids):
        """Let these be the configs that the server is given."""
        text = json.dumps([{'id': one} for one in ids])
        (self.path / 'metadata').write_text(text)

    def begun(self, config_id='c1', **inputs):
        """Let 55-heat-config have begun a config; its file."""
        put = {'deploy_signal_id': URL, 'deploy_signal_verb': 'PUT'}
        file = self.path / 'deployed' / f'{config_id}.json'
        file.write_text(config(config_id, **(inputs or put)))
        return file

    def program(self, name, text):
        file = self.path / name
        file.write_text(text)
        file.chmod(0o700)
        return file


def config(config_id='c1', **inputs):
    """Return a config as 55-heat-config hands it to a hook."""
    return json.dumps(
        {
            'id': config_id,
            'creation_time': '2026-11-21T06:00:00Z',
            'inputs': [
                {'name': name, 'value': value}
                for name, value in inputs.items()
            ],
        }
    )


@pytest.fixture
def server(tmp_path, monkeypatch):
    for folder in ('hooks', 'deployed'):
        (tmp_path / folder).mkdir()
    for variable, name in (
        ('HEAT_CONFIG_SUPERVISOR_STATE', 'state'),
        ('HEAT_CONFIG_SUPERVISED_HOOKS', 'hooks'),
        ('HEAT_CONFIG_SUPERVISED_NOTIFY', 'notifier'),
        ('HEAT_CONFIG_DEPLOYED', 'deployed'),
        ('HEAT_SHELL_CONFIG', 'metadata'),
    ):
        monkeypatch.setenv(variable, str(tmp_path / name))
    monkeypatch.delenv('HEAT_CONFIG_TIMEOUT', raising=False)
    return Server(tmp_path)


@dataclasses.dataclass
class Sent:
    verb: str
    url: str
    body: Any
    headers: dict[str, str]


def respond(found):
    """Return an answer with a status, or raise what is no status."""
    if isinstance(found, Exception):
        raise found
    response = requests.Response()
    response.status_code = found
    response.raw = io.BytesIO()
    return response


class Http:
    """What answers; it is not asked for anything but what it knows."""

    def __init__(self):
        self.sent = []
        #: The next answers: statuses, or what a broken connection raises.
        self.answers = []
        self.otherwise = 201
        self.meanwhile = lambda: None
        #: What is asked for, and the answers; the last one stays.
        self.got = []
        self.objects = [404]

    def request(self, verb, url, *, data, headers, timeout, allow_redirects):
        assert verb in ('PUT', 'POST')
        assert not allow_redirects
        is_json = headers['Content-Type'] == 'application/json'
        body = json.loads(data) if is_json else data
        self.sent.append(Sent(verb, url, body, headers))
        self.meanwhile()
        return respond(self.answers.pop(0) if self.answers else self.otherwise)

    def get(self, url, *, headers, timeout, allow_redirects, stream):
        assert stream and not allow_redirects and headers is None
        self.got.append(url)
        found = self.objects[0]
        self.objects = self.objects[1:] or self.objects
        return respond(found)

    def output(self):
        """Return the last content of each object that output was put to."""
        return {
            parse.urlsplit(one.url).path.rpartition('/')[2]: one.body
            for one in self.sent
            if 'temp_url_prefix' in one.url
        }


@pytest.fixture
def http(monkeypatch):
    found = Http()
    for owner in (requests, requests.Session):
        monkeypatch.setattr(owner, 'request', found.request)
    monkeypatch.setattr(requests.Session, 'get', found.get)
    return found
