# SPDX-License-Identifier: Apache-2.0
"""What an action does with the context that Mistral gives it."""

import datetime
import json

from keystoneauth1 import fixture as ks_fixture
from keystoneauth1 import loading
from keystonemiddleware import auth_token  # noqa: F401  registers options
from mistral_lib.actions import context as contexts
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from requests import adapters
import testtools

from heat_plugins import errors
from heat_plugins.mistral_actions import sessions
from tests.unit import web_service

KEYSTONE = 'https://keystone.example.com/v3'
AUTH = 'keystone_authtoken'


def token(**more):
    """Return what Keystone says of a token, with a Heat in two regions."""
    found = ks_fixture.V3Token(user_name='ann', **more)
    found.set_project_scope()
    service = found.add_service('orchestration')
    for region in ('north', 'south'):
        service.add_standard_endpoints(
            public=f'https://{region}.example.com',
            internal=f'https://{region}.internal.example.com',
            region=region,
        )
    return found


def user_name(session):
    """Return the name of the user in whose name a session is."""
    auth = getattr(session.auth, 'user_auth', session.auth)
    return auth.get_access(session).username


class SessionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        loading.register_auth_conf_options(cfg.CONF, AUTH)
        options = loading.get_auth_plugin_conf_options('v3password')
        self.conf.register_opts(options, group=AUTH)
        self.conf.config(
            group=AUTH,
            www_authenticate_uri='https://keystone.example.com',
            auth_type='v3password',
            cafile='/etc/ssl/cloud.pem',
            auth_url=KEYSTONE,
            username='mistral',
            password='of-mistral',
            user_domain_id='default',
            project_name='service',
            project_domain_id='default',
        )
        self.sent = []
        self.patch(adapters.HTTPAdapter, 'send', self.answer)

    def answer(self, request, **options):
        """Answer as Keystone does; nobody else is expected to be asked."""
        asked = json.loads(request.body)['auth']
        self.sent.append((asked, options['verify']))
        assert request.url == f'{KEYSTONE}/auth/tokens'
        headers = {'X-Subject-Token': 'a-token-of-the-trust'}
        return web_service.respond(request, 201, token(), headers)

    def of_user(self, **more):
        values = {
            'auth_token': 'a-token-of-ann',
            'service_catalog': token()['token'],
            'auth_cacert': '/etc/ssl/of-the-user.pem',
            'insecure': False,
            **more,
        }
        return contexts.SecurityContext(**values)

    def expired(self, **more):
        when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(1)
        catalog = token(expires=when)['token']
        return self.of_user(service_catalog=catalog, **more)

    #: What Mistral gives to what a cron trigger starts.
    of_trigger = contexts.SecurityContext(
        auth_token='an-old-token', trust_id='trust-1', insecure=False
    )

    def vouches(self, security):
        """Say whether Mistral vouches for a token with one of its own."""
        headers = sessions.cloud(security).session.get_auth_headers()
        assert headers['X-Auth-Token'] == 'a-token-of-ann'
        return headers.get('X-Service-Token') == 'a-token-of-the-trust'

    def test_a_users_token_is_used_with_its_catalogue_and_nothing_asked(self):
        session = sessions.cloud(self.of_user()).session
        assert session.get_token() == 'a-token-of-ann'
        assert user_name(session) == 'ann'
        assert session.verify == '/etc/ssl/of-the-user.pem'
        assert self.sent == []
        # Without one there is nothing to act with.
        without = self.of_user(service_catalog=None)
        for security in (without, contexts.SecurityContext()):
            self.assertRaises(errors.Denied, sessions.cloud, security)

    def test_a_trust_is_used_and_not_the_token_that_mistral_got_for_it(self):
        session = sessions.cloud(self.of_trigger).session
        assert session.get_token() == 'a-token-of-the-trust'
        assert user_name(session) == 'ann'
        ((asked, verify),) = self.sent
        assert asked['scope'] == {'OS-TRUST:trust': {'id': 'trust-1'}}
        assert asked['identity']['password']['user']['name'] == 'mistral'
        assert verify == '/etc/ssl/cloud.pem'

    def test_mistral_vouches_for_a_token_that_has_expired(self):
        # Not for a valid one, nor before another cloud.
        assert not self.vouches(self.of_user())
        assert not self.vouches(self.expired(is_target=True))
        assert self.sent == []
        assert self.vouches(self.expired())
        ((asked, _),) = self.sent
        assert asked['scope']['project']['name'] == 'service'
        assert user_name(sessions.cloud(self.expired()).session) == 'ann'
        self.conf.config(group=AUTH, auth_type=None)
        assert not self.vouches(self.expired())

    def test_the_endpoint_is_of_the_region_and_kind_that_are_wanted(self):
        def url(**more):
            cloud = sessions.cloud(self.of_user(**more))
            return cloud.session.get_endpoint(**cloud.filter('orchestration'))

        assert url(region_name='south') == 'https://south.example.com'
        self.conf.config(
            group='openstack_actions',
            default_region='south',
            os_actions_endpoint_type='internal',
        )
        assert url() == 'https://south.internal.example.com'
        north = 'https://north.internal.example.com'
        assert url(region_name='north') == north

    def test_options_that_mistrals_own_actions_have_registered_are_used(self):
        conf = cfg.ConfigOpts()
        theirs = [
            cfg.StrOpt('os-actions-endpoint-type', default='admin'),
            cfg.StrOpt('default_region', help='as mistral-extra has it'),
        ]
        conf.register_opts(theirs, group='openstack_actions')
        self.patch(sessions, 'CONF', conf)
        found = sessions.cloud(self.of_user())
        assert found.interface == 'admin'
        assert found.region_name is None

    def test_certificates_are_checked_unless_somebody_said_not_to(self):
        for security in (self.of_user(insecure=True), self.of_trigger):
            self.conf.config(group=AUTH, insecure=True)
            assert sessions.cloud(security).session.verify is False
        self.conf.config(group=AUTH, insecure=False, cafile=None)
        assert sessions.cloud(self.of_trigger).session.verify is True
