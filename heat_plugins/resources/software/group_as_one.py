# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack: one resource delivers to all servers.

`heat_plugins.deployments` decides what a member must run, and in which order.
A group that has a nested stack keeps it; see `deployment_group`. Heat asks a
group for that stack; users read attributes and runs of each member.
"""

from collections import abc
import contextlib
import functools
from typing import Any, TypeAlias

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import resource
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import fleets
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import rollout
from heat_plugins.engine import heat_types
from heat_plugins.engine import run_room
from heat_plugins.engine import server_fleets
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.resources.software import deployment
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import server_bound
from heat_plugins.signals import body
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

# What an attribute of the group is for a member.
_SHOWN = {
    'deploy_stdouts': 'deploy_stdout',
    'deploy_stderrs': 'deploy_stderr',
    'deploy_status_codes': 'deploy_status_code',
}

#: What is known of the members, by key; None: it was given nothing.
_States: TypeAlias = dict[str, deployment_rows.MemberState | None]

# By action.
_POLICIES = {
    fleets.CREATE: 'batch_create',
    fleets.UPDATE: 'rolling_update',
}

_NOT_NESTED = (
    'max_failures does not count in a group with a nested stack: it needs '
    '"members: single", TEMP_URL_POLL, CFN_SIGNAL or NO_SIGNAL, and no '
    'trigger_url'
)


def _for_single(name: str, do: abc.Callable[..., Any]) -> Any:
    """Return a method for groups that are one; others have Heat's."""

    def method(self: Any, *args: object) -> Any:
        if self._is_single():
            return do(self, *args)
        return getattr(super(GroupAsOne, self), name)(*args)

    return method


