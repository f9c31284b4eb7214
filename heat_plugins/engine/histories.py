# SPDX-License-Identifier: Apache-2.0
"""The row of a deployment, its derived configs, and signals that settle it.

The server has the config of the last action. Earlier configs are deleted as
soon as possible; until then the resource's data name them.
"""

from collections import abc
import json
from typing import Any

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import failures
from heat_plugins.deployments import plan_tasks
from heat_plugins.deployments import signallers
from heat_plugins.engine import heat_types
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import servers
from heat_plugins.signals import body
from heat_plugins.signals import presigned
from heat_plugins.signals import transport_names
from heat_plugins.signals import watcher
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

# The keys in a resource's data.

#: The configs that its actions have made: the last one, and those before it
#: that could not be deleted yet.
CONFIGS_KEY = 'heat_plugins_configs'

#: The inputs of an action that was withdrawn.
INPUTS_KEY = 'heat_plugins_inputs'

#: An action after CREATE was withdrawn: the row is gone, and what CREATE did
#: is still to be undone. Or DELETE is complete, and the row may be gone.
UNDO_KEY = 'heat_plugins_undo'
_UNDONE = 'nothing'

#: A replacement must repeat what this one has failed to do.
GIVEN_WAY_KEY = 'heat_plugins_given_way'

#: The server that it was given the CREATE of, in the place of another one.
TAKEN_OVER_KEY = 'heat_plugins_taken_over'

#: The server whose agent has named the config that it answers, in a signal
#: through Heat's APIs.
NAMING_KEY = 'heat_plugins_naming'


