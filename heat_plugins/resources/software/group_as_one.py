# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack: one resource delivers to all servers.

What a member must run, and how an action goes through the members, decides
`heat_plugins.deployments`. A group that has a nested stack keeps it; see
`deployment_group`.
"""

from typing import Any

from heat.common.i18n import _
from heat.engine import resource
from heat.objects import resource as resource_objects
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import retrying
from heat_plugins.deployments import failures
from heat_plugins.deployments import removals
from heat_plugins.deployments.groups import members
from heat_plugins.deployments.groups import rollout
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.shared import hub as hubs
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_attributes
from heat_plugins.resources.software import group_change
from heat_plugins.resources.software import group_fleet
from heat_plugins.resources.software import group_kinds
from heat_plugins.resources.software import group_members
from heat_plugins.resources.software import group_triggers
from heat_plugins.resources.software import heats_loop
from heat_plugins.resources.software import replacing
from heat_plugins.signals import group_ids
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# Seconds between two attempts to clean up the object store.
_STORE_DELAY = 5


def _checking(name: str) -> Any:
    """Return a method that says whether a change has ended."""

    def method(self: Any, change: Any = None) -> Any:
        if not self._is_one():
            return getattr(super(OneMixin, self), name)(change)
        return self._has_ended(change)

    method.__name__ = name
    method.__doc__ = 'Say whether the action has ended.'
    return method


def _acting(action: str) -> Any:
    """Return a method that delivers an action to all members."""
    name = f'handle_{action.lower()}'

    def method(self: Any) -> Any:
        if not self._is_one():
            return getattr(super(OneMixin, self), name)()
        return self._begin_action(action)

    method.__name__ = name
    method.__doc__ = f'Deliver {action} to all members.'
    return method


class OneMixin(
    group_kinds.Kinds,
    group_triggers.Triggers,
    group_attributes.Attributes,
    deployment_group.GroupMixin,
    replacing.Replaceable,
    heats_loop.Blocking,
):
    """Goes before one of Heat's deployment groups; see the module."""

    resource_id: Any

    TIMEOUT = deployment_schema.TIMEOUT
    SIGNAL_URL_LIFETIME = deployment_schema.SIGNAL_URL_LIFETIME

    # An update mends what a check has found fault with.
    always_replace_on_check_failed = False

    # What is in progress.
    _change: group_change.Change | None = None

    # What cleans up the object store, and since when that refuses it.
    _sweep: sweeping.Sweep | None = None
    _trouble: retrying.Trouble | None = None

    # The state before the action at hand.
    _state_before: tuple[str, str] | None = None

    @property
    def label(self) -> Any:
        return (
            f'Group {self.resource_id} ({self.name} of stack '
            f'{self.stack.name}, {self.stack.id})'
        )

    def rpc_client(self) -> Any:
        """Return what answers as Heat's RPC client, mostly by itself."""
        return in_process.Client(super().rpc_client)

    # What members are given

    def _prototype(self) -> Any:
        """Return a member of no server, for what all have in common."""
        return group_members.make(
            self,
            members.Member(group_id=self.resource_id, key='', server_id=''),
            self.get_resource_def(),
        )

    def source_of_members(self) -> Any:
        """Return the config that the template names."""
        return self._prototype().source()

    def runs(self, source: Any, action: str) -> Any:
        """Say whether members run anything for an action."""
        return source.runs(action, self.properties[self.DEPLOY_ACTIONS])

    def servers_there(self, found: Any) -> Any:
        """Return the ids of those servers that can be given a config."""
        root_stack_id = transports.root_stack_id(self)
        return servers.Servers(self, root_stack_id).all_there(found)

    # Life

    def handle_create(self) -> Any:
        """Deliver CREATE to all members, or make the nested stack."""
        if not self._may_be_one(cfg.CONF.heat_plugins.group_members):
            return super().handle_create()
        self.resource_id = group_ids.new()
        name = transport_names.canonical(
            self.properties[self.SIGNAL_TRANSPORT]
        )
        if name == transport_names.AUTO:
            try:
                transports.for_members(self)
            except (failures.NoAnswer, errors.Unavailable) as exc:
                LOG.info(
                    '%(group)s becomes a nested stack, because TEMP_URL_POLL '
                    'is unavailable: %(error)s',
                    {'group': self.label, 'error': exc},
                )
                self.resource_id = None
                return super().handle_create()
        # Heat's resource_id_set ignores a failure of the database, and the
        # rows would then have no owner.
        resource_objects.Resource.update_by_id(
            self.context, self.id, {'physical_resource_id': self.resource_id}
        )
        return self._begin_update(self.CREATE)

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any
    ) -> Any:
        """Bring the members up to date."""
        if not self._is_one():
            wanted = prop_diff.get(deployment_schema.MEMBERS)
            if wanted == deployment_schema.SINGLE:
                raise resource.UpdateReplace(self.name)
            return super().handle_update(json_snippet, tmpl_diff, prop_diff)
        known = self._wanted()
        self.properties = json_snippet.properties(
            self.properties_schema, self.context
        )
        if tmpl_diff and tmpl_diff.update_policy_changed():
            self.update_policy = json_snippet.update_policy(
                self.update_policy_schema, self.context
            )
        if not self._may_be_one():
            raise resource.UpdateReplace(self.name)
        return self._begin_update(self.UPDATE, known)

    def _wanted(self) -> Any:
        return members.wanted(
            self.resource_id, self.properties[self.SERVERS] or {}
        )

    def _begin_update(self, action: Any, known: Any = ()) -> Any:
        fleet = group_fleet.Fleet(self)
        wanted, found = self._wanted(), fleet.all()
        source = fleet.source

        def runs(action: str) -> Any:
            return self.runs(source, action)

        self._check_replacement(fleet, wanted, found)
        tasks = members.to_update(wanted, found, runs, fleet.draft, known)
        gone = {k: row for k, row in found.items() if k not in wanted}
        undone = members.to_undo(self.resource_id, gone)
        removed = undone if runs(self.DELETE) else []
        return self._begin(
            action, fleet, {action: tasks, self.DELETE: removed}, gone
        )

    def _check_replacement(self, fleet: Any, wanted: Any, found: Any) -> Any:
        """Have the group replaced if an input asks for that.

        :raises resource.UpdateReplace: one does.
        """
        for number, member in wanted.items():
            row = found.get(number)
            if row is not None:
                draft = fleet.draft(member, row.action)
                if members.replaced_input(row, draft) is not None:
                    raise resource.UpdateReplace(self.name)
                # All have the same.
                return

    def allowed_failures(self) -> Any:
        """Return how many members may fail before the group does."""
        return deployment_schema.allowed_failures(
            self.properties[deployment_schema.MAX_FAILURES],
            len(self.properties[self.SERVERS] or {}),
        )

    handle_suspend = _acting('SUSPEND')
    handle_resume = _acting('RESUME')

    check_create_complete = _checking('check_create_complete')
    check_update_complete = _checking('check_update_complete')
    check_suspend_complete = _checking('check_suspend_complete')
    check_resume_complete = _checking('check_resume_complete')
    check_check_complete = _checking('check_check_complete')
    check_adopt_complete = _checking('check_adopt_complete')

    def _do_action(self, action: Any, *args: Any, **kwargs: Any) -> Any:
        # For what an action that is repeated need not repeat.
        self._state_before = self.state
        return super()._do_action(action, *args, **kwargs)

    def _begin_action(self, action: Any) -> Any:
        fleet = group_fleet.Fleet(self)
        tasks = []
        if self.runs(fleet.source, action):
            tasks = members.to_act(
                self._wanted(),
                fleet.all(),
                action,
                repeats=self._state_before == (action, self.FAILED),
            )
        return self._begin(action, fleet, {action: tasks})

    def handle_delete(self) -> Any:
        """Deliver DELETE to all members; then delete what they had."""
        if not self._is_one():
            return super().handle_delete()
        fleet = group_fleet.Fleet(self)
        found = fleet.all()
        tasks = []
        with self.rpc_client().ignore_error_by_name('NotFound'):
            if self.runs(fleet.source, self.DELETE):
                tasks = members.to_undo(self.resource_id, found)
        return self._begin(self.DELETE, fleet, {self.DELETE: tasks}, found)

    def check_delete_complete(self, change: Any = None) -> Any:
        """Say whether all is undone and cleaned up."""
        if not self._is_one():
            return super().check_delete_complete(change)
        if not self._has_ended(change):
            return False
        self._clean_up()
        return True

    def _clean_up(self) -> None:
        """Clean up the object store, and ride out its passing faults."""
        sweep = self._sweep = self._sweep or sweeping.Sweep(self)
        try:
            sweep.run()
        except errors.ServiceError as exc:
            self._trouble = retrying.Trouble.of(exc, self._trouble)
            passes = exc.may_pass or isinstance(exc, errors.Conflict)
            budget = cfg.CONF.heat_plugins.swift_error_budget
            if passes and self._trouble.seconds <= budget:
                raise resource.PollDelay(_STORE_DELAY) from exc
            removals.leave_behind(self, self.DELETE, sweep, exc)

    def handle_check(self) -> Any:
        """Check that the members and their servers exist."""
        if not self._is_one():
            return super().handle_check()
        self.check_members()
        return None

    def handle_adopt(self, resource_data: Any = None) -> Any:
        """Take over a group that was abandoned."""
        found = (resource_data or {}).get('resource_id')
        if not group_ids.is_one(found):
            return super().handle_adopt(resource_data)
        resource.Resource.handle_adopt(self, resource_data)
        self.check_members()
        self.check_adoptable(self.allowed_failures())
        sweeping.forget_former_life(self)
        return None

    # Waiting

    def _begin(
        self, action: Any, fleet: Any, tasks: Any, gone: Any = ()
    ) -> Any:
        """Begin an action; see `group_change.Change`."""
        self._change = change = group_change.Change(
            self, action, fleet, tasks, frozenset(gone)
        )
        change.begin()
        return change

    def _has_ended(self, change: Any) -> Any:
        if change is not None and not change.step(self._loop):
            return False
        self._change = None
        return True

    def tell(self, action: Any, message: Any) -> Any:
        """Say in an event, and to the operator, what goes otherwise."""
        LOG.warning('%s: %s', self.label, message)
        self._add_event(action, self.IN_PROGRESS, message)

    def action_handler_task(
        self, action: Any, args: Any = None, action_prefix: Any = None
    ) -> Any:
        """Run an action; if it is cut short, withdraw it from the servers."""
        try:
            with rows.unquoted():
                yield from super().action_handler_task(
                    action, args=args, action_prefix=action_prefix
                )
        finally:
            try:
                self._withdraw()
            except Exception:
                LOG.exception(
                    'Cannot withdraw %s from its servers', self.label
                )

    def _withdraw(self) -> Any:
        change, self._change = self._change, None
        if change is not None:
            change.withdraw()

    def state_set(
        self, action: Any, status: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Note what is done, or how it has ended; then clean up after it."""
        result = super().state_set(action, status, *args, **kwargs)
        if status != self.IN_PROGRESS and self._is_one():
            hubs.tidy(self.stack, transports.root_stack_id(self))
        return result

    def take_back(self) -> Any:
        """Withdraw actions in progress that no engine waits for."""
        if not self._is_one():
            return
        fleet = group_fleet.Fleet(self)
        found = {
            number: row
            for number, row in fleet.all().items()
            if row.in_progress
        }
        if found:
            rollout.take_back(
                fleet,
                self.resource_id,
                found,
                _('The engine that waited for the server has died'),
            )

    def give_way(self) -> Any:
        """Leave the servers to a group that takes this one's place."""
        self.take_back()
