# SPDX-License-Identifier: Apache-2.0
"""The servers and rows of a group's members, for `deployments`."""

from collections import abc
import functools
from typing import Any

from heat.common.i18n import _
from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import pools
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import members
from heat_plugins.deployments import removals
from heat_plugins.engine import deriving
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import server_metadata
from heat_plugins.engine.database import servers
from heat_plugins.objectstore import keys
from heat_plugins.runs import orchestration
from heat_plugins.signals import body
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


class Fleet:
    """What a group without nested stack runs on; see `fleets.Fleet`.

    :param group_id: that of the group before it got a nested stack.
    """

    def __init__(self, group: Any, group_id: str | None = None) -> None:
        self._group = group
        self._context = group.context
        self._rows = deployment_rows.MemberRows(
            group.context, group_id or group.resource_id
        )
        self.hub = transports.hub_for(group)

    # What members are given

    @functools.cached_property
    def _derivation(self) -> deriving.Derivation:
        return deriving.Derivation(
            self._group, self._group.member_properties()
        )

    @functools.cached_property
    def source(self) -> deliveries.Source:
        """The config that the template names."""
        found: deliveries.Source = self._group.source_of_members()
        return found

    def work(self, action: str) -> deliveries.Work:
        """Return an action as its members run it."""
        return deliveries.Work(
            action=action,
            source=self.source,
            terms=deliveries.Terms(self._group.properties),
        )

    def draft(
        self,
        member: members.Member,
        action: str,
        signalling: deliveries.Signalling = deliveries.NOTHING,
    ) -> orchestration.Draft:
        """Return what a member would be given for an action."""
        return self._derivation.draft(
            self.source,
            action,
            signalling,
            name=member.key,
            server_id=member.server_id,
        )

    def derive(
        self, tasks: abc.Sequence[members.Task]
    ) -> list[deliveries.Delivery | members.Refusal]:
        """Return what servers are given, with signed URLs."""
        with self._rows.guarded():
            found = resources.find_all(
                self._context, {task.member.server_id for task in tasks}
            )
            try:
                sign = transports.for_members(self._group)
            except failures.NoAnswer as exc:
                if any(task.action != members.DELETE for task in tasks):
                    raise
                return [
                    members.Refusal(task=task, reason=str(exc), fails=False)
                    for task in tasks
                ]
            refusals = self._refusals(tasks, found)
            return [
                members.Refusal(
                    task=task,
                    reason=refusals[task.member.server_id],
                    fails=task.action != members.DELETE,
                )
                if task.member.server_id in refusals
                else self._derive(task, found[task.member.server_id], sign)
                for task in tasks
            ]

    def _refusals(
        self,
        tasks: abc.Sequence[members.Task],
        found: abc.Mapping[str, resources.Server],
    ) -> dict[str, str]:
        """Return why servers can be given nothing, by their ids."""
        undone = {
            task.member.server_id
            for task in tasks
            if task.action == members.DELETE
        }
        there = self._group.servers_there([found[each] for each in undone])
        gone = {
            each: _('server %s no longer exists') % each
            for each in undone - there
        }
        root_stack_id = self.hub.root_stack_id
        return gone | {
            server.id: why
            for server in found.values()
            if (why := servers.refusal(server, root_stack_id)) is not None
        }

    def _derive(
        self,
        task: members.Task,
        server: resources.Server,
        sign: abc.Callable[[str, str], deliveries.Signalling],
    ) -> deliveries.Delivery:
        member = task.member
        if not task.delivers and task.before is not None:
            config_id = task.before.config.id
            draft = _given(task.before)
        else:
            config_id = members.new_config_id(member.group_id)
            draft = None
        signalling = sign(member.id, config_id)
        if draft is None:
            draft = self.draft(member, task.action, signalling)
        return deliveries.Delivery(
            deployment_id=member.id,
            server_id=member.server_id,
            config_id=config_id,
            action=task.action,
            draft=draft,
            input_values=self._derivation.properties.get(
                self._group.INPUT_VALUES
            ),
            signalling=signalling,
            reading_project=(
                self._group.stack.stack_user_project_id
                if server.has_queue
                else None
            ),
            before=task.before,
        )

    # Rows

    def all(self) -> dict[str, deliveries.Row]:
        """Read all rows of the group."""
        with self._rows.guarded():
            return self._rows.all()

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, deliveries.Row]:
        with self._rows.guarded():
            return self._rows.read(ids)

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        with self._rows.guarded():
            self._rows.write(made)

    def tell(self, action: str, reason: str) -> None:
        removals.warn(self._group, action, reason)

    def push(self, server_ids: abc.Collection[str]) -> None:
        with self._rows.guarded():
            server_metadata.tell(
                self._context,
                server_ids,
                self._group.stack.stack_user_project_id,
            )

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.Outcome]
    ) -> abc.Collection[watcher.Ticket]:
        with self._rows.guarded():
            return self._rows.settle(outcomes)

    def begin(self, tickets: abc.Collection[watcher.Ticket]) -> None:
        with self._rows.guarded():
            self._rows.begin(tickets)

    def detach(self, reasons: abc.Mapping[str, str | None]) -> None:
        with self._rows.guarded():
            self._rows.detach(reasons)

    def erase(self, ids: abc.Collection[str]) -> None:
        with self._rows.guarded():
            self._rows.erase(ids)

    # Signals

    def fetch(
        self, names: abc.Sequence[str]
    ) -> list[bytes | errors.ServiceError]:
        return pools.Pool(attempts=1).each(self._fetch, names)

    def _fetch(self, name: str) -> bytes | errors.ServiceError:
        try:
            return self.hub.fetch_now(
                name, cfg.CONF.heat_plugins.signal_body_limit
            )
        except errors.ServiceError as exc:
            return exc

    def discard(self, names: abc.Sequence[str]) -> None:
        for name in names:
            self.hub.discard(name)

    def request_stop(self, names: abc.Sequence[str]) -> None:
        pools.Pool(attempts=1).each(self.hub.request_stop, names)

    def key_holds(self, signer: keys.Signer) -> bool:
        return self.hub.key_holds(signer)


def _given(row: deliveries.Row) -> orchestration.Draft:
    return orchestration.Draft(
        name=row.config.name or '',
        group=row.config.group,
        config=row.config.config,
        inputs=row.config.inputs,
        outputs=row.config.outputs,
        options=row.config.options,
    )
