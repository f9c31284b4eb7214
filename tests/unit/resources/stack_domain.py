# SPDX-License-Identifier: Apache-2.0
"""A Keystone domain for the users of stacks, and a Zaqar that asks it.

It refuses what a Keystone refuses: a log-in with no password or another one,
and whatever concerns a user that is not there.
"""

import contextlib
from unittest import mock
import uuid

from heat.engine.clients.os import zaqar
from heat.engine.clients.os.keystone import fake_keystoneclient
from keystoneauth1 import exceptions


class Domain:
    """The users of one domain.

    :ivar passwords: of each user, by its id; None for one that has none.
    :ivar domain_admin_client: as Heat's client has it.
    """

    #: As in heat_fixture.
    stack_domain = 'users'

    def __init__(self):
        self.passwords = {}
        self.domain_admin_client = mock.Mock(spec_set=['users'])
        self.domain_admin_client.users = mock.Mock(spec_set=['update'])
        self.domain_admin_client.users.update = self._update

    def _find(self, user_id):
        if user_id not in self.passwords:
            raise exceptions.NotFound(user_id)

    def _update(self, user, *, password):
        self._find(user)
        self.passwords[user] = password

    def create_stack_domain_user(self, username, project_id, password=None):
        user_id = uuid.uuid4().hex
        self.passwords[user_id] = password
        return user_id

    def delete_stack_domain_user(self, user_id, project_id):
        self._find(user_id)
        del self.passwords[user_id]

    def stack_domain_user_token(self, user_id, project_id, password):
        """Log in; raise Unauthorized if that is not the password."""
        self._find(user_id)
        if not password or self.passwords[user_id] != password:
            raise exceptions.Unauthorized('HTTP 401')
        return f'token of {user_id}'

    @contextlib.contextmanager
    def installed(self):
        """Be what Heat's engine finds for as long as this lasts."""
        methods = (
            'create_stack_domain_user',
            'delete_stack_domain_user',
            'stack_domain_user_token',
        )
        with mock.patch.multiple(
            fake_keystoneclient.FakeKeystoneClient,
            create=True,
            domain_admin_client=self.domain_admin_client,
            stack_domain=self.stack_domain,
            **{name: staticmethod(getattr(self, name)) for name in methods},
        ):
            yield self


class Zaqar:
    def __init__(self, token):
        if not token.startswith('token of '):
            raise exceptions.Unauthorized('HTTP 401')

    def queue(self, name):
        found = mock.Mock(spec_set=['signed_url', 'delete'])
        found.signed_url.return_value = {'signature': 'unused'}
        return found


@contextlib.contextmanager
def with_zaqar(heat):
    heat.auth.endpoints['messaging'] = 'http://zaqar.invalid'
    with mock.patch.object(
        zaqar.ZaqarClientPlugin,
        'create_for_tenant',
        lambda plugin, project_id, token: Zaqar(token),
    ):
        yield
