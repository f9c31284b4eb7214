# SPDX-License-Identifier: Apache-2.0
"""The [heat_plugins] options."""

from oslo_config import cfg
import testtools

from heat_plugins import config


class OptionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.conf = cfg.ConfigOpts()
        config.register_opts(self.conf)
        self.conf([], project='heat', default_config_files=[])

    def test_two_configurations_do_not_share_their_values(self):
        self.conf.set_override('temp_url_margin', 7, 'heat_plugins')
        other = cfg.ConfigOpts()
        config.register_opts(other)
        assert other.heat_plugins.temp_url_margin == 3600

    def test_an_unknown_transport_is_refused(self):
        self.assertRaises(
            ValueError,
            self.conf.set_override,
            'default_deployment_signal_transport',
            'PIGEON',
            'heat_plugins',
        )

    def test_what_the_agents_send_fits_into_the_body_limit(self):
        assert self.conf.heat_plugins.signal_body_limit > 950000

    def test_the_secret_is_not_logged(self):
        (secret,) = [opt for opt in config.OPTS if opt.secret]
        assert secret.name == 'temp_url_secret'

    def test_the_generator_finds_every_option(self):
        ((group, opts),) = config.list_opts()
        assert group == 'heat_plugins'
        assert opts == config.OPTS
        for opt in opts:
            assert opt.help, opt.name
