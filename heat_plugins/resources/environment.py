# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Environment."""

from collections import abc
import json
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import properties

from heat_plugins.mistral import calling
from heat_plugins.mistral.executions import outcome
from heat_plugins.resources.workflows import mistral_named


class Environment(mistral_named.MistralNamed):
    """A set of variables for workflows, stored in Mistral.

    An execution that is started with the params ``{"env": NAME}`` finds
    them under ``env()``; ``get_resource`` gives the name.
    """

    entity = 'environments'

    KIND = 'an environment'

    VARIABLES = 'variables'

    properties_schema = {
        **mistral_named.shared_properties(),
        VARIABLES: properties.Schema(
            properties.Schema.MAP,
            _('The variables: value by name.'),
            required=True,
            update_allowed=True,
        ),
    }

    attributes_schema = {
        VARIABLES: attributes.Schema(
            _('The variables, as they are in Mistral now.'),
            type=attributes.Schema.MAP,
            cache_mode=attributes.Schema.CACHE_NONE,
        ),
    }

    @property
    def _calls(self) -> Any:
        return self.client().environments

    def _body(self, name: str, found: abc.Mapping[str, Any]) -> dict[str, Any]:
        return {
            'name': name,
            # mistralclient sends an empty map as none.
            'variables': json.dumps(found[self.VARIABLES] or {}),
            'description': found[self.DESCRIPTION] or '',
            'scope': found[self.SCOPE],
        }

    def see(self, patience: calling.Patience, name: str) -> Any:
        return self.look(
            patience, 'cannot see the environment', self._calls.get, name
        )

    def make(
        self,
        patience: calling.Patience,
        name: str,
        found: abc.Mapping[str, Any],
    ) -> Any:
        return self.ask(
            patience,
            'cannot make the environment',
            self._calls.create,
            **self._body(name, found),
        )

    def change(
        self,
        patience: calling.Patience,
        name: str,
        found: abc.Mapping[str, Any],
    ) -> None:
        self.ask(
            patience,
            'cannot change the environment',
            self._calls.update,
            **self._body(name, found),
        )

    def remove(self, patience: calling.Patience, name: str) -> None:
        self.look(
            patience, 'cannot delete the environment', self._calls.delete, name
        )

    def matches(self, row: Any, found: abc.Mapping[str, Any]) -> bool:
        return outcome.mapping(row.variables) == (found[self.VARIABLES] or {})

    def _resolve_attribute(self, name: str) -> Any:
        row = self.glance()
        return None if row is None else outcome.mapping(row.variables)
