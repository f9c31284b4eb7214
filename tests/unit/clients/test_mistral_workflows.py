# SPDX-License-Identifier: Apache-2.0
"""Mistral's workflows by way of mistralclient, with answers of our own."""

import json
from urllib import parse

from keystoneauth1 import exceptions as keystone
import pytest

from heat_plugins import errors
from heat_plugins.clients import mistral_api
from heat_plugins.clients import mistral_workflows
from tests.unit import web_service

URL = 'http://mistral.example.com/v2'


class Mistral(web_service.Service):
    """Gives the answers that it was told to, in their order.

    :ivar asked: (method, path, query, body) of each request.
    """

    def __init__(self):
        super().__init__()
        self.answers = []
        self.asked = []

    def answer(self, request):
        parts = parse.urlsplit(request.url.removeprefix(URL))
        query = dict(parse.parse_qsl(parts.query, keep_blank_values=True))
        self.asked.append((request.method, parts.path, query, request.body))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def http():
    return Mistral()


@pytest.fixture
def mistral(http):
    return mistral_workflows.Workflows(client(http), 'ours')


def client(http):
    return mistral_api.connect(web_service.cloud(http, URL))


def row(name, project, number=1):
    return {'id': f'{number}', 'name': name, 'project_id': project}


@pytest.mark.parametrize('workbook', [True, False])
def test_definition_is_validated(mistral, http, workbook):
    http.answers = [(200, {'valid': True})]
    assert mistral.refusal('version:', workbook) is None
    kind = 'workbooks' if workbook else 'workflows'
    assert http.asked == [('POST', f'/{kind}/validate', {}, 'version:')]
    http.answers = [(200, {'valid': False, 'error': 'why'})]
    assert mistral.refusal('version:', workbook) == 'why'


def test_own_workflow_goes_before_a_public_one(mistral, http):
    rows = [row('a', 'theirs', 1), row('a', 'ours', 2), row('b', None, 3)]
    for order in (rows, rows[::-1]):
        http.answers = [(200, {'workflows': order})]
        found = mistral.find(['a', 'b'])
        assert found['a'].id == '2'
        assert found['a'].own
        assert not found['b'].own
    query = http.asked[0][2]
    assert query['name'] == 'in:a,b'
    assert query['namespace'] == 'eq:'


def test_many_names_are_asked_for_in_several_requests(mistral, http):
    http.answers = [(200, {'workflows': []})] * 4
    mistral.find([*(f'n{number}' for number in range(45)), 'with, comma'])
    names = [query['name'] for _, _, query, _ in http.asked]
    assert [name.count(',') for name in names] == [19, 19, 4, 1]
    assert names[-1] == 'eq:with, comma'


def test_namespace_is_told(http):
    mistral = mistral_workflows.Workflows(client(http), 'ours', 'space')
    http.answers = [
        (201, {'workflows': []}),
        (200, {'workflows': []}),
        (204, None),
        (201, {'id': 'x'}),
        (200, {'workflows': []}),
    ]
    mistral.create('version:')
    mistral.update('version:')
    mistral.delete('1')
    mistral.start('x', 'a', {}, {}, '')
    mistral.find(['a'])
    for number in (0, 1, 2):
        assert http.asked[number][2]['namespace'] == 'space'
    assert json.loads(http.asked[3][3])['workflow_namespace'] == 'space'
    assert http.asked[4][2]['namespace'] == 'eq:space'


def test_execution_is_started_with_its_id(mistral, http):
    http.answers = [(201, {'id': 'x'})]
    mistral.start('x', 'a', {'i': 1}, {'description': 'p'}, 'why')
    assert json.loads(http.asked[0][3]) == {
        'id': 'x',
        'workflow_name': 'a',
        'workflow_namespace': '',
        'input': '{"i": 1}',
        'params': '{"description": "p"}',
        'description': 'why',
    }


