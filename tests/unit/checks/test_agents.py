# SPDX-License-Identifier: Apache-2.0
"""What agents need of heat.conf."""

from oslo_config import cfg
from oslo_upgradecheck import upgradecheck
import testtools

from heat_plugins.checks import agents

Code = upgradecheck.Code


class SignedURLTest(testtools.TestCase):
    """How heat-api-cfn asks Keystone about the URLs that Heat signs."""

    def setUp(self):
        super().setUp()
        for name in (
            'stack_user_domain_name',
            'stack_domain_admin',
            'stack_domain_admin_password',
        ):
            self.configure(name, 'x')

    def configure(self, name, value, group=None):
        cfg.CONF.set_override(name, value, group)
        self.addCleanup(cfg.CONF.clear_override, name, group)

    def by(self, out, back):
        self.configure('default_software_config_transport', out)
        self.configure(
            'default_deployment_signal_transport', back, 'heat_plugins'
        )
        return agents.ways(None)

    def test_without_options_for_it_what_needs_it_fails(self):
        for out, back, code in (
            ('POLL_TEMP_URL', 'CFN_SIGNAL', Code.FAILURE),
            ('POLL_SERVER_CFN', 'TEMP_URL_POLL', Code.FAILURE),
            ('POLL_SERVER_HEAT', 'HEAT_SIGNAL', Code.WARNING),
        ):
            found = self.by(out, back)
            self.assertEqual(code, found.code)
            self.assertIn('in [ec2authtoken] of its heat.conf', found.details)

    def test_with_them_it_is_right(self):
        name, value = (
            ('auth_type', 'v3password')
            if 'auth_type' in cfg.CONF.ec2authtoken
            else ('auth_uri', 'http://keystone.invalid')
        )
        self.configure(name, value, 'ec2authtoken')
        found = self.by('POLL_SERVER_CFN', 'CFN_SIGNAL')
        self.assertEqual(Code.SUCCESS, found.code)
