# SPDX-License-Identifier: Apache-2.0
"""Names in Mistral's environments, with answers as Mistral gives them."""

import json
from urllib import parse

from keystoneauth1 import token_endpoint
import requests
import testtools

from heat_plugins import errors
from heat_plugins.clients import mistral_plans
from heat_plugins.plans import plan_claims
from tests.unit import web_service

URL = 'http://mistral.example.com/v2'


def record(name, **values):
    return plan_claims.Record(
        name=name, description=f'The {name}', values=values
    )


class Auth(token_endpoint.Token):
    def get_project_id(self, session):
        return 'project-1'


class Mistral(web_service.Service):
    """Mistral's environments; an AssertionError for what it has not."""

    def __init__(self):
        super().__init__()
        self.rows = []
        self.asked = []
        self.broken = None

    def add(self, name, project='project-1', **values):
        self.rows.append(
            {
                'id': f'id-{len(self.rows)}',
                'name': name,
                'description': f'The {name}',
                'project_id': project,
                'variables': values,
            }
        )

    def answer(self, request):
        parts = parse.urlsplit(request.url.removeprefix(URL))
        self.asked.append(f'{request.method} {parts.path}')
        if isinstance(self.broken, Exception):
            raise self.broken
        return self.broken or getattr(self, request.method)(
            request, parts.path, dict(parse.parse_qsl(parts.query))
        )

    def POST(self, request, path, query):
        assert path == '/environments' and not query
        body = json.loads(request.body)
        assert set(body) == {'name', 'description', 'variables'}
        for row in self.rows:
            if (row['name'], row['project_id']) == (body['name'], 'project-1'):
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
        ids = [row['id'] for row in rows]
        start = ids.index(query.pop('marker')) + 1 if 'marker' in query else 0
        assert not query
        shown = [{f: row[f] for f in fields} for row in rows]
        return 200, {'environments': shown[start : start + 1000]}

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

    def test_a_name_is_taken_once(self):
        self.assertTrue(self.registry.create(record('a', x=[1])))
        self.assertFalse(self.registry.create(record('a', x=[2])))
        self.assertEqual(record('a', x=[1]), self.registry.get('a'))

    def test_what_others_have_made_public_is_not_ours(self):
        self.mistral.add('a', project='other')
        self.assertIsNone(self.registry.get('a'))
        self.assertEqual([], self.registry.find())
        self.registry.create(record('a'))
        self.assertEqual(record('a'), self.registry.get('a'))
        # Mistral would delete both.
        error = self.assertRaises(
            errors.ServiceError, self.registry.delete, 'a'
        )
        self.assertIn('public environment a', str(error))
        self.assertEqual(2, len(self.mistral.rows))

    def test_all_are_found_page_by_page(self):
        for number in range(2001):
            self.mistral.add(f'n{number:04}', number=number)
        found = self.registry.find()
        self.assertEqual(
            [f'n{number:04}' for number in range(2001)],
            [one.name for one in found],
        )
        self.assertEqual(3, len(self.mistral.asked))

    def test_variables_may_come_as_text(self):
        self.mistral.add('a')
        self.mistral.rows[0]['variables'] = '{"x": 1}'
        self.assertEqual({'x': 1}, self.registry.get('a').values)

    def test_a_name_is_given_back_once(self):
        self.registry.create(record('plan-lock:a/b'))
        self.assertTrue(self.registry.delete('plan-lock:a/b'))
        self.assertFalse(self.registry.delete('plan-lock:a/b'))
        self.assertIsNone(self.registry.get('plan-lock:a/b'))

    def test_failures_are_judged_as_mistrals(self):
        self.mistral.broken = requests.ConnectionError('cut')
        self.assertRaises(errors.Unavailable, self.registry.find)
        self.mistral.broken = (403, {'faultstring': 'because'})
        error = self.assertRaises(errors.Denied, self.registry.get, 'a')
        self.assertEqual(403, error.status)
        self.assertIn('because', str(error))
