# SPDX-License-Identifier: Apache-2.0
"""The row of a deployment, and signals through Heat's APIs that settle it.

The row says what the server was given last, and how that ended.
"""

import json

from heat.common import context as heat_context

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins.configs import actions
from heat_plugins.deployments import deliveries
from heat_plugins.engine import callers
from heat_plugins.engine import heat_types
from heat_plugins.engine import run_room
from heat_plugins.engine import transports
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.signals import body
from heat_plugins.signals import presigned
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)

#: The key in a resource's data: the server whose agent has named the config
#: that it answers, in a signal through Heat's APIs.
NAMING_KEY = 'heat_plugins_naming'

# The keys of release 0.1, which deleted the rows of withdrawn actions: configs
# that were made, the inputs and the action that were withdrawn.
_CONFIGS, _INPUTS = 'heat_plugins_configs', 'heat_plugins_inputs'
_UNDO, _UNDONE = 'heat_plugins_undo', 'nothing'

# Its keys for a failed deployment that another one replaces, and for the
# server on which that one runs CREATE.
_GIVEN_WAY = 'heat_plugins_given_way'
_TAKEN_OVER = 'heat_plugins_taken_over'


def row(resource: heat_types.Resource) -> heat_values.DeploymentRow | None:
    """Return a deployment as Heat stores it; None if it does not."""
    number = resource.resource_id
    if number is None:
        return None
    if stored := rows.visible(resource.context, [number]):
        return stored[number]
    # What release 0.1 remembered of an action that it withdrew.
    data = resource.data()
    action = data.get(_UNDO, _UNDONE)
    if action == _UNDONE:
        return None
    inputs = json.loads(data.get(_INPUTS, '{}'))
    return heat_values.DeploymentRow(
        id=resource.resource_id,
        server_id=resource.resource_id,
        config=heat_values.Config(
            id='',
            group=actions.WITHDRAWN,
            config='',
            inputs=[{'name': k, 'value': each} for k, each in inputs.items()],
            outputs=(),
        ),
        action=action,
        status=heat_values.FAILED,
        reason=None,
        outputs={},
        input_values={},
        reading_project=None,
    )


def forget_former(resource: heat_types.Resource) -> None:
    """Delete the data of release 0.1, which the row holds now."""
    data = resource.data()
    rows.delete_configs(resource.context, data.get(_CONFIGS, '').split())
    for key in data.keys() & {_CONFIGS, _INPUTS, _UNDO}:
        resource.data_delete(key)


def is_replaced(
    resource: heat_types.Resource, stored: heat_values.DeploymentRow | None
) -> bool:
    """Say whether another deployment has run CREATE there in its place.

    Until then, a DELETE must undo what this one did.
    """
    if stored is not None and stored.is_replaced:
        return True
    is_former = stored is not None and not stored.config.id
    if not is_former and _GIVEN_WAY not in resource.data():
        return False
    place = (
        resource.context,
        resource.stack.id,
        resource.name,
        resource.id,
    )
    taken = resources.data_of_later(*place, _TAKEN_OVER)
    taken |= resources.servers_of_later(*place)
    return resource.properties[resource.SERVER] in taken


def _came_by_its_url(
    details: object, row: heat_values.DeploymentRow
) -> bool | None:
    """Say whether a signal came by the URL that this deployment signed."""
    return presigned.came_by(details, row.inputs.get(deliveries.URL_INPUT))


def _outcome(
    details: object, row: heat_values.DeploymentRow
) -> body.SignalOutcome:
    """Return how an action ended by a signal; one that is bad is a failure."""
    try:
        return body.outcome(body.as_map(details), row.config.outputs, row.mask)
    except errors.BadSignal as exc:
        return body.failure(str(exc))


def _verb(outcome: body.SignalOutcome) -> str:
    return 'succeeded' if outcome.status == body.COMPLETE else 'failed'