class History:
    """The row and the derived configs of one deployment."""

    def __init__(self, resource: heat_types.Deployment) -> None:
        self._resource = resource
        self.rows = deployment_rows.Rows(
            resource.rpc_client(), resource.context
        )

    def row(self) -> heat_values.DeploymentRow | None:
        """Return the deployment as Heat stores it; None if it does not."""
        deployment_id = self._resource.resource_id
        if deployment_id is None:
            return None
        return self.rows.read([deployment_id]).get(deployment_id)

    def check(self) -> heat_values.DeploymentRow | None:
        """Return the row; None if no action has concerned the server yet.

        :raises failures.Error: it is gone.
        """
        row = self.row()
        if row is None and self._resource.resource_id is not None:
            raise failures.Error(
                f'Deployment {self._resource.resource_id} no longer exists '
                'in Heat; an update of the stack creates it again'
            )
        return row

    def adopt(self) -> None:
        """Take over what another stack has made.

        :raises failures.Error: it is not there, or not complete.
        """
        row = self.row()
        if row is None:
            raise failures.Error(
                f'Cannot adopt deployment {self._resource.resource_id}: Heat '
                'has none with this ID'
            )
        if row.status != heat_values.COMPLETE:
            raise failures.Error(
                f'Cannot adopt deployment {row.id}: it is {row.status}, and '
                'must be COMPLETE'
            )
        self.note_configs([row.config.id])

    def configs(self, row: heat_values.DeploymentRow | None) -> list[str]:
        """Return the ids of configs that were made and may still exist."""
        made = self._resource.data().get(CONFIGS_KEY, '').split()
        if row is not None and row.config.id not in made:
            made.append(row.config.id)
        return made

    def note_configs(self, config_ids: abc.Sequence[str]) -> None:
        """Remember configs that were made, or are going to be."""
        if config_ids:
            self._resource.data_set(CONFIGS_KEY, ' '.join(config_ids))
        else:
            self._resource.data_delete(CONFIGS_KEY)

    def delete_configs(self, config_ids: abc.Collection[str]) -> list[str]:
        """Delete configs that no server has; return those that remain."""
        remaining = self.rows.delete_configs(config_ids)
        for config_id, error in remaining.items():
            LOG.warning(
                '%(deployment)s: cannot delete config %(config)s now; '
                'retrying with the next action: %(error)s',
                {
                    'deployment': self._resource.label,
                    'config': config_id,
                    'error': error,
                },
            )
        return list(remaining)

    def undo(self, config_id: str, former: abc.Sequence[str]) -> None:
        """Withdraw a config that was perhaps written, and not told."""
        try:
            row = self.row()
            if row is not None and row.config.id == config_id:
                self.rows.withdraw([row.id])
            for error in self.rows.delete_configs([config_id]).values():
                raise error
            self.note_configs(former)
        except Exception as exc:
            # Without the cause: that quotes the values of the statement.
            LOG.error(
                'Cannot deliver %(deployment)s to its server, and cannot '
                'withdraw all of it: %(error)s',
                {
                    'deployment': self._resource.label,
                    'error': type(exc).__name__,
                },
            )

    def forget(self, former: abc.Sequence[str], config_id: str) -> None:
        """Delete what a server had before it was given a config."""
        if not former:
            return
        try:
            with self.rows.guarded(everything=True):
                remaining = self.delete_configs(former)
                self.note_configs([*remaining, config_id])
        except errors.Unavailable as exc:
            # All are noted still, and go with the next.
            LOG.warning(
                '%(deployment)s: cannot delete its former configs now; '
                'retrying with the next action: %(error)s',
                {'deployment': self._resource.label, 'error': exc},
            )

    def has_run(self) -> bool:
        """Say whether a server may have run something that remains."""
        undo = self._resource.data().get(UNDO_KEY)
        if undo is not None:
            return undo != _UNDONE
        # An engine that died may have noted one, and not written it.
        return bool(self.rows.configs(self.configs(self.row())))

    def inputs(self) -> abc.Mapping[str, Any]:
        """Return the inputs that the last action had, by name."""
        row = self.row()
        if row is not None:
            return row.inputs
        kept: dict[str, Any] = json.loads(
            self._resource.data().get(INPUTS_KEY, '{}')
        )
        return kept

    def _keep_inputs(self, row: heat_values.DeploymentRow) -> None:
        """Remember what the next update has to compare, without the row."""
        kept = {
            each['name']: each.get('value')
            for each in row.config.inputs
            if each.get('replace_on_change')
        }
        if kept:
            # They may be secrets.
            self._resource.data_set(INPUTS_KEY, json.dumps(kept), redact=True)

    def take_back(self) -> None:
        """Withdraw an action in progress that no engine waits for."""
        row = self.row()
        if row is not None and row.in_progress:
            self.withdraw(row)

    def give_way(self, action: str | None) -> None:
        """Leave the server to the resource that replaces this one.

        Signals of this one no longer count. If it is in progress, its engine
        has died, and no other waits for its signal.

        :param action: that this one may have run, and the other one repeats
            as soon as it runs its own CREATE there; this one goes after that.
        """
        if action is not None:
            self._resource.data_set(GIVEN_WAY_KEY, action)
        row = self.row()
        if row is not None and row.status != heat_values.FAILED:
            self.withdraw(row)

    def withdraw(self, row: heat_values.DeploymentRow) -> None:
        """Delete a row whose action counts no more, and what goes with it.

        With the row the config goes from the server's metadata: an agent that
        has not fetched it never runs it. The row comes back, with the same
        id, at the next action.
        """
        LOG.info(
            '%(deployment)s: withdrawing %(action)s from server %(server)s',
            {
                'deployment': self._resource.label,
                'action': row.action,
                'server': row.server_id,
            },
        )
        # Its server may have fetched it, and have done some of it.
        self._resource.data_set(UNDO_KEY, row.action)
        self._keep_inputs(row)
        self.rows.withdraw([row.id])
        self.note_configs(self.delete_configs(self.configs(row)))
        # Unanswered, perhaps as a new image has an agent that names none.
        self._resource.data_delete(NAMING_KEY)

    def delete(self) -> None:
        """Delete the row and all configs.

        :raises Exception: whatever keeps a config from going.
        """
        row = self.row()
        if row is not None:
            if row.action == plan_tasks.DELETE:
                # If this engine dies meanwhile, the next must know.
                self._resource.data_set(UNDO_KEY, _UNDONE)
            self.rows.withdraw([row.id])
        for error in self.rows.delete_configs(self.configs(row)).values():
            raise error
        self.note_configs(())
        if UNDO_KEY in self._resource.data():
            self._resource.data_delete(UNDO_KEY)


def _is_for(details: object, row: heat_values.DeploymentRow) -> bool:
    """Say whether a signal is for the action in progress, as far as it shows.

    A server may answer an earlier action late, or run it again.
    """
    return (
        body.is_for(details, row.config.id)
        and _came_by_its_url(details, row) is not False
    )