class GroupAsOne(
    deployment_group.Nestable,
    deployment_group.GroupMixin,
    server_bound.ServerBound,
):
    """Goes before one of Heat's deployment groups; see the module."""

    resource_id: Any

    NOUN = 'Group'

    def runs(self, source: heat_values.DerivedConfig, action: str) -> bool:
        """Say whether members run anything for an action."""
        return source.runs(action, self.properties[self.DEPLOY_ACTIONS])

    def _fleet(self) -> server_fleets.ServerFleet:
        return server_fleets.ServerFleet(
            self, self.member_properties, self.resource_id
        )

    def validate(self) -> None:
        """Validate as Heat does, and refuse limits that would not count."""
        super().validate()
        if not self._tolerates(self.properties) or self._asked_kind():
            return
        default = cfg.CONF.heat_plugins.group_members
        name = self.properties[self.SIGNAL_TRANSPORT]
        is_nested = not self._may_be_single(self.properties, default)
        if name == heat_values.AUTO:
            kinds = transports.of_auto(self, is_group=True, is_new=True)
            is_nested |= all(transports.lacks(self, k.name) for k in kinds)
        # An update continues with what former releases have created.
        if is_nested and not resources.exists(self):
            raise heat_types.invalid(
                self, _NOT_NESTED, deployment_schema.MAX_FAILURES
            )

    def _tolerates(self, properties: abc.Mapping[str, Any]) -> bool:
        """Say whether members may fail, by properties."""
        allowed = properties.get(deployment_schema.MAX_FAILURES)
        return bool(str(allowed or '').strip('0%'))

    # Life

    def handle_create(self) -> object:
        """Deliver CREATE to all members, or make the nested stack."""
        default = cfg.CONF.heat_plugins.group_members
        if not self._may_be_single(self.properties, default):
            return super().handle_create()
        self.resource_id = signal_names.new_group_id()
        transport = deliveries.Terms(self.properties).transport
        if transport == heat_values.AUTO:
            try:
                transports.usable(self, transport, is_group=True, is_new=True)
            except (deliveries.NoAnswer, errors.Unavailable) as exc:
                LOG.info(
                    '%(group)s becomes a nested stack, because AUTO finds '
                    'no transport that serves it as one resource: %(error)s',
                    {'group': self.label, 'error': exc},
                )
                self.resource_id = None
                if self._tolerates(self.properties):
                    raise deliveries.ActionFailed(
                        f'{_NOT_NESTED}. {exc}'
                    ) from exc
                return super().handle_create()
        # Heat's resource_id_set ignores a failure of the database, and the
        # rows would then have no owner.
        resources.note_physical_id(self.context, self.id, self.resource_id)
        return self._begin_update(self.CREATE, {})

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: Any,
        prop_diff: abc.Mapping[str, object],
    ) -> object:
        """Bring the members up to date."""
        if not self._is_single():
            if self._tolerates(prop_diff):
                self.warn(self.UPDATE, _NOT_NESTED)
            return super().handle_update(json_snippet, tmpl_diff, prop_diff)
        after = json_snippet.properties(self.properties_schema, self.context)
        if not self._may_be_single(after):
            return self._nest(json_snippet, tmpl_diff, prop_diff)
        known = self._wanted()
        self.properties = after
        if tmpl_diff and tmpl_diff.update_policy_changed():
            self.update_policy = json_snippet.update_policy(
                self.update_policy_schema, self.context
            )
        return self._begin_update(self.UPDATE, prop_diff, known)

    def _wanted(self) -> dict[str, fleets.Member]:
        """Return the members that the template names."""
        return fleets.wanted(
            self.resource_id, self.properties[self.SERVERS] or {}
        )

    def _begin_update(
        self,
        action: str,
        prop_diff: abc.Mapping[str, object],
        known: abc.Collection[str] = (),
    ) -> lifecycle.LifecycleAction:
        """Begin to give its servers what has changed."""
        lacking = [
            key
            for key, server_id in (self.properties[self.SERVERS] or {}).items()
            if not isinstance(server_id, str) or not server_id
        ]
        if lacking:
            raise deliveries.ActionFailed(
                _('These members have no server: %s') % bounds.listed(lacking)
            )
        fleet = self._fleet()
        wanted, rows = self._wanted(), fleet.all()
        runs = functools.partial(self.runs, fleet.source)
        for number in wanted.keys() & rows.keys():
            row = rows[number]
            draft = fleet.draft(wanted[number], row.action)
            if derived.asks_replacement(draft.inputs, row.inputs):
                raise resource.UpdateReplace(self.name)
            # All have the same.
            break
        tasks = fleets.to_update(
            wanted,
            rows,
            fleets.Update(
                runs=runs,
                transport=deliveries.Terms(self.properties).transport,
                changed=self.changed_by(prop_diff),
                is_after_update=self.is_after_update,
            ),
            fleet.draft,
            known,
        )
        busy = {task.member.id for task in tasks}
        fleet.refresh(rows[k] for k in wanted.keys() & rows.keys() - busy)
        gone = {k: row for k, row in rows.items() if k not in wanted}
        undone = fleets.to_undo(gone)
        removed = undone if runs(self.DELETE) else []

        def finish(outage: object) -> bool:
            self._remove(fleet, gone)
            return True

        return self._begin_tasks(
            action, fleet, {action: tasks, self.DELETE: removed}, finish
        )

    def _remove(
        self, fleet: server_fleets.ServerFleet, gone: abc.Collection[str]
    ) -> None:
        """Delete the rows of members that have gone."""
        if gone:
            stored = fleet.all()
            rollout.remove(fleet, {k: stored[k] for k in gone if k in stored})

    def allowed_failures(self) -> int:
        """Return how many members may fail before the group does."""
        text = self.properties[deployment_schema.MAX_FAILURES]
        if text.endswith('%'):
            number = len(self.properties[self.SERVERS] or {})
            return number * int(text[:-1]) // 100
        return int(text)

    def _begin_action(self, action: str) -> lifecycle.LifecycleAction:
        """Begin an action other than an update on all servers."""
        fleet = self._fleet()
        tasks = []
        if self.runs(fleet.source, action):
            tasks = fleets.to_act(
                self._wanted(),
                fleet.all(),
                action,
                repeats=self._state_before == (action, self.FAILED),
            )
        return self._begin_tasks(action, fleet, {action: tasks})

    def _begin_delete(self) -> lifecycle.LifecycleAction:
        """Deliver DELETE to all members; then delete their rows."""
        fleet = self._fleet()
        rows = fleet.all()
        tasks = []
        with self.rpc_client().ignore_error_by_name('NotFound'):
            if self.runs(fleet.source, self.DELETE):
                tasks = fleets.to_undo(rows)

        def delete_all() -> None:
            self._remove(fleet, rows)
            # Its key pair has signed the URLs of CFN_SIGNAL.
            self._delete_user()

        return self._begin_tasks(
            self.DELETE,
            fleet,
            {self.DELETE: tasks},
            sweeping.Removal(self, delete_all),
        )

    def handle_adopt(
        self, resource_data: abc.Mapping[str, Any] | None = None
    ) -> object:
        """Take over a group that was abandoned."""
        group_id = (resource_data or {}).get('resource_id')
        if not signal_names.is_group(group_id):
            return super().handle_adopt(resource_data)
        resource.Resource.handle_adopt(self, resource_data)
        # Who hands in a stack for adoption may name any.
        self.data_delete(deployment_schema.FORMER_GROUP)
        self.check_members()
        self.check_adoptable(self.allowed_failures())
        sweeping.forget_former_life(self)
        return None

    def _begin_tasks(
        self,
        action: str,
        fleet: server_fleets.ServerFleet,
        tasks: abc.Mapping[str, abc.Sequence[fleets.Task]],
        finish: lifecycle.Finish | None = None,
    ) -> lifecycle.LifecycleAction:
        """Begin an action.

        :param tasks: what members must do, by action, in this order.
        """
        rollouts = []
        for name, due in tasks.items():
            if not due:
                continue
            policy = self.update_policy.get(_POLICIES.get(name)) or {}
            size = policy.get('max_batch_size')
            pause = policy.get('pause_time') or 0
            if size:
                # As Heat has it, and refuses it.
                self._update_timeout(-(-len(due) // size), pause)
            stay = len(self.properties[self.SERVERS] or {}) - len(due)
            rollouts.append(
                self._rollout(
                    fleet,
                    name,
                    due,
                    {
                        'batch': size,
                        'pause': pause,
                        'allowed': self.allowed_failures(),
                    },
                    summary=deliveries.of_group,
                    report=self._report,
                    current=0 if name == fleets.DELETE else max(0, stay),
                )
            )
        return self._begin(
            lifecycle.LifecycleAction(action, fleet, rollouts, finish)
        )

    def _report(self, progress: fleets.Progress) -> None:
        """Write how far the action is as an event."""
        self.tell(
            self.action,
            heat_values.event_reason(
                heat_values.EventKind.PROGRESS, str(progress)
            ),
        )

    def withdraw_delivered(self) -> None:
        """Withdraw actions in progress that no engine waits for."""
        if not self._is_single():
            return
        fleet = self._fleet()
        rollout.withdraw_rows(
            fleet,
            [
                row
                for row in fleet.all().values()
                # An engine may have died before it told the server.
                if row.in_progress or row.is_withdrawn
            ],
            deliveries.ENGINE_DIED,
        )

    # Its members, for Heat and for users

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
        transport = deliveries.Terms(properties).transport
        return (
            deployment_schema.NESTED not in (wanted, self._asked_kind())
            # Each member has a URL with credentials of its own.
            and not properties[deployment_schema.TRIGGER_URL]
            # AUTO is tried.
            and (
                transport == heat_values.AUTO
                or transports.TRANSPORTS[transport].serves_groups
            )
            and self._has_our_members()
        )

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
        """Update the group, and keep the environment for its nested stack."""
        self._stack_after = new_stack
        return super().update_convergence(
            template_id, new_requires, engine_id, timeout, new_stack, *args
        )

    def _asked_kind(self) -> object:
        """Return the kind that the environment names, as by ``group nest``."""
        stack = self._stack_after or self.stack
        return stack.env.param_defaults.get(signal_names.GROUP_MEMBERS)

    def _has_our_members(self) -> bool:
        """Say whether members are of our own class in the environment."""
        member = self.build_resource_definition('', {self.SERVERS: {'': ''}})
        kind = self.stack.env.get_class(
            member.resource_type, files=self.stack.t.files
        )
        return bool(issubclass(kind, deployment.DeploymentMixin))

    def deployments(self) -> list[Any]:
        """Return its members, on which a signal starts runs."""
        if not self._is_single():
            return list(super().deployments())
        fleet, properties = self._fleet(), self.member_properties()
        named_config = functools.cache(
            functools.partial(server_fleets.named_config, self)
        )
        return [
            run_room.Subject(
                resource=self,
                name=state.member.key,
                names=[self.name, state.member.key],
                deployment_id=state.member.id,
                row=state.row,
                terms=deliveries.Terms(
                    {**properties, 'server': state.member.server_id}
                ),
                draft=functools.partial(fleet.draft, state.member),
                named_config=named_config,
            )
            for state in self.states().values()
            # A server that was given nothing has no action to run.
            if state and not state.row.is_withdrawn
        ]

    def member_properties(self) -> dict[str, Any]:
        """Return the properties that each member has, without a server."""
        return {
            name: value
            for name, value in self.get_resource_def().items()
            if name != self.SERVERS
        }

    def preview(self) -> object:
        """Return the group, or its members, for a preview of the stack."""
        default = cfg.CONF.heat_plugins.group_members
        if self._may_be_single(self.properties, default):
            return resource.Resource.preview(self)
        return super().preview()

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
            is_to_nest = self._asked_kind() == deployment_schema.NESTED
            if not (stays or (is_to_nest and self._has_our_members())):
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

    def get_attribute(self, key: str, *path: object) -> object:
        """Return a map of the members' values, by key.

        An output that the config declares comes before what we add.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        if self._is_single():
            return attributes.select_from_attribute(self._values(key), path)
        if key == deployment_schema.MEMBERS and not self._declares(key):
            return attributes.select_from_attribute(
                self._member_states(), path
            )
        return super().get_attribute(key, *path)

    def _resolve_attribute(self, name: str) -> object:
        # For who asks the API; templates come by `get_attribute`.
        if self._is_single() or name == deployment_schema.MEMBERS:
            return self.get_attribute(name)
        return super()._resolve_attribute(name)

    def states(self) -> _States:
        """Return the members' last rows by key.

        The rows say who they are, with their servers. None stands for a
        server of the template that has been given nothing.
        """
        stored = deployment_rows.states(self.context, self.resource_id)
        named: _States = dict.fromkeys(self.properties[self.SERVERS] or {})
        # Of several of a key, one goes and the last one stays.
        return named | {state.member.key: state for state in stored}

    def _values(self, key: str) -> dict[str, object]:
        """Return an output, or another attribute, of each member."""
        states = self.states()
        output = _SHOWN.get(key, key)
        declared = {
            each['name']
            for state in states.values()
            for each in (state.row.config.outputs if state else ())
        }
        if output in declared.union(body.STANDARD_OUTPUTS) or self._declares(
            output
        ):
            return {
                name: state and state.row.outputs.get(output)
                for name, state in states.items()
            }
        if key == deployment_schema.MEMBERS:
            return self._member_states()
        if key == deployment_schema.TRIGGER_URL:
            return dict.fromkeys(states)
        if key == deployment_schema.RUNS_ATTR:
            ids = {name: each.row.id for name, each in states.items() if each}
            latest = run_room.room().latest(self, ids.values())
            if latest is None:
                return dict.fromkeys(states)
            return {
                name: latest[ids[name]] if name in ids else []
                for name in states
            }
        if key == deployment_schema.TRANSPORT_ATTR:
            return {
                name: state and state.row.transport
                for name, state in states.items()
            }
        raise exception.InvalidTemplateAttribute(resource=self.name, key=key)

    def _declares(self, output: str) -> bool:
        """Say whether the template's config declares an output."""
        config = None
        with contextlib.suppress(exception.NotFound):
            config = server_fleets.named_config(self)
        declared = config.outputs if config else ()
        return any(each['name'] == output for each in declared)

    def _member_states(self) -> dict[str, object]:
        """Return how it stands with each member."""
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
            runs_create = self.runs(self._fleet().source, self.CREATE)
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

    handle_suspend = _for_single(
        'handle_suspend', lambda self: self._begin_action('SUSPEND')
    )
    handle_resume = _for_single(
        'handle_resume', lambda self: self._begin_action('RESUME')
    )
    handle_delete = _for_single('handle_delete', _begin_delete)
    nested = _for_single('nested', lambda self: None)
    nested_identifier = _for_single('nested_identifier', lambda self: None)
    has_nested = _for_single('has_nested', lambda self: False)
    needs_replace_failed = _for_single(
        'needs_replace_failed', lambda self: False
    )
    prepare_abandon = _for_single(
        'prepare_abandon', resource.Resource.prepare_abandon
    )
    _handle_cancel = _for_single('_handle_cancel', lambda self: None)
    handle_check = _for_single('handle_check', check_members)


for _action in (
    *('create', 'update', 'suspend', 'resume', 'delete', 'check', 'adopt'),
):
    _check = f'check_{_action}_complete'
    setattr(
        GroupAsOne,
        _check,
        _for_single(_check, server_bound.ServerBound._has_ended),
    )
