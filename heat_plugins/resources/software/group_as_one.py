# SPDX-License-Identifier: Apache-2.0
"""Groups without nested stack: one resource delivers to all servers.

What a member must run, and how an action goes through the members, decides
`heat_plugins.deployments`. A group that has a nested stack keeps it; see
`deployment_group`.
"""

import contextlib
import dataclasses
import time
from typing import Any

from heat.common import exception
from heat.common.i18n import _
from heat.engine import resource
from heat.objects import resource as resource_objects
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import members
from heat_plugins.deployments import removals
from heat_plugins.deployments import rollout
from heat_plugins.engine import hub as hubs
from heat_plugins.engine import rows
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.resources import eventful
from heat_plugins.resources.software import deployment_group
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_attributes
from heat_plugins.resources.software import group_fleet
from heat_plugins.resources.software import group_members
from heat_plugins.resources.software import group_triggers
from heat_plugins.resources.software import heats_loop
from heat_plugins.signals import group_ids
from heat_plugins.signals import transport_names
from heat_plugins.signals import watcher
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

# The transports of a group without nested stack; AUTO is tried.
_TRANSPORTS = (transport_names.TEMP_URL_POLL, transport_names.NO_SIGNAL)

# Seconds between two attempts to clean up the object store.
_STORE_DELAY = 5

_POLICIES = {
    members.CREATE: 'batch_create',
    members.UPDATE: 'rolling_update',
}


@dataclasses.dataclass(kw_only=True)
class Change:
    """An action of the whole group.

    :ivar rollouts: what is left to do, in this order.
    :ivar gone: the ids of members whose rows go after that.
    :ivar begun: by `time.monotonic`.
    """

    action: str
    fleet: group_fleet.Fleet
    rollouts: list[rollout.Rollout]
    gone: frozenset[str] = frozenset()
    begun: float = dataclasses.field(default_factory=time.monotonic)


