# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack: one resource delivers to all servers.

What a member must run, and how an action goes through the members, decides
`heat_plugins.deployments`. A group that has a nested stack keeps it; see
`deployment_group`.
"""

from collections import abc
from typing import Any

from heat.common.i18n import _
from heat.engine import resource
from heat.objects import resource as resource_objects
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import failures
from heat_plugins.deployments import members
from heat_plugins.deployments import removals
from heat_plugins.deployments import rollout
from heat_plugins.deployments import updates
from heat_plugins.deployments import waiters
from heat_plugins.engine import deployment_parts
from heat_plugins.engine import deriving
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import servers
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_attributes
from heat_plugins.resources.software import group_change
from heat_plugins.resources.software import group_fleet
from heat_plugins.resources.software import group_nesting
from heat_plugins.resources.software import server_bound
from heat_plugins.signals import group_ids
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


def _for_one(name: str, do: abc.Callable[..., Any]) -> Any:
    """Return a method for groups that are one; others have Heat's."""

    def method(self: Any, *args: Any) -> Any:
        if self._is_one():
            return do(self, *args)
        return getattr(super(OneMixin, self), name)(*args)

    method.__name__ = name
    return method


class OneMixin(
    group_nesting.Nestable,
    group_attributes.Attributes,
    deployment_group.GroupMixin,
    server_bound.ServerBound,
):
    """Goes before one of Heat's deployment groups; see the module."""

    resource_id: Any

    NOUN = 'Group'

    _task: group_change.Change | None = None

    # What cleans up the object store.
    _cleanup: removals.Cleanup | None = None

    # What members are given

    def source_of_members(self) -> Any:
        """Return the config that the template names."""
        return deriving.load_source(self)

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
        default = cfg.CONF.heat_plugins.group_members
        if not self._may_be_one(self.properties, default):
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
        return self._begin_update(self.CREATE, {})

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any
    ) -> Any:
        """Bring the members up to date."""
        if not self._is_one():
            return super().handle_update(json_snippet, tmpl_diff, prop_diff)
        after = json_snippet.properties(self.properties_schema, self.context)
        if not self._may_be_one(after):
            return self._nest(json_snippet, tmpl_diff, prop_diff)
        known = self._wanted()
        self.properties = after
        if tmpl_diff and tmpl_diff.update_policy_changed():
            self.update_policy = json_snippet.update_policy(
                self.update_policy_schema, self.context
            )
        return self._begin_update(self.UPDATE, prop_diff, known)

    def _wanted(self) -> Any:
        return members.wanted(
            self.resource_id, self.properties[self.SERVERS] or {}
        )

    def _begin_update(
        self, action: Any, prop_diff: Any, known: Any = ()
    ) -> Any:
        self._check_servers()
        fleet = group_fleet.Fleet(self)
        wanted, found = self._wanted(), fleet.all()
        source = fleet.source

        def runs(action: str) -> Any:
            return self.runs(source, action)

        self._check_replacement(fleet, wanted, found)
        tasks = members.to_update(
            wanted,
            found,
            updates.Update(
                runs=runs,
                transport=deliveries.Terms(self.properties).transport,
                changed=self.changed_by(prop_diff),
                is_after_update=self.is_after_update,
            ),
            fleet.draft,
            known,
        )
        gone = {k: row for k, row in found.items() if k not in wanted}
        undone = members.to_undo(self.resource_id, gone)
        removed = undone if runs(self.DELETE) else []
        return self._begin(
            action, fleet, {action: tasks, self.DELETE: removed}, gone
        )

    def _check_servers(self) -> Any:
        """Refuse members without a server.

        :raises failures.Error: it names them.
        """
        lacking = [
            key
            for key, server_id in (self.properties[self.SERVERS] or {}).items()
            if not isinstance(server_id, str) or not server_id
        ]
        if lacking:
            raise failures.Error(
                _('These members have no server: %s') % bounds.listed(lacking)
            )

    def _check_replacement(self, fleet: Any, wanted: Any, found: Any) -> Any:
        """Have the group replaced if an input asks for that.

        :raises resource.UpdateReplace: one does.
        """
        for number, member in wanted.items():
            row = found.get(number)
            if row is not None:
                draft = fleet.draft(member, row.action)
                if derived.asks_replacement(draft.inputs, row.inputs):
                    raise resource.UpdateReplace(self.name)
                # All have the same.
                return

    def allowed_failures(self) -> Any:
        """Return how many members may fail before the group does."""
        return deployment_schema.allowed_failures(
            self.properties[deployment_schema.MAX_FAILURES],
            len(self.properties[self.SERVERS] or {}),
        )

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

    def _begin_delete(self) -> Any:
        """Deliver DELETE to all members; then delete what they had."""
        fleet = group_fleet.Fleet(self)
        found = fleet.all()
        tasks = []
        with self.rpc_client().ignore_error_by_name('NotFound'):
            if self.runs(fleet.source, self.DELETE):
                tasks = members.to_undo(self.resource_id, found)
        return self._begin(self.DELETE, fleet, {self.DELETE: tasks}, found)

    def _has_gone(self, change: Any = None) -> Any:
        """Say whether all is undone and cleaned up."""
        if not self._has_ended(change):
            return False
        self._cleanup = self._cleanup or removals.Cleanup(
            self, sweeping.Sweep(self), deployment_parts.settings()
        )
        if not self._cleanup.step():
            raise resource.PollDelay(waiters.STORE_DELAY)
        return True

    def handle_adopt(self, resource_data: Any = None) -> Any:
        """Take over a group that was abandoned."""
        found = (resource_data or {}).get('resource_id')
        if not group_ids.is_one(found):
            return super().handle_adopt(resource_data)
        resource.Resource.handle_adopt(self, resource_data)
        # Who hands in a stack for adoption may name any.
        self.data_delete(deployment_schema.FORMER_GROUP)
        self.check_members()
        self.check_adoptable(self.allowed_failures())
        sweeping.forget_former_life(self)
        return None

    # Waiting

    def _begin(
        self, action: Any, fleet: Any, tasks: Any, gone: Any = ()
    ) -> Any:
        """Begin an action; see `group_change.Change`."""
        self._task = change = group_change.Change(
            self, action, fleet, tasks, frozenset(gone)
        )
        change.begin()
        return change

    def _has_ended(self, change: Any) -> Any:
        if change is not None and not change.step(self._loop):
            return False
        self._task = None
        return True

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

    handle_suspend = _for_one(
        'handle_suspend', lambda self: self._begin_action('SUSPEND')
    )
    handle_resume = _for_one(
        'handle_resume', lambda self: self._begin_action('RESUME')
    )
    handle_delete = _for_one('handle_delete', _begin_delete)
    handle_check = _for_one(
        'handle_check', group_attributes.Attributes.check_members
    )
    check_create_complete = _for_one('check_create_complete', _has_ended)
    check_update_complete = _for_one('check_update_complete', _has_ended)
    check_suspend_complete = _for_one('check_suspend_complete', _has_ended)
    check_resume_complete = _for_one('check_resume_complete', _has_ended)
    check_delete_complete = _for_one('check_delete_complete', _has_gone)
    check_check_complete = _for_one('check_check_complete', _has_ended)
    check_adopt_complete = _for_one('check_adopt_complete', _has_ended)
