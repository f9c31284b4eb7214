# SPDX-License-Identifier: Apache-2.0
"""What the connection to Mistral adds to mistralclient."""

import logging
from unittest import mock

from keystoneauth1 import exceptions
from mistralclient.api import base
import pytest
import requests

from heat_plugins import errors
from heat_plugins import wording
from heat_plugins.clients import mistral_api
from tests.unit import web_service

URL = 'https://mistral.example.com/v2'
SECRET = 'swordfish'
DEFECT = 'Mistral answers 500: a b (HTTP 403)'
ABSENT = wording.no_service('workflowv2')


@pytest.fixture
def wire():
    found = web_service.Service()
    found.answer = mock.Mock(return_value=(201, b'{"id": "e-1"}'))
    return found


def begin(wire, **tls):
    cloud = web_service.cloud(wire, URL, verify='/session-ca.pem')
    client = mistral_api.connect(cloud, tls)
    body = {'id': 'e-1', 'input': SECRET}
    return mistral_api.ask(client.executions.begin, body)


def test_an_execution_has_the_id_that_it_was_given(wire, caplog):
    caplog.set_level(logging.DEBUG)
    assert begin(wire).id == 'e-1'
    ((request,), _) = wire.answer.call_args
    assert request.url == f'{URL}/executions'
    assert b'"id": "e-1"' in request.body.encode()
    assert wire.options['timeout'] == 60
    # The CA of the session counts unless Mistral has another.
    assert wire.options['verify'] == '/session-ca.pem'
    begin(wire, verify='/mistral-ca.pem')
    assert wire.options['verify'] == '/mistral-ca.pem'
    assert SECRET not in caplog.text


def test_what_is_lost_or_cannot_be_read_is_not_sent_again_unseen(wire):
    for answer in ((201, b'<html>'), requests.ConnectionError('gone')):
        wire.answer = mock.Mock(side_effect=[answer])
        with pytest.raises(errors.Unavailable, match='Mistral does not answ'):
            begin(wire)


def answered(status, message):
    return base.APIException(error_code=status, error_message=message)


@pytest.mark.parametrize(
    ('error', 'kind', 'said'),
    [
        # These may pass.
        (exceptions.ConnectFailure('x'), errors.Unavailable, 'answer: x'),
        (answered(503, b'<html>'), errors.Unavailable, '503: no reason given'),
        (answered(504, None), errors.Unavailable, '504: no reason given'),
        (answered(429, 'slow down'), errors.Unavailable, ''),
        (exceptions.ServiceUnavailable(), errors.Unavailable, ''),
        (ConnectionResetError('reset'), errors.Unavailable, ''),
        # And these do not.
        (answered(400, 'Invalid input'), errors.ServiceError, ''),
        (answered(403, 'no'), errors.Denied, ''),
        (answered(404, 'no such thing'), errors.NotFound, ''),
        (answered(409, 'Duplicate'), errors.Conflict, ''),
        (answered(500, 'a\n b (HTTP 403)'), errors.LikelyDefect, DEFECT),
        (exceptions.SSLError('untrusted'), errors.ServiceError, ''),
        (exceptions.EndpointNotFound('x'), errors.ServiceError, ABSENT),
        (exceptions.Unauthorized('no'), errors.Denied, ''),
    ],
)
def test_each_failure_has_one_meaning_and_one_line_for_people(
    error, kind, said
):
    judged = mistral_api.judge(error)
    assert type(judged) is kind
    assert str(judged).endswith(said)
    assert mistral_api.judge(ValueError()) is None
