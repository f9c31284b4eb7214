# SPDX-License-Identifier: Apache-2.0
"""The servers of a deployment, or of a group without nested stack."""

from collections import abc
import contextlib
import functools
from typing import Any

from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import config
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import fleets
from heat_plugins.deployments import plan_tasks
from heat_plugins.engine import deriving
from heat_plugins.engine import histories
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.engine.database import servers
from heat_plugins.objectstore import keys
from heat_plugins.signals import body
from heat_plugins.signals import presigned
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

config.register_opts(cfg.CONF)


_UNKNOWN = 'no stack has a server with this ID'


class ServerFleet:
    """Implements `deployments.fleets.Fleet`.

    :param resource: the deployment or the group.
    :param properties: of each deployment, without the server.
    :param group_id: of the group, as it is or was before it got a nested
        stack; None for a single deployment.
    """

    def __init__(
        self,
        resource: Any,
        properties: abc.Callable[[], abc.Mapping[str, Any]],
        group_id: str | None = None,
    ) -> None:
        self._resource = resource
        self._context = resource.context
        self._group_id = group_id
        self._properties = properties
        self.hub = transports.hub_for(resource)
        # Servers by ID, as they were when first asked for.
        self._known: dict[str, heat_values.Server] = {}
        # Servers whose metadata still have what was withdrawn from them.
        self._untold: set[str] = set()

    @property
    def label(self) -> str:
        return str(self._resource.label)

    @functools.cached_property
    def source(self) -> heat_values.DerivedConfig:
        """The config that the template names.

        :raises exception.NotFound: it is gone.
        """
        return deriving.load_source(self._resource)

    def all(self) -> dict[str, heat_values.DeploymentRow]:
        """Read all rows of the group, by ID."""
        with deployment_rows.guarded():
            states = deployment_rows.states(
                self._context, self._group_id or ''
            )
        return {state.row.id: state.row for state in states}

    def work(self, action: str) -> deliveries.Work:
        """Return an action as servers run it."""
        return deliveries.Work(
            action=action,
            source=self.source,
            terms=deliveries.Terms(self._resource.properties),
        )

    def server_name(self, member: plan_tasks.Member) -> str:
        name = member.key
        if self._group_id is None:
            name = self._path(member.server_id)
        return name + self._about(member)

    def _path(self, server_id: str) -> str:
        with (
            contextlib.suppress(errors.Unavailable),
            deployment_rows.guarded(everything=True),
        ):
            server = self._find([server_id])[server_id]
            return servers.path(self._context, server, self.hub.root_stack_id)
        # A failure must be told though the database does not answer.
        return server_id

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
        """Return the config that a server would be given for an action."""
        return self._derivation.draft(
            self.source,
            action,
            signalling,
            name=member.key,
            server_id=member.server_id,
        )

    def refresh(self, kept: abc.Iterable[heat_values.DeploymentRow]) -> None:
        """Let deployments that run nothing have the present config.

        Runs take their script and inputs from there. Only components have
        actions of their own. The ID of a config tells an agent whether it has
        run it, so a server runs nothing for this.
        """
        if self.source.group != actions.COMPONENT:
            return
        changed = {}
        for row in kept:
            if row.in_progress or row.is_withdrawn:
                # What was withdrawn must not become a script again.
                continue
            draft = self.draft(plan_tasks.Member.of_row(row), row.action)
            if not plan_tasks.is_given(row, draft):
                changed[row.config.id] = plan_tasks.refreshed(
                    row.config, draft
                )
        with deployment_rows.guarded():
            rows.rewrite(self._context, changed)

    def derive(
        self, tasks: abc.Sequence[plan_tasks.Task]
    ) -> list[deliveries.Delivery | plan_tasks.Refusal]:
        with deployment_rows.guarded():
            known = self._find({task.member.server_id for task in tasks})
            leaving = {
                task.member.server_id
                for task in tasks
                if task.action == plan_tasks.DELETE
            }
            refusals = {
                each: failures.server_gone(each)
                for each in self._gone([known[each] for each in leaving])
            } | {
                server.id: why
                for server in known.values()
                if (why := servers.refusal(server, self.hub.root_stack_id))
            }
            self._tell_unknown(tasks, refusals)
            signals = transports.Signals(
                self._resource, is_group=self._group_id is not None
            )
            return [
                self._derive(task, known[task.member.server_id], signals)
                if task.member.server_id not in refusals
                else plan_tasks.Refusal(
                    task=task,
                    reason=refusals[task.member.server_id],
                    fails=task.action != plan_tasks.DELETE,
                )
                for task in tasks
            ]

    def _about(self, member: plan_tasks.Member) -> str:
        """Return the addition to the name of a server that no stack has."""
        server = self._known.get(member.server_id)
        return '' if server is None or server.resources else f' ({_UNKNOWN})'

    def _tell_unknown(
        self,
        tasks: abc.Sequence[plan_tasks.Task],
        refused: abc.Container[str],
    ) -> None:
        """Write an event of servers that Heat cannot notify of actions."""
        ids = {
            each.member.server_id
            for each in tasks
            if self._about(each.member)
            and each.member.server_id not in refused
        }
        if ids:
            self.tell(
                tasks[0].action,
                f'{_UNKNOWN}: {bounds.listed(sorted(ids))}. It runs the '
                'action only if its agent asks Heat by itself',
            )

    def _find(
        self, server_ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.Server]:
        """Return servers; one query serves all attempts of an action."""
        missing = set(server_ids).difference(self._known)
        if missing:
            self._known |= resources.find_all(self._context, missing)
        return self._known

    def _derive(
        self,
        task: plan_tasks.Task,
        server: heat_values.Server,
        signals: transports.Signals,
    ) -> deliveries.Delivery:
        member, before = task.member, task.before
        if task.delivers or before is None:
            config_id = plan_tasks.new_config_id(member.id)
            signalling = signals.of(task, config_id)
            signature = presigned.signature(signalling.url)
            if self._group_id is not None and signature is not None:
                config_id = presigned.config_id(member.id, signature)
            draft = self.draft(member, task.action, signalling)
        else:
            config_id, draft = before.config.id, before.config
            signalling = signals.of(task, config_id)
        # Heat takes a queue in that project: that of the server, and that of
        # the signal. Its users could read the URLs of other servers, too.
        is_read = server.has_queue or signalling.queue_id is not None
        users_project = self._resource.stack.stack_user_project_id
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
            reading_project=users_project if is_read else None,
            before=before,
        )

    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        with deployment_rows.guarded():
            deployment_rows.write(self._context, made)
            if self._group_id is None:
                histories.forget_former(self._resource)

    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        with deployment_rows.guarded():
            if self._group_id is None and self._resource.replaces is not None:
                # The server of those whose place it takes loses them as it
                # is told of this one, and they leave it alone.
                resource = self._resource
                for each in made:
                    if each.action == plan_tasks.CREATE:
                        resources.mark_replaced(
                            self._context,
                            resource.stack.id,
                            resource.name,
                            resource.id,
                            each.server_id,
                        )
            deployment_rows.tell(self._context, made)

    def withdraw(
        self, withdrawals: abc.Sequence[fleets.Withdrawal]
    ) -> abc.Collection[str]:
        with deployment_rows.guarded(everything=True):
            self._untold |= {each.server_id for each in withdrawals}
            withdrawn = rows.withdraw(self._context, withdrawals)
            self._tell_rest()
            if withdrawn and self._group_id is None:
                # Unanswered, perhaps as a new image has an agent that names
                # none.
                self._resource.data_delete(histories.NAMING_KEY)
        return withdrawn

    def erase(self, ids: abc.Collection[str]) -> None:
        with deployment_rows.guarded():
            for owner_id in [self._group_id] if self._group_id else ids:
                rows.erase(self._context, owner_id, ids)

    def request_stop(self, names: abc.Sequence[str]) -> None:
        pools.Pool(attempts=1).each(self.hub.request_stop, names)

    def gone(self, server_ids: abc.Collection[str]) -> abc.Collection[str]:
        with deployment_rows.guarded(everything=True):
            known = resources.find_all(self._context, server_ids)
        return self._gone(list(known.values()))

    def _gone(self, known: abc.Sequence[heat_values.Server]) -> set[str]:
        seen = servers.Servers(self._resource, self.hub.root_stack_id)
        return {each.id for each in known} - seen.all_there(known)

    # How they answer

    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        with deployment_rows.guarded(everything=True):
            # Before a row is seen to have been withdrawn.
            self._tell_rest()
            return rows.visible(self._context, ids)

    def _tell_rest(self) -> None:
        if self._untold:
            server_metadata.tell(
                self._context,
                self._untold,
                self._resource.stack.stack_user_project_id,
            )
            self._untold = set()

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
        kind = transports.TRANSPORTS[delivery.signalling.transport]
        with deployment_rows.guarded(everything=True):
            signal = kind(self._resource).poll(delivery)
            if signal is not None:
                outcome = body.read(
                    signal, delivery.draft.outputs, delivery.mask
                )
                deployment_rows.settle({delivery.ticket: outcome})
            row = rows.visible(self._context, [number]).get(number)
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
            rows.change(self._context, row.id, output_values=masked)

    def discard(self, names: abc.Sequence[str]) -> None:
        for name in names:
            self.hub.discard(name)

    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        with deployment_rows.guarded(everything=True):
            return deployment_rows.settle(outcomes)

    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        with deployment_rows.guarded(everything=True):
            begun = rows.begin(
                self._context, [each.ticket for each in started]
            )
        if self._group_id is not None:
            return
        for each in started:
            reason = servers.started(each.action, self._path(each.server_id))
            LOG.info('%s: %s', self.label, reason)
            if each.ticket in begun:
                with deployment_rows.guarded(everything=True):
                    self._resource.tell(each.action, reason)

    def key_holds(self, signer: keys.Signer) -> bool:
        return self.hub.signing.key_holds(signer)

    # The stack

    def tell(self, action: str, reason: str) -> None:
        try:
            with deployment_rows.guarded(everything=True):
                self._resource.warn(action, reason)
        except errors.Unavailable as exc:
            LOG.warning('%s: cannot write that event: %s', self.label, exc)

    def is_cancelled(self, since: float) -> bool:
        return self.hub.cancellation.of(self._resource.stack, since)

    def renew_access(self) -> None:
        # If none is available the outage lasts, up to the budget.
        with contextlib.suppress(errors.Denied):
            self.hub.adopt(self._resource.stack)


def _fetched(
    fetch: abc.Callable[[str, int], bytes], name: str
) -> bytes | errors.ServiceError:
    try:
        return fetch(name, cfg.CONF.heat_plugins.signal_body_limit)
    except errors.ServiceError as exc:
        return exc
