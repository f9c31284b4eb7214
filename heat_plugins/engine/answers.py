# SPDX-License-Identifier: Apache-2.0
"""How a deployment takes results and reports that come through Heat's APIs."""

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import failures
from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types
from heat_plugins.engine import histories
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import servers
from heat_plugins.signals import beginning
from heat_plugins.signals import body
from heat_plugins.signals import transport_names
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)


class Answers:
    """Takes one signal to a deployment."""

    def __init__(
        self,
        resource: heat_types.Deployment,
        rows: deployment_rows.Rows,
        signaller: signallers.Signaller,
    ) -> None:
        self._resource = resource
        self._rows = rows
        self._signaller = signaller
        self._servers = servers.Servers(
            resource, transports.root_stack_id(resource)
        )

    def take(
        self, details: object, row: heat_values.DeploymentRow | None
    ) -> str | None:
        """Take a signal; return what the event of it says.

        :raises failures.Error: it is of another than the row's server.
        """
        if row is None or not row.in_progress:
            # No engine waits for it, or no longer.
            return None
        if not beginning.is_for(details, row.config.id):
            LOG.info(
                '%(deployment)s already runs %(action)s; ignoring a signal '
                'of an earlier action',
                {'deployment': self._resource.label, 'action': row.action},
            )
            return None
        self._check_may_answer(row, details)
        ticket = watcher.Ticket(
            deployment_id=row.id, config_id=row.config.id, object_name=None
        )
        if beginning.is_report(details):
            if not self._rows.begin([ticket]):
                return None
            return servers.started(
                row.action, self._servers.name(row.server_id)
            )
        try:
            outcome = body.outcome(
                body.as_map(details), row.config.outputs, row.mask
            )
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        if not self._rows.settle({ticket: outcome}):
            return None
        verb = 'succeeded' if outcome.status == body.COMPLETE else 'failed'
        return f'deployment {row.id} {verb}'

    def _check_may_answer(
        self, row: heat_values.DeploymentRow, details: object
    ) -> None:
        """Refuse a result, or a report, of another than the row's server."""
        if self._signaller.is_of_project:
            # Users may answer for a server that cannot.
            try:
                signallers.check_may_update(self._signaller)
            except errors.Refused as exc:
                raise failures.Error(str(exc)) from exc
            return
        transport = row.transport
        if self._signaller.is_of_server and (
            self._signaller.user_id != self._resource._get_user_id()
            or transport not in transport_names.BY_SIGNAL
        ):
            raise failures.Error(
                'it was sent with other credentials than those given to '
                f'server {self._servers.name(row.server_id)} for this action'
            )
        naming = self._resource.data().get(histories.NAMING_KEY)
        if beginning.names_config(details):
            if naming != row.server_id:
                self._resource.data_set(histories.NAMING_KEY, row.server_id)
        elif naming == row.server_id:
            raise failures.Error(
                f'the agent of server {self._servers.name(row.server_id)} '
                f'names the config that it answers ({beginning.CONFIG_ID}), '
                'and this result names none'
            )
