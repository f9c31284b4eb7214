# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugin for Swift, next to Heat's own ``swift``."""

from heat.common import config
from heat.engine.clients import client_plugin

from heat_plugins.clients import rest
from heat_plugins.clients import swift
from heat_plugins.objectstore import stores

# Whose options in heat.conf we read.
_OPTIONS = 'swift'


class SwiftClientPlugin(client_plugin.ClientPlugin):
    """Makes a `stores.ObjectStore` for the context's project.

    It reads ``[clients_swift]``: ``endpoint_type``, ``ca_file``,
    ``cert_file``, ``key_file`` and ``insecure``.
    """

    service_types = [swift.SERVICE_TYPE]

    def _create(self, version: str | None = None) -> stores.ObjectStore:
        return stores.ObjectStore(
            swift.KeystoneTransport(
                rest.Cloud(
                    self.context.keystone_session,
                    self._get_client_option(_OPTIONS, 'endpoint_type'),
                    self._get_region_name(),
                ),
                tls=config.get_ssl_options(_OPTIONS),
            )
        )
