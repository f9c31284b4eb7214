# SPDX-License-Identifier: Apache-2.0
"""What agents need of heat.conf."""

from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck
import requests
import testtools

from heat_plugins import wording
from heat_plugins.checks import agents
from tests.unit import web_service

Code = upgradecheck.Code

URL = 'http://swift.example.com/v1'


def answering(*answers, url=URL):
    """Return a mock that answers in turn, and the session to it."""
    service = web_service.Service()
    service.answer = mock.Mock(side_effect=answers)
    return service.answer, web_service.session(service, url)


class SignedURLTest(testtools.TestCase):
    """How heat-api-cfn asks Keystone about the URLs that Heat signs."""

    def setUp(self):
        super().setUp()
        self.configure = self.useFixture(
            config_fixture.Config(cfg.CONF)
        ).config
        self.configure(
            stack_user_domain_name='x',
            stack_domain_admin='x',
            stack_domain_admin_password='x',
        )

    def by(self, out, back='TEMP_URL_POLL', session=None):
        self.configure(default_software_config_transport=out)
        given = {'default_deployment_signal_transport': back}
        self.configure(group='heat_plugins', **given)
        return agents.transports(session)

    def test_without_a_domain_no_server_has_a_user(self):
        self.configure(stack_user_domain_name=None)
        said = 'set stack_user_domain_name in'
        for out, code in (
            ('POLL_TEMP_URL', Code.WARNING),
            ('POLL_SERVER_HEAT', Code.FAILURE),
        ):
            found = self.by(out)
            assert found.code == code
            assert (said in found.details) == (code is Code.FAILURE)

    def test_the_services_that_they_stand_on_must_answer(self):
        self.configure(group='ec2authtoken', multi_cloud=True)
        away = requests.ConnectionError()
        for answer, url, code, said in (
            ((300,), URL, Code.SUCCESS, f'answers at {URL}'),
            ((503,), URL, Code.FAILURE, f'answers 503 at {URL}'),
            (away, URL, Code.FAILURE, 'not answer from here (ConnectFailure)'),
            ((), None, Code.FAILURE, wording.no_service('object-store')),
        ):
            _, session = answering(answer, url=url)
            found = self.by('POLL_TEMP_URL', session=session)
            assert found.code == code
            assert said in found.details

    def test_without_options_for_it_what_needs_it_fails(self):
        for out, back, code in (
            ('POLL_TEMP_URL', 'CFN_SIGNAL', Code.FAILURE),
            ('POLL_SERVER_CFN', 'TEMP_URL_POLL', Code.FAILURE),
            ('POLL_SERVER_HEAT', 'HEAT_SIGNAL', Code.WARNING),
        ):
            found = self.by(out, back)
            assert found.code == code
            assert 'in [ec2authtoken] of its heat.conf' in found.details
        name = 'auth_uri'
        if 'auth_type' in cfg.CONF.ec2authtoken:
            name = 'auth_type'
        self.configure(group='ec2authtoken', **{name: 'http://h'})
        found = self.by('POLL_SERVER_CFN', 'CFN_SIGNAL')
        assert found.code == Code.SUCCESS

    def test_a_keystone_may_refuse_a_heat_that_cannot_log_in(self):
        # In Heat 24 the options of heat-api-cfn have no auth_type.
        uri = 'http://keystone.invalid'
        self.configure(group='clients_keystone', auth_uri=uri)
        options = (cfg.ConfigOpts.GroupAttr, '__contains__')
        self.useFixture(fixtures.MockPatchObject(*options, return_value=False))
        asked = 'http://keystone.example.com/v3/ec2tokens'
        for status, out, code in (
            (401, 'POLL_SERVER_CFN', Code.FAILURE),
            (401, 'POLL_TEMP_URL', Code.WARNING),
            (400, 'POLL_SERVER_CFN', Code.SUCCESS),
        ):
            for url in ('http://keystone.example.com/', asked[:-10]):
                answer, session = answering(*[(status,)] * 3, url=url)
                found = self.by(out, session=session)
                assert found.code == code
                assert ('upgrade Heat' in found.details) == (status == 401)
                (request,), _ = answer.call_args_list[0]
                assert (request.url, request.body) == (asked, '{}')
                assert 'X-Auth-Token' not in request.headers
        # One that does not answer leaves that open.
        _, session = answering(requests.ConnectionError(), (300,), (300,))
        found = self.by('POLL_SERVER_CFN', session=session)
        assert found.code == Code.SUCCESS
        assert 'Not checked: whether Keystone' in found.details