@rows.unquoted()
def take_of_member(
    stack_id: str, resource_name: str, signature: str, details: object
) -> bool:
    """Settle a member of a group by an answer that came by its signed URL.

    Nothing else is asked of the group, so Heat need not load its stack.

    :param resource_name: that the URL names; of the group.
    :returns: False if the URL is no member's, its server may have got
        something else since, or what came asks for a run.
    """
    # Heat's database checks no permissions; the signature is the secret.
    context = heat_context.get_admin_context()
    group_ids = resources.group_ids(context, stack_id, resource_name)
    wanted = {presigned.config_id(each, signature) for each in group_ids}
    for row in rows.having(context, wanted):
        # Its ID holds but a part of a digest.
        if signature != presigned.signature(row.inputs[deliveries.URL_INPUT]):
            return False
        if run_room.room().cannot_be_result(details, row.config.outputs):
            return False
        ticket = watcher.Ticket(
            deployment_id=row.id, config_id=row.config.id, object_name=None
        )
        if not row.in_progress or not body.is_for(details, row.config.id):
            LOG.info(
                'Deployment %(id)s: ignoring a signal that comes after the '
                'end of %(action)s, or answers another action',
                {'id': row.id, 'action': row.action},
            )
        elif body.is_report(details):
            rows.begin(context, [ticket])
        else:
            deployment_rows.settle({ticket: _outcome(details, row)})
        return True
    return False


class SignalHandler:
    """Settles a deployment by a signal that came through Heat's APIs."""

    def __init__(
        self, resource: heat_types.Resource, signaller: callers.Signaller
    ) -> None:
        self._resource = resource
        self._signaller = signaller
        self._servers = servers.Servers(
            resource, transports.root_stack_id(resource)
        )

    def take(
        self, details: object, row: heat_values.DeploymentRow | None
    ) -> str | None:
        """Take a signal; return the text of its event.

        :raises deliveries.ActionFailed: it is not of the row's server.
        """
        if row is None:
            return None
        signaller = self._signaller
        is_of_other_user = signaller.is_of_server and (
            signaller.user_id != self._resource._get_user_id()
        )
        if is_of_other_user or _came_by_its_url(details, row) is False:
            row = self._replaced(details) or row
        # A server may answer an earlier action late, or run it again.
        is_for_it = (
            body.is_for(details, row.config.id)
            and _came_by_its_url(details, row) is not False
        )
        if not row.in_progress or not is_for_it:
            return self._ignored(details, row)
        self._check_may_answer(row, details)
        ticket = watcher.Ticket(
            deployment_id=row.id, config_id=row.config.id, object_name=None
        )
        if body.is_report(details):
            if not rows.begin(self._resource.context, [ticket]):
                return None
            return servers.started(
                row.action, self._servers.name(row.server_id)
            )
        outcome = _outcome(details, row)
        if not deployment_rows.settle({ticket: outcome}):
            return None
        return f'deployment {row.id} {_verb(outcome)}'

    def _replaced(self, details: object) -> heat_values.DeploymentRow | None:
        """Return the replaced deployment that a signal answers, if any.

        A server signals by the name of the resource, which is that of both.
        Its URL tells, or the user that Heat has made for it.
        """
        resource = self._resource
        users = resources.replaced_users(
            resource.context, resource.stack.id, resource.name, resource.id
        )
        replaced = rows.visible(resource.context, users.keys())
        for row in replaced.values():
            came_by_url = _came_by_its_url(details, row)
            is_its_user = (
                self._signaller.is_of_server
                and self._signaller.user_id == users[row.id]
                and transports.takes_signals(row.transport)
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
        return heat_values.event_reason(
            heat_values.EventKind.RESULT_IGNORED, text
        )

    def _check_may_answer(
        self, row: heat_values.DeploymentRow, details: object
    ) -> None:
        """Refuse a result, or a report, of another than the row's server."""
        if self._signaller.is_of_project:
            # Users may answer for a server that cannot.
            try:
                callers.check_may_update(self._signaller)
            except errors.Refused as exc:
                raise deliveries.ActionFailed(str(exc)) from exc
            return
        if row.id != self._resource.resource_id:
            # `_replaced` has seen that it is of the server.
            return
        if self._signaller.is_of_server and (
            self._signaller.user_id != self._resource._get_user_id()
            or not transports.takes_signals(row.transport)
        ):
            raise deliveries.ActionFailed(
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
            raise deliveries.ActionFailed(
                f'the agent of server {self._servers.name(row.server_id)} '
                f'names the config that it answers ({body.CONFIG_ID}), '
                'and this result names none'
            )
