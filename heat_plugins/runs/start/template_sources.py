# SPDX-License-Identifier: Apache-2.0
"""What a template says of a deployment."""

from typing import Any

from heat_plugins import errors
from heat_plugins.runs import orchestration


class Sources:
    """Finds what templates say of deployments.

    What a server is given has lost the types of some inputs, and has only the
    shorter of two time limits. Where the template says something that only
    Heat can work out, nothing is found.
    """

    def __init__(self, heat: orchestration.Orchestration) -> None:
        self._heat = heat
        self._stacks: dict[str, tuple[Any, Any, dict[str, str]]] = {}

    def config_of(self, resource: orchestration.Resource) -> str | None:
        """Return the id of the config of a deployment, if it can be told."""
        value = self._value(resource, 'config')
        return value if isinstance(value, str) and value else None

    def metadata_of(self, resource: orchestration.Resource) -> dict[str, str]:
        """Return the metadata that the template gives a server."""
        value = self._value(resource, 'metadata')
        if not isinstance(value, dict):
            return {}
        return {str(name): str(one) for name, one in value.items()}

    def seconds_of(
        self,
        resource: orchestration.Resource,
        name: str,
        otherwise: object = None,
    ) -> int | None:
        """Return a time limit of a deployment.

        :param name: of its property.
        :param otherwise: what serves where the template has one that cannot
            be told; what is not a number is None.
        """
        value = self._value(resource, name)
        for each in (value, None if value is None else otherwise):
            try:
                seconds = int(str(each))
            except ValueError:
                continue
            if seconds > 0:
                return seconds
        return None

    def _value(self, resource: orchestration.Resource, name: str) -> Any:
        """Return what a property has in the template, or a function's map."""
        try:
            stack, template, ids = self._read(resource.stack_id)
        except errors.Error:
            return None
        named = (template.get('resources') or {}).get(resource.name) or {}
        value = (named.get('properties') or {}).get(name)
        if isinstance(value, dict) and len(value) == 1:
            if 'get_resource' in value:
                return ids.get(str(value['get_resource']))
            if 'get_param' in value:
                return stack.parameters.get(str(value['get_param']), value)
        return value

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
