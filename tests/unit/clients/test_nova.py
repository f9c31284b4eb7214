# SPDX-License-Identifier: Apache-2.0
"""Servers are listed page by page, however few Nova puts on one."""

from urllib import parse

import testtools

from heat_plugins import errors
from heat_plugins.clients import nova
from tests.unit import web_service


class Nova(web_service.Service):
    """A Nova that gives two servers a page."""

    def __init__(self, *names):
        super().__init__()
        self.names = names

    def answer(self, request):
        parts = parse.urlsplit(request.url)
        query = dict(parse.parse_qsl(parts.query))
        if not parts.path.endswith('/servers') or 'limit' not in query:
            return 404, {'itemNotFound': {'message': 'no such thing'}}
        first = int(query.get('marker', -1)) + 1
        page = [*enumerate(self.names)][first : first + 2]
        return 200, {
            'servers': [{'id': str(at), 'name': name} for at, name in page]
        }


class ServersTest(testtools.TestCase):
    def test_all_pages_are_read(self):
        for names in ((), ('a',), ('a', 'b'), ('a', 'b', 'c', 'd', 'e')):
            cloud = web_service.cloud(Nova(*names), 'http://nova.invalid')
            self.assertEqual(
                {str(at): name for at, name in enumerate(names)},
                nova.servers(cloud),
            )

    def test_a_server_is_gone_only_if_nova_answers_404(self):
        service = Nova()
        cloud = web_service.cloud(service, 'http://nova.invalid')
        self.assertFalse(nova.is_there(cloud, 'a'))
        service.answer = lambda request: (200, {'server': {'id': 'a'}})
        self.assertTrue(nova.is_there(cloud, 'a'))
        for status in (300, 403, 410, 500):
            service.answer = lambda request, status=status: (status, {})
            self.assertRaises(errors.ServiceError, nova.is_there, cloud, 'a')

    def test_novas_own_words_are_told(self):
        service = Nova()
        service.answer = lambda request: (
            403,
            {'forbidden': {'message': 'not you'}},
        )
        error = self.assertRaises(
            errors.ServiceError,
            nova.servers,
            web_service.cloud(service, 'http://nova.invalid'),
        )
        self.assertIn('not you', str(error))
        self.assertIn('Nova answered 403', str(error))
