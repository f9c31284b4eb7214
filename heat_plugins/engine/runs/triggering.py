# SPDX-License-Identifier: Apache-2.0
"""How a signal starts runs of a deployment's action, and what shows them."""

from collections import abc
import dataclasses
import threading
from typing import Any

from heat.common import exception
from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins import wording
from heat_plugins.deployments import deliveries
from heat_plugins.engine import heat_types
from heat_plugins.engine import hubs
from heat_plugins.engine import transports
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import fleet_watching
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.records import ledgers
from heat_plugins.runs.start import orders
from heat_plugins.runs.start import targets

LOG = foreign.logger(__name__)

#: The key in a resource's data for the URL that a template has asked for.
URL_KEY = 'heat_plugins_trigger_url'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Subject:
    """The deployment that runs are started on.

    :ivar resource: the deployment, or the group that it is a member of.
    :ivar name: of the resource, or of the member.
    :ivar names: the same, after the name of the group.
    :ivar deployment_id: None before its first action.
    """

    resource: heat_types.Deployment
    name: str
    names: abc.Sequence[str]
    deployment_id: str | None


class Triggering:
    """Starts runs of one deployment.

    :param row: what its server was given last, if anything.
    :param draft: returns what its server would be given for an action.
    """

    def __init__(
        self,
        subject: Subject,
        row: heat_values.DeploymentRow | None = None,
        *,
        terms: deliveries.Terms,
        servers: servers.Servers,
        draft: abc.Callable[[str], heat_values.DerivedConfig],
        named_config: abc.Callable[[], heat_values.Config | None],
    ) -> None:
        self.name = subject.name
        self.row = row
        self._subject = subject
        self._deployment = subject.resource
        self._terms = terms
        self._servers = servers
        self._draft = draft
        self._named_config = named_config

    def start(self, wanted: orders.RunOrder) -> str:
        """Start a run; return what the event of the signal says.

        :raises errors.Error: it cannot be started.
        """
        # Before the object store is asked for anything.
        target = self.run_target(wanted)
        server = self._servers.find(self._terms.server_id)
        run = self._start_in_container(target, wanted, server)
        LOG.info(
            '%(deployment)s: a signal started run %(run)s of %(action)s',
            {
                'deployment': self._deployment.label,
                'run': run.id,
                'action': run.action,
            },
        )
        return f'run {run.id} of {run.action} has started'

    def run_target(self, wanted: orders.RunOrder) -> targets.Target:
        """Return this deployment as what a run is started on.

        :raises errors.Refused: nothing can be started on it, or not that.
        """
        deployment = self._deployment
        if deployment.status == 'IN_PROGRESS':
            raise errors.Refused(
                f'the deployment is {deployment.action}_{deployment.status}; '
                'send the signal again when that has ended'
            )
        if self._subject.deployment_id is None:
            raise errors.Refused(
                'heat-engine has delivered no config to its server; a '
                'component needs an entry for CREATE, even an empty one'
            )
        server = self._servers.find(self._terms.server_id)
        if not self._servers.is_there(server.id):
            raise errors.Refused(
                f'server {self._servers.name_of(server)} no longer exists'
            )
        if refusal := self._servers.refusal_of(server):
            raise errors.Refused(refusal)
        target = self._target(server, wanted.action)
        orders.check(target, wanted)
        return target

    def _start_in_container(
        self,
        target: targets.Target,
        order: orders.RunOrder,
        server: heat_values.Server,
    ) -> runs.Run:
        deployment = self._deployment
        hub = transports.hub_for(deployment)
        is_new = deployment.data().get(rows.CONTAINER_KEY) != hub.container
        if is_new:
            # The server gets a URL to it, whatever transport the stack uses;
            # until then it must not go with another deployment.
            deployment.data_set(rows.CONTAINER_KEY, hub.container)
        try:
            run = hub.call(
                deployment.stack,
                lambda: self._ledger(hub, server).start(target, order),
            )
        except errors.AlreadyRunning:
            # That one has a URL to the container, too.
            raise
        except Exception:
            if is_new:
                deployment.data_delete(rows.CONTAINER_KEY)
            raise
        run_ledgers.follow_runs(self._ledger(hub, server), run.stack_id)
        return run

    def _ledger(
        self, hub: hubs.Hub, server: heat_values.Server
    ) -> ledgers.Ledger:
        return run_ledgers.ledger_for(
            self._deployment, hub, self._reading_project(server)
        )

    def _reading_project(self, server: heat_values.Server) -> str | None:
        return deliveries.reading_project(
            self._terms.transport,
            self._deployment.stack.stack_user_project_id,
            has_queue=server.has_queue,
        )

    def _target(
        self, server: heat_values.Server, action: str
    ) -> targets.Target:
        deployment, subject, row = self._deployment, self._subject, self.row
        above = deployment.stack.path_in_stack()
        path = [*(name for name, _stack in above if name), *subject.names]
        heat = own_heat.OwnHeat(deployment.rpc_client(), deployment.context)
        if row is not None and row.server_id != server.id:
            server = self._servers.find(row.server_id)
        name = self._servers.name_of(server)
        config = self._given(action)
        root = heat.stack(transports.root_stack_id(deployment))
        return targets.Target(
            stack_id=root.id,
            stack_name=root.name,
            resource='.'.join(path),
            name=subject.name,
            deployment_id=str(subject.deployment_id),
            server_id=server.id,
            config_id=config.id,
            config=config,
            declared=targets.declared_inputs(self._named_config(), config),
            server_name=None if name == server.id else name,
            guarded=True,
            timeout=self._terms.timeout,
            delivery_timeout=self._terms.delivery_timeout,
        )

    def _given(self, action: str) -> heat_values.Config:
        """Return the config that the server got last, or would get now.

        It would get one now if its action was withdrawn.
        """
        if self.row is not None:
            return self.row.config
        # What it takes to be signalled is not made: a run has its own.
        return heat_values.Config(id='', **vars(self._draft(action)))

    def latest(self) -> list[dict[str, Any]] | None:
        """Return what has become of the last runs, the newest first.

        None if the object store does not tell in time.
        """
        deployment = self._deployment
        deployment_id = self._subject.deployment_id
        if deployment_id is None:
            return []
        latest = run_ledgers.latest(
            deployment,
            transports.hub_for(deployment),
            self._reading_project(self._servers.find(self._terms.server_id)),
            [deployment_id],
        )
        return None if latest is None else latest[deployment_id]


