# SPDX-License-Identifier: Apache-2.0
"""What the connection to Mistral adds to mistralclient."""

import logging

import pytest

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from tests.unit import web_service

URL = 'https://mistral.example.com/v2'
SECRET = 'swordfish'


class Mistral(web_service.Service):
    """Answers each request in the same way, and keeps how it was sent."""

    def __init__(self):
        super().__init__()
        self.content = b'{"id": "e-1"}'
        self.status = 201

    def answer(self, request):
        self.request = request
        return self.status, self.content


@pytest.fixture
def wire():
    return Mistral()


@pytest.fixture
def cloud(wire):
    return web_service.cloud(wire, URL, verify='/session-ca.pem')


def begin(client):
    body = {'id': 'e-1', 'input': SECRET}
    return mistral_api.ask(client.executions.begin, body)


def test_an_execution_has_the_id_that_it_was_given(cloud, wire, caplog):
    caplog.set_level(logging.DEBUG)
    assert begin(mistral_api.connect(cloud)).id == 'e-1'
    assert wire.request.url == f'{URL}/executions'
    assert b'"id": "e-1"' in wire.request.body.encode()
    assert wire.options['timeout'] == 60
    # The CA of the session counts unless Mistral has another.
    assert wire.options['verify'] == '/session-ca.pem'
    begin(mistral_api.connect(cloud, {'verify': '/mistral-ca.pem'}))
    assert wire.options['verify'] == '/mistral-ca.pem'
    assert SECRET not in caplog.text


def test_an_answer_that_cannot_be_read_is_an_error(cloud, wire):
    wire.content = b'<html>'
    with pytest.raises(errors.Unavailable, match='Mistral does not answer'):
        begin(mistral_api.connect(cloud))
