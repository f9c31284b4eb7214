# SPDX-License-Identifier: Apache-2.0
"""The base of deployments and their groups: resources with servers."""

from collections import abc
import inspect
from typing import Any

from heat.common import exception
from heat.engine import resource
from heat.objects import resource as resource_objects
from oslo_config import cfg

from heat_plugins import foreign
from heat_plugins.deployments import fleets
from heat_plugins.deployments import lifecycle
from heat_plugins.deployments import rollout
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import server_fleets
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.resources import bases
from heat_plugins.resources.software import deployment_schema

LOG = foreign.logger(__name__)


def _with_loop(name: str) -> Any:
    """Return a method that notes the loop, and calls Heat's method."""

    def method(self: Any, *args: object, **kwargs: object) -> Any:
        """Call Heat's method; its loop is there for the checks meanwhile."""
        heats = getattr(super(Blocking, self), name)
        given = inspect.signature(heats).bind(*args, **kwargs).arguments
        self._loop = lifecycle.Loop(
            given['timeout'], given.get('progress_callback')
        )
        try:
            return heats(*args, **kwargs)
        finally:
            self._loop = lifecycle.NO_LOOP

    return method


class Blocking:
    """A mixin for resources whose checks may block; precedes Heat's class.

    Heat checks once a second whether an action is complete, and sleeps between
    two checks. In between it asks whether the stack has cancelled the action,
    and whether the stack's time is up. A check that asks that itself may block
    for as long as it likes, and end as soon as there is news.

    That holds where an action has its thread for itself: in the methods
    ``*_convergence``. Without convergence, Heat checks all resources of a
    stack in one thread, and no check may block there.
    """

    _loop = lifecycle.NO_LOOP

    create_convergence = _with_loop('create_convergence')
    update_convergence = _with_loop('update_convergence')
    suspend_convergence = _with_loop('suspend_convergence')
    resume_convergence = _with_loop('resume_convergence')
    delete_convergence = _with_loop('delete_convergence')


