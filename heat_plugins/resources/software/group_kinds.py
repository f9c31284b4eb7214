# SPDX-License-Identifier: Apache-2.0
"""Which kind a group is: one resource, or a nested stack of its members."""

from typing import TYPE_CHECKING, Any, TypeAlias

from heat.engine import resource
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_members
from heat_plugins.signals import group_ids
from heat_plugins.signals import transport_names

config.register_opts(cfg.CONF)

# The transports of a group without nested stack; AUTO is tried.
_TRANSPORTS = (transport_names.TEMP_URL_POLL, transport_names.NO_SIGNAL)

if TYPE_CHECKING:
    _Base: TypeAlias = Any
else:
    _Base = object


class Kinds(_Base):
    """The part of a group that Heat asks for a nested stack."""

    def _is_one(self) -> Any:
        """Say whether it has no nested stack, and will have none."""
        return group_ids.is_one(self.resource_id)

    def _may_be_one(self, default: Any = deployment_schema.SINGLE) -> Any:
        """Say whether a group needs no nested stack.

        :param default: its kind if the template names none.
        """
        wanted = self.properties[deployment_schema.MEMBERS] or default
        if wanted == deployment_schema.NESTED:
            return False
        if self.properties[deployment_schema.TRIGGER_URL]:
            # Each member has a URL with credentials of its own.
            return False
        name = transport_names.canonical(
            self.properties[self.SIGNAL_TRANSPORT]
        )
        if name not in (*_TRANSPORTS, transport_names.AUTO):
            return False
        return group_members.can_be_made(self, self._member_type())

    def _member_type(self) -> Any:
        return self.build_resource_definition(
            '', {self.SERVERS: {'': ''}}
        ).resource_type

    def has_nested(self) -> Any:
        """Say whether it has a nested stack."""
        return not self._is_one() and super().has_nested()

    def nested(self) -> Any:
        """Return its nested stack, or None."""
        return None if self._is_one() else super().nested()

    def nested_identifier(self) -> Any:
        """Return the identifier of its nested stack, or None."""
        return None if self._is_one() else super().nested_identifier()

    def deployments(self) -> Any:
        """Return its members, on which a signal starts runs."""
        if not self._is_one():
            return super().deployments()
        with self.frozen_properties():
            # Outside of an action Heat resolves nothing for a template.
            properties = self.get_resource_def()
        return [
            group_members.make(self, state.member, properties)
            for state in self.states().values()
            # A server that was given nothing has no action to run.
            if state and state.row.server_id == state.member.server_id
        ]

    def preview(self) -> Any:
        """Return what a preview of the stack shows: itself, or members."""
        if self._may_be_one(cfg.CONF.heat_plugins.group_members):
            return resource.Resource.preview(self)
        return super().preview()

    def prepare_abandon(self) -> Any:
        """Let go of its members."""
        if self._is_one():
            return resource.Resource.prepare_abandon(self)
        return super().prepare_abandon()

    def needs_replace_failed(self) -> Any:
        """Say whether a failed group must be replaced."""
        return not self._is_one() and super().needs_replace_failed()

    def _needs_update(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_one():
            return super()._needs_update(*args, **kwargs)
        changed = resource.Resource._needs_update(self, *args, **kwargs)
        # Heat takes a failed resource for complete if nothing has changed.
        return changed or self.status == self.FAILED

    def _handle_cancel(self) -> Any:
        if not self._is_one():
            super()._handle_cancel()
