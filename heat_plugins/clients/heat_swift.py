# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugin for Swift, next to Heat's own ``swift``."""

from heat.common import config
from heat.engine.clients import client_plugin

from heat_plugins import errors
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
        tls = config.get_ssl_options(_OPTIONS)
        return stores.ObjectStore(
            swift.KeystoneTransport(
                rest.Cloud(
                    self.context.keystone_session,
                    self._get_client_option(_OPTIONS, 'endpoint_type'),
                    self._get_region_name(),
                ),
                tls=tls,
            )
        )

    def is_client_exception(self, ex: BaseException) -> bool:
        """Say whether it is one of the errors of `stores.ObjectStore`."""
        return isinstance(ex, errors.ServiceError)

    def is_not_found(self, ex: BaseException) -> bool:
        """Say whether there is no such container or object."""
        return isinstance(ex, errors.NoObject)

    def is_conflict(self, ex: BaseException) -> bool:
        """Say whether a container holds objects or has another owner."""
        return isinstance(ex, errors.Conflict)

    def is_over_limit(self, ex: BaseException) -> bool:
        """Say whether an error is about size, quota or rate."""
        return isinstance(ex, errors.ServiceError) and ex.status in (413, 429)
