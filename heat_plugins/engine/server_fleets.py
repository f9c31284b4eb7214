# SPDX-License-Identifier: Apache-2.0
"""The servers of a deployment, and of a group without nested stack.

Both implement `deployments.fleets.Fleet`. They differ in what happens to a row
when an action is withdrawn: that of a group's member stays, that of a single
deployment is deleted, and the next action creates it again.
"""

from collections import abc
import contextlib
import functools
from typing import Any
import uuid

from oslo_config import cfg

from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import plan_tasks
from heat_plugins.engine import deriving
from heat_plugins.engine import heat_types
from heat_plugins.engine import histories
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import servers
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)

#: Returns how a task is signalled, by the id of its config.
Signal = abc.Callable[[plan_tasks.Task, str], deliveries.Signalling]


class ServerFleet:
    """What both kinds have in common.

    :param resource: the deployment or the group.
    :param properties: of each deployment, without the server.
    """

    def __init__(
        self,
        resource: Any,
        rows: deployment_rows.Rows,
        properties: abc.Callable[[], abc.Mapping[str, Any]],
    ) -> None:
        self._resource = resource
        self._context = resource.context
        self._rows = rows
        self._properties = properties
        self.hub = transports.hub_for(resource)
        # Servers by ID, as they were when first asked for.
        self._known: dict[str, heat_values.Server] = {}

    @property
    def label(self) -> str:
        label: str = self._resource.label
        return label

    @functools.cached_property
    def source(self) -> heat_values.DerivedConfig:
        """The config that the template names.

        :raises exception.NotFound: it is gone.
        """
        return deriving.load_source(self._resource)

    def work(self, action: str) -> deliveries.Work:
        """Return an action as servers run it."""
        return deliveries.Work(
            action=action,
            source=self.source,
            terms=deliveries.Terms(self._resource.properties),
        )

    # What servers are given

    @functools.cached_property
    def _derivation(self) -> deriving.Derivation:
        return deriving.Derivation(self._resource, self._properties())

    def draft(
        self,
        member: plan_tasks.Member,
        action: str,
        signalling: deliveries.Signalling = deliveries.NOTHING,
    ) -> heat_values.DerivedConfig:
        """Return what a server would be given for an action."""
        return self._derivation.draft(
            self.source,
            action,
            signalling,
            name=member.key,
            server_id=member.server_id,
        )

    def derive(
        self, tasks: abc.Sequence[plan_tasks.Task]
    ) -> list[deliveries.Delivery | plan_tasks.Refusal]:
        with self._rows.guarded():
            known = self._find({task.member.server_id for task in tasks})
            refusals = self._refusals(tasks, known)
            signal = self._signal()
            return [
                self._derive(task, known[task.member.server_id], signal)
                if task.member.server_id not in refusals
                else plan_tasks.Refusal(
                    task=task,
                    reason=refusals[task.member.server_id],
                    fails=task.action != plan_tasks.DELETE,
                )
                for task in tasks
            ]

    def _find(
        self, server_ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.Server]:
        """Return servers; one query serves all attempts of an action."""
        missing = set(server_ids).difference(self._known)
        if missing:
            self._known |= resources.find_all(self._context, missing)
        return self._known

    def _refusals(
        self,
        tasks: abc.Sequence[plan_tasks.Task],
        known: abc.Mapping[str, heat_values.Server],
    ) -> dict[str, str]:
        """Return why servers can be given nothing, by their ids."""
        leaving = {
            task.member.server_id
            for task in tasks
            if task.action == plan_tasks.DELETE
        }
        gone = self._gone([known[each] for each in leaving])
        return {each: failures.server_gone(each) for each in gone} | {
            server.id: why
            for server in known.values()
            if (why := servers.refusal(server, self.hub.root_stack_id))
        }

    def _derive(
        self,
        task: plan_tasks.Task,
        server: heat_values.Server,
        signal: Signal,
    ) -> deliveries.Delivery:
        member, before = task.member, task.before
        if task.delivers or before is None:
            config_id = self._new_config_id()
            signalling = signal(task, config_id)
            draft = self.draft(member, task.action, signalling)
        else:
            config_id, draft = before.config.id, before.config
            signalling = signal(task, config_id).of_before(before)
        return deliveries.Delivery(
            deployment_id=member.id,
            server_id=member.server_id,
            config_id=config_id,
            action=task.action,
            draft=draft,
            input_values=self._derivation.properties.get(
                self._resource.INPUT_VALUES
            ),
            signalling=signalling,
            reading_project=deliveries.reading_project(
                signalling.transport,
                self._resource.stack.stack_user_project_id,
                has_queue=server.has_queue,
            ),
            before=before,
        )

    def _new_config_id(self) -> str:
        raise NotImplementedError

    def _signal(self) -> Signal:
        raise NotImplementedError

    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        with self._rows.guarded():
            self._rows.tell(made)

    def request_stop(self, names: abc.Sequence[str]) -> None:
        pools.Pool(attempts=1).each(self.hub.request_stop, names)

    def gone(self, server_ids: abc.Collection[str]) -> abc.Collection[str]:
        with self._rows.guarded(everything=True):
            known = resources.find_all(self._context, server_ids)
        return self._gone(list(known.values()))

    def _gone(self, known: abc.Sequence[heat_values.Server]) -> set[str]:
        return {each.id for each in known} - self._servers.all_there(known)

    @property
    def _servers(self) -> servers.Servers:
        return servers.Servers(self._resource, self.hub.root_stack_id)

    # How they answer

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        with self._rows.guarded(everything=True):
            return self._rows.read(ids)

    def fetch(
        self, names: abc.Sequence[str]
    ) -> list[bytes | errors.ServiceError]:
        if len(names) == 1:
            # Others of the stack do so at the same time.
            return [_fetched(self.hub.fetch, names[0])]
        return pools.Pool(attempts=1).each(
            functools.partial(_fetched, self.hub.fetch_now), names
        )

    def poll_queue(
        self, delivery: deliveries.Delivery
    ) -> heat_values.DeploymentRow | None:
        number = delivery.deployment_id
        with self._rows.guarded(everything=True):
            self._rows.poll_queue(number)
            row = self._rows.read([number]).get(number)
            if row is not None and not row.in_progress:
                self._mask(delivery, row)
        return row

    def _mask(
        self, delivery: deliveries.Delivery, row: heat_values.DeploymentRow
    ) -> None:
        """Mask outputs that Heat itself has stored."""
        declared = {each['name'] for each in delivery.draft.outputs}
        masked = {
            name: value if name in declared else delivery.mask.output(value)
            for name, value in row.outputs.items()
        }
        if masked != row.outputs:
            self._rows.change_outputs(row.id, masked)

    def discard(self, names: abc.Sequence[str]) -> None:
        for name in names:
            self.hub.discard(name)

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        with self._rows.guarded(everything=True):
            return self._rows.settle(outcomes)

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        with self._rows.guarded(everything=True):
            self._rows.begin([each.ticket for each in started])

    def key_holds(self, signer: keys.Signer) -> bool:
        return self.hub.key_holds(signer)

    # The stack

    def tell(self, action: str, reason: str) -> None:
        try:
            with self._rows.guarded(everything=True):
                self._resource.warn(action, reason)
        except errors.Unavailable as exc:
            LOG.warning('%s: cannot write that event: %s', self.label, exc)

    def is_cancelled(self, since: float) -> bool:
        return self.hub.cancellation.of(self._resource.stack, since)

    def renew_access(self) -> None:
        # If none is available the outage lasts, up to the budget.
        with contextlib.suppress(errors.Denied):
            self.hub.adopt(self._resource.stack)