def _came_by_its_url(
    details: object, row: heat_values.DeploymentRow
) -> bool | None:
    return presigned.came_by(details, row.inputs.get(deliveries.URL_INPUT))


def _outcome(
    details: object, row: heat_values.DeploymentRow
) -> body.SignalOutcome:
    try:
        return body.outcome(body.as_map(details), row.config.outputs, row.mask)
    except errors.BadSignal as exc:
        return body.failure(str(exc))


def _verb(outcome: body.SignalOutcome) -> str:
    return 'succeeded' if outcome.status == body.COMPLETE else 'failed'


class Answers:
    """Settles a deployment by a signal that came through Heat's APIs."""

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
        if row is None:
            return None
        if self._is_of_another(details, row):
            row = self._replaced(details) or row
        if not row.in_progress or not _is_for(details, row):
            return self._ignored(details, row)
        self._check_may_answer(row, details)
        ticket = watcher.Ticket(
            deployment_id=row.id, config_id=row.config.id, object_name=None
        )
        if body.is_report(details):
            if not self._rows.begin([ticket]):
                return None
            return servers.started(
                row.action, self._servers.name(row.server_id)
            )
        outcome = _outcome(details, row)
        if not self._rows.settle({ticket: outcome}):
            return None
        return f'deployment {row.id} {_verb(outcome)}'

    def _is_of_another(
        self, details: object, row: heat_values.DeploymentRow
    ) -> bool:
        """Say whether a signal shows that it is of another deployment."""
        if self._signaller.is_of_server and (
            self._signaller.user_id != self._resource._get_user_id()
        ):
            return True
        return _came_by_its_url(details, row) is False

    def _replaced(self, details: object) -> heat_values.DeploymentRow | None:
        """Return the deployment in whose place this one is, if it answers.

        A server signals by the name of the resource, which is that of both.
        Its URL tells, or the user that Heat has made for it.
        """
        resource = self._resource
        users = resources.replaced_users(
            resource.context, resource.stack.id, resource.name, resource.id
        )
        rows = self._rows.read(users.keys()) if users else {}
        for row in rows.values():
            came_by_url = _came_by_its_url(details, row)
            is_its_user = (
                self._signaller.is_of_server
                and self._signaller.user_id == users[row.id]
                and row.transport in transport_names.BY_SIGNAL
            )
            if came_by_url or (came_by_url is None and is_its_user):
                return row
        return None

    def _ignored(
        self, details: object, row: heat_values.DeploymentRow
    ) -> str | None:
        """Return the event of a result that no engine waits for.

        A server sends one if it lost its disk, and runs again what it had run
        before. It is the only sign of that, and of how it ended.
        """
        if body.is_report(details):
            return None
        outcome = _outcome(details, row)
        end = _verb(outcome)
        code = outcome.outputs.get(body.STATUS_CODE)
        # What else it holds may be a secret of the action before.
        if outcome.status != body.COMPLETE and isinstance(code, int):
            end = f'{end} with exit code {code}'
        server = f'server {self._servers.name(row.server_id)}'
        text = f'it came after the end of {row.action} on {server}: {end}'
        if row.in_progress:
            text = (
                f'it answers an earlier action on {server}, which {end}; '
                f'{row.action} still waits'
            )
        LOG.info('%s: ignoring a result: %s', self._resource.label, text)
        return kinds.reason(kinds.EventKind.RESULT_IGNORED, text)

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
        if row.id != self._resource.resource_id:
            # `_replaced` has seen that it is of the server.
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
        naming = self._resource.data().get(NAMING_KEY)
        if body.names_config(details):
            if naming != row.server_id:
                self._resource.data_set(NAMING_KEY, row.server_id)
        elif naming == row.server_id and not (
            # A server that was rebuilt may have an agent that names none: the
            # URL tells, as long as no agent has reported the action by name.
            _came_by_its_url(details, row) and not row.has_started
        ):
            raise failures.Error(
                f'the agent of server {self._servers.name(row.server_id)} '
                f'names the config that it answers ({body.CONFIG_ID}), '
                'and this result names none'
            )
