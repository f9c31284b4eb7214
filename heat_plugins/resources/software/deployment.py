# SPDX-License-Identifier: Apache-2.0
"""What our deployment classes do that Heat's do not.

`DeploymentMixin` goes before one of Heat's two deployment classes. It keeps
their properties, attributes and inputs. How an action is delivered, awaited
and withdrawn is the room ``deployments``, for which this is N = 1.
"""

from collections import abc
import contextlib
import dataclasses
from typing import Any
import uuid

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import resource
from heat.objects import resource as resource_objects

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import fleets
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import rollout
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine import histories
from heat_plugins.engine import run_room
from heat_plugins.engine import server_fleets
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.resources import bases
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import server_bound
from heat_plugins.signals import signal_names

LOG = foreign.logger(__name__)


class DeploymentMixin(server_bound.ServerBound):
    """The behaviour of our deployment classes; see the module."""

    NOUN = 'Deployment'

    def _fleet(self) -> server_fleets.ServerFleet:
        return server_fleets.ServerFleet(self, lambda: self.properties)

    @property
    def _member(self) -> fleets.Member:
        """The single member of a deployment."""
        return fleets.Member(
            id=self.resource_id or str(uuid.uuid4()),
            key=self.name,
            server_id=self.properties[self.SERVER],
        )

    def _delete_swift_signal_url(self) -> None:
        """Leave the object store to the removal, which may take longer."""

    # Validation and attributes

    def validate(self) -> None:
        """Validate as Heat does, and refuse options that this cloud lacks."""
        super().validate()
        deployment_schema.check(self, self.SERVER)

    def get_attribute(self, key: str, *path: object) -> object:
        """Return an output of the last action or one of Heat's attributes.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        row = histories.row(self)
        outputs = row.outputs if row else {}
        if key in outputs:
            return attributes.select_from_attribute(outputs[key], path)
        config = row.config if row else None
        with contextlib.suppress(exception.NotFound):
            config = server_fleets.named_config(self) or config
        declared = {each['name'] for each in config.outputs} if config else ()
        if key in self.ATTRIBUTES or key in declared:
            return None
        if key == deployment_schema.TRANSPORT_ATTR:
            return row.transport if row else None
        if key == deployment_schema.RUNS_ATTR:
            number = self.resource_id or ''
            latest = run_room.room().latest(self, [number])
            shown = latest and latest[number]
            return attributes.select_from_attribute(shown, path)
        if key == deployment_schema.TRIGGER_URL:
            # A user who has the URL starts actions.
            if callers.may_not_update(self.stack):
                return None
            return self.data().get(run_room.URL_KEY)
        raise exception.InvalidTemplateAttribute(resource=self.name, key=key)

    def _resolve_attribute(self, name: str) -> object:
        # For who asks the API; templates come by `get_attribute`.
        return self.get_attribute(name)

    def _show_resource(self) -> dict[str, object] | None:
        """Return the deployment as Heat's API shows it.

        Heat's method asks heat-api, which waits for this engine meanwhile. If
        heat-api serves one request at a time, neither gets an answer.
        """
        if self.resource_id is None or not callers.is_of_project(
            self.context, self.stack
        ):
            return None
        return in_process.show_deployment(self.context, self.resource_id)

    def get_live_resource_data(self) -> dict[str, object] | None:
        """Return the deployment as Heat has it; None if that is gone.

        Heat replaces what is gone. An update delivers it again instead: the
        former release deleted one whose action failed or was cancelled.
        """
        try:
            live: dict[str, object] | None = super().get_live_resource_data()
        except exception.EntityNotFound:
            return None
        return live

    def store_attributes(self) -> None:
        """Store resolved attributes unless another action has started since.

        Heat deletes the stored attributes when an action begins. A request
        that shows the stack at that moment would store the outputs of the
        action before, and Heat would show those from then on.
        """
        if not self.attributes.has_new_cached_attrs():
            return
        stored = resource_objects.Resource.get_obj(
            self.context, self.id, refresh=True, fields=('action', 'status')
        )
        if (stored.action, stored.status) == self.state:
            super().store_attributes()

    # Actions

    def _handle_action(
        self,
        action: str,
        config: object = None,
        prev_derived_config: object = None,
    ) -> lifecycle.LifecycleAction | None:
        """Deliver an action; return the check that waits for it, or None."""
        task = fleets.repeated(
            self._member,
            histories.row(self),
            action,
            repeats=self._state_before == (action, self.FAILED),
        )
        return self._begin_task(action, self._fleet(), task)

    def _begin_task(
        self,
        action: str,
        fleet: server_fleets.ServerFleet,
        task: fleets.Task | None,
        finish: lifecycle.Finish | None = None,
    ) -> lifecycle.LifecycleAction | None:
        """Begin an action of the stack, if there is anything to do.

        :param task: what the server must do; None for nothing.
        :param finish: what comes after it.
        """
        rollouts = []
        listed = deliveries.Terms(self.properties).actions
        if task and fleet.source.runs(task.action, listed):
            if self.resource_id is None:
                # Heat's resource_id_set ignores a failure of the database,
                # and the row would then have no owner.
                self.resource_id: str | None = task.member.id
                resources.note_physical_id(
                    self.context, self.id, task.member.id
                )
            rollouts = [self._rollout(fleet, task.action, [task], {})]
        if not rollouts and finish is None:
            return None
        return self._begin(
            lifecycle.LifecycleAction(action, fleet, rollouts, finish)
        )

    def handle_create(self) -> lifecycle.LifecycleAction | None:
        """Start CREATE after the deferred checks of the template."""
        run_room.offer_url(
            self, self.properties[deployment_schema.TRIGGER_URL]
        )
        row = _taken_row(self)
        if row is None:
            return self._handle_action(self.CREATE)
        return self._begin_update(self.CREATE, self._fleet(), row, None)

    def handle_update(
        self,
        json_snippet: heat_types.Definition,
        tmpl_diff: object,
        prop_diff: abc.Mapping[str, object],
    ) -> lifecycle.LifecycleAction | None:
        """Begin UPDATE, unless a changed input asks for a replacement.

        :raises resource.UpdateReplace: it does.
        """
        self.properties = json_snippet.properties(
            self.properties_schema, self.context
        )
        fleet, row = self._fleet(), histories.row(self)
        inputs = derived.inputs(
            fleet.source, self.UPDATE, self.properties[self.INPUT_VALUES]
        )
        if row and derived.asks_replacement(inputs, row.inputs):
            raise resource.UpdateReplace(self.name)
        run_room.offer_url(
            self, self.properties[deployment_schema.TRIGGER_URL]
        )
        changed = self.changed_by(prop_diff)
        return self._begin_update(self.UPDATE, fleet, row, changed)

    def _begin_update(
        self,
        action: str,
        fleet: server_fleets.ServerFleet,
        row: heat_values.DeploymentRow | None,
        changed: abc.Collection[str] | None,
    ) -> lifecycle.LifecycleAction | None:
        """Start the action that brings the server up to date."""
        terms = deliveries.Terms(self.properties)
        update = fleets.Update(
            runs=lambda action: fleet.source.runs(action, terms.actions),
            transport=terms.transport,
            changed=changed,
            is_after_update=self.is_after_update,
        )

        def draft(
            member: fleets.Member, action: str
        ) -> heat_values.DerivedConfig:
            drafted = fleet.draft(member, action)
            if self.properties[self.NAME] or row is None:
                return drafted
            # It is that of the resource, and changes with the nested stack.
            return dataclasses.replace(drafted, name=row.config.name)

        # Without an ID, CREATE was none of its actions.
        is_lost = self.resource_id is not None
        repeats_create = is_lost and not update.runs(self.UPDATE)
        task = update.task(
            self._member,
            row,
            draft,
            self.CREATE if repeats_create else self.UPDATE,
        )
        if task is None and row is not None:
            fleet.refresh([row])
        return self._begin_task(action, fleet, task)

    # Heat calls it, too, and logs how it fails.
    _handle_cancel = server_bound.ServerBound._withdraw

    check_create_complete = server_bound.ServerBound._has_ended
    check_update_complete = server_bound.ServerBound._has_ended
    check_suspend_complete = server_bound.ServerBound._has_ended
    check_resume_complete = server_bound.ServerBound._has_ended
    check_delete_complete = server_bound.ServerBound._has_ended

    def handle_delete(self) -> lifecycle.LifecycleAction | None:
        """Begin with the DELETE action, if there is one to run."""
        fleet, row, task = self._fleet(), histories.row(self), None
        with self.rpc_client().ignore_error_by_name('NotFound'):
            if self._must_undo(fleet.source, row):
                task = fleets.repeated(
                    self._member, row, self.DELETE, repeats=True
                )

        def delete_all() -> None:
            histories.forget_former(self)
            if self.resource_id is not None:
                row = histories.row(self)
                rollout.withdraw_rows(fleet, [row] if row else [])
                fleet.erase([self.resource_id])
            self._delete_signals()
            self._delete_user()
            self.data_delete(run_room.URL_KEY)

        removal = sweeping.Removal(self, delete_all)
        return self._begin_task(self.DELETE, fleet, task, removal)

    def _must_undo(
        self,
        source: heat_values.DerivedConfig,
        row: heat_values.DeploymentRow | None,
    ) -> bool:
        """Say whether its server must run DELETE."""
        listed = deliveries.Terms(self.properties).actions
        if not source.runs(self.DELETE, listed):
            return False
        if histories.is_replaced(self, row):
            LOG.info(
                '%s is deleted without running DELETE: another deployment '
                'replaced it on its server',
                self.label,
            )
            return False
        if row is not None or not source.runs(self.CREATE, listed):
            return True
        before = self._state_before or (self.INIT, self.COMPLETE)
        # In the first case the server was never given it. In the second an
        # engine that has died had deleted the row.
        return before != (self.CREATE, self.FAILED) and (
            before[0] != self.DELETE or self.resource_id is None
        )

    @rows.unquoted()
    def handle_signal(self, details: object) -> str | None:
        """Start a run if a signal asks for one; else it is a result.

        Heat answers the sender of a signal before it handles the signal, so
        an event tells the result.
        """
        row = histories.row(self)
        declared = row.config.outputs if row else ()
        signaller = callers.of(self.stack)
        try:
            wanted = run_room.room().read(details, declared)
            if wanted is not None:
                callers.check_may_start(
                    signaller,
                    servers_may=deployment_schema.permits_servers(self),
                )
                return str(run_room.room().start(self, wanted, [self]))
        except Exception as exc:
            raise bases.refused(self, exc) from exc
        is_resting = row is None or not row.in_progress
        if run_room.room().cannot_be_result(details, declared) or (
            is_resting and run_room.room().looks_like_one(details)
        ):
            ambiguous = errors.Refused(
                _(
                    'the signal must be exactly {"trigger": "<action>", '
                    '"input_values": {…}} or {"run": {…}}, and the config '
                    'must not have an output of that name'
                )
            )
            raise bases.refused(self, ambiguous)
        try:
            return histories.SignalHandler(self, signaller).take(details, row)
        except deliveries.ActionFailed as exc:
            raise bases.refused(
                self, exc, kind=heat_values.EventKind.RESULT_REFUSED
            ) from exc

    def run_target(self, wanted: Any) -> Any:
        """Return this deployment as the target of a run.

        :raises errors.Refused: nothing can be started on it, or not that.
        """
        row = histories.row(self)
        # The template alone does not resolve references.
        with self.frozen_properties():
            return run_room.Subject(
                resource=self,
                name=self.name,
                names=[self.name],
                deployment_id=self.resource_id,
                # A run takes the config that its server would get now.
                row=None if row is None or row.is_withdrawn else row,
                terms=deliveries.Terms(self.properties),
                draft=lambda action: self._fleet().draft(self._member, action),
                named_config=lambda: server_fleets.named_config(self),
            ).run_target(wanted)

    # Check, adopt, delete

    def handle_check(self) -> None:
        """Check that the deployment and its server are there.

        :raises deliveries.ActionFailed: one of them is not.
        """
        row = histories.row(self)
        if row is None and self.resource_id is not None:
            raise deliveries.ActionFailed(
                f'Deployment {self.resource_id} no longer exists in Heat; an '
                'update of the stack creates it again'
            )
        reachable = servers.Servers(self, transports.root_stack_id(self))
        server = reachable.find(self.properties[self.SERVER])
        if row and not reachable.is_reachable(server):
            rows.mark_unhealthy(self.context, [row.id])
            raise deliveries.ActionFailed(
                f'Server {row.server_id} does not exist'
            )

    def handle_adopt(
        self, resource_data: abc.Mapping[str, Any] | None = None
    ) -> None:
        """Take over a deployment that was abandoned.

        :raises deliveries.ActionFailed: it is not there, or not complete.
        """
        super().handle_adopt(resource_data)
        row = histories.row(self)
        if row is None:
            raise deliveries.ActionFailed(
                f'Cannot adopt deployment {self.resource_id}: Heat has none '
                'with this ID'
            )
        if row.status != heat_values.COMPLETE:
            raise deliveries.ActionFailed(
                f'Cannot adopt deployment {row.id}: it is {row.status}, and '
                'must be COMPLETE'
            )
        sweeping.forget_former_life(self)

    def needs_replace_failed(self) -> bool:
        """Say whether a failed deployment must be replaced.

        One that was created before is repeated in place: a replacement would
        run CREATE, and after it DELETE, on the same server.
        """
        if self.action == self.ADOPT:
            # It may be there and only not be complete.
            return histories.row(self) is None
        former = _former_group(self)
        if former and self.resource_id and self.action == self.CREATE:
            # It took over a row, and CREATE may have run long ago.
            kept = signal_names.group_prefix(former)
            return not self.resource_id.startswith(kept)
        if self.action == self.CREATE:
            return not fleets.is_resumable(histories.row(self))
        return self.action not in (
            self.UPDATE,
            self.SUSPEND,
            self.RESUME,
            self.CHECK,
        )

    def withdraw_delivered(self) -> None:
        """Withdraw an action in progress that no engine waits for."""
        row = histories.row(self)
        # An engine may have died before it told the server.
        if row is not None and (row.in_progress or row.is_withdrawn):
            rollout.withdraw_rows(self._fleet(), [row], deliveries.ENGINE_DIED)


def _former_group(deployment: heat_types.Resource) -> str | None:
    """Return the group that claims the deployment as its member."""
    former: str | None = deployment.stack.env.param_defaults.get(
        deployment_schema.FORMER_GROUP
    )
    return former


def _taken_row(
    deployment: heat_types.Resource,
) -> heat_values.DeploymentRow | None:
    """Take over a member's row when its group changes to a nested stack."""
    former = _former_group(deployment)
    context, stack = deployment.context, deployment.stack
    # Users write to environments as well; the data of the group count.
    if former is None or former not in resources.data_of_later(
        context,
        stack.owner_id,
        stack.parent_resource_name,
        0,
        deployment_schema.FORMER_GROUP,
    ):
        return None
    server_id = deployment.properties[deployment.SERVER]
    number = fleets.Member.of_group(former, deployment.name, server_id).id
    row = rows.visible(context, [number]).get(number)
    if row is None or resources.is_physical_id(context, number):
        return None
    deployment.resource_id = number
    resources.note_physical_id(context, deployment.id, number)
    if row.transport == heat_values.TEMP_URL_POLL:
        container = transports.hub_for(deployment).container
        deployment.data_set(rows.CONTAINER_KEY, container)
    return row