class ServerBound(bases.Eventful, Blocking):
    """A resource with actions that run on servers.

    An update or a replacement is done once, however often Heat checks it. A
    replacement inherits the servers. An action that does not end by itself,
    such as a cancelled one, is withdrawn from them.

    :cvar NOUN: what the log calls it.
    """

    NOUN: str

    # An update mends what a check has found fault with.
    always_replace_on_check_failed = False

    TIMEOUT = deployment_schema.TIMEOUT
    DELIVERY_TIMEOUT = deployment_schema.DELIVERY_TIMEOUT
    SIGNAL_URL_LIFETIME = deployment_schema.SIGNAL_URL_LIFETIME

    # What to withdraw from the servers unless it ends.
    _task: lifecycle.LifecycleAction | None = None

    # The state before the action at hand.
    _state_before: tuple[str, str] | None = None

    # The template that it is checked for, and the version of the row that was
    # read for that.
    _checked_for: tuple[object, object] | None = None

    def __init__(self, name: str, definition: Any, stack: Any) -> None:
        super().__init__(name, definition, stack)
        self.context = heat_types.in_project(stack.context, stack.tenant_id)

    @property
    def label(self) -> str:
        """The resource's names and IDs as the log shows them."""
        return (
            f'{self.NOUN} {self.resource_id} ({self.name} of stack '
            f'{self.stack.name}, {self.stack.id})'
        )

    def FnGetAtt(self, key: str, *path: object) -> object:
        """Return an attribute, by the properties of the last action."""
        with self.frozen_properties():
            return super().FnGetAtt(key, *path)

    def tell(self, action: str, reason: str) -> None:
        """Write an event of an action that is in progress."""
        self._add_event(action, self.IN_PROGRESS, reason)

    def warn(self, action: str, reason: str) -> None:
        """Report a deviation in an event and to the operator."""
        LOG.warning('%s: %s', self.label, reason)
        self.tell(action, reason)

    def _rollout(
        self,
        fleet: server_fleets.ServerFleet,
        action: str,
        tasks: abc.Sequence[fleets.Task],
        pace: abc.Mapping[str, Any],
        **more: Any,
    ) -> rollout.Rollout:
        """Return the rollout of an action to its servers.

        :param pace: what a group has of its own; see `fleets.RolloutPace`.
        :param more: of the parameters of `rollout.Rollout`.
        """
        options = cfg.CONF.heat_plugins
        return rollout.Rollout(
            fleet.work(action),
            tasks,
            fleet,
            fleet.hub.watcher,
            fleets.RolloutPace(
                timeout=self.properties[self.TIMEOUT],
                delivery_timeout=self.properties[self.DELIVERY_TIMEOUT],
                budget=options.swift_error_budget,
                known_hooks=options.known_hooks,
                **pace,
            ),
            **more,
        )

    def _begin(
        self, action: lifecycle.LifecycleAction
    ) -> lifecycle.LifecycleAction:
        """Begin an action, which is withdrawn unless it ends."""
        self._task = action
        action.begin()
        return action

    def _has_ended(
        self, action: lifecycle.LifecycleAction | None = None
    ) -> bool:
        """Return whether the started action has ended."""
        if action is not None and not action.step(self._loop):
            if action.pause is not None:
                raise resource.PollDelay(action.pause)
            return False
        self._task = None
        return True

    def action_handler_task(
        self, action: str, args: object = None, action_prefix: object = None
    ) -> abc.Iterator[object]:
        """Run an action; if it ends before its signals, withdraw it.

        Heat tells a resource of a cancellation only once it has started to
        look whether the action is complete.
        """
        try:
            with rows.unquoted():
                yield from super().action_handler_task(
                    action, args=args, action_prefix=action_prefix
                )
        finally:
            try:
                self._withdraw()
            except Exception:
                LOG.exception('Cannot withdraw %s from servers', self.label)

    @rows.unquoted()
    def _withdraw(self) -> None:
        """Withdraw from servers what they have not answered."""
        task, self._task = self._task, None
        if task is not None:
            task.withdraw()

    @rows.unquoted()
    def update_convergence(
        self, template_id: object, *args: Any, **kwargs: Any
    ) -> object:
        """Check this one for another traversal of its stack."""
        self._checked_for = template_id, self._atomic_key
        return super().update_convergence(template_id, *args, **kwargs)

    def state_set(
        self, action: str, status: str, *args: object, **kwargs: object
    ) -> object:
        """Record the start or the end of an action; then clean up.

        :raises exception.UpdateInProgress: another check of this one does
            it, or has done so.
        """
        if (action, status) == (self.UPDATE, self.IN_PROGRESS):
            self._reject_stale_update()
        if status == self.IN_PROGRESS:
            self._state_before = self.state
        elif action == self.CHECK and self.resource_id is not None:
            self._note_health(status)
        result = super().state_set(action, status, *args, **kwargs)
        if status != self.IN_PROGRESS:
            hubs.tidy(self.stack, transports.root_stack_id(self))
        return result

    def _note_health(self, status: str) -> None:
        """Note whether the next update must run it again on its servers.

        A check that fails says itself which of them that concerns.
        """
        if status == self.COMPLETE:
            rows.mark_unhealthy(
                self.context, [self.resource_id], is_unhealthy=False
            )
        elif self.state != (self.CHECK, self.IN_PROGRESS):
            # Heat has no other sign of a user who marks it unhealthy.
            rows.mark_unhealthy(self.context, [self.resource_id])

    def changed_by(
        self, prop_diff: abc.Mapping[str, object]
    ) -> abc.Collection[str] | None:
        """Return the changed properties of an update; see `fleets.Update`."""
        is_repeated = self._state_before in (
            (self.CREATE, self.FAILED),
            (self.UPDATE, self.FAILED),
        )
        return None if is_repeated else frozenset(prop_diff)

    @property
    def is_after_update(self) -> bool:
        """Whether an update begins that follows no check; see `fleets`."""
        before = self._state_before
        return before is None or before[0] not in (
            self.CHECK,
            self.SUSPEND,
            self.RESUME,
        )

    def _reject_stale_update(self) -> None:
        """Raise if an update is stale.

        A check that meets another running one retries a moment later, and
        Heat lets it repeat the former update. The server would get the same
        UPDATE twice. The stack, complete after the first, would then fail as
        the second still refers to the former template, where the database
        checks foreign keys.
        """
        if self._checked_for is None:
            return
        template_id, version = self._checked_for
        if self._atomic_key == version:
            return
        stored = resource_objects.Resource.get_obj(
            self.context, self.id, refresh=True
        )
        is_done = (
            stored.current_template_id == template_id
            and stored.status == self.COMPLETE
        )
        if is_done or (stored.action, stored.status) == (
            self.CREATE,
            self.FAILED,
        ):
            raise exception.UpdateInProgress(resource_name=self.name)

    @rows.unquoted()
    def make_replacement(
        self, new_tmpl_id: int, *args: object, **kwargs: object
    ) -> object:
        """Create the replacement of this one, and withdraw this one.

        :raises exception.UpdateInProgress: another check has created one.
        """
        if not resources.may_be_replaced(self.context, self.id, new_tmpl_id):
            # Two checks of it, or a message that was sent twice.
            raise exception.UpdateInProgress(resource_name=self.name)
        has_failed = self.state in (
            (self.CREATE, self.FAILED),
            (self.DELETE, self.FAILED),
        )
        if has_failed:
            # First, as no engine repeats this if this one dies.
            self.withdraw_delivered()
        replacement = super().make_replacement(new_tmpl_id, *args, **kwargs)
        if not has_failed:
            self.withdraw_delivered()
        return replacement

    def _needs_update(self, *args: Any, **kwargs: Any) -> bool:
        changed = super()._needs_update(*args, **kwargs)
        return bool(changed or self.may_differ)

    @property
    def may_differ(self) -> bool:
        """Whether servers may lack the unchanged properties.

        Heat takes a resource for complete if its properties do not change:
        one that has failed, and after a check one whose update has failed.
        """
        return bool(self.status == self.FAILED or self.action == self.CHECK)