def offer_url(deployment: heat_types.Deployment, is_wanted: bool) -> None:
    """Create or withdraw the URL to send triggers to.

    A key of the deployment's user signs it. CFN_SIGNAL uses the same key, and
    gets another for the next action.

    :raises exception.Error: no key pair can be made.
    """
    is_there = deployment.data().get(URL_KEY) is not None
    if is_wanted and not is_there:
        url = deployment._get_ec2_signed_url(never_expire=True)
        if not url:
            raise exception.Error(
                _(
                    'Cannot create a key pair for "trigger_url"; '
                    "heat-engine's log says why. Heat needs a stack domain "
                    'for that (stack_user_domain_id in heat.conf)'
                )
            )
        deployment.data_set(URL_KEY, url, redact=True)
    elif is_there and not is_wanted:
        deployment._delete_keypair()
        if deployment.password is None:
            # Neither HEAT_SIGNAL nor ZAQAR_SIGNAL has use for it.
            deployment._delete_user()
        deployment.data_delete(URL_KEY)


def operate(
    resource: heat_types.Deployment,
    wanted: orders.RunOrder,
    limits: operations.OperationLimits,
    members: abc.Iterable[Any],
) -> str:
    """Record an operation; return what the event of the signal says.

    Any engine of the cloud advances it.

    :param resource: what was signalled.
    :param members: the deployments to run the action on.
    :raises errors.Error: it cannot be started.
    """
    offered: list[targets.Target] = []
    refusals = []
    for member in members:
        try:
            offered.append(member.run_target(wanted))
        except errors.Refused as exc:
            refusals.append(f'{member.name}: {exc}')
    if not offered:
        raise errors.Refused(
            refusals[0] if refusals else 'it has no deployments'
        )
    hub = transports.hub_for(resource)

    def create() -> operations.Operation:
        advancer = fleets.Fleets.with_own_key(
            own_heat.OwnHeat(resource.rpc_client(), resource.context),
            hub.store,
            who=run_ledgers.WHO,
            # Heat's contexts are not for several threads.
            pool=pools.Pool(workers=1),
            reaches=fleet_watching.REACHES,
        ).create(
            fleet_targets.Chosen(targets=offered, description=resource.name),
            limits,
            wanted,
        )
        advancer.release()
        return advancer.operation

    operation = hub.call(resource.stack, create)
    # Not only in the next scan.
    threading.Thread(
        target=fleet_watching.look_for, args=(operation.id,), daemon=True
    ).start()
    event = (
        f'operation {operation.id} of {wanted.action} has started on '
        + wording.counted(len(offered), 'server')
    )
    return '; left out: '.join([event, *refusals[:1]])
