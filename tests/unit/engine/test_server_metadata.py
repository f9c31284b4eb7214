# SPDX-License-Identifier: Apache-2.0
"""Servers are told what they must run: many at a time, and none is lost."""

import functools
import types

import fixtures
import requests
from requests import cookies
import testtools

from heat_plugins import retrying
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import server_metadata
from tests.unit.resources import deployments


class ObjectStore:
    """Where servers read their metadata.

    :ivar answers: what a URL answers, before 201; the last one stays.
    :ivar meanwhile: called as something is put.
    """

    def __init__(self):
        self.put_to = []
        self.answers = {}
        self.meanwhile = lambda: None

    def put(self, url, body, timeout):
        self.put_to.append(url)
        self.meanwhile()
        answers = self.answers.get(url, [201])
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if isinstance(answer, Exception):
            raise answer
        return types.SimpleNamespace(status_code=answer)


class ServersTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.store = ObjectStore()
        self.slept = []
        self.patch(server_metadata, 'session', lambda: self.store)
        self.patch(server_metadata, '_written_at', {})
        sleep = {'sleep': self.slept.append}
        clock = types.SimpleNamespace(monotonic=lambda: self.now, **sleep)
        self.patch(server_metadata, 'time', clock)
        insist = functools.partial(retrying.insist, **sleep)
        self.patch(retrying, 'insist', insist)

    def reading(self, *keys):
        server = deployments.template()['resources']['server']
        more = dict.fromkeys(keys, server)
        stack = self.created(deployments.template(resources=more))
        for key in keys:
            stack[key].data_set('metadata_put_url', f'http://store/{key}')
        return {stack[key].resource_id: stack[key] for key in keys}

    def tell(self, servers):
        server_metadata.tell(self.heat.context, servers)

    def test_each_is_put_once_and_many_cost_as_many_reads_as_one(self):
        def reads(servers):
            with self.counting_queries() as statements:
                self.tell(servers)
            return sum(each.startswith('SELECT') for each in statements)

        servers = self.reading('a', 'b', 'c')
        assert reads(servers) == reads([*servers][:1])
        assert sorted(self.store.put_to) == [
            f'http://store/{key}' for key in 'aabc'
        ]

    def test_agents_run_configs_in_the_order_of_their_names(self):
        more = {
            name: deployments.deployment(name=name)
            for name in ('c', 'a', 'd', 'b')
        }
        stack = self.created(deployments.template(resources=more, name='e'))
        given = self.heat.load(stack)['server'].metadata_get()['deployments']
        assert [each['name'] for each in given] == [*'abcde']

    def test_a_store_that_is_out_of_order_is_asked_again(self):
        servers = self.reading('a', 'b')
        url = 'http://store/a'
        outage = requests.ConnectionError(f'{url}?temp_url_sig=x')
        logged = self.useFixture(fixtures.FakeLogger())
        for answers, count, told in (
            ([503, outage, 201], 4, False),
            # One that is refused keeps no other waiting.
            ([403], 2, True),
        ):
            self.store.answers[url] = answers
            del self.store.put_to[:]
            self.tell(servers)
            assert self.store.put_to.count('http://store/b') == 1
            assert len(self.store.put_to) == count
            assert (': HTTP 403' in logged.output) is told

    def test_a_database_that_cuts_off_a_read_is_asked_again(self):
        servers = self.reading('a')
        self.break_database(resources, 'find_all', 1)
        logged = self.useFixture(fixtures.FakeLogger())
        self.tell(servers)
        assert self.store.put_to == ['http://store/a']
        assert 'parameters' not in logged.output

    def test_what_somebody_else_has_written_meanwhile_is_put_again(self):
        servers = self.reading('a', 'b')
        (server, *_) = servers.values()

        def write():
            self.store.meanwhile = lambda: None
            server.metadata_set({'of': 'another'})

        self.store.meanwhile = write
        self.tell(servers)
        assert len(self.store.put_to) == 3

    def test_a_second_lies_between_two_objects_of_a_server(self):
        servers = self.reading('a')
        self.tell(servers)
        assert self.slept == []
        self.tell(servers)
        assert self.slept == [1.0]
        self.now += 5
        self.tell(servers)
        assert self.slept == [1.0]


class SharingTest(deployments.DeploymentTestCase):
    def test_servers_of_other_readers_are_told_apart(self):
        told = []
        server_metadata.tellings.cache_clear()
        self.addCleanup(server_metadata.tellings.cache_clear)

        def tell(reading_project, wanted):
            told.append((reading_project, set(wanted)))
            return ()

        self.patch(server_metadata, '_tell', tell)
        for project in (None, 'zaqar'):
            server_metadata.tell(self.heat.context, ['a'], project)
        assert told == [(None, {'a'}), ('zaqar', {'a'})]


class SessionTest(testtools.TestCase):
    def test_a_store_sets_no_cookie_that_another_project_sends(self):
        url = 'https://store.example/'
        request = cookies.MockRequest(requests.Request('PUT', url).prepare())
        cookie = cookies.create_cookie('tenant', 'a', domain='store.example')
        for session, is_kept in (
            (requests.Session(), True),
            (server_metadata.session(), False),
        ):
            policy = session.cookies.get_policy()
            assert policy.set_ok(cookie, request) == is_kept
