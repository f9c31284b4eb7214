# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugins for the object store and for Mistral."""

from unittest import mock

from heat.engine.clients.os import swift as heats
from oslo_config import cfg
from oslo_config import fixture as config_fixture

from heat_plugins import config
from heat_plugins.clients import heat_mistral
from heat_plugins.clients import heat_swift
from heat_plugins.clients import mistral_api
from heat_plugins.clients import swift
from heat_plugins.objectstore import stores
from tests.unit import heat_fixture


class ClientPluginTest(heat_fixture.HeatTestCase):
    def test_heat_finds_it_beside_its_own(self):
        clients = self.heat.context.clients
        plugin = clients.client_plugin(config.SWIFT_CLIENT)
        assert isinstance(plugin, heat_swift.SwiftClientPlugin)
        assert type(clients.client_plugin('swift')) is heats.SwiftClientPlugin
        made = clients.client(config.SWIFT_CLIENT)
        assert isinstance(made, stores.ObjectStore)
        assert clients.client(config.SWIFT_CLIENT) is made

    def test_they_keep_to_what_the_operator_says_of_the_service(self):
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        transport = (swift, 'KeystoneTransport')
        connect = (mistral_api, 'connect')
        given = {'endpoint_type': 'internalURL', 'ca_file': '/etc/ca.pem'}
        for name, section, module, function in (
            (config.SWIFT_CLIENT, 'clients_swift', *transport),
            (heat_mistral.CLIENT_NAME, 'clients_mistral', *connect),
        ):
            conf.config(group=section, **given)
            with mock.patch.object(module, function, autospec=True) as made:
                self.heat.context.clients.client(name)
            (cloud,), options = made.call_args
            assert cloud.interface == 'internalURL'
            assert options['tls']['verify'] == '/etc/ca.pem'
