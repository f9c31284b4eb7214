# SPDX-License-Identifier: Apache-2.0
"""What is asked about an agent's server, and said meanwhile."""

import contextlib
import email.message
import io
import json
import types

from minicloud_lib import errors
from minicloud_lib import identity
from minicloud_lib import rest
from minicloud_lib import servers
import testtools

_CONFIG = {'cfn': {'metadata_url': 'http://heat/v1'}}
_SETTINGS = types.SimpleNamespace(
    ca_file=None, auth_url='http://keystone', secrets={'demo': 'secret'}
)


class Heat:
    """Stacks by name, each with its resources by name."""

    def __init__(self):
        self.stacks = {'web': {}}

    def put(self, name, status, config=None):
        """Put a resource into the stack shop."""
        self.stacks.setdefault('shop', {})[name] = {
            'resource_name': name,
            'resource_type': 'OS::Some::Type',
            'resource_status': status,
            'attributes': {'os_collect_config': config},
        }

    def send(self, method, url, *, token):
        assert (method, token) == ('GET', 'token')
        path, _, query = url.partition('?')
        match path.split('/')[2:]:
            case ['heat', 'stacks']:
                found = {'stacks': [{'stack_name': n} for n in self.stacks]}
            case ['heat', 'stacks', name]:
                found = name in self.stacks and {
                    'stack': {'stack_name': name, 'id': f'{name}-id'}
                }
            case ['heat', 'stacks', 'shop', 'shop-id', 'resources']:
                found = {'resources': list(self.stacks['shop'].values())}
            case ['heat', 'stacks', 'shop', 'shop-id', 'resources', name]:
                assert query == 'with_attr=os_collect_config'
                one = self.stacks['shop'].get(name)
                found = one and {'resource': one}
            case _:
                raise AssertionError(url)
        return rest.Answer(
            200 if found else 404,
            email.message.Message(),
            json.dumps(found).encode(),
        )


class BootstrapTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.heat = Heat()
        self.now = 0.0
        self.meanwhile = lambda: None
        self.patch(rest, 'send', self.heat.send)
        self.patch(identity, 'Client', lambda *_: self)
        self.patch(servers, 'time', self)

    # Keystone's client, and the clock

    token = 'token'

    def endpoint(self, service_type):
        self.assertEqual('orchestration', service_type)
        return 'http://heat'

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        self.meanwhile()

    def ask(self):
        """Return the answer, or how it failed, and what was said."""
        with contextlib.redirect_stderr(io.StringIO()) as said:
            try:
                found = servers.bootstrap(
                    _SETTINGS, 'demo', 'shop', 'server', 60
                )
            except errors.MinicloudError as exc:
                found = str(exc)
        return found, said.getvalue().splitlines()

    def test_a_server_that_is_there_is_no_matter_for_words(self):
        self.heat.put('server', 'CREATE_COMPLETE', _CONFIG)
        self.assertEqual((_CONFIG, []), self.ask())

    def test_a_stack_that_is_not_there_is_named_at_once_and_once(self):
        self.heat.stacks['blog'] = {}
        failure, (said,) = self.ask()
        self.assertIn('no stack shop; there are: blog, web', said)
        self.assertIn('no stack shop; there are: blog, web', failure)
        self.assertTrue(60 < self.now < 61)

    def test_so_is_a_resource_that_the_stack_lacks(self):
        self.heat.put('srv', 'CREATE_COMPLETE', _CONFIG)
        _, (said,) = self.ask()
        self.assertIn('shop has no resource server; it has: srv', said)

    def test_what_comes_late_is_waited_for(self):
        self.meanwhile = lambda: self.heat.put('server', 'INIT_COMPLETE')
        failure, (said,) = self.ask()
        self.assertIn('no stack shop', said)
        self.assertIn('server is a OS::Some::Type in INIT_COMPLETE', failure)
        self.meanwhile = lambda: self.heat.put(
            'server', 'CREATE_IN_PROGRESS', _CONFIG
        )
        self.assertEqual((_CONFIG, []), self.ask())
