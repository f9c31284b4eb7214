# SPDX-License-Identifier: Apache-2.0
"""How an action is handed to a server."""

import time
import uuid

from heat.common import exception
from heat.engine import resource
from heat.objects import resource as resource_objects
from heat.objects import software_config as config_objects
from heat.rpc import api as rpc_api
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.configs import hidden_inputs
from heat_plugins.deployments import deliveries
from heat_plugins.engine import hidden_parameters as engine_hidden
from heat_plugins.engine import rows
from heat_plugins.engine import server_policy
from heat_plugins.engine import servers
from heat_plugins.resources import deployment_records
from heat_plugins.resources import deployment_schema
from heat_plugins.resources import deployment_waiting
from heat_plugins.resources import transports
from heat_plugins.signals import body
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)


class HandOver:
    """The part of a deployment that gives a config to its server."""

    # What `transports` chose for the action at hand.
    _signalling: deliveries.Signalling | None = None

    # Heat's class asks these when it builds the inputs of a config.

    def _signal_transport_cfn(self):
        return self._transport() == transport_names.CFN_SIGNAL

    def _signal_transport_heat(self):
        return self._transport() == transport_names.HEAT_SIGNAL

    def _signal_transport_none(self):
        return self._transport() == transport_names.NO_SIGNAL

    def _signal_transport_zaqar(self):
        return self._transport() == transport_names.ZAQAR_SIGNAL

    def _signal_transport_temp_url(self):
        return self._transport() == transport_names.TEMP_URL_POLL

    def _transport(self):
        if self._signalling is not None:
            return self._signalling.transport
        return transport_names.canonical(
            self.properties[deployment_schema.SIGNAL_TRANSPORT]
        )

    def _get_swift_signal_url(self, multiple_signals=False):
        """Return the TempURL of the action at hand."""
        return None if self._signalling is None else self._signalling.url

    def _handle_action(self, action, config=None, prev_derived_config=None):
        """Hand a config to the server; return what there is to wait for."""
        if config is None:
            config = self._load_config()
        if not self._runs(action, config):
            return None
        server = self._server()
        if not self._may_run(action, server):
            return None
        if self.resource_id is None:
            # Stored as it is handed over.
            self.resource_id = str(uuid.uuid4())
        now = time.monotonic()
        limit = self.properties[deployment_schema.TIMEOUT]
        wait = deployment_waiting.Wait(
            action=action,
            config=config,
            config_id=str(uuid.uuid4()),
            server=server,
            hub=transports.hub_for(self),
            begun=now,
            deadline=now + limit if limit else None,
            next_server_look=now + deployment_waiting.SERVER_LOOK,
        )
        self._wait = wait
        return None if self._begin(wait) else wait

    def _begin(self, wait):
        """Hand a config to the server, if what it takes can be had by now.

        :returns: whether there is nothing to wait for.
        """
        try:
            return self._try_to_begin(wait)
        except errors.Unavailable as exc:
            self._note_trouble(wait, exc)
        except (
            db_exception.DBConnectionError,
            db_exception.DBDeadlock,
        ) as exc:
            self._note_trouble(wait, rows.unavailable(exc))
            # Something may have been written all the same.
            wait.lost_ids.add(wait.config_id)
            wait.config_id = str(uuid.uuid4())
        return False

    def _try_to_begin(self, wait):
        row = self._row()
        if row is not None and row.status == self.IN_PROGRESS:
            # An engine that has died since handed it over.
            wait.lost_ids.add(row.config_id)
        self._signalling = transports.choose(self, wait.config_id)
        former = self._made_configs(row)
        # Before anything is made, so that whatever happens now is found
        # and cleaned up when the resource is deleted.
        self._note_configs([*former, wait.config_id])
        try:
            self._hand_over(wait, row)
            if wait.action == self.CREATE and self.replaces is not None:
                self.data_set(
                    deployment_records.TAKEN_OVER_KEY, wait.server.id
                )
        except Exception:
            self._undo_hand_over(wait.config_id, former)
            raise
        finally:
            signalling, self._signalling = self._signalling, None
        if former:
            self._forget_configs(former, wait.config_id)
        if signalling.transport == transport_names.NO_SIGNAL:
            self._wait = None
            return True
        self._begin_wait(wait, signalling)
        return False

    def _forget_configs(self, former, config_id):
        """Delete what a server had before it was handed a config."""
        try:
            self._note_configs([*self._delete_configs(former), config_id])
        except db_exception.DBError as exc:
            # All are noted still, and go with the next.
            LOG.warning(
                '%(deployment)s: former configs are deleted later: %(error)s',
                {'deployment': self._label, 'error': rows.unavailable(exc)},
            )

    def _runs(self, action, config):
        group = config.get(rpc_api.SOFTWARE_CONFIG_GROUP)
        if group == actions.COMPONENT:
            return actions.serves(
                group, config[rpc_api.SOFTWARE_CONFIG_CONFIG], action
            )
        return action in self.properties[self.DEPLOY_ACTIONS]

    def _server(self):
        return servers.find(self.context, self.properties[self.SERVER])

    def _server_of(self, row):
        return servers.find(self.context, row.server_id)

    def _server_name(self, server):
        """Return what people call a server: its resource, else its id."""
        return servers.path(
            self.context, server, transports.root_stack_id(self)
        )

    def _may_run(self, action, server):
        """Say whether a server takes an action from this stack.

        :raises exception.Error: it does not; a DELETE goes on without it.
        """
        refusal = self._refusal(server)
        if refusal is None:
            return True
        if action != self.DELETE:
            raise exception.Error(refusal)
        LOG.warning(
            '%(deployment)s is deleted without running DELETE: %(why)s',
            {'deployment': self._label, 'why': refusal},
        )
        return False

    def _refusal(self, server):
        """Return why a server takes nothing from this stack, or None."""
        return server_policy.refusal(server, transports.root_stack_id(self))

    def _hand_over(self, wait, row):
        """Make the derived config, and give it to the server.

        :param row: what the server was given before, or None.
        """
        if row is None:
            # Heat's resource_id_set goes on if the database fails, and then
            # nobody would know whose row it is.
            resource_objects.Resource.update_by_id(
                self.context,
                self.id,
                {'physical_resource_id': self.resource_id},
            )
            self.rpc_client().check_room_for_config(self.context)
        params = self._build_derived_config_params(wait.action, wait.config)
        config_objects.SoftwareConfig.create(
            self.context,
            {
                'id': wait.config_id,
                'group': params[rpc_api.SOFTWARE_CONFIG_GROUP],
                'name': params[rpc_api.SOFTWARE_CONFIG_NAME],
                'config': {
                    key: params[key]
                    for key in (
                        rpc_api.SOFTWARE_CONFIG_INPUTS,
                        rpc_api.SOFTWARE_CONFIG_OUTPUTS,
                        rpc_api.SOFTWARE_CONFIG_OPTIONS,
                        rpc_api.SOFTWARE_CONFIG_CONFIG,
                    )
                },
                'tenant': self.context.project_id,
            },
        )
        wait.mask = hidden_inputs.mask(
            params[rpc_api.SOFTWARE_CONFIG_INPUTS],
            params[rpc_api.SOFTWARE_CONFIG_OPTIONS],
        )
        values = self._build_properties(wait.config_id, wait.action)
        reading_project = self._reading_project(wait.server)
        if row is not None:
            self._set_what_heat_leaves(row, reading_project)
            self.rpc_client().update_software_deployment(
                self.context,
                deployment_id=self.resource_id,
                # An empty map would leave those of the former action.
                output_values=dict.fromkeys(body.STANDARD_OUTPUTS),
                **values,
            )
            return
        self.rpc_client().create_software_deployment(
            self.context,
            deployment_id=self.resource_id,
            server_id=wait.server.id,
            stack_user_project_id=reading_project,
            **values,
        )

    def _set_what_heat_leaves(self, row, reading_project):
        """Set in a row what Heat's own update would leave as it was."""
        values = {}
        if row.stack_user_project_id != reading_project:
            # Heat's own class made it, or another transport was used.
            values['stack_user_project_id'] = reading_project
        if row.input_values and not self.properties[self.INPUT_VALUES]:
            values['input_values'] = None
        if values:
            rows.change(self.context, self.resource_id, **values)

    def _undo_hand_over(self, config_id, former):
        """Take back a config that was made but perhaps not handed over."""
        try:
            row = self._row()
            if row is not None and row.config_id == config_id:
                self._delete_row()
            self._delete_derived_config(config_id)
            self._note_configs(former)
        except Exception as exc:
            # Without what led to it: that quotes what was to be written.
            LOG.error(
                '%(deployment)s was not handed to its server, and not all of '
                'it could be taken back: %(error)s',
                {
                    'deployment': self._label,
                    'error': type(exc).__name__,
                },
            )

    def _reading_project(self, server):
        """Return the project whose users may read the row, if any.

        Every stack user in that project could read the URL with which this
        server answers. Only Zaqar needs it: Heat takes the server's queue
        and the signal's queue in that project.
        """
        if (
            server.has_queue
            or self._transport() == transport_names.ZAQAR_SIGNAL
        ):
            return self.stack.stack_user_project_id
        return None

    def _build_derived_config_params(self, action, source):
        """Build the derived config in the form that agents can take."""
        params = super()._build_derived_config_params(action, source)
        inputs = params[rpc_api.SOFTWARE_CONFIG_INPUTS]
        for each in inputs:
            if each['name'] == self.DEPLOY_SIGNAL_TRANSPORT:
                each['value'] = self._transport()
        params[rpc_api.SOFTWARE_CONFIG_INPUTS] = handover.inputs(
            [*inputs, *self._inputs_about(self._signalling)],
            self._tool(action, params),
        )
        params[rpc_api.SOFTWARE_CONFIG_OPTIONS] = hidden_inputs.marked(
            params[rpc_api.SOFTWARE_CONFIG_OPTIONS],
            params[rpc_api.SOFTWARE_CONFIG_INPUTS],
            engine_hidden.values(self.stack),
        )
        params[rpc_api.SOFTWARE_CONFIG_CONFIG] = actions.for_server(
            params[rpc_api.SOFTWARE_CONFIG_GROUP],
            params[rpc_api.SOFTWARE_CONFIG_CONFIG],
        )
        return params

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        """Begin UPDATE, unless a changed input asks for a replacement.

        :raises resource.UpdateReplace: it does.
        """
        self.properties = json_snippet.properties(
            self.properties_schema, self.context
        )
        config = self._load_config()
        if self._must_replace(config):
            raise resource.UpdateReplace(self.name)
        self._offer_trigger_url()
        if self._is_done_but_for_triggers(prop_diff):
            return None
        return self._handle_action(self.UPDATE, config=config)

    def _must_replace(self, config):
        """Say whether an input changes that is not to change in place."""
        before = self._inputs_before()
        # What it takes to be signalled is not made before it is needed.
        self._signalling = deliveries.NOTHING
        try:
            derived = self._build_derived_inputs(self.UPDATE, config)
        finally:
            self._signalling = None
        after = handover.inputs(
            [each.as_dict() for each in derived if each.replace_on_change()],
            self._tool(self.UPDATE, config),
        )
        return any(
            each['name'] in before and before[each['name']] != each['value']
            for each in after
        )

    def _tool(self, action, config):
        return handover.tool(
            config.get(rpc_api.SOFTWARE_CONFIG_GROUP),
            config.get(rpc_api.SOFTWARE_CONFIG_CONFIG),
            action,
        )
