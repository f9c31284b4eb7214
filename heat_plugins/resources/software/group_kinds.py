# SPDX-License-Identifier: Apache-2.0
"""Which kind a group is: one resource, or a nested stack of its members."""

from collections import abc
import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.engine import resource
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.engine import deriving
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import triggering
from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import signal_events
from heat_plugins.runs import single_groups
from heat_plugins.runs.start import trigger_signals
from heat_plugins.signals import signal_names
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
        return signal_names.is_group(self.resource_id)

    def _may_be_one(
        self, properties: Any, default: Any = deployment_schema.SINGLE
    ) -> Any:
        """Say whether a group with these properties needs no nested stack.

        :param default: its kind if the template names none.
        """
        wanted = properties[deployment_schema.MEMBERS] or default
        default_kind = self._environment().get(single_groups.PARAMETER_DEFAULT)
        if deployment_schema.NESTED in (wanted, default_kind):
            return False
        if properties[deployment_schema.TRIGGER_URL]:
            # Each member has a URL with credentials of its own.
            return False
        name = transport_names.canonical(properties[self.SIGNAL_TRANSPORT])
        if name not in (*_TRANSPORTS, transport_names.AUTO):
            return False
        return self._has_our_members()

    # The stack as the update at hand leaves it.
    _stack_after: Any = None

    def update_convergence(
        self,
        template_id: Any,
        new_requires: Any,
        engine_id: Any,
        timeout: Any,
        new_stack: Any,
        *args: Any,
    ) -> Any:
        """Update it, and note what the environment is going to say."""
        self._stack_after = new_stack
        return super().update_convergence(
            template_id, new_requires, engine_id, timeout, new_stack, *args
        )

    def _environment(self) -> Any:
        """Return the parameter defaults of the stack's environment."""
        return (self._stack_after or self.stack).env.param_defaults

    def _member_type(self) -> Any:
        return self.build_resource_definition(
            '', {self.SERVERS: {'': ''}}
        ).resource_type

    def _has_our_members(self) -> bool:
        """Say whether members are of our own class in the environment."""
        kind = self.stack.env.get_class(
            self._member_type(), files=self.stack.t.files
        )
        return bool(issubclass(kind, deployment.DeploymentMixin))

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
            derivation = deriving.Derivation(self, self.member_properties())

        @functools.cache
        def named_config() -> heat_values.Config | None:
            with self.frozen_properties():
                return deriving.named_config(self)

        return [
            self._triggering(state, derivation, named_config)
            for state in self.states().values()
            # A server that was given nothing has no action to run.
            if state and state.row.server_id == state.member.server_id
        ]

    def _triggering(
        self,
        state: deployment_rows.State,
        derivation: deriving.Derivation,
        named_config: abc.Callable[[], heat_values.Config | None],
    ) -> triggering.Triggering:
        member = state.member

        def draft(action: str) -> heat_values.DerivedConfig:
            with self.frozen_properties():
                source = deriving.load_source(self)
            return derivation.draft(
                source, action, name=member.key, server_id=member.server_id
            )

        return triggering.Triggering(
            triggering.Subject(
                resource=self,
                name=member.key,
                names=[self.name, member.key],
                deployment_id=member.id,
                type=self._member_type(),
            ),
            state.row,
            terms=deliveries.Terms(
                {**derivation.properties, 'server': member.server_id}
            ),
            servers=servers.Servers(self, transports.root_stack_id(self)),
            draft=draft,
            named_config=named_config,
        )

    def trigger_member(
        self, member: Any, details: object, signaller: Any
    ) -> bool:
        """Start a run on a member; say whether it has started."""
        if not self._is_one():
            return bool(super().trigger_member(member, details, signaller))
        try:
            wanted = trigger_signals.read(details, member.row.config.outputs)
            if wanted is None:
                raise signal_events.ambiguous()
            text = member.start(wanted)
        except Exception as exc:
            signal_events.not_triggered(self, exc, member.name)
            return False
        self._add_event(
            'SIGNAL', self.status, f'{member.name}: Signal: {text}'
        )
        return True

    def member_properties(self) -> dict[str, Any]:
        """Return the properties that each member has, without a server."""
        return {
            name: value
            for name, value in self.get_resource_def().items()
            if name != self.SERVERS
        }

    def preview(self) -> Any:
        """Return what a preview of the stack shows: itself, or members."""
        default = cfg.CONF.heat_plugins.group_members
        if self._may_be_one(self.properties, default):
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

    def _needs_update(
        self,
        after: Any,
        before: Any,
        after_props: Any,
        before_props: Any,
        *args: Any,
    ) -> Any:
        """Say whether to update it; previews of an update ask this, too.

        :raises resource.UpdateReplace: it must become the other kind.
        """
        known = (after, before, after_props, before_props, *args)
        if self._is_one():
            if not self._has_our_members():
                raise resource.UpdateReplace(self.name)
            changed = resource.Resource._needs_update(self, *known)
            differs = changed or self.may_differ
            return differs or not self._may_be_one(after_props)
        former = before_props[deployment_schema.MEMBERS]
        wanted = after_props[deployment_schema.MEMBERS]
        if wanted == deployment_schema.SINGLE != former:
            raise resource.UpdateReplace(self.name)
        if self.state == (self.CHECK, self.FAILED) and self.resource_id:
            # Its members know whether they must run again.
            return True
        return super()._needs_update(*known)

    def _note_health(self, status: Any) -> Any:
        """Mark the members with the group, and unmark them with it."""
        if self._is_one():
            super()._note_health(status)
        elif self.state != (self.CHECK, self.IN_PROGRESS):
            for member in self.deployments():
                with member.lock(self._calling_engine_id):
                    member.state_set(self.CHECK, status, self.status_reason)

    def _handle_cancel(self) -> Any:
        if not self._is_one():
            super()._handle_cancel()
