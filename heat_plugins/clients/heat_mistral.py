# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugin for Mistral, next to Heat's own ``mistral``."""

from typing import Any

from heat.common import config
from heat.engine.clients.os import mistral

from heat_plugins.clients import mistral_api
from heat_plugins.clients import rest

CLIENT_NAME = 'heat_plugins_mistral'


class MistralClientPlugin(mistral.MistralClientPlugin):
    """Makes mistralclients with the TLS options of ``[clients_mistral]``.

    Heat's own reads only ``endpoint_type`` there.
    """

    def _create(self) -> Any:
        option = mistral.CLIENT_NAME
        return mistral_api.connect(
            rest.Cloud(
                self.context.keystone_session,
                self._get_client_option(option, 'endpoint_type'),
                self._get_region_name(),
            ),
            tls=config.get_ssl_options(option),
        )