class SingleFleet(ServerFleet):
    """The server of one deployment."""

    def __init__(self, deployment: heat_types.Deployment) -> None:
        self.history = histories.History(deployment)
        super().__init__(
            deployment, self.history.rows, lambda: deployment.properties
        )

    def server_name(self, member: plan_tasks.Member) -> str:
        with (
            contextlib.suppress(errors.Unavailable),
            self._rows.guarded(everything=True),
        ):
            server = self._find([member.server_id])[member.server_id]
            return servers.path(self._context, server, self.hub.root_stack_id)
        # A failure must be told though the database does not answer.
        return member.server_id

    def _new_config_id(self) -> str:
        return str(uuid.uuid4())

    def _signal(self) -> Signal:
        deployment = self._resource

        def signal(
            task: plan_tasks.Task, config_id: str
        ) -> deliveries.Signalling:
            if not task.delivers and task.before is not None:
                return transports.choose_again(deployment, task.before)
            # It was not refused.
            deployment.take_id(task.member.id)
            return transports.choose(deployment, config_id)

        return signal

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        (delivery,) = made
        with self._rows.guarded():
            if delivery.before is None:
                self._resource.keep_id()
            former = self.history.configs(delivery.before)
            # Before it is made, so that the deletion of the resource finds
            # it whatever happens now.
            self.history.note_configs([*former, delivery.config_id])
            try:
                self._rows.write(made)
            except Exception:
                self.history.undo(delivery.config_id, former)
                raise
        self.history.forget(former, delivery.config_id)

    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        try:
            super().push(made)
        except Exception:
            config_id = made[0].config_id
            if not made[0].is_signalled:
                # Its row says COMPLETE already.
                noted = self.history.configs(None)
                self.history.undo(
                    config_id, [each for each in noted if each != config_id]
                )
            raise
        is_create = any(each.action == plan_tasks.CREATE for each in made)
        if is_create and self._resource.replaces is not None:
            # What this one replaces must leave the server alone from now on.
            with self._rows.guarded():
                self._resource.data_set(
                    histories.TAKEN_OVER_KEY, made[0].server_id
                )

    def withdraw(
        self, withdrawals: abc.Sequence[fleets.Withdrawal]
    ) -> abc.Collection[str]:
        (withdrawal,) = withdrawals
        with self._rows.guarded(everything=True):
            row = self.history.row()
            if row is None or not row.in_progress:
                return ()
            if row.config.id != withdrawal.config_id:
                return ()
            self.history.withdraw(row)
        return (row.id,)

    def erase(self, ids: abc.Collection[str]) -> None:
        self.history.delete()

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        (delivery,) = started
        name = self.server_name(self._resource.member)
        with self._rows.guarded(everything=True):
            if self._rows.begin([delivery.ticket]):
                self._resource.tell(
                    delivery.action, servers.started(delivery.action, name)
                )
        LOG.info(
            '%(deployment)s: server %(server)s has started %(action)s',
            {
                'deployment': self.label,
                'server': delivery.server_id,
                'action': delivery.action,
            },
        )


