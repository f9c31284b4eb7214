# SPDX-License-Identifier: Apache-2.0
"""What is sent, and what becomes of it; what reports the start."""

import json

import pytest
import requests

from heat_plugins import config as engine
from heat_plugins.signals import body
from tests.unit.agent import conftest

from heat_config_supervisor import config as configs  # isort: skip
from heat_config_supervisor import reporting  # isort: skip
from heat_config_supervisor import sending  # isort: skip

ACCEPTED = sending.Fate.ACCEPTED
LATER = sending.Fate.LATER
REFUSED = sending.Fate.REFUSED


@pytest.mark.parametrize(
    ('answer', 'fate'),
    [
        *((status, ACCEPTED) for status in (200, 201)),
        *((status, REFUSED) for status in (301, 401, 404, 413)),
        *((status, LATER) for status in (429, 500, 503)),
        (requests.ConnectionError(f'refused: {conftest.URL}'), LATER),
        (requests.Timeout(conftest.URL), LATER),
    ],
)
def test_the_answer_says_whether_to_send_it_again(http, answer, fate):
    http.answers = [answer]
    found = sending.send('PUT', conftest.URL, b'{}')
    assert found.fate is fate
    assert 's3cret' not in found.reason


def test_an_object_is_the_result_and_nothing_else(http):
    for verb, url, more in (
        ('PUT', conftest.URL, {}),
        # A signal of the resource says of which config it is.
        ('POST', 'http://h/p', {'deploy_config_id': 'c1'}),
    ):
        inputs = {'deploy_signal_id': url, 'deploy_signal_verb': verb}
        config = configs.read(conftest.config(**inputs))
        sending.signal(config, {'a': 1})
        sent = http.sent.pop()
        assert (sent.verb, sent.url) == (verb, url)
        assert sent.body == {'a': 1, **more}


def test_heat_agents_own_program_speaks_to_keystone(server, http):
    config = configs.read(conftest.config(deploy_auth_url='http://k/v3'))
    failing = 'echo "http://k/v3?sig=s3cret said 503" >&2; exit 1'
    server.program('notifier', f'#!/bin/sh\n{failing}\n')
    answer = sending.signal(config, {'a': 1})
    assert answer.fate is LATER
    assert 'http://k/v3?... said 503' in answer.reason
    script = 'cat >"$0.in"; echo "$1" >"$0.file"'
    server.program('notifier', f'#!/bin/sh\n{script}\n')
    assert sending.signal(config, {'a': 1}).fate is ACCEPTED
    assert http.sent == []
    sent = json.loads((server.path / 'notifier.in').read_text())
    assert sent == {'a': 1, 'deploy_config_id': 'c1'}
    file = (server.path / 'notifier.file').read_text()
    assert file == f'{server.path}/deployed/c1.json\n'


@pytest.mark.parametrize('letter', ['x', 'é', '\U0001f600'])
def test_of_what_is_too_long_the_end_is_sent(letter):
    text = letter * sending.LIMIT + 'the end'
    content = sending.body({'deploy_stdout': text, 'deploy_status_code': 0})
    assert 0.9 * sending.LIMIT < len(content) <= sending.LIMIT
    found = json.loads(content)
    assert found['deploy_stdout'].endswith('the end')
    assert found['deploy_status_code'] == 0


def test_outputs_are_sent_whole_or_not_at_all():
    kept = {'size': 7, 'deploy_stdout': 'short'}
    dropped = {'dump': 'x' * 15_000_000, 'rows': 'y' * sending.LIMIT}
    ended = {'deploy_stderr': 'before\n', 'deploy_status_code': 0}
    content = sending.body(kept | dropped | ended)
    assert len(content) <= sending.LIMIT
    found = json.loads(content)
    said = found['deploy_stderr']
    failed = {'deploy_stderr': said, 'deploy_status_code': 1}
    assert found == kept | failed
    assert said.startswith("before\n\noutput 'dump' is left out\n")
    assert f'the limit is {sending.LIMIT}; let the config' in said


@pytest.mark.parametrize(
    'details',
    [
        {f'output-{number}': 'x' * 1000 for number in range(9000)},
        {'x' * sending.LIMIT: 1},
        {'deploy_stdout': ['x' * sending.LIMIT]},
        {'deploy_status_code': 'x' * sending.LIMIT},
        {'dump': 'x' * 10**7, 'deploy_stdout': 'x' * 10**7},
    ],
)
def test_no_result_is_larger_than_the_limit_and_its_reason_advises(details):
    content = sending.body(details)
    assert len(content) <= sending.LIMIT
    defaults = {option.name: option.default for option in engine.OPTS}
    assert defaults['signal_body_limit'] > sending.LIMIT
    found = json.loads(content)
    assert found['deploy_status_code'] == 1
    assert 'let the config write less' in found['deploy_stderr']
    reason = body.outcome(body.parse(content), []).reason
    assert reason.endswith('; let the config write less to them')


def test_what_hooks_print_holds_no_signatures():
    said = (
        f"deploy_signal_id={conftest.URL}\n'http://cfn/v1/signal?a=b"
        f"&Signature=s3cret%2B' rest"
    )
    found = sending.redact(said.encode()).decode()
    assert 's3cret' not in found
    assert 'temp_url_expires=9999999999' in found
    assert found.endswith("&Signature=***' rest")


#: An engine that wants to know is told when a config has begun.
PUT = {
    'deploy_signal_id': conftest.URL,
    'deploy_signal_verb': 'PUT',
    body.PROGRESS_INPUT: conftest.URL + '&progress',
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
    assert (sent.verb, sent.url) == ('PUT', PUT[body.PROGRESS_INPUT])
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
