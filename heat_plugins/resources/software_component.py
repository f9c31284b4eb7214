# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareComponent."""

from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine.resources.openstack.heat import software_component

from heat_plugins.configs import actions
from heat_plugins.resources import schemas
from heat_plugins.resources.software import checked_config


class SoftwareComponent(
    checked_config.CheckedConfig, software_component.SoftwareComponent
):
    """Configs for the different actions on one piece of software.

    Each entry of ``configs`` names its actions: CREATE, UPDATE, SUSPEND,
    RESUME and DELETE, which Heat runs, and any others, such as BACKUP, which
    you run on demand. An entry without actions serves CREATE and UPDATE.

    It extends Heat's own class by the attribute ``actions`` and by checks:
    those of OS::Heat::SoftwareConfig; an action must not be empty and must
    have one entry only; and the ``tool`` of an entry must be a valid name of a
    hook. heat-engine logs a warning for a component without an entry for
    CREATE, and for an action such as ``create``, which Heat never runs by
    itself.
    """

    ACTIONS_ATTR = 'actions'

    ATTRIBUTES = (
        *software_component.SoftwareComponent.ATTRIBUTES,
        ACTIONS_ATTR,
    )

    # Heat resolves `configs` but leaves it out of the schema, so that its
    # own class refuses the attribute that it documents.
    attributes_schema = schemas.AttributesSchema(
        software_component.SoftwareComponent.attributes_schema,
        {
            software_component.SoftwareComponent.CONFIGS_ATTR: (
                attributes.Schema(
                    _('The configs, one for each set of actions.'),
                    type=attributes.Schema.LIST,
                )
            ),
            ACTIONS_ATTR: attributes.Schema(
                _('The actions that the component offers, in their order.'),
                type=attributes.Schema.LIST,
            ),
        },
    )

    def validate(self) -> None:
        """Validate as Heat does, then check what the template says.

        Heat's own look for actions with two configs is passed over. It
        takes a list that another resource has yet to supply for the
        default, and does not say which action it means.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        super(software_component.SoftwareComponent, self).validate()
        self.check_config()

    def described(self) -> dict[str, Any]:
        """Return the component as its row in Heat will have it."""
        props = self.known_properties()
        return {
            'group': actions.COMPONENT,
            'config': {'configs': props.get(self.CONFIGS)},
            'inputs': props.get(self.INPUTS),
            'outputs': props.get(self.OUTPUTS),
        }

    def _resolve_attribute(self, name: str) -> Any:
        if name != self.ACTIONS_ATTR:
            return super()._resolve_attribute(name)
        configs = super()._resolve_attribute(self.CONFIGS_ATTR)
        if configs is None:
            return None
        return list(actions.actions(actions.COMPONENT, {'configs': configs}))
