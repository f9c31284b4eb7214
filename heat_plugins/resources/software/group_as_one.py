# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack: one resource delivers to all servers.

`heat_plugins.deployments` decides what a member must run, and in which order.
A group that has a nested stack keeps it; see `deployment_group`.
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
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import plan_tasks
from heat_plugins.deployments import rollout
from heat_plugins.engine import heat_types
from heat_plugins.engine import server_fleets
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_members
from heat_plugins.resources.software import server_bound
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# By action.
_POLICIES = {
    plan_tasks.CREATE: 'batch_create',
    plan_tasks.UPDATE: 'rolling_update',
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

    method.__name__ = name
    return method


class GroupAsOne(
    deployment_group.Nestable,
    group_members.GroupMembers,
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
        kind = self._environment().get(signal_names.GROUP_MEMBERS)
        if not self._tolerates(self.properties) or kind is not None:
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
            except (failures.NoAnswer, errors.Unavailable) as exc:
                LOG.info(
                    '%(group)s becomes a nested stack, because AUTO finds '
                    'no transport that serves it as one resource: %(error)s',
                    {'group': self.label, 'error': exc},
                )
                self.resource_id = None
                if self._tolerates(self.properties):
                    raise failures.ActionFailed(
                        f'{_NOT_NESTED}. {exc}'
                    ) from exc
                return super().handle_create()
        # Heat's resource_id_set ignores a failure of the database, and the
        # rows would then have no owner.
        resource_objects.Resource.update_by_id(
            self.context, self.id, {'physical_resource_id': self.resource_id}
        )
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

    def _wanted(self) -> dict[str, plan_tasks.Member]:
        return plan_tasks.wanted(
            self.resource_id, self.properties[self.SERVERS] or {}
        )

    def _begin_update(
        self,
        action: str,
        prop_diff: abc.Mapping[str, object],
        known: abc.Collection[str] = (),
    ) -> lifecycle.LifecycleAction:
        self._check_servers()
        fleet = self._fleet()
        wanted, rows = self._wanted(), fleet.all()
        source = fleet.source

        def runs(action: str) -> bool:
            return self.runs(source, action)

        self._check_replacement(fleet, wanted, rows)
        tasks = plan_tasks.to_update(
            wanted,
            rows,
            plan_tasks.Update(
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
        undone = plan_tasks.to_undo(gone)
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

    def _check_servers(self) -> None:
        """Refuse members without a server.

        :raises failures.ActionFailed: it names them.
        """
        lacking = [
            key
            for key, server_id in (self.properties[self.SERVERS] or {}).items()
            if not isinstance(server_id, str) or not server_id
        ]
        if lacking:
            raise failures.ActionFailed(
                _('These members have no server: %s') % bounds.listed(lacking)
            )

    def _check_replacement(
        self,
        fleet: server_fleets.ServerFleet,
        wanted: abc.Mapping[str, plan_tasks.Member],
        rows: abc.Mapping[str, heat_values.DeploymentRow],
    ) -> None:
        """Have the group replaced if an input asks for that.

        :raises resource.UpdateReplace: one does.
        """
        for number, member in wanted.items():
            row = rows.get(number)
            if row is not None:
                draft = fleet.draft(member, row.action)
                if derived.asks_replacement(draft.inputs, row.inputs):
                    raise resource.UpdateReplace(self.name)
                # All have the same.
                return

    def allowed_failures(self) -> int:
        """Return how many members may fail before the group does."""
        return deployment_schema.allowed_failures(
            self.properties[deployment_schema.MAX_FAILURES],
            len(self.properties[self.SERVERS] or {}),
        )

    def _begin_action(self, action: str) -> lifecycle.LifecycleAction:
        fleet = self._fleet()
        tasks = []
        if self.runs(fleet.source, action):
            tasks = plan_tasks.to_act(
                self._wanted(),
                fleet.all(),
                action,
                repeats=self._state_before == (action, self.FAILED),
            )
        return self._begin_tasks(action, fleet, {action: tasks})

    def _begin_delete(self) -> lifecycle.LifecycleAction:
        """Deliver DELETE to all members; then delete what they had."""
        fleet = self._fleet()
        rows = fleet.all()
        tasks = []
        with self.rpc_client().ignore_error_by_name('NotFound'):
            if self.runs(fleet.source, self.DELETE):
                tasks = plan_tasks.to_undo(rows)

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
        tasks: abc.Mapping[str, abc.Sequence[plan_tasks.Task]],
        finish: lifecycle.Finish = lifecycle.nothing_more,
    ) -> lifecycle.LifecycleAction:
        """Begin an action.

        :param tasks: what members must do, by action, in this order.
        """
        rollouts = [
            self._rollout_of(fleet, name, each)
            for name, each in tasks.items()
            if each
        ]
        return self._begin(
            lifecycle.LifecycleAction(action, fleet, rollouts, finish)
        )

    def _rollout_of(
        self,
        fleet: server_fleets.ServerFleet,
        action: str,
        tasks: abc.Sequence[plan_tasks.Task],
    ) -> rollout.Rollout:
        policy = self.update_policy.get(_POLICIES.get(action)) or {}
        size, pause = policy.get('max_batch_size'), policy.get('pause_time')
        if size:
            # As Heat has it, and refuses it.
            self._update_timeout(-(-len(tasks) // size), pause or 0)
        stay = len(self.properties[self.SERVERS] or {}) - len(tasks)
        return self._rollout(
            fleet,
            action,
            tasks,
            {
                'batch': size,
                'pause': pause or 0,
                'allowed': self.allowed_failures(),
            },
            summary=failures.of_group,
            report=self._report,
            current=0 if action == plan_tasks.DELETE else max(0, stay),
        )

    def _report(self, progress: fleets.Progress) -> None:
        self.tell(
            self.action,
            heat_values.event_reason(
                heat_values.EventKind.PROGRESS, str(progress)
            ),
        )

    def take_back(self) -> None:
        """Withdraw actions in progress that no engine waits for."""
        if not self._is_single():
            return
        fleet = self._fleet()
        rollout.take_back(
            fleet,
            [
                row
                for row in fleet.all().values()
                # An engine may have died before it told the server.
                if row.in_progress or row.is_withdrawn
            ],
            failures.ENGINE_DIED,
        )

    handle_suspend = _for_single(
        'handle_suspend', lambda self: self._begin_action('SUSPEND')
    )
    handle_resume = _for_single(
        'handle_resume', lambda self: self._begin_action('RESUME')
    )
    handle_delete = _for_single('handle_delete', _begin_delete)
    handle_check = _for_single(
        'handle_check', group_members.GroupMembers.check_members
    )


for _action in (
    *('create', 'update', 'suspend', 'resume', 'delete', 'check', 'adopt'),
):
    _check = f'check_{_action}_complete'
    setattr(
        GroupAsOne,
        _check,
        _for_single(_check, server_bound.ServerBound._has_ended),
    )
