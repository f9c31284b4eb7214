# SPDX-License-Identifier: Apache-2.0
"""OS::Heat::SoftwareConfig, StructuredConfig and SoftwareComponent."""

from collections.abc import Iterable, Mapping
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import function
from heat.engine import resource
from heat.engine.resources.openstack.heat import software_component
from heat.engine.resources.openstack.heat import software_config
from heat.engine.resources.openstack.heat import structured_config
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import foreign
from heat_plugins.configs import actions
from heat_plugins.configs import config_checking
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import in_process
from heat_plugins.resources import bases

LOG = foreign.logger(__name__)


class CheckedConfig(resource.Resource):
    """Mixed into a config type of Heat, in front of it."""

    def __init__(self, name: str, definition: Any, stack: Any) -> None:
        super().__init__(name, definition, stack)
        self.context = heat_types.in_project(stack.context, stack.tenant_id)

    def validate(self) -> None:
        """Validate as Heat does, then check the config of the template.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        super().validate()
        self.check_config()

    def check_config(self) -> None:
        """Log doubtful parts of the template, and refuse wrong ones.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        findings = config_checking.check(
            **self.described(), known_hooks=cfg.CONF.heat_plugins.known_hooks
        )
        if findings.warnings:
            LOG.warning(
                '%(type)s "%(resource)s" in stack "%(stack)s": %(texts)s',
                {
                    'type': self.type(),
                    'resource': self.name,
                    'stack': self.stack.name,
                    'texts': bounds.listed(findings.warnings, between=' '),
                },
            )
        if findings.errors:
            reason = bounds.listed(findings.errors, between=' ')
            raise heat_types.invalid(self, reason)

    def described(self) -> dict[str, object]:
        """Return the config as the template has it, for checking.

        Heat's resolved properties do not do: there, what another resource
        has yet to supply is an empty text or list, or the default.
        """
        properties = self._known(self.properties.data)
        return {
            'group': properties.get(self.GROUP, config_checking.UNGROUPED),
            'config': properties.get(self.CONFIG),
            'inputs': properties.get(self.INPUTS),
            'outputs': properties.get(self.OUTPUTS),
        }

    def _known(self, value: object) -> Any:
        """Resolve values; unknown ones are UNKNOWN.

        Parts that a condition leaves out are left out.
        """
        if isinstance(value, function.Function):
            # Without strict validation, as in a nested stack, parameters
            # stand for what is not there yet as well.
            if not self.stack.strict_validate or any(
                needed.action == resource.Resource.INIT
                for needed in function.dependencies(value)
            ):
                return config_checking.UNKNOWN
            resolved = function.resolve(value, nullable=True)
            return config_checking.UNKNOWN if resolved is None else resolved
        if isinstance(value, Mapping):
            known = ((k, self._known(v)) for k, v in value.items())
            return {k: v for k, v in known if v is not Ellipsis}
        if isinstance(value, Iterable) and not isinstance(value, str):
            each = [self._known(v) for v in value]
            return [v for v in each if v is not Ellipsis]
        return value

    def _show_resource(self) -> dict[str, object] | None:
        """Return the config as Heat's API shows it.

        Heat's method asks heat-api, which waits for this engine meanwhile.
        """
        if self.resource_id is None or not callers.is_of_project(
            self.context, self.stack
        ):
            return None
        return in_process.show_config(self.context, self.resource_id)


class SoftwareConfig(CheckedConfig, software_config.SoftwareConfig):
    """A script or manifest, with the inputs it takes and outputs it gives.

    The same as Heat's own, with checks: heat-engine refuses a stack, before it
    fails on a server, if

    - two inputs, or two outputs, have one name;
    - an input has the name of one that every deployment has:
      ``deploy_action``, ``deploy_auth_url``, ``deploy_password``,
      ``deploy_project_id``, ``deploy_queue_id``, ``deploy_region_name``,
      ``deploy_resource_name``, ``deploy_server_id``, ``deploy_signal_id``,
      ``deploy_signal_transport``, ``deploy_signal_verb``, ``deploy_stack_id``,
      ``deploy_user_id``, ``deploy_username``. A script can read these without
      a declaration.

    heat-engine logs a warning for probable mistakes: a group that resembles
    one of heat-agents' hooks, and an output that every deployment has already.

    A config never changes: a change of its properties replaces it.
    """


class StructuredConfig(CheckedConfig, structured_config.StructuredConfig):
    """A config with a map as its body, for tools that read YAML or JSON.

    The same as Heat's own. heat-engine checks its inputs, outputs and group
    like those of OS::Heat::SoftwareConfig, and in the group ``component`` the
    map's ``configs`` like those of OS::Heat::SoftwareComponent.
    """


class SoftwareComponent(CheckedConfig, software_component.SoftwareComponent):
    """Configs for the different actions on one piece of software.

    Each entry of ``configs`` names its actions: CREATE, UPDATE, SUSPEND,
    RESUME and DELETE, which Heat runs, and any others, such as BACKUP, which
    you run on demand. An entry without actions serves CREATE and UPDATE.

    It extends Heat's own class by the attribute ``actions`` and by checks:
    those of OS::Heat::SoftwareConfig; and an action must not be empty and must
    have one entry only. heat-engine logs a warning for a component without an
    entry for CREATE, and for an action such as ``create``, which Heat never
    runs by itself.
    """

    ACTIONS_ATTR = 'actions'

    # Heat resolves `configs` but leaves it out of the schema, so that its
    # own class refuses the attribute that it documents.
    attributes_schema = bases.AttributesSchema(
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
        """Validate as Heat does, then check the config of the template.

        Heat's own look for actions with two configs is passed over. It
        takes a list that another resource has yet to supply for the
        default, and does not say which action it means.

        :raises StackValidationFailed: naming everything that cannot work.
        """
        super(software_component.SoftwareComponent, self).validate()
        self.check_config()

    def described(self) -> dict[str, object]:
        """Return the component as its row in Heat will have it."""
        props = self._known(self.properties.data)
        return {
            'group': actions.COMPONENT,
            'config': {'configs': props.get(self.CONFIGS)},
            'inputs': props.get(self.INPUTS),
            'outputs': props.get(self.OUTPUTS),
        }

    def _resolve_attribute(self, name: str) -> object:
        if name != self.ACTIONS_ATTR:
            return super()._resolve_attribute(name)
        configs = super()._resolve_attribute(self.CONFIGS_ATTR)
        if configs is None:
            return None
        return list(actions.actions(actions.COMPONENT, {'configs': configs}))