class GroupFleet(ServerFleet):
    """The servers of a group without nested stack.

    :param group_id: that of the group before it got a nested stack.
    """

    _rows: deployment_rows.MemberRows

    def __init__(self, group: Any, group_id: str | None = None) -> None:
        self._group_id = group_id or group.resource_id
        # Servers whose metadata still have what was withdrawn from them.
        self._untold: set[str] = set()
        super().__init__(
            group,
            deployment_rows.MemberRows(group.context, self._group_id),
            group.member_properties,
        )

    def server_name(self, member: plan_tasks.Member) -> str:
        return member.key

    def _new_config_id(self) -> str:
        return plan_tasks.new_config_id(self._group_id)

    def _signal(self) -> Signal:
        sign = transports.for_members(self._resource)
        return lambda task, config_id: sign(task.member.id, config_id)

    def all(self) -> dict[str, heat_values.DeploymentRow]:
        """Read all rows of the group."""
        with self._rows.guarded():
            return self._rows.all()

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        with self._rows.guarded():
            self._rows.write(made)

    def withdraw(
        self, withdrawals: abc.Sequence[fleets.Withdrawal]
    ) -> abc.Collection[str]:
        with self._rows.guarded():
            self._untold |= {each.server_id for each in withdrawals}
            withdrawn = self._rows.detach(withdrawals)
            self._tell_rest()
        return withdrawn

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        with self._rows.guarded(everything=True):
            # Before a row is seen to have been withdrawn.
            self._tell_rest()
        return super().read(ids)

    def _tell_rest(self) -> None:
        if self._untold:
            self._rows.tell_servers(
                self._untold, self._resource.stack.stack_user_project_id
            )
            self._untold = set()

    def erase(self, ids: abc.Collection[str]) -> None:
        with self._rows.guarded():
            self._rows.erase(ids)


def _fetched(
    fetch: abc.Callable[[str, int], bytes], name: str
) -> bytes | errors.ServiceError:
    try:
        return fetch(name, cfg.CONF.heat_plugins.signal_body_limit)
    except errors.ServiceError as exc:
        return exc
