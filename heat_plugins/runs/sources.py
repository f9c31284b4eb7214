# SPDX-License-Identifier: Apache-2.0
"""Which config a template names for a deployment."""

from typing import Any

from heat_plugins.runs import errors
from heat_plugins.runs import orchestration


class Sources:
    """Finds the config that a template names for a deployment.

    What a server is given has lost the types of some inputs. Where the
    template says something that only Heat can work out, there is none.
    """

    def __init__(self, heat: orchestration.Orchestration) -> None:
        self._heat = heat
        self._stacks: dict[str, tuple[Any, Any, dict[str, str]]] = {}

    def config_of(self, resource: orchestration.Resource) -> str | None:
        """Return the id of the config of a deployment, if it can be told."""
        try:
            stack, template, ids = self._read(resource.stack_id)
        except errors.RunError:
            return None
        named = (template.get('resources') or {}).get(resource.name) or {}
        value = (named.get('properties') or {}).get('config')
        if isinstance(value, dict) and len(value) == 1:
            if 'get_resource' in value:
                return ids.get(str(value['get_resource']))
            if 'get_param' in value:
                value = stack.parameters.get(str(value['get_param']))
        return value if isinstance(value, str) and value else None

    def _read(self, stack_id: str) -> tuple[Any, Any, dict[str, str]]:
        if stack_id not in self._stacks:
            stack = self._heat.stack(stack_id)
            self._stacks[stack_id] = (
                stack,
                self._heat.template(stack),
                {
                    one.name: one.physical_id
                    for one in self._heat.resources(stack)
                    if one.stack_id == stack.id
                },
            )
        return self._stacks[stack_id]