class OneMixin(
    group_triggers.Triggers,
    group_attributes.Attributes,
    deployment_group.GroupMixin,
    eventful.Eventful,
    heats_loop.Blocking,
):
    """Goes before one of Heat's deployment groups; see the module."""

    resource_id: Any

    TIMEOUT = deployment_schema.TIMEOUT
    SIGNAL_URL_LIFETIME = deployment_schema.SIGNAL_URL_LIFETIME

    # An update mends what a check has found fault with.
    always_replace_on_check_failed = False

    # What goes on.
    _change: Change | None = None

    # What cleans up the object store, and since when that refuses it.
    _sweep: sweeping.Sweep | None = None
    _trouble: watcher.Trouble | None = None

    # The state before the action at hand.
    _state_before: tuple[str, str] | None = None

    @property
    def label(self) -> Any:
        return (
            f'Group {self.resource_id} ({self.name} of stack '
            f'{self.stack.name}, {self.stack.id})'
        )

    # Which kind it is

    def _is_one(self) -> Any:
        """Say whether it has no nested stack, and will have none."""
        return group_ids.is_one(self.resource_id)

    def _may_be_one(self) -> Any:
        """Say whether a new group needs no nested stack."""
        wanted = self.properties[deployment_schema.MEMBERS]
        if (wanted or cfg.CONF.heat_plugins.group_members) == 'nested':
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

    def prepare_abandon(self) -> Any:
        """Let go of its members."""
        if self._is_one():
            return resource.Resource.prepare_abandon(self)
        return super().prepare_abandon()

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

    def is_reachable(self, server: Any) -> Any:
        """Say whether a server is there to be given a config."""
        if any(one.is_going for one in server.resources):
            return False
        if any(one.is_itself for one in server.resources):
            return True
        nova = self.client_plugin('nova')
        if not nova.does_endpoint_exist('compute', 'nova'):
            return bool(server.resources)
        try:
            nova.get_server(server.id)
        except exception.EntityNotFound:
            return False
        except Exception as exc:
            # Nova is out of order; that says nothing about the server.
            LOG.warning(
                '%(group)s: Nova does not tell whether server %(server)s '
                'exists, which counts as yes: %(error)s',
                {'group': self.label, 'server': server.id, 'error': exc},
            )
        return True

    # Life

    def handle_create(self) -> Any:
        """Deliver CREATE to all members, or make the nested stack."""
        if not self._may_be_one():
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
                    '%(group)s gets a nested stack; TEMP_URL_POLL cannot be '
                    'used: %(error)s',
                    {'group': self.label, 'error': exc},
                )
                self.resource_id = None
                return super().handle_create()
        # Heat's resource_id_set goes on if the database fails, and then
        # nobody would know whose rows they are.
        resource_objects.Resource.update_by_id(
            self.context, self.id, {'physical_resource_id': self.resource_id}
        )
        return self._begin_update(self.CREATE)

    def check_create_complete(self, *args: Any) -> Any:
        """Say whether CREATE has ended."""
        return self._check(super().check_create_complete, *args)

    def handle_update(
        self, json_snippet: Any, tmpl_diff: Any, prop_diff: Any
    ) -> Any:
        """Bring the members up to date."""
        if not self._is_one():
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

    def check_update_complete(self, *args: Any) -> Any:
        """Say whether UPDATE has ended."""
        return self._check(super().check_update_complete, *args)

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
        return self._begin(
            Change(
                action=action,
                fleet=fleet,
                rollouts=[
                    self._rollout(action, tasks, fleet),
                    self._rollout(
                        self.DELETE,
                        undone if runs(self.DELETE) else [],
                        fleet,
                    ),
                ],
                gone=frozenset(gone),
            )
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

    def _rollout(self, action: Any, tasks: Any, fleet: Any) -> Any:
        policy = self.update_policy.get(_POLICIES.get(action)) or {}
        size, pause = policy.get('max_batch_size'), policy.get('pause_time')
        if size and tasks:
            # As Heat has it, and refuses it.
            self._update_timeout(-(-len(tasks) // size), pause or 0)
        return rollout.Rollout(
            action,
            tasks,
            fleet,
            fleet.hub.watcher,
            fleets.Pace(
                batch=size,
                pause=pause or 0,
                allowed=self._allowed_failures(),
                timeout=self.properties[deployment_schema.TIMEOUT],
                delivery_timeout=self.properties[
                    deployment_schema.DELIVERY_TIMEOUT
                ],
                budget=cfg.CONF.heat_plugins.swift_error_budget,
            ),
            self._report,
            time.monotonic,
        )

    def _allowed_failures(self) -> Any:
        return deployment_schema.allowed_failures(
            self.properties[deployment_schema.MAX_FAILURES],
            len(self.properties[self.SERVERS] or {}),
        )

    def handle_suspend(self) -> Any:
        """Deliver SUSPEND to all members."""
        if not self._is_one():
            return super().handle_suspend()
        return self._begin_action(self.SUSPEND)

    def check_suspend_complete(self, *args: Any) -> Any:
        """Say whether SUSPEND has ended."""
        return self._check(super().check_suspend_complete, *args)

    def handle_resume(self) -> Any:
        """Deliver RESUME to all members."""
        if not self._is_one():
            return super().handle_resume()
        return self._begin_action(self.RESUME)

    def check_resume_complete(self, *args: Any) -> Any:
        """Say whether RESUME has ended."""
        return self._check(super().check_resume_complete, *args)

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
        return self._begin(
            Change(
                action=action,
                fleet=fleet,
                rollouts=[self._rollout(action, tasks, fleet)],
            )
        )

    def handle_delete(self) -> Any:
        """Deliver DELETE to all members; then delete what they had."""
        if not self._is_one():
            return super().handle_delete()
        fleet = group_fleet.Fleet(self)
        found = fleet.all()
        tasks = []
        with contextlib.suppress(exception.NotFound):
            if self.runs(fleet.source, self.DELETE):
                tasks = members.to_undo(self.resource_id, found)
        return self._begin(
            Change(
                action=self.DELETE,
                fleet=fleet,
                rollouts=[self._rollout(self.DELETE, tasks, fleet)],
                gone=frozenset(found),
            )
        )

    def check_delete_complete(self, *args: Any) -> Any:
        """Say whether all is undone and cleaned up."""
        if not self._check(super().check_delete_complete, *args):
            return False
        if self._is_one():
            self._clean_up()
        return True

    def _clean_up(self) -> None:
        """Clean up the object store, and ride out its passing faults."""
        sweep = self._sweep = self._sweep or sweeping.Sweep(self)
        try:
            sweep.run()
        except errors.ServiceError as exc:
            self._trouble = watcher.Trouble.of(
                exc, self._trouble, time.monotonic
            )
            passes = exc.may_pass or isinstance(exc, errors.Conflict)
            budget = cfg.CONF.heat_plugins.swift_error_budget
            if passes and self._trouble.seconds <= budget:
                raise resource.PollDelay(_STORE_DELAY) from exc
            removals.leave_behind(self, self.DELETE, sweep, exc)

    def handle_check(self) -> Any:
        """Hold that the members and their servers exist."""
        if not self._is_one():
            return super().handle_check()
        self.check_members()
        return None

    def check_check_complete(self, *args: Any) -> Any:
        """Say whether CHECK has ended."""
        return self._check(super().check_check_complete, *args)

    def handle_adopt(self, resource_data: Any = None) -> Any:
        """Take over a group that was abandoned."""
        found = (resource_data or {}).get('resource_id')
        if not group_ids.is_one(found):
            return super().handle_adopt(resource_data)
        resource.Resource.handle_adopt(self, resource_data)
        self.check_members()
        return None

    def check_adopt_complete(self, *args: Any) -> Any:
        """Say whether the group is taken over."""
        return self._check(super().check_adopt_complete, *args)

    def needs_replace_failed(self) -> Any:
        """Say whether a failed group has to be replaced."""
        return not self._is_one() and super().needs_replace_failed()

    def _needs_update(self, *args: Any, **kwargs: Any) -> Any:
        if not self._is_one():
            return super()._needs_update(*args, **kwargs)
        changed = resource.Resource._needs_update(self, *args, **kwargs)
        # Heat takes a failed resource for complete if nothing has changed.
        return changed or self.status == self.FAILED

    # Waiting

    def _begin(self, change: Any) -> Any:
        self._change = change
        # No check: the method that begins must not block.
        if change.rollouts:
            self._advance(change, change.rollouts[0], patience=0.0)
        return change

    def _check(self, heats: Any, change: Any = None) -> Any:
        """Say whether a change has ended; Heat's own way if it has a stack."""
        if not self._is_one():
            return heats(change)
        return change is None or self._step(change)

    def _step(self, change: Any) -> Any:
        while change.rollouts:
            current = change.rollouts[0]
            while not self._advance(change, current, self._loop.patience()):
                if not (
                    current.may_block
                    and self._loop.patience() > 0
                    and self._loop.goes_on()
                ):
                    return False
            self._tell_skipped(change, current)
            change.rollouts.pop(0)
        if change.gone:
            self._remove(change)
        self._change = None
        return True

    def _advance(self, change: Any, current: Any, patience: Any) -> Any:
        try:
            done = current.step(patience)
        except failures.Error as exc:
            is_delivered = current.trouble is None or current.may_answer
            if change.action != self.DELETE or is_delivered:
                raise
            # What is missing may never come back, and a stack has to go.
            self.tell(
                self.DELETE, _('DELETE was not run on all servers: %s') % exc
            )
            return True
        hub = change.fleet.hub
        if not done and hub.cancellation.of(self.stack, since=change.begun):
            raise failures.Error(
                _('%s was cancelled before all members answered')
                % change.action
            )
        if current.trouble is not None:
            # If they cannot be had the trouble goes on, up to the budget.
            with contextlib.suppress(errors.Denied):
                hub.adopt(self.stack)
        return done

    def _tell_skipped(self, change: Any, ended: Any) -> Any:
        """Tell what went wrong, and is no failure of the group."""
        if ended.failures:
            self.tell(
                change.action,
                fleets.failure(ended.failures, ended.progress().all),
            )
        if ended.skipped:
            self.tell(
                change.action,
                _('%(number)d members did not run DELETE. %(key)s: %(why)s')
                % {
                    'number': len(ended.skipped),
                    'key': next(iter(ended.skipped)),
                    'why': next(iter(ended.skipped.values())),
                },
            )

    def _remove(self, change: Any) -> Any:
        fleet = change.fleet
        found = fleet.all()
        rollout.remove(
            fleet,
            self.resource_id,
            {k: row for k, row in found.items() if k in change.gone},
        )
        change.gone = frozenset()

    def _report(self, progress: Any) -> Any:
        self._add_event(
            self.action,
            self.IN_PROGRESS,
            kinds.reason(kinds.Kind.PROGRESS, str(progress)),
        )

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
                    '%s could not be withdrawn from its servers', self.label
                )

    def _withdraw(self) -> Any:
        change, self._change = self._change, None
        if change is not None and change.rollouts:
            change.rollouts[0].withdraw(_('%s was cancelled') % change.action)

    def state_set(
        self, action: Any, status: Any, *args: Any, **kwargs: Any
    ) -> Any:
        """Note what is done, or how it has ended; then clean up after it."""
        result = super().state_set(action, status, *args, **kwargs)
        if status != self.IN_PROGRESS and self._is_one():
            hubs.tidy(self.stack, transports.root_stack_id(self))
        return result

    def _handle_cancel(self) -> Any:
        if not self._is_one():
            super()._handle_cancel()

    def take_back(self) -> Any:
        """Withdraw what is in progress, and nobody waits for."""
        if not self._is_one():
            return
        fleet = group_fleet.Fleet(self)
        found = {
            number: row
            for number, row in fleet.all().items()
            if row.in_progress
        }
        if found:
            fleet.detach(
                dict.fromkeys(found, _('The engine that waited has died'))
            )
            fleet.tell({row.server_id for row in found.values()})

    def give_way(self) -> Any:
        """Leave the servers to a group that takes this one's place."""
        self.take_back()
