# SPDX-License-Identifier: Apache-2.0
"""What an action does with the context that Mistral gives it."""

import datetime
import io
import json

from keystoneauth1 import fixture as ks_fixture
from keystoneauth1 import loading
from keystonemiddleware import auth_token  # noqa: F401  registers options
from mistral_lib.actions import context as contexts
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import requests
from requests import adapters
import testtools

from heat_plugins import errors
from heat_plugins.mistral_actions import sessions

KEYSTONE = 'https://keystone.example.com/v3'
TOKENS = f'{KEYSTONE}/auth/tokens'


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
        loading.register_auth_conf_options(cfg.CONF, 'keystone_authtoken')
        self.conf.config(
            group='keystone_authtoken',
            www_authenticate_uri='https://keystone.example.com',
            auth_type='v3password',
            cafile='/etc/ssl/cloud.pem',
        )
        self.conf.register_opts(
            loading.get_auth_plugin_conf_options('v3password'),
            group='keystone_authtoken',
        )
        self.conf.config(
            group='keystone_authtoken',
            auth_url=KEYSTONE,
            username='mistral',
            password='of-mistral',
            user_domain_id='default',
            project_name='service',
            project_domain_id='default',
        )
        self.sent = []
        self.status = 201
        self.patch(adapters.HTTPAdapter, 'send', self.answer)

    def answer(self, request, **options):
        """Answer as Keystone does; nobody else is expected to be asked."""
        self.sent.append((request, options['verify']))
        assert request.url == TOKENS, f'{request.url} was not expected'
        found = requests.Response()
        found.status_code = self.status
        found.headers['X-Subject-Token'] = 'a-token-of-the-trust'
        found.raw = io.BytesIO(json.dumps(token()).encode())
        found.url, found.request = request.url, request
        return found

    def of_user(self, **more):
        values = {
            'auth_token': 'a-token-of-ann',
            'service_catalog': token()['token'],
            'auth_cacert': '/etc/ssl/of-the-user.pem',
            'insecure': False,
            **more,
        }
        return contexts.SecurityContext(**values)

    def of_trigger(self):
        """Return what Mistral gives to what a cron trigger starts."""
        return contexts.SecurityContext(
            auth_token='an-old-token', trust_id='trust-1', insecure=False
        )

    def url(self, security):
        """Return the URL at which an action looks for Heat."""
        cloud = sessions.cloud(security)
        return cloud.session.get_endpoint(
            service_type='orchestration',
            interface=cloud.interface,
            region_name=cloud.region_name,
        )

    def test_a_users_token_is_used_with_its_catalogue_and_nothing_asked(self):
        session = sessions.cloud(self.of_user()).session
        self.assertEqual('a-token-of-ann', session.get_token())
        self.assertEqual('ann', user_name(session))
        self.assertEqual('/etc/ssl/of-the-user.pem', session.verify)
        self.assertEqual([], self.sent)

    def test_a_trust_is_used_and_not_the_token_that_mistral_got_for_it(self):
        session = sessions.cloud(self.of_trigger()).session
        self.assertEqual('a-token-of-the-trust', session.get_token())
        self.assertEqual('ann', user_name(session))
        ((request, verify),) = self.sent
        asked = json.loads(request.body)['auth']
        self.assertEqual({'OS-TRUST:trust': {'id': 'trust-1'}}, asked['scope'])
        user = asked['identity']['password']['user']
        self.assertEqual('mistral', user['name'])
        self.assertEqual('/etc/ssl/cloud.pem', verify)

    def expired(self, **more):
        when = datetime.datetime.now(datetime.UTC) - datetime.timedelta(1)
        return self.of_user(
            service_catalog=token(expires=when)['token'], **more
        )

    def test_mistral_vouches_for_a_token_that_has_expired(self):
        session = sessions.cloud(self.expired()).session
        headers = session.get_auth_headers()
        self.assertEqual('a-token-of-ann', headers['X-Auth-Token'])
        self.assertEqual('a-token-of-the-trust', headers['X-Service-Token'])
        ((request, _),) = self.sent
        asked = json.loads(request.body)['auth']
        self.assertEqual('service', asked['scope']['project']['name'])
        self.assertEqual('ann', user_name(session))

    def test_it_does_not_for_a_valid_one_nor_before_another_cloud(self):
        for security in (self.of_user(), self.expired(is_target=True)):
            headers = sessions.cloud(security).session.get_auth_headers()
            self.assertNotIn('X-Service-Token', headers)
        self.assertEqual([], self.sent)
        self.conf.config(group='keystone_authtoken', auth_type=None)
        session = sessions.cloud(self.expired()).session
        self.assertNotIn('X-Service-Token', session.get_auth_headers())

    def test_without_a_token_or_a_catalogue_there_is_nothing_to_act_with(self):
        for security in (
            self.of_user(service_catalog=None),
            contexts.SecurityContext(),
        ):
            self.assertRaises(errors.Denied, sessions.cloud, security)

    def test_the_endpoint_is_of_the_region_and_kind_that_are_wanted(self):
        self.assertEqual(
            'https://south.example.com',
            self.url(self.of_user(region_name='south')),
        )
        self.conf.config(
            group='openstack_actions',
            default_region='south',
            os_actions_endpoint_type='internal',
        )
        self.assertEqual(
            'https://south.internal.example.com', self.url(self.of_user())
        )
        self.assertEqual(
            'https://north.internal.example.com',
            self.url(self.of_user(region_name='north')),
        )

    def test_options_that_mistrals_own_actions_have_registered_are_used(self):
        conf = cfg.ConfigOpts()
        theirs = [
            cfg.StrOpt('os-actions-endpoint-type', default='admin'),
            cfg.StrOpt('default_region', help='as mistral-extra has it'),
        ]
        conf.register_opts(theirs, group='openstack_actions')
        self.patch(sessions, 'CONF', conf)
        found = sessions.cloud(self.of_user())
        self.assertEqual('admin', found.interface)
        self.assertIsNone(found.region_name)

    def test_certificates_are_checked_unless_somebody_said_not_to(self):
        for security in (self.of_user(insecure=True), self.of_trigger()):
            self.conf.config(group='keystone_authtoken', insecure=True)
            self.assertIs(False, sessions.cloud(security).session.verify)
        self.conf.config(
            group='keystone_authtoken', insecure=False, cafile=None
        )
        session = sessions.cloud(self.of_trigger()).session
        self.assertIs(True, session.verify)
