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
from heat.engine import attributes
from heat.engine import resource
from heat.objects import resource as resource_objects

from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import failures
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import plan_tasks
from heat_plugins.deployments import rollout
from heat_plugins.deployments import signallers
from heat_plugins.engine import callers
from heat_plugins.engine import deriving
from heat_plugins.engine import heat_types
from heat_plugins.engine import histories
from heat_plugins.engine import server_fleets
from heat_plugins.engine import sweeping
from heat_plugins.engine import transports
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import triggering
from heat_plugins.resources import eventful
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import server_bound
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import targets
from heat_plugins.signals import signal_names
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)


class DeploymentMixin(server_bound.ServerBound):
    """The behaviour of our deployment classes; see the module.

    :ivar signaller: who sends the signal, if a group hands it on.
    """

    signaller: signallers.Signaller | None = None

    NOUN = 'Deployment'

    SIGNAL_TRANSPORTS = transport_names.NAMES

    @property
    def _history(self) -> histories.History:
        """What it has made."""
        return histories.History(self)

    @property
    def _servers(self) -> servers.Servers:
        """The servers, as its stack sees them."""
        return servers.Servers(self, transports.root_stack_id(self))

    @property
    def _terms(self) -> deliveries.Terms:
        """What the template says of all actions."""
        return deliveries.Terms(self.properties)

    @property
    def member(self) -> plan_tasks.Member:
        """The only one."""
        return plan_tasks.Member(
            id=self.resource_id or str(uuid.uuid4()),
            key=self.name,
            server_id=self.properties[self.SERVER],
        )

    def _triggering(
        self, row: heat_values.DeploymentRow | None = None
    ) -> triggering.Triggering:
        """Return what starts runs.

        :param row: what its server was given last, if anything.
        """
        return triggering.Triggering(
            triggering.Subject(
                resource=self,
                name=self.name,
                names=[self.name],
                deployment_id=self.resource_id,
            ),
            row,
            terms=self._terms,
            servers=self._servers,
            draft=lambda action: server_fleets.SingleFleet(self).draft(
                self.member, action
            ),
            named_config=lambda: deriving.named_config(self),
        )

    # What the engine needs of it

    def take_id(self, number: str) -> None:
        """Get an id, if it has none; it is stored by `keep_id`."""
        if self.resource_id is None:
            self.resource_id: str | None = number

    def keep_id(self) -> None:
        """Store its id, before Heat has a row of that.

        Heat's resource_id_set ignores a failure of the database, and the row
        would then have no owner.
        """
        resources.note_physical_id(self.context, self.id, self.resource_id)

    def source(self) -> heat_values.DerivedConfig:
        """Return the config that the template names."""
        return deriving.load_source(self)

    def _delete_swift_signal_url(self) -> None:
        """Leave the object store to the removal, which may take longer."""

    # Validation and attributes

    def validate(self) -> None:
        """Validate as Heat does, and refuse what this cloud cannot have."""
        super().validate()
        transports.check(self)

    def get_attribute(self, key: str, *path: object) -> object:
        """Return an output of the last action, or what Heat adds to those.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        row = self._history.row()
        outputs = row.outputs if row else {}
        if key in outputs:
            return attributes.select_from_attribute(outputs[key], path)
        if key in self.ATTRIBUTES or key in self._declared_names(row):
            return None
        if key == deployment_schema.TRANSPORT_ATTR:
            return row.transport if row else None
        if key == deployment_schema.RUNS_ATTR:
            latest = self._triggering().latest()
            return attributes.select_from_attribute(latest, path)
        if key == deployment_schema.TRIGGER_URL:
            return self.data().get(triggering.URL_KEY)
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

        Heat replaces what is gone. But a deployment is withdrawn when its
        action fails or is cancelled, and the update then delivers it again.
        """
        try:
            live: dict[str, object] | None = super().get_live_resource_data()
        except exception.EntityNotFound:
            return None
        return live

    def store_attributes(self) -> None:
        """Keep what was resolved, unless another action has started since.

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

    def _declared_names(
        self, row: heat_values.DeploymentRow | None
    ) -> set[str]:
        """Return the names of the outputs that the config declares."""
        config = row.config if row else None
        with contextlib.suppress(exception.NotFound):
            config = deriving.named_config(self) or config
        return {each['name'] for each in config.outputs} if config else set()

    # Actions

    def _handle_action(
        self,
        action: str,
        config: object = None,
        prev_derived_config: object = None,
    ) -> lifecycle.LifecycleAction | None:
        """Deliver an action; return what waits for it, if anything does."""
        task = plan_tasks.repeated(
            self.member,
            self._history.row(),
            action,
            repeats=self._state_before == (action, self.FAILED),
        )
        return self._begin_task(server_fleets.SingleFleet(self), task)

    def _begin_task(
        self, fleet: server_fleets.SingleFleet, task: plan_tasks.Task | None
    ) -> lifecycle.LifecycleAction | None:
        rollouts = self._rollouts(fleet, task)
        if task is None or not rollouts:
            return None
        return self._begin(
            lifecycle.LifecycleAction(task.action, fleet, rollouts)
        )

    def _rollouts(
        self, fleet: server_fleets.SingleFleet, task: plan_tasks.Task | None
    ) -> list[rollout.Rollout]:
        """Return what takes a task to the server, if it runs anything."""
        if task is None:
            return []
        if not fleet.source.runs(task.action, self._terms.actions):
            return []
        task = dataclasses.replace(task, member=self.member)
        return [self._rollout(fleet, task.action, [task], {})]

    def handle_create(self) -> lifecycle.LifecycleAction | None:
        """Begin CREATE, once the template has what it asks for."""
        self._offer_trigger_url()
        row = self._taken_row()
        if row is None:
            return self._handle_action(self.CREATE)
        self._history.note_configs([row.config.id])
        fleet = server_fleets.SingleFleet(self)
        return self._begin_task(fleet, self._task_of(fleet, row, changed=None))

    def _former_group(self) -> str | None:
        """Return the group whose nested stack this one's is, as one claims."""
        former: str | None = self.stack.env.param_defaults.get(
            deployment_schema.FORMER_GROUP
        )
        return former

    def _taken_row(self) -> heat_values.DeploymentRow | None:
        """Take over the row of a member whose group gets a nested stack."""
        former = self._former_group()
        if former is None:
            return None
        # Users write to environments as well; the data of the group count.
        if former not in resources.data_of_later(
            self.context,
            self.stack.owner_id,
            self.stack.parent_resource_name,
            0,
            deployment_schema.FORMER_GROUP,
        ):
            return None
        server_id = self.properties[self.SERVER]
        number = plan_tasks.Member.of_group(former, self.name, server_id).id
        row = self._history.rows.read([number]).get(number)
        if row is None or resources.is_physical_id(self.context, number):
            return None
        self.resource_id = number
        self.keep_id()
        if row.transport == transport_names.TEMP_URL_POLL:
            container = transports.hub_for(self).container
            self.data_set(rows.CONTAINER_KEY, container)
        return row

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
        fleet = server_fleets.SingleFleet(self)
        inputs = derived.inputs(
            fleet.source, self.UPDATE, self.properties[self.INPUT_VALUES]
        )
        if derived.asks_replacement(inputs, self._history.inputs()):
            raise resource.UpdateReplace(self.name)
        self._offer_trigger_url()
        task = self._task_of(
            fleet, self._history.row(), self.changed_by(prop_diff)
        )
        return self._begin_task(fleet, task)

    def _task_of(
        self,
        fleet: server_fleets.SingleFleet,
        row: heat_values.DeploymentRow | None,
        changed: abc.Collection[str] | None,
    ) -> plan_tasks.Task | None:
        """Return what the server must run to be up to date."""
        listed = self._terms.actions
        update = plan_tasks.Update(
            runs=lambda action: fleet.source.runs(action, listed),
            transport=self._terms.transport,
            changed=changed,
            is_after_update=self.is_after_update,
        )

        def draft(
            member: plan_tasks.Member, action: str
        ) -> heat_values.DerivedConfig:
            drafted = fleet.draft(member, action)
            if self.properties[self.NAME] or row is None:
                return drafted
            # It is that of the resource, and changes with the nested stack.
            return dataclasses.replace(drafted, name=row.config.name)

        # A row that was withdrawn is gone.
        is_lost = self.resource_id is not None
        return update.task(
            self.member,
            row,
            draft,
            self.CREATE
            if is_lost and not update.runs(self.UPDATE)
            else self.UPDATE,
        )

    def _offer_trigger_url(self) -> None:
        triggering.offer_url(
            self, self.properties[deployment_schema.TRIGGER_URL]
        )

    check_create_complete = server_bound.ServerBound._has_ended
    check_update_complete = server_bound.ServerBound._has_ended
    check_suspend_complete = server_bound.ServerBound._has_ended
    check_resume_complete = server_bound.ServerBound._has_ended
    check_delete_complete = server_bound.ServerBound._has_ended

    def handle_delete(self) -> lifecycle.LifecycleAction:
        """Begin with the DELETE action, if there is one to run."""
        fleet = server_fleets.SingleFleet(self)
        rollouts = []
        with self.rpc_client().ignore_error_by_name('NotFound'):
            rollouts = self._rollouts(fleet, self._undoing(fleet))
        return self._begin(
            lifecycle.LifecycleAction(
                self.DELETE,
                fleet,
                rollouts,
                sweeping.Removal(self, self._delete_all),
            )
        )

    def _undoing(
        self, fleet: server_fleets.SingleFleet
    ) -> plan_tasks.Task | None:
        """Return the DELETE that its server must run, if any."""
        listed, history = self._terms.actions, self._history
        if not fleet.source.runs(self.DELETE, listed):
            return None
        if self._has_given_way():
            LOG.info(
                '%s is deleted without running DELETE: another deployment '
                'replaced it on its server',
                self.label,
            )
            return None
        # Without an ID, CREATE may have been none of its actions.
        is_known = self.resource_id is not None or self._state_before == (
            self.CREATE,
            self.FAILED,
        )
        if (
            is_known
            and fleet.source.runs(self.CREATE, listed)
            and not history.has_run()
        ):
            # Nothing remains to be undone.
            return None
        return plan_tasks.repeated(
            self.member, history.row(), self.DELETE, repeats=True
        )

    def _has_given_way(self) -> bool:
        """Say whether another one has run CREATE there in this one's place.

        Until then, a DELETE must undo what this one did.
        """
        return histories.GIVEN_WAY_KEY in self.data() and self.properties[
            self.SERVER
        ] in resources.data_of_later(
            self.context,
            self.stack.id,
            self.name,
            self.id,
            histories.TAKEN_OVER_KEY,
        )

    def _delete_all(self) -> None:
        """Delete all that it has made in Heat and Keystone."""
        self._history.delete()
        self._delete_signals()
        self._delete_user()
        self.data_delete(triggering.URL_KEY)

    def _handle_cancel(self) -> None:
        # Heat calls it, too, and logs how it fails.
        self._withdraw()

    @rows.unquoted()
    def handle_signal(self, details: object) -> str | None:
        """Start a run if a signal asks for one; else it is a result.

        Heat answers the sender of a signal before it handles the signal, so
        an event tells the result.
        """
        row = self._history.row()
        declared = row.config.outputs if row else ()
        signaller = self.signaller or callers.of(self.stack)
        try:
            wanted = orders.read(details, declared)
            if wanted is not None:
                signallers.check_may_start(
                    signaller,
                    servers_may=deployment_schema.permits_servers(self),
                )
                if wanted.limits is not None:
                    return triggering.operate(
                        self, wanted, wanted.limits, [self]
                    )
                return self._triggering(row).start(wanted)
        except Exception as exc:
            raise eventful.not_triggered(self, exc) from exc
        is_resting = row is None or not row.in_progress
        if orders.cannot_be_result(details, declared) or (
            is_resting and orders.looks_like_one(details)
        ):
            raise eventful.not_triggered(self, eventful.ambiguous())
        try:
            return histories.Answers(self, self._history.rows, signaller).take(
                details, row
            )
        except failures.Error as exc:
            raise eventful.refused(self, str(exc)) from exc

    def run_target(self, wanted: orders.RunOrder) -> targets.Target:
        """Return this deployment as what a run is started on."""
        row = self._history.row()
        return self._triggering(row).run_target(wanted)

    # Check, adopt, delete

    def handle_check(self) -> None:
        """Check that the deployment and its server are there.

        :raises failures.Error: one of them is not.
        """
        row = self._history.check()
        server_id = self.properties[self.SERVER]
        if row and not self._servers.is_reachable(server_id):
            rows.mark_unhealthy(self.context, [row.id])
            raise failures.Error(f'Server {row.server_id} does not exist')

    def handle_adopt(
        self, resource_data: abc.Mapping[str, Any] | None = None
    ) -> None:
        """Take over a deployment that was abandoned.

        :raises failures.Error: it is not there, or not complete.
        """
        super().handle_adopt(resource_data)
        self._history.adopt()
        sweeping.forget_former_life(self)

    def needs_replace_failed(self) -> bool:
        """Say whether a failed deployment must be replaced.

        One that was created before is repeated in place: a replacement would
        run CREATE, and after it DELETE, on the same server.
        """
        if self.action == self.ADOPT:
            # It may be there and only not be complete.
            return self._history.row() is None
        former = self._former_group()
        if former and self.resource_id and self.action == self.CREATE:
            # It took over a row, and CREATE may have run long ago.
            kept = signal_names.group_prefix(former)
            return not self.resource_id.startswith(kept)
        if self.action == self.CREATE:
            return not plan_tasks.is_resumable(self._history.row())
        return self.action not in (
            self.UPDATE,
            self.SUSPEND,
            self.RESUME,
            self.CHECK,
        )

    def take_back(self) -> None:
        """Withdraw an action in progress that no engine waits for."""
        self._history.take_back()

    def give_way(self) -> None:
        """Leave the server to the resource that replaces this one.

        Signals of this one no longer count. If it is in progress, its engine
        has died, and no other waits for its signal.
        """
        has_run = self.action in (self.CREATE, self.DELETE)
        self._history.give_way(self.action if has_run else None)
