# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Environment."""

import json

from heat.common.i18n import _
from heat.engine import attributes

from heat_plugins.clients import mistral_api
from heat_plugins.engine import heat_types
from heat_plugins.mistral import outcome
from heat_plugins.resources import bases
from heat_plugins.resources.workflows import mistral_named


class Environment(mistral_named.MistralNamed):
    """A set of variables for workflows, stored in Mistral.

    A workflow that is started with the params ``{"env": NAME}`` reads them by
    ``env()``; ``get_resource`` returns the name.
    """

    entity = 'environments'

    KIND = 'environment'

    VARIABLES = 'variables'

    properties_schema = {
        **mistral_named.shared_properties(),
        VARIABLES: bases.mapping(
            _('The variables, as a map from name to value.'), required=True
        ),
    }

    attributes_schema = {
        VARIABLES: bases.live(
            attributes.Schema.MAP,
            _('The variables, as Mistral has them now.'),
        ),
    }

    def body(
        self, name: str, props: heat_types.Properties
    ) -> dict[str, object]:
        return {
            'name': name,
            # mistralclient sends an empty map as none.
            'variables': json.dumps(props[self.VARIABLES] or {}),
            'description': props[self.DESCRIPTION] or '',
            'scope': props[self.SCOPE],
        }

    def attribute(
        self, name: str, row: mistral_api.Row | None
    ) -> dict[str, object] | None:
        return None if row is None else outcome.mapping(row.variables)
