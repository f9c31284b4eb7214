# SPDX-License-Identifier: Apache-2.0
"""Environments and executions, with answers as Mistral gives them."""

import json
from unittest import mock
from urllib import parse

from keystoneauth1 import token_endpoint
import testtools

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.clients import mistral_plans
from heat_plugins.plans import plan_claims
from tests.unit import web_service

URL = 'http://mistral.example.com/v2'


def record(name, **values):
    about = f'The {name}'
    return plan_claims.Record(name=name, description=about, values=values)


class Auth(token_endpoint.Token):
    def get_project_id(self, session):
        return 'project-1'


class Mistral(web_service.Service):
    """Mistral's environments; an AssertionError for what it has not."""

    def __init__(self):
        super().__init__()
        self.rows = []
        self.count = 0

    def add(self, name, project='project-1', **values):
        row = {'id': f'id-{len(self.rows)}', 'name': name}
        row.update(description=f'The {name}', project_id=project)
        self.rows.append({**row, 'variables': values})

    def answer(self, request):
        parts = parse.urlsplit(request.url.removeprefix(URL))
        self.count += 1
        query = dict(parse.parse_qsl(parts.query))
        return getattr(self, request.method)(request, parts.path, query)

    def POST(self, request, path, query):
        assert path == '/environments' and not query
        body = json.loads(request.body)
        taken = [(row['name'], row['project_id']) for row in self.rows]
        if (body['name'], 'project-1') in taken:
            return 409, {'faultstring': 'Duplicate entry'}
        self.add(body['name'], **json.loads(body['variables']))
        return 201, self.rows[-1]

    def GET(self, request, path, query):
        assert path == '/environments'
        assert int(query.pop('limit')) == 1000
        fields = query.pop('fields').split(',')
        rows = sorted(self.rows, key=lambda row: row['name'])
        if 'name' in query:
            value = query.pop('name')
            rows = [row for row in rows if value == f'eq:{row["name"]}']
        else:
            assert query.pop('sort_keys') == 'name'
        if marker := query.pop('marker', None):
            ids = [row['id'] for row in rows]
            del rows[: ids.index(marker) + 1]
        assert not query
        shown = [{f: row[f] for f in fields} for row in rows[:1000]]
        return 200, {'environments': shown}

    def DELETE(self, request, path, query):
        name = parse.unquote(path.removeprefix('/environments/'))
        # So does Mistral: those that others have made public go as well.
        left = [row for row in self.rows if row['name'] != name]
        gone, self.rows = len(self.rows) > len(left), left
        return (204, None) if gone else (404, {'faultstring': 'not found'})


class RegistryTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.mistral = Mistral()
        self.registry = mistral_plans.MistralRegistry(
            web_service.cloud(self.mistral, URL, auth=Auth)
        )

    def test_a_name_is_taken_and_given_back_once(self):
        name = 'plan-lock:a/b'
        assert self.registry.create(record(name, x=[1]))
        assert not self.registry.create(record(name, x=[2]))
        assert self.registry.get(name) == record(name, x=[1])
        # Variables may come as text.
        self.mistral.rows[0]['variables'] = '{"x": 1}'
        assert self.registry.get(name).values == {'x': 1}
        assert self.registry.delete(name)
        assert not self.registry.delete(name)
        assert self.registry.get(name) is None

    def test_what_others_have_made_public_is_not_ours(self):
        self.mistral.add('a', project='other')
        assert self.registry.get('a') is None
        assert self.registry.find() == []
        self.registry.create(record('a'))
        assert self.registry.get('a') == record('a')
        # Mistral would delete both.
        delete = (self.registry.delete, 'a')
        error = self.assertRaises(errors.ServiceError, *delete)
        assert 'public environment a' in str(error)
        assert len(self.mistral.rows) == 2

    def test_all_are_found_page_by_page(self):
        names = [f'n{number:04}' for number in range(2001)]
        for name in names:
            self.mistral.add(name)
        assert [one.name for one in self.registry.find()] == names
        assert self.mistral.count == 3


class ExecutionsTest(testtools.TestCase):
    def test_a_step_of_a_plan_is_begun_and_polled_by_its_kind(self):
        mistral = web_service.Service()
        executions = mistral_plans.WorkflowExecutions(
            web_service.cloud(mistral, URL)
        )
        for kind, path in (
            (jobs.CallKind.WORKFLOW, '/executions'),
            (jobs.CallKind.ACTION, '/action_executions'),
        ):
            shown = {'id': 'a-1', 'state': 'RUNNING', 'state_info': 'boom'}
            # What is made is answered by 201.
            mistral.answer = mock.Mock(
                side_effect=[(201, shown), *[(200, shown)] * 3]
            )
            step = jobs.Call(kind=kind, name='x', input={'a': 1})
            begun = executions.start(step, 'plan p')
            ((request,), _) = mistral.answer.call_args
            assert (request.method, request.url) == ('POST', f'{URL}{path}')
            body = json.loads(request.body)
            assert begun == body.get('id', 'a-1')
            assert json.loads(body['input']) == {'a': 1}
            for state, result, success, reason in (
                ('RUNNING', None, None, ''),
                ('SUCCESS', 7, True, ''),
                ('ERROR', 'boom', False, 'ERROR: boom'),
            ):
                output = json.dumps({'result': result})
                shown.update(state=state, output=output)
                ended = jobs.CallOutcome(success=success, reason=reason)
                assert executions.look(step, 'a-1') == ended
                ((request,), _) = mistral.answer.call_args
                assert request.url == f'{URL}{path}/a-1'

    def test_an_error_is_the_workflow_s_or_else_the_reason_of_mistral(self):
        theirs = 'Execution e-1 of Mistral: because'
        said = {'code': 'not-found', 'message': 'No plan'}
        for output, kind, text in (
            ({'error': said}, errors.NotFound, 'No plan'),
            ({}, errors.ServiceError, theirs),
            ({'error': "Heartbeat wasn't"}, errors.ServiceError, theirs),
        ):
            error = mistral_plans.WorkflowExecution(
                id='e-1', state='ERROR', reason='because', output=output
            ).error()
            assert (type(error), str(error)) == (kind, text)
