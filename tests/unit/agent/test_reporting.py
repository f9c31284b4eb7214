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
    assert (sent.verb, sent.url) == ('PUT', PUT[body.URL_INPUT])
    assert sent.body == {}
    # It never takes the place of what the config itself has reported.
    assert sent.headers['If-None-Match'] == '*'


@pytest.mark.parametrize(
    ('answers', 'count'),
    [([201], 1), ([412], 1), ([401], 1), ([503, 503, 201], 3), ([503] * 9, 3)],
)
def test_it_is_sent_until_that_does_or_is_given_up(
    http, caplog, answers, count
):
    http.answers = [*answers]
    assert len(report(http, **PUT)) == count
    assert ('Cannot report the start' in caplog.text) == (
        answers[-1] not in (201, 412)
    )
    assert 's3cret' not in caplog.text


def test_it_is_a_signal_where_the_engine_takes_those(http):
    inputs = {body.REPORTS_INPUT: 'true', 'deploy_signal_id': 'http://h/p'}
    (sent,) = report(http, **inputs)
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
