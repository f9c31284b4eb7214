# SPDX-License-Identifier: Apache-2.0
"""What `deployments.derived` needs to know of Heat's resources and stacks."""

from collections import abc
import functools
from typing import Any

from heat.common import exception
from heat.common import short_id
from heat.engine import resource as resources
from heat.engine import software_config_io
from heat.engine import stack as stacks
from heat.objects import software_config as config_objects

from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows


def load_source(resource: heat_types.Resource) -> heat_values.DerivedConfig:
    """Return the config that the template of a resource names, to derive from.

    :raises exception.NotFound: it is gone.
    """
    named = named_config(resource)
    if named is None:
        return heat_values.DerivedConfig(
            name=None, group=None, config=None, inputs=[], outputs=[]
        )
    return heat_values.DerivedConfig(
        name=named.name,
        group=named.group,
        config=named.config,
        inputs=[
            software_config_io.InputConfig(**each).as_dict()
            for each in named.inputs
        ],
        outputs=[
            software_config_io.OutputConfig(**each).as_dict()
            for each in named.outputs
        ],
        options=named.options,
    )


def named_config(
    resource: heat_types.Resource,
) -> heat_values.Config | None:
    """Return the config that a template names, as stored; None: it has none.

    :raises exception.NotFound: it is gone.
    """
    config_id = resource.properties['config']
    if not config_id:
        return None
    return rows.stored_config(
        config_objects.SoftwareConfig.get_by_id(resource.context, config_id)
    )


class Derivation:
    """Derives what servers are given for one resource.

    :param resource: a deployment, or a group without nested stack.
    :param properties: of each deployment, without the server.
    """

    def __init__(
        self, resource: Any, properties: abc.Mapping[str, Any]
    ) -> None:
        self._resource = resource
        self.properties = properties

    @functools.cached_property
    def _secrets(self) -> abc.Collection[str]:
        return hidden_values(self._resource.stack)

    def draft(
        self,
        source: heat_values.DerivedConfig,
        action: str,
        signalling: deliveries.Signalling = deliveries.NOTHING,
        *,
        name: str,
        server_id: str,
    ) -> heat_values.DerivedConfig:
        """Return the config that a server is given for an action.

        :param name: of the deployment, or of the member of a group.
        :raises exception.UserParameterMissing: see `derived.MissingInput`.
        """
        facts = derived.Facts(
            server_id=server_id,
            stack_path=str(self._resource.stack.identifier().stack_path()),
            resource_name=name,
            physical_name=self._physical_name(name),
            properties=self.properties,
            is_structured='input_key' in self._resource.properties_schema,
            secrets=self._secrets,
        )
        try:
            return derived.draft(source, action, signalling, facts)
        except derived.MissingInput as exc:
            raise exception.UserParameterMissing(key=exc.name) from exc

    def _physical_name(self, name: str) -> str | None:
        """Return the physical name that Heat would give such a resource."""
        resource = self._resource
        if resource.id is None or resource.action == resource.INIT:
            return None
        stack_name = resource.stack.name.rstrip('*')
        return str(
            resources.Resource.reduce_physical_resource_name(
                f'{stack_name}-{name}-{short_id.get_id(resource.uuid)}',
                resources.Resource.physical_resource_name_limit,
            )
        )


def hidden_values(stack: heat_types.Stack) -> frozenset[str]:
    """Return the texts of hidden parameters of a stack and those above it.

    A stack may pass a hidden value to a nested one as a parameter that is not
    hidden there. The members of a group get it as values in their template.
    """
    values: set[str] = set()
    while True:
        for parameter in stack.parameters.params.values():
            if parameter.hidden():
                values.update(masking.texts(_value(parameter)))
        if stack.owner_id is None:
            return frozenset(values)
        stack = stacks.Stack.load(stack.context, stack_id=stack.owner_id)


def _value(parameter: Any) -> Any:
    try:
        return parameter.value()
    except Exception:
        # It has none, or one that its type forbids: no input has it either.
        return None
