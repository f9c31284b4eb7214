# SPDX-License-Identifier: Apache-2.0
"""Heat's client plugin for Mistral, beside Heat's own ``mistral``."""

from typing import Any

from heat.common import config
from heat.engine.clients.os import mistral
from keystoneauth1 import adapter
from mistralclient.api import client as mistral_client

CLIENT_NAME = 'heat_plugins_mistral'


class MistralClientPlugin(mistral.MistralClientPlugin):
    """Gives a mistralclient that keeps to the TLS of ``[clients_mistral]``.

    Heat's own reads only ``endpoint_type`` there; and since mistralclient
    sets its own TLS options on each request, a private CA that the session
    knows is forgotten.
    """

    def _create(self) -> Any:
        option = mistral.CLIENT_NAME
        tls = config.get_ssl_options(option)
        client = mistral_client.client(
            mistral_url=self.url_for(
                service_type=self.WORKFLOW_V2,
                endpoint_type=self._get_client_option(option, 'endpoint_type'),
            ),
            # A request whose answer was lost is not simply sent again: what
            # it made would be in the way.
            session=adapter.Adapter(
                self.context.keystone_session, connect_retries=0
            ),
            region_name=self._get_region_name(),
        )
        # It takes a certificate as two names of its own, and stumbles over
        # their absence; what requests takes is what Heat has made already.
        client.workflows.http_client.ssl_options = tls
        return client