def test_executions_come_newest_first_from_one_namespace(mistral, http):
    def one(number, when, **values):
        return {'id': f'{number}', 'created_at': when, **values}

    http.answers = [
        (
            200,
            {
                'executions': [
                    one(1, '10'),
                    one(2, '11', workflow_namespace='other'),
                    one(4, '11'),
                    one(3, '11'),
                ]
            },
        )
    ]
    found = mistral.executions(['a'], 2)
    assert [each['id'] for each in found] == ['4', '3']
    query = http.asked[0][2]
    assert query['nulls'] == 'task_execution_id'
    assert query['include_output'] == 'True'
    other = one(5, '12', state='RUNNING', workflow_namespace='other')
    http.answers = [(200, {'executions': [other]})]
    assert not mistral.running(['a'])


def test_all_pages_of_executions_are_read(mistral, http, monkeypatch):
    monkeypatch.setattr(mistral_api, '_ROWS', 2)

    def page(*states):
        rows = [
            {'id': f'id{n}', 'state': state} for n, state in enumerate(states)
        ]
        return 200, {'executions': rows}

    http.answers = [page('SUCCESS', 'RUNNING'), page('PAUSED')]
    assert [one.finished for one in mistral.begun(['a'])] == [
        True,
        False,
        False,
    ]
    assert http.asked[1][2]['marker'] == 'id1'
    http.answers = [page('SUCCESS', 'RUNNING')]
    assert next(iter(mistral.begun(['a']))).finished
    http.answers = [page('SUCCESS')]
    assert not mistral.running(['a'])
    http.answers = [page('IDLE')]
    assert mistral.running(['a'])


def test_what_triggers_began_is_known_by_its_description(mistral, http):
    causes = [
        json.dumps({'triggered_by': {'type': kind, 'id': '1'}})
        for kind in ('cron_trigger', 'event_trigger')
    ]
    texts = [*causes, '{"triggered_by": 1}', '["x"]', 'x', '', None]
    rows = [
        {'id': f'{n}', 'state': 'RUNNING', 'description': text}
        for n, text in enumerate(texts)
    ]
    http.answers = [(200, {'executions': rows})]
    found = [one.by_trigger for one in mistral.begun(['a'])]
    assert found == [True, True, False, False, False, False, False]


def test_triggers_of_other_namespaces_do_not_count(mistral, http):
    triggers = [
        {'name': f't{n}', 'workflow_name': 'a', 'workflow_id': n}
        for n in ('1', '2')
    ]
    http.answers = [
        (200, {'workflows': [row('a', 'ours', 1)]}),
        (200, {'cron_triggers': triggers}),
    ]
    assert mistral.triggers(['a']) == {'t1': 'a'}
    assert http.asked[1][2]['workflow_name'] == 'in:a'


def test_execution_is_ended(mistral, http):
    http.answers = [(200, {'id': 'x'}), (204, None)]
    mistral.cancel('x')
    mistral.delete_execution('x')
    assert json.loads(http.asked[0][3]) == {'state': 'CANCELLED'}
    assert http.asked[1][2] == {'force': 'True'}


def test_workbooks_and_actions_are_served(mistral, http):
    http.answers = [
        (404, {'faultstring': 'no'}),
        (201, {}),
        (200, {}),
        (200, {}),
        (204, None),
        (204, None),
    ]
    assert not mistral.has_book('b')
    mistral.create_book('version:')
    mistral.update_book('version:')
    assert mistral.has_book('b')
    mistral.delete_book('b')
    mistral.delete_action('b.a')
    assert [asked[0] for asked in http.asked] == [
        'GET',
        'POST',
        'PUT',
        'GET',
        'DELETE',
        'DELETE',
    ]


@pytest.mark.parametrize(
    ('answer', 'kind'),
    [
        ((400, {'faultstring': 'bad'}), errors.ServiceError),
        ((503, b'<html>busy</html>'), errors.Unavailable),
        ((404, {}), errors.NotFound),
        (keystone.ConnectFailure('refused'), errors.Unavailable),
    ],
)
def test_every_error_is_judged(mistral, http, answer, kind):
    for call in (
        lambda: mistral.delete('1'),
        lambda: mistral.start('x', 'a', {}, {}, ''),
    ):
        http.answers = [answer]
        with pytest.raises(errors.ServiceError) as caught:
            call()
        assert type(caught.value) is kind
