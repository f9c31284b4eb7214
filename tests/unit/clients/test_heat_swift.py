# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugin for the object store."""

from unittest import mock

from heat.engine.clients.os import swift as heats
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.clients import heat_swift
from heat_plugins.clients import swift
from heat_plugins.objectstore import stores
from tests.unit import heat_fixture


class SwiftClientPluginTest(heat_fixture.HeatTestCase):
    def plugin(self):
        return self.heat.context.clients.client_plugin(config.SWIFT_CLIENT)

    def test_heat_finds_it_beside_its_own(self):
        clients = self.heat.context.clients
        assert isinstance(self.plugin(), heat_swift.SwiftClientPlugin)
        assert type(clients.client_plugin('swift')) is heats.SwiftClientPlugin
        made = clients.client(config.SWIFT_CLIENT)
        assert isinstance(made, stores.ObjectStore)
        assert clients.client(config.SWIFT_CLIENT) is made

    def test_it_keeps_to_what_the_operator_says_of_swift(self):
        for name, value in (
            ('endpoint_type', 'internalURL'),
            ('ca_file', '/etc/ca.pem'),
        ):
            cfg.CONF.set_override(name, value, 'clients_swift')
            self.addCleanup(cfg.CONF.clear_override, name, 'clients_swift')
        with mock.patch.object(
            swift, 'KeystoneTransport', autospec=True
        ) as transport:
            self.plugin().client()
        (cloud,), options = transport.call_args
        assert cloud.interface == 'internalURL'
        assert options['tls']['verify'] == '/etc/ca.pem'
