# SPDX-License-Identifier: Apache-2.0
"""An action of a whole group: its rollouts one after another, to the end."""

from collections import abc
import time
from typing import Any

from heat.common.i18n import _
from oslo_config import cfg

from heat_plugins import config
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import members
from heat_plugins.deployments import outside
from heat_plugins.deployments import removals
from heat_plugins.deployments import rollout
from heat_plugins.engine import deployment_parts
from heat_plugins.resources.software import deployment_schema
from heat_plugins.resources.software import group_fleet
from heat_plugins.timeline import kinds

config.register_opts(cfg.CONF)

_POLICIES = {
    members.CREATE: 'batch_create',
    members.UPDATE: 'rolling_update',
}


class Change:
    """An action of the whole group.

    :param group: see `group_as_one`.
    :param tasks: what members must do, by action, in this order.
    :param gone: the ids of members whose rows go after that.
    """

    def __init__(
        self,
        group: Any,
        action: str,
        fleet: group_fleet.Fleet,
        tasks: abc.Mapping[str, abc.Sequence[members.Task]],
        gone: abc.Collection[str] = (),
    ) -> None:
        self._group = group
        self._action = action
        self._fleet = fleet
        self._rollouts = [
            self._rollout(each, some) for each, some in tasks.items() if some
        ]
        self._gone = gone
        self._begun = time.monotonic()

    def _rollout(
        self, action: str, tasks: abc.Sequence[members.Task]
    ) -> rollout.Rollout:
        group, schema = self._group, deployment_schema
        policy = group.update_policy.get(_POLICIES.get(action)) or {}
        size, pause = policy.get('max_batch_size'), policy.get('pause_time')
        if size:
            # As Heat has it, and refuses it.
            group._update_timeout(-(-len(tasks) // size), pause or 0)
        return rollout.Rollout(
            self._fleet.work(action),
            tasks,
            self._fleet,
            self._fleet.hub.watcher,
            fleets.Pace(
                batch=size,
                pause=pause or 0,
                allowed=group.allowed_failures(),
                timeout=group.properties[schema.TIMEOUT],
                delivery_timeout=group.properties[schema.DELIVERY_TIMEOUT],
                budget=cfg.CONF.heat_plugins.swift_error_budget,
                known_hooks=cfg.CONF.heat_plugins.known_hooks,
            ),
            self._report,
            time.monotonic,
            current=(
                0
                if action == members.DELETE
                else max(0, len(group.properties[group.SERVERS]) - len(tasks))
            ),
        )

    def _report(self, progress: fleets.Progress) -> None:
        self._group._add_event(
            self._group.action,
            self._group.IN_PROGRESS,
            kinds.reason(kinds.Kind.PROGRESS, str(progress)),
        )

    def begin(self) -> None:
        """Deliver what can be delivered now; that does not block."""
        # No check: the method of Heat's that begins must be short.
        if self._rollouts:
            self._advance(self._rollouts[0], patience=0.0)

    def step(self, loop: outside.Loop) -> bool:
        """Go on; say whether all has ended.

        :param loop: Heat's; it blocks for as long as that allows.
        """
        while self._rollouts:
            current = self._rollouts[0]
            while not self._advance(current, loop.patience()):
                if not (
                    current.may_block
                    and loop.patience() > 0
                    and loop.goes_on()
                ):
                    return False
            self._tell_skipped(current)
            self._rollouts.pop(0)
        if self._gone:
            self._remove()
        return True

    def withdraw(self) -> None:
        """Take from the servers what they have not ended."""
        if self._rollouts:
            self._rollouts[0].withdraw(_('%s was cancelled') % self._action)

    def _advance(self, current: rollout.Rollout, patience: float) -> bool:
        try:
            done = current.step(patience)
        except failures.Error as exc:
            is_delivered = current.trouble is None or current.may_answer
            if self._action != members.DELETE or is_delivered:
                raise
            # What is missing may never come back, and a stack has to go.
            removals.warn(
                self._group,
                members.DELETE,
                _('DELETE was not run on all servers: %s') % exc,
            )
            return True
        stack = deployment_parts.Stack(self._fleet.hub, self._group.stack)
        if not done and stack.is_cancelled(self._begun):
            raise failures.Error(
                _('%s was cancelled before all members answered')
                % self._action
            )
        if current.trouble is not None:
            stack.renew_access()
        return done

    def _tell_skipped(self, ended: rollout.Rollout) -> None:
        """Tell what went wrong, and is no failure of the group."""
        if ended.failures:
            removals.warn(
                self._group,
                self._action,
                fleets.failure(ended.failures, ended.progress().all),
            )
        if ended.skipped:
            key, why = next(iter(ended.skipped.items()))
            removals.warn(
                self._group,
                self._action,
                _('%(number)d members did not run DELETE. %(key)s: %(why)s')
                % {'number': len(ended.skipped), 'key': key, 'why': why},
            )

    def _remove(self) -> None:
        found = self._fleet.all()
        rollout.remove(
            self._fleet,
            self._group.resource_id,
            {k: row for k, row in found.items() if k in self._gone},
        )
        self._gone = ()
