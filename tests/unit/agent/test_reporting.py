# SPDX-License-Identifier: Apache-2.0
"""An engine that wants to know is told when a config has begun."""

import pytest

from heat_plugins.signals import body
from tests.unit.agent import conftest

from heat_config_supervisor import config as configs  # isort: skip
from heat_config_supervisor import reporting  # isort: skip

PUT = {
    'deploy_signal_id': conftest.URL,
    'deploy_signal_verb': 'PUT',
    body.URL_INPUT: conftest.URL + '&progress',
}


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(reporting, 'PAUSES', (0.01, 0.01))


def report(http, **inputs):
    found = reporting.Report(configs.read(conftest.config(**inputs)))
    found.begin()
    found.thread.join(60) if found.thread.is_alive() else None
    found.end()
    return http.sent


def test_it_is_put_where_the_config_may_report_its_progress(http):
    (sent,) = report(http, **PUT)
    assert (sent.verb, sent.url, sent.body) == (
        'PUT',
        PUT[body.URL_INPUT],
        {},
    )
    # It never takes the place of what the config itself has reported.
    assert sent.headers['If-None-Match'] == '*'


@pytest.mark.parametrize('status', [201, 412, 401])
def test_it_is_sent_once_where_that_does(http, status):
    http.answers = [status]
    assert len(report(http, **PUT)) == 1


def test_it_is_sent_again_where_that_does_not(http):
    http.answers = [503, 503, 201]
    assert len(report(http, **PUT)) == 3


def test_in_the_end_it_is_given_up(http, caplog):
    http.otherwise = 503
    assert len(report(http, **PUT)) == 3
    assert 'Cannot report the start' in caplog.text
    assert 's3cret' not in caplog.text


def test_it_is_a_signal_where_the_engine_takes_those(http):
    (sent,) = report(
        http,
        deploy_signal_id='http://h/p',
        **{body.REPORTS_INPUT: 'true'},
    )
    assert body.is_report(sent.body)
    assert body.is_for(sent.body, 'c1')
    assert not body.is_for(sent.body, 'c2')
    assert (sent.verb, sent.url) == ('POST', 'http://h/p')
    assert sent.body == {'deploy_progress': {}, 'deploy_config_id': 'c1'}


@pytest.mark.parametrize('verb', ['PUT', 'POST'])
def test_to_any_other_engine_a_report_would_be_the_result(http, verb):
    inputs = {'deploy_signal_id': 'http://h/p', 'deploy_signal_verb': verb}
    assert report(http, **inputs) == []
    assert report(http, deploy_auth_url='http://k') == []
