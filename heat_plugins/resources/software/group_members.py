# SPDX-License-Identifier: Apache-2.0
"""The members of a group without nested stack, for Heat and for users.

A group is one resource, or has a nested stack of its members. Heat asks it
for that stack; users read attributes and runs of each member.
"""

from collections import abc
import contextlib
import functools
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import resource
from heat.objects import software_config as config_objects
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import config
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.engine import deriving
from heat_plugins.engine import heat_types
from heat_plugins.engine import run_room
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_schema
from heat_plugins.signals import body
from heat_plugins.signals import signal_names

config.register_opts(cfg.CONF)

# What an attribute of the group is for a member.
_SHOWN = {
    'deploy_stdouts': 'deploy_stdout',
    'deploy_stderrs': 'deploy_stderr',
    'deploy_status_codes': 'deploy_status_code',
}

#: What is known of the members, by key; None: it was given nothing.
_States: TypeAlias = dict[str, deployment_rows.MemberState | None]

if TYPE_CHECKING:
    _Base: TypeAlias = Any
else:
    _Base = object


class GroupMembers(_Base):
    """The part of a group that shows its members, in front of Heat's."""

    def _is_single(self) -> bool:
        """Say whether it has no nested stack, and will have none."""
        return signal_names.is_group(self.resource_id)

    def _may_be_single(
        self,
        properties: heat_types.Properties,
        default: str = deployment_schema.SINGLE,
    ) -> bool:
        """Say whether a group with these properties needs no nested stack.

        :param default: its kind if the template names none.
        """
        wanted = properties[deployment_schema.MEMBERS] or default
        if wanted == deployment_schema.NESTED or self._is_to_nest():
            return False
        if properties[deployment_schema.TRIGGER_URL]:
            # Each member has a URL with credentials of its own.
            return False
        transport = deliveries.Terms(properties).transport
        return transports.serves_groups(transport) and self._has_our_members()

    # The stack as the update at hand leaves it.
    _stack_after: heat_types.Stack | None = None

    def update_convergence(
        self,
        template_id: object,
        new_requires: object,
        engine_id: object,
        timeout: object,
        new_stack: heat_types.Stack,
        *args: object,
    ) -> object:
        """Update it, and note what the environment is going to say."""
        self._stack_after = new_stack
        return super().update_convergence(
            template_id, new_requires, engine_id, timeout, new_stack, *args
        )

    def _environment(self) -> abc.Mapping[str, object]:
        """Return the parameter defaults of the stack's environment."""
        stack = self._stack_after or self.stack
        defaults: abc.Mapping[str, object] = stack.env.param_defaults
        return defaults

    def _is_to_nest(self) -> bool:
        """Say whether ``group nest`` asks for nested stacks."""
        kind = self._environment().get(signal_names.GROUP_MEMBERS)
        return kind == deployment_schema.NESTED

    def _member_type(self) -> str:
        member = self.build_resource_definition('', {self.SERVERS: {'': ''}})
        return str(member.resource_type)

    def _has_our_members(self) -> bool:
        """Say whether members are of our own class in the environment."""
        kind = self.stack.env.get_class(
            self._member_type(), files=self.stack.t.files
        )
        return bool(issubclass(kind, deployment.DeploymentMixin))

    def has_nested(self) -> bool:
        """Say whether it has a nested stack."""
        return not self._is_single() and super().has_nested()

    def nested(self) -> heat_types.Stack | None:
        """Return its nested stack, or None."""
        return None if self._is_single() else super().nested()

    def nested_identifier(self) -> object:
        """Return the identifier of its nested stack, or None."""
        return None if self._is_single() else super().nested_identifier()

    def deployments(self) -> list[Any]:
        """Return its members, on which a signal starts runs."""
        if not self._is_single():
            return list(super().deployments())
        derivation = deriving.Derivation(self, self.member_properties())

        @functools.cache
        def named_config() -> heat_values.Config | None:
            return deriving.named_config(self)

        return [
            self._subject(state, derivation, named_config)
            for state in self.states().values()
            # A server that was given nothing has no action to run.
            if state and not state.row.is_withdrawn
        ]

    def _subject(
        self,
        state: deployment_rows.MemberState,
        derivation: deriving.Derivation,
        named_config: abc.Callable[[], heat_values.Config | None],
    ) -> run_room.Subject:
        member = state.member

        def draft(action: str) -> heat_values.DerivedConfig:
            return derivation.draft(
                deriving.load_source(self),
                action,
                name=member.key,
                server_id=member.server_id,
            )

        return run_room.Subject(
            resource=self,
            name=member.key,
            names=[self.name, member.key],
            deployment_id=member.id,
            row=state.row,
            terms=deliveries.Terms(
                {**derivation.properties, 'server': member.server_id}
            ),
            draft=draft,
            named_config=named_config,
        )

    def member_properties(self) -> dict[str, Any]:
        """Return the properties that each member has, without a server."""
        return {
            name: value
            for name, value in self.get_resource_def().items()
            if name != self.SERVERS
        }

    def preview(self) -> object:
        """Return what a preview of the stack shows: itself, or members."""
        default = cfg.CONF.heat_plugins.group_members
        if self._may_be_single(self.properties, default):
            return resource.Resource.preview(self)
        return super().preview()

    def prepare_abandon(self) -> object:
        """Let go of its members."""
        if self._is_single():
            return resource.Resource.prepare_abandon(self)
        return super().prepare_abandon()

    def needs_replace_failed(self) -> bool:
        """Say whether a failed group must be replaced."""
        return not self._is_single() and super().needs_replace_failed()

    def _needs_update(
        self,
        after: heat_types.Definition,
        before: heat_types.Definition,
        after_props: heat_types.Properties,
        before_props: heat_types.Properties,
        *args: object,
    ) -> bool:
        """Say whether to update it; previews of an update ask this, too.

        :raises resource.UpdateReplace: it must become the other kind.
        """
        known = (after, before, after_props, before_props, *args)
        if self._is_single():
            stays = self._may_be_single(after_props)
            may_nest = self._is_to_nest() and self._has_our_members()
            if not (stays or may_nest):
                raise resource.UpdateReplace(self.name)
            changed = resource.Resource._needs_update(self, *known)
            return changed or self.may_differ or not stays
        former = before_props[deployment_schema.MEMBERS]
        wanted = after_props[deployment_schema.MEMBERS]
        if wanted == deployment_schema.SINGLE != former:
            raise resource.UpdateReplace(self.name)
        if self.state == (self.CHECK, self.FAILED) and self.resource_id:
            # Its members know whether they must run again.
            return True
        return bool(super()._needs_update(*known))

    def _note_health(self, status: str) -> None:
        """Mark the members with the group, and unmark them with it."""
        if self._is_single():
            super()._note_health(status)
        elif self.state != (self.CHECK, self.IN_PROGRESS):
            for member in self.deployments():
                with member.lock(self._calling_engine_id):
                    member.state_set(self.CHECK, status, self.status_reason)

    def _handle_cancel(self) -> None:
        if not self._is_single():
            super()._handle_cancel()

    def get_attribute(self, key: str, *path: object) -> object:
        """Return a map of the members' values, by key.

        An output that the config declares comes before what we add.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        if self._is_single():
            return attributes.select_from_attribute(self._values(key), path)
        if key == deployment_schema.MEMBERS and not self._declares(key):
            return attributes.select_from_attribute(self._shown(), path)
        return super().get_attribute(key, *path)

    def _resolve_attribute(self, name: str) -> object:
        # For who asks the API; templates come by `get_attribute`.
        if self._is_single() or name == deployment_schema.MEMBERS:
            return self.get_attribute(name)
        return super()._resolve_attribute(name)

    def states(self) -> _States:
        """Return what is known of the members, by key.

        The rows say who they are, with their servers. None stands for a
        server of the template that has been given nothing.
        """
        stored = deployment_rows.states(self.context, self.resource_id)
        named: _States = dict.fromkeys(self.properties[self.SERVERS] or {})
        # Of several of a key, one goes and the last one stays.
        return named | {state.member.key: state for state in stored}

    def _values(self, key: str) -> dict[str, object]:
        states = self.states()
        output = _SHOWN.get(key, key)
        if not self._is_output(output, states):
            ours = self._ours(key, states)
            if ours is None:
                raise exception.InvalidTemplateAttribute(
                    resource=self.name, key=key
                )
            return ours
        return {
            name: state and state.row.outputs.get(output)
            for name, state in states.items()
        }

    def _ours(self, key: str, states: _States) -> dict[str, object] | None:
        """Return the map of an attribute that is no output, or None."""
        if key == deployment_schema.MEMBERS:
            return self._shown()
        if key == deployment_schema.TRIGGER_URL:
            return dict.fromkeys(states)
        if key == deployment_schema.RUNS_ATTR:
            return self._runs_of(states)
        if key == deployment_schema.TRANSPORT_ATTR:
            return {
                name: state and state.row.transport
                for name, state in states.items()
            }
        return None

    def _runs_of(self, states: _States) -> dict[str, object]:
        """Return what has become of the last runs of each member."""
        ids = {key: state.row.id for key, state in states.items() if state}
        latest = run_room.room().latest(self, ids.values())
        if latest is None:
            return dict.fromkeys(states)
        return {key: latest[ids[key]] if key in ids else [] for key in states}

    def _is_output(self, name: str, states: _States) -> bool:
        return (
            name in body.STANDARD_OUTPUTS
            or any(
                state
                and any(
                    output['name'] == name
                    for output in state.row.config.outputs
                )
                for state in states.values()
            )
            or self._declares(name)
        )

    def _declares(self, output: str) -> bool:
        """Say whether the template's config declares an output."""
        config = None
        with contextlib.suppress(exception.NotFound):
            config = config_objects.SoftwareConfig.get_by_id(
                self.context, self.properties[self.CONFIG]
            )
        declared = config.config['outputs'] if config else ()
        return any(each['name'] == output for each in declared or ())

    def _shown(self) -> dict[str, object]:
        states = self.states()
        nothing = dict.fromkeys(deployment_rows.SHOWN)
        return {
            name: state.shown() if state else nothing
            for name, state in states.items()
        }

    def check_members(self) -> None:
        """Check that the members have rows, and their servers exist.

        :raises exception.Error: it names those that have not.
        """
        states = self.states()
        ids = {state.member.server_id for state in states.values() if state}
        known = resources.find_all(self.context, ids)
        # While a stack is adopted there may be no config yet.
        runs_create = any(states.values())
        with self.rpc_client().ignore_error_by_name('NotFound'):
            runs_create = self.runs(deriving.load_source(self), self.CREATE)
        missing = [
            key for key, state in states.items() if runs_create and not state
        ]
        there = servers.Servers(
            self, transports.root_stack_id(self)
        ).all_there(known.values())
        gone = {
            key: state.row.id
            for key, state in states.items()
            if state and state.member.server_id not in there
        }
        rows.mark_unhealthy(self.context, gone.values())
        for keys, reason in (
            (missing, _('These members have no deployment: %s')),
            (gone, _('The servers of these members do not exist: %s')),
        ):
            if keys:
                raise exception.Error(reason % bounds.listed(keys))

    def check_adoptable(self, allowed: int) -> None:
        """Check that no member waits, and not too many have failed.

        :param allowed: how many may.
        :raises exception.Error: it names those that keep it from that.
        """
        rows = {
            key: state.row for key, state in self.states().items() if state
        }
        waiting = [key for key, row in rows.items() if row.in_progress]
        failed = [
            key
            for key, row in rows.items()
            if row.status == heat_values.FAILED
        ]
        if waiting or len(failed) > allowed:
            raise exception.Error(
                _(
                    'Cannot adopt the group, because these members are not '
                    'COMPLETE: %s'
                )
                % bounds.listed(waiting + failed)
            )
