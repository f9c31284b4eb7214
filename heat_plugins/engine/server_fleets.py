# SPDX-License-Identifier: Apache-2.0
"""The servers of a deployment, or of a group without nested stack."""

from collections import abc
import contextlib
import dataclasses
import functools
from typing import Any

from heat.common import exception
from heat.common import short_id
from heat.engine import software_config_io
from heat.engine import stack as stacks
from heat.objects import software_config as config_objects
from oslo_config import cfg

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins import pools
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import derived
from heat_plugins.deployments import fleets
from heat_plugins.engine import heat_types
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
        """The config that the template names, to derive from.

        :raises exception.NotFound: it is gone.
        """
        named = named_config(self._resource)
        if named is None:
            return heat_values.DerivedConfig(
                group=None, config=None, outputs=[]
            )
        return dataclasses.replace(
            named,
            inputs=[
                software_config_io.InputConfig(**each).as_dict()
                for each in named.inputs
            ],
            outputs=[
                software_config_io.OutputConfig(**each).as_dict()
                for each in named.outputs
            ],
        )

    @deployment_rows.guarded()
    def all(self) -> dict[str, heat_values.DeploymentRow]:
        """Read all rows of the group, by ID."""
        return {
            state.row.id: state.row
            for state in deployment_rows.states(
                self._context, self._group_id or ''
            )
        }

    def work(self, action: str) -> deliveries.Work:
        """Return an action as servers run it."""
        return deliveries.Work(
            action=action,
            source=self.source,
            terms=deliveries.Terms(self._resource.properties),
        )

    def server_name(self, member: fleets.Member) -> str:
        name = member.key
        if self._group_id is None:
            name = self._path(member.server_id)
        return name + self._about(member)

    def _path(self, server_id: str) -> str:
        """Return a server's path in the stack for people, else its ID."""
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
    def _given_properties(self) -> abc.Mapping[str, Any]:
        """The properties of the deployment, resolved once."""
        return self._properties()

    @functools.cached_property
    def _secrets(self) -> abc.Collection[str]:
        """The values of the stack's hidden parameters."""
        return hidden_values(self._resource.stack)

    def draft(
        self,
        member: fleets.Member,
        action: str,
        signalling: deliveries.Signalling = deliveries.NOTHING,
    ) -> heat_values.DerivedConfig:
        """Return the config that a server would be given for an action.

        :raises exception.UserParameterMissing: see `derived.MissingInput`.
        """
        resource, physical_name = self._resource, None
        if resource.id is not None and resource.action != resource.INIT:
            # As Heat names such a resource.
            stack_name = resource.stack.name.rstrip('*')
            physical_name = resource.reduce_physical_resource_name(
                f'{stack_name}-{member.key}-{short_id.get_id(resource.uuid)}',
                resource.physical_resource_name_limit,
            )
        facts = derived.Facts(
            server_id=member.server_id,
            stack_path=str(resource.stack.identifier().stack_path()),
            resource_name=member.key,
            physical_name=physical_name,
            properties=self._given_properties,
            is_structured='input_key' in resource.properties_schema,
            secrets=self._secrets,
        )
        try:
            return derived.draft(self.source, action, signalling, facts)
        except derived.MissingInput as exc:
            raise exception.UserParameterMissing(key=exc.name) from exc

    @deployment_rows.guarded()
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
            draft = self.draft(fleets.Member.of_row(row), row.action)
            if not fleets.is_given(row, draft):
                changed[row.config.id] = fleets.refreshed(row.config, draft)
        rows.rewrite(self._context, changed)

    @deployment_rows.guarded()
    def derive(
        self, tasks: abc.Sequence[fleets.Task]
    ) -> list[deliveries.Delivery | fleets.Refusal]:
        """Make each server's config, or say why it gets none."""
        known = self._find({task.member.server_id for task in tasks})
        leaving = {
            task.member.server_id
            for task in tasks
            if task.action == fleets.DELETE
        }
        refusals = {
            each: deliveries.server_gone(each)
            for each in self._gone([known[each] for each in leaving])
        } | {
            server.id: why
            for server in known.values()
            if (why := servers.refusal(server, self.hub.root_stack_id))
        }
        # Heat cannot notify these of actions.
        unknown = {
            member.server_id
            for member in (task.member for task in tasks)
            if member.server_id not in refusals and self._about(member)
        }
        if unknown:
            self.tell(
                tasks[0].action,
                f'{_UNKNOWN}: {bounds.listed(sorted(unknown))}. It runs the '
                'action only if its agent asks Heat by itself',
            )
        # Each is prepared once, and only if there is need.
        usable = functools.cache(
            functools.partial(
                transports.usable,
                self._resource,
                is_group=self._group_id is not None,
            )
        )
        return [
            self._derive(task, known[task.member.server_id], usable)
            if task.member.server_id not in refusals
            else fleets.Refusal(
                task=task,
                reason=refusals[task.member.server_id],
                fails=task.action != fleets.DELETE,
            )
            for task in tasks
        ]

    def _about(self, member: fleets.Member) -> str:
        """Return the addition to the name of a server that no stack has."""
        server = self._known.get(member.server_id)
        return '' if server is None or server.resources else f' ({_UNKNOWN})'

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
        task: fleets.Task,
        server: heat_values.Server,
        usable: abc.Callable[[str], transports.SignalTransport],
    ) -> deliveries.Delivery:
        """Make the config that a server is given for a task."""
        member, before = task.member, task.before
        if task.delivers or before is None:
            config_id = fleets.new_config_id(member.id)
            terms = deliveries.Terms(self._resource.properties)
            answer = deliveries.Answer.of_deployment(member.id, config_id)
            signalling = usable(terms.transport).sign(answer)
            signature = presigned.signature(signalling.url)
            if self._group_id is not None and signature is not None:
                config_id = presigned.config_id(member.id, signature)
            draft = self.draft(member, task.action, signalling)
        else:
            config_id, draft = before.config.id, before.config
            name = heat_values.canonical(str(before.transport))
            if name == heat_values.TEMP_URL_POLL:
                transport = usable(name)
            else:
                # Its server has what it takes.
                kind = transports.TRANSPORTS.get(name, transports.HeatSignal)
                transport = kind(self._resource)
            signalling = transport.resume(before)
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
            input_values=self._given_properties.get(
                self._resource.INPUT_VALUES
            ),
            signalling=signalling,
            reading_project=users_project if is_read else None,
            before=before,
        )

    @deployment_rows.guarded()
    def write(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Write what servers are given into Heat's tables."""
        deployment_rows.write(self._context, made)
        if self._group_id is None:
            histories.forget_former(self._resource)

    @deployment_rows.guarded()
    def push(self, made: abc.Sequence[deliveries.Delivery]) -> None:
        """Tell servers of the configs that were written for them."""
        resource = self._resource
        if self._group_id is None and resource.replaces is not None:
            # The server of those whose place it takes loses them as it is
            # told of this one, and they leave it alone.
            for each in made:
                if each.action == fleets.CREATE:
                    resources.mark_replaced(
                        self._context,
                        resource.stack.id,
                        resource.name,
                        resource.id,
                        each.server_id,
                    )
        deployment_rows.tell(self._context, made)

    @deployment_rows.guarded(everything=True)
    def withdraw(
        self, withdrawals: abc.Sequence[fleets.Withdrawal]
    ) -> abc.Collection[str]:
        """Withdraw what servers were given and have not answered."""
        self._untold |= {each.server_id for each in withdrawals}
        withdrawn = rows.withdraw(self._context, withdrawals)
        self._tell_rest()
        if withdrawn and self._group_id is None:
            # Unanswered, perhaps as a new image has an agent that names none.
            self._resource.data_delete(histories.NAMING_KEY)
        return withdrawn

    @deployment_rows.guarded()
    def erase(self, ids: abc.Collection[str]) -> None:
        """Delete the rows of deployments."""
        for owner_id in [self._group_id] if self._group_id else ids:
            rows.erase(self._context, owner_id, ids)

    def request_stop(self, names: abc.Sequence[str]) -> None:
        pools.Pool(attempts=1).each(self.hub.request_stop, names)

    @deployment_rows.guarded(everything=True)
    def gone(self, server_ids: abc.Collection[str]) -> abc.Collection[str]:
        """Return those of the servers that exist no more."""
        return self._gone(
            [*resources.find_all(self._context, server_ids).values()]
        )

    def _gone(self, known: abc.Sequence[heat_values.Server]) -> set[str]:
        """Return the IDs of those of the servers that exist no more."""
        seen = servers.Servers(self._resource, self.hub.root_stack_id)
        return {each.id for each in known} - seen.all_there(known)

    # How they answer

    @deployment_rows.guarded(everything=True)
    def read(
        self, ids: abc.Collection[str]
    ) -> abc.Mapping[str, heat_values.DeploymentRow]:
        """Return the rows of deployments as they are now."""
        # Before a row is seen to have been withdrawn.
        self._tell_rest()
        return rows.visible(self._context, ids)

    def _tell_rest(self) -> None:
        """Tell the servers of configs that were withdrawn."""
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
        """Fetch the bodies of signals; an error stands for its signal."""
        if len(names) == 1:
            # Others of the stack do so at the same time.
            return [_fetched(self.hub.fetch, names[0])]
        return pools.Pool(attempts=1).each(
            functools.partial(_fetched, self.hub.fetch_now), names
        )

    @deployment_rows.guarded(everything=True)
    def poll_queue(
        self, delivery: deliveries.Delivery
    ) -> heat_values.DeploymentRow | None:
        """Take a signal from the server's queue; return the row after it."""
        number = delivery.deployment_id
        kind = transports.TRANSPORTS[delivery.signalling.transport]
        signal = kind(self._resource).poll(delivery)
        if signal is not None:
            outcome = body.read(signal, delivery.draft.outputs, delivery.mask)
            deployment_rows.settle({delivery.ticket: outcome})
        row = rows.visible(self._context, [number]).get(number)
        if row is not None and not row.in_progress:
            # Heat itself may have stored them.
            declared = {each['name'] for each in delivery.draft.outputs}
            masked = {
                name: value
                if name in declared
                else delivery.mask.output(value)
                for name, value in row.outputs.items()
            }
            if masked != row.outputs:
                rows.change(self._context, row.id, output_values=masked)
        return row

    def discard(self, names: abc.Sequence[str]) -> None:
        """Delete signals that were read, later and in a thread."""
        for name in names:
            self.hub.discard(name)

    @deployment_rows.guarded(everything=True)
    def settle(
        self, outcomes: abc.Mapping[watcher.Ticket, body.SignalOutcome]
    ) -> abc.Collection[watcher.Ticket]:
        """Store how actions ended; return those that still waited."""
        return deployment_rows.settle(outcomes)

    @deployment_rows.guarded(everything=True)
    def begin(self, started: abc.Sequence[deliveries.Delivery]) -> None:
        """Store and tell that servers have started on an action."""
        begun = rows.begin(self._context, [each.ticket for each in started])
        for each in started if self._group_id is None else ():
            reason = servers.started(each.action, self._path(each.server_id))
            LOG.info('%s: %s', self.label, reason)
            if each.ticket in begun:
                self._resource.tell(each.action, reason)

    def key_holds(self, signer: keys.Signer) -> bool:
        return self.hub.signing.key_holds(signer)

    # The stack

    def tell(self, action: str, reason: str) -> None:
        """Write a warning among the events of the stack."""
        try:
            with deployment_rows.guarded(everything=True):
                self._resource.warn(action, reason)
        except errors.Unavailable as exc:
            LOG.warning('%s: cannot write that event: %s', self.label, exc)

    def is_cancelled(self, since: float) -> bool:
        return self.hub.cancellation.of(self._resource.stack, since)

    def renew_access(self) -> None:
        """Get the stack's credentials again after the store refused them."""
        # If none is available the outage lasts, up to the budget.
        with contextlib.suppress(errors.Denied):
            self.hub.adopt(self._resource.stack)


def _fetched(
    fetch: abc.Callable[[str, int], bytes], name: str
) -> bytes | errors.ServiceError:
    """Fetch a signal's body; return the error if the store has one."""
    try:
        return fetch(name, cfg.CONF.heat_plugins.signal_body_limit)
    except errors.ServiceError as exc:
        return exc


def named_config(
    resource: heat_types.Resource,
) -> heat_values.Config | None:
    """Return the config that a template names, as stored; None: it has none.

    :raises exception.NotFound: it is gone.
    """
    config_id = resource.properties['config']
    if not config_id:
        return None
    return rows.stored_config(
        config_objects.SoftwareConfig.get_by_id(resource.context, config_id)
    )


def hidden_values(stack: heat_types.Stack) -> frozenset[str]:
    """Return the texts of hidden parameters of a stack and those above it.

    A stack may pass a hidden value to a nested one as a parameter that is not
    hidden there. The members of a group get it as values in their template.
    """
    values: set[str] = set()
    while True:
        for parameter in stack.parameters.params.values():
            if parameter.hidden():
                # It may have none, or one that its type forbids: no input has
                # it either.
                with contextlib.suppress(Exception):
                    values.update(masking.texts(parameter.value()))
        if stack.owner_id is None:
            return frozenset(values)
        stack = stacks.Stack.load(stack.context, stack_id=stack.owner_id)
