# SPDX-License-Identifier: Apache-2.0
"""What our deployment classes do that Heat's do not.

`DeploymentMixin` goes before one of Heat's two deployment classes. It keeps
their properties, attributes and inputs, and replaces how an action is handed
to the server (`_handle_action`), how its end is noticed (`_await`) and how
it is taken back (`_withdraw`).
"""

from collections import abc
import contextlib
import copy
import dataclasses
import json
import time
from typing import Any
import uuid

from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.engine import attributes
from heat.engine import constraints
from heat.engine import properties
from heat.engine import resource
from heat.engine.resources.openstack.heat import software_deployment as base
from heat.objects import software_config as config_objects
from heat.objects import software_deployment as deployment_objects
from heat.rpc import api as rpc_api
from oslo_config import cfg
from oslo_log import log as logging

from heat_plugins.configs import actions
from heat_plugins.configs import handover
from heat_plugins.engine import hub as hubs
from heat_plugins.engine import rows
from heat_plugins.resources import transports
from heat_plugins.signals import body
from heat_plugins.signals import errors
from heat_plugins.signals import tempurl
from heat_plugins.signals import watcher

LOG = logging.getLogger(__name__)

TIMEOUT, SIGNAL_URL_LIFETIME = 'timeout', 'signal_url_lifetime'
SIGNAL_TRANSPORT = base.SoftwareDeployment.SIGNAL_TRANSPORT
TRANSPORT_ATTR = 'signal_transport'

#: The key in a resource's data for the configs that its actions have made:
#: the last one, and those before it that could not be deleted so far.
CONFIGS_KEY = 'heat_plugins_configs'

#: The key for inputs of an action that was taken back.
INPUTS_KEY = 'heat_plugins_inputs'

#: The key in a resource's data that says that an action after CREATE was
#: taken back: the row is gone, and what CREATE did is still to be undone.
UNDO_KEY = 'heat_plugins_undo'

# How often to ask whether the server of a DELETE is still there, in seconds.
_SERVER_LOOK = 30

# How long to leave an object store alone that does not answer, in seconds.
_STORE_DELAY = 5


def properties_schema(heats):
    """Return the properties of one of Heat's deployment classes with ours.

    :param heats: the `properties_schema` of the class.
    """
    transport = copy.copy(heats[SIGNAL_TRANSPORT])
    transport.description = _(
        'How the server sends back the result. TEMP_URL_POLL: it PUTs it to '
        'a Swift TempURL, without credentials, and the engine looks for it '
        'there; TEMP_URL_SIGNAL means the same. CFN_SIGNAL: it POSTs it to '
        'a URL of heat-api-cfn, signed with a key pair. HEAT_SIGNAL: it '
        'signals the resource through heat-api, with Keystone credentials. '
        'ZAQAR_SIGNAL: it sends it to a Zaqar queue, with Keystone '
        'credentials. NO_SIGNAL: the resource is complete without one. '
        'AUTO: the first of TEMP_URL_POLL, ZAQAR_SIGNAL, CFN_SIGNAL and '
        'HEAT_SIGNAL that can really be used, chosen for each action.'
    )
    transport.default = transports.default()
    transport.constraints = [constraints.AllowedValues(transports.NAMES)]
    transport.update_allowed = True
    schema = dict(heats)
    schema[SIGNAL_TRANSPORT] = transport
    schema[TIMEOUT] = properties.Schema(
        properties.Schema.INTEGER,
        _(
            'The most seconds that one action may take, from when it is '
            "handed to the server until its signal. The stack's own timeout "
            'counts as well.'
        ),
        constraints=[constraints.Range(min=1)],
        update_allowed=True,
    )
    schema[SIGNAL_URL_LIFETIME] = properties.Schema(
        properties.Schema.INTEGER,
        _(
            'For how many seconds the TempURL of an action stays valid, if '
            'longer than the action may take. A server may use it for as '
            'long, though no result counts after the action has ended.'
        ),
        constraints=[constraints.Range(min=60, max=tempurl.MAX_EXPIRES)],
        update_allowed=True,
    )
    return schema


def attributes_schema(heats):
    """Return the attributes of one of Heat's deployment classes with ours.

    :param heats: the `attributes_schema` of the class.
    """
    schema = dict(heats)
    schema[TRANSPORT_ATTR] = attributes.Schema(
        _('How the last action was to be signalled: what AUTO chose.'),
        type=attributes.Schema.STRING,
    )
    return schema


@dataclasses.dataclass(kw_only=True)
class Wait:
    """An action that was handed to a server, or is going to be.

    :ivar config: the config to run, as Heat's API shows it.
    :ivar config_id: the id of what is derived from it.
    :ivar ticket: for the signal; None until the server has the config.
    :ivar hub: who looks for the signal; None where Heat's own class does.
    :ivar begun: by `time.monotonic`, like the other times.
    :ivar deadline: None where the stack's counts alone.
    :ivar next_server_look: when to ask whether the server is still there.
    :ivar trouble: since when the object store keeps this action from going
        on: its URL cannot be made, or its signal cannot be fetched.
    """

    action: str
    config: abc.Mapping[str, Any]
    config_id: str
    server_id: str
    begun: float
    deadline: float | None
    next_server_look: float
    ticket: watcher.Ticket | None = None
    hub: hubs.Hub | None = None
    trouble: watcher.Trouble | None = None

    @property
    def declared(self) -> abc.Sequence[abc.Mapping[str, Any]]:
        """The outputs that the config declares."""
        outputs = self.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS]
        return [each.as_dict() for each in outputs]


@dataclasses.dataclass(kw_only=True)
class Deletion:
    """A deployment that goes.

    :ivar wait: for the DELETE action; None if it has ended or there is none.
    :ivar sweep: what is to be cleaned up in the object store.
    :ivar trouble: since when the object store refuses that.
    """

    wait: Wait | None
    sweep: transports.Sweep
    trouble: watcher.Trouble | None = None


class DeploymentMixin:
    """The behaviour of our deployment classes; see the module."""

    SIGNAL_TRANSPORTS = transports.NAMES
    TIMEOUT = TIMEOUT
    SIGNAL_URL_LIFETIME = SIGNAL_URL_LIFETIME

    # What `transports` chose for the action at hand.
    _signalling: transports.Signalling | None = None

    # The action that has begun and not ended.
    _wait: Wait | None = None

    # --- which transport ---------------------------------------------------

    # Heat's class asks these when it builds the inputs of a config.

    def _signal_transport_cfn(self):
        return self._transport() == transports.CFN_SIGNAL

    def _signal_transport_heat(self):
        return self._transport() == transports.HEAT_SIGNAL

    def _signal_transport_none(self):
        return self._transport() == transports.NO_SIGNAL

    def _signal_transport_zaqar(self):
        return self._transport() == transports.ZAQAR_SIGNAL

    def _signal_transport_temp_url(self):
        return self._transport() == transports.TEMP_URL_POLL

    def _transport(self):
        if self._signalling is not None:
            return self._signalling.transport
        return transports.canonical(self.properties[SIGNAL_TRANSPORT])

    def _get_swift_signal_url(self, multiple_signals=False):
        """Return the TempURL of the action at hand."""
        return None if self._signalling is None else self._signalling.url

    # --- an action begins --------------------------------------------------

    def _handle_action(self, action, config=None, prev_derived_config=None):
        """Hand a config to the server; return what there is to wait for."""
        if config is None:
            config = self._load_config()
        if not self._runs(action, config):
            return None
        if self.resource_id is None:
            self.resource_id_set(str(uuid.uuid4()))
        now = time.monotonic()
        limit = self.properties[TIMEOUT]
        wait = Wait(
            action=action,
            config=config,
            config_id=str(uuid.uuid4()),
            server_id=self.properties[self.SERVER],
            begun=now,
            deadline=now + limit if limit else None,
            next_server_look=now + _SERVER_LOOK,
        )
        self._wait = wait
        return None if self._begin(wait) else wait

    def _begin(self, wait):
        """Hand a config to the server, if its transport can be had by now.

        :returns: whether there is nothing to wait for.
        """
        try:
            self._signalling = transports.choose(self, wait.config_id)
        except errors.Unavailable as exc:
            wait.trouble = _trouble(exc, wait.trouble)
            LOG.info(
                'Deployment %(id)s has to wait for its signal URL: %(error)s',
                {'id': self.resource_id, 'error': exc},
            )
            return False
        row = self._row()
        former = self._made_configs(row)
        # Before anything is made, so that whatever happens now is found
        # and cleaned up when the resource is deleted.
        self._note_configs([*former, wait.config_id])
        try:
            self._hand_over(wait.action, wait.config, wait.config_id, row)
        except Exception:
            self._undo_hand_over(wait.config_id, former)
            raise
        finally:
            signalling, self._signalling = self._signalling, None
        if former:
            self._note_configs([*self._delete_configs(former), wait.config_id])
        if signalling.transport == transports.NO_SIGNAL:
            self._wait = None
            return True
        self._begin_wait(wait, signalling)
        return False

    def _runs(self, action, config):
        group = config.get(rpc_api.SOFTWARE_CONFIG_GROUP)
        if group == actions.COMPONENT:
            return actions.serves(
                group, config[rpc_api.SOFTWARE_CONFIG_CONFIG], action
            )
        return action in self.properties[self.DEPLOY_ACTIONS]

    def _made_configs(self, row):
        """Return the ids of configs that were made and may still exist."""
        made = self.data().get(CONFIGS_KEY, '').split()
        if row is not None and row.config_id not in made:
            made.append(row.config_id)
        return made

    def _note_configs(self, config_ids):
        if config_ids:
            self.data_set(CONFIGS_KEY, ' '.join(config_ids))
        else:
            self.data_delete(CONFIGS_KEY)

    def _delete_configs(self, config_ids):
        """Delete configs that no server has; return those that remain."""
        remaining = []
        for config_id in config_ids:
            try:
                self._delete_derived_config(config_id)
            except Exception as exc:
                LOG.warning(
                    'Config %(config)s of deployment %(id)s is deleted '
                    'later: %(error)s',
                    {
                        'config': config_id,
                        'id': self.resource_id,
                        'error': exc,
                    },
                )
                remaining.append(config_id)
        return remaining

    def _hand_over(self, action, config, config_id, row):
        """Make the derived config, and give it to the server.

        :param row: what the server was given before, or None.
        """
        params = self._build_derived_config_params(action, config)
        config_objects.SoftwareConfig.create(
            self.context,
            {
                'id': config_id,
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
        values = self._build_properties(config_id, action)
        if row is not None:
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
            server_id=self.properties[self.SERVER],
            stack_user_project_id=self._reading_project(),
            **values,
        )

    def _undo_hand_over(self, config_id, former):
        """Take back a config that was made but perhaps not handed over."""
        try:
            row = self._row()
            if row is not None and row.config_id == config_id:
                self._delete_row()
            self._delete_derived_config(config_id)
            self._note_configs(former)
        except Exception:
            LOG.exception(
                'Deployment %(name)s of stack %(stack)s was not handed to '
                'its server, and not all of it could be taken back',
                {'name': self.name, 'stack': self.stack.name},
            )

    def _reading_project(self):
        """Return the project whose users may read the row, if any.

        Every stack user in that project could read the URL with which this
        server answers. Only Zaqar needs it: Heat takes the server's queue
        and the signal's queue in that project.
        """
        if self._transport() == transports.ZAQAR_SIGNAL:
            return self.stack.stack_user_project_id
        server = db_api.resource_get_by_physical_resource_id(
            self.context, self.properties[self.SERVER]
        )
        if server is not None and any(
            item.key == 'metadata_queue_id' for item in server.data
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
            inputs, self._tool(action, params)
        )
        params[rpc_api.SOFTWARE_CONFIG_OPTIONS] = (
            params[rpc_api.SOFTWARE_CONFIG_OPTIONS] or {}
        )
        params[rpc_api.SOFTWARE_CONFIG_CONFIG] = actions.for_server(
            params[rpc_api.SOFTWARE_CONFIG_GROUP],
            params[rpc_api.SOFTWARE_CONFIG_CONFIG],
        )
        return params

    def handle_update(self, json_snippet, tmpl_diff, prop_diff):
        self.properties = json_snippet.properties(
            self.properties_schema, self.context
        )
        config = self._load_config()
        if self._must_replace(config):
            raise resource.UpdateReplace(self.name)
        return self._handle_action(self.UPDATE, config=config)

    def _must_replace(self, config):
        """Say whether an input changes that is not to change in place."""
        before = self._inputs_before()
        # What it takes to be signalled is not made before it is needed.
        self._signalling = transports.NOTHING
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

    def _inputs_before(self):
        """Return the inputs that the last action had, by name."""
        row = self._row()
        if row is None:
            return json.loads(self.data().get(INPUTS_KEY, '{}'))
        return {
            each['name']: each.get('value')
            for each in row.config.config[rpc_api.SOFTWARE_CONFIG_INPUTS]
        }

    def _keep_inputs(self, row):
        """Remember what the next update has to compare, without the row."""
        kept = {
            each['name']: each.get('value')
            for each in row.config.config[rpc_api.SOFTWARE_CONFIG_INPUTS]
            if each.get('replace_on_change')
        }
        if kept:
            # They may be secrets.
            self.data_set(INPUTS_KEY, json.dumps(kept), redact=True)

    def _tool(self, action, config):
        return handover.tool(
            config.get(rpc_api.SOFTWARE_CONFIG_GROUP),
            config.get(rpc_api.SOFTWARE_CONFIG_CONFIG),
            action,
        )

    # --- an action ends ----------------------------------------------------

    def _begin_wait(self, wait, signalling):
        wait.trouble = None
        wait.hub = signalling.hub
        wait.ticket = watcher.Ticket(
            deployment_id=self.resource_id,
            config_id=wait.config_id,
            object_name=signalling.object_name,
        )
        if wait.hub is not None:
            wait.hub.watcher.join(wait.ticket)
        LOG.info(
            'Deployment %(id)s (%(name)s of stack %(stack)s) waits for a '
            'signal of %(action)s from server %(server)s by %(transport)s',
            {
                'id': self.resource_id,
                'name': self.name,
                'stack': self.stack.name,
                'action': wait.action,
                'server': wait.server_id,
                'transport': signalling.transport,
            },
        )

    def check_create_complete(self, wait):
        return self._await(wait)

    def check_update_complete(self, wait):
        return self._await(wait)

    def check_suspend_complete(self, wait):
        return self._await(wait)

    def check_resume_complete(self, wait):
        return self._await(wait)

    def _await(self, wait):
        """Say whether an action has ended; raise if it has failed."""
        if not wait:
            return True
        if not self._look(wait):
            return False
        self._wait = None
        if wait.hub is not None:
            wait.hub.watcher.leave(wait.ticket)
        return True

    def _look(self, wait):
        if wait.ticket is None:
            done = self._begin(wait)
            if wait.ticket is None and not done:
                self._check_trouble(wait)
        elif wait.hub is None:
            # Zaqar: Heat's own show reads the queue.
            done = self._check_complete()
        else:
            done = self._look_for_signal(wait)
        if not done and wait.hub is not None:
            self._check_cancelled(wait)
        if not done and wait.deadline is not None:
            done = self._check_deadline(wait)
        if wait.ticket is None and not done:
            raise resource.PollDelay(_STORE_DELAY)
        return done

    def _look_for_signal(self, wait):
        sight = wait.hub.watcher.look(wait.ticket)
        if sight is watcher.Sight.WAITING:
            # Whatever could not be fetched was not listed any more.
            wait.trouble = None
            self._check_trouble(wait)
            return False
        if sight in (watcher.Sight.ARRIVED, watcher.Sight.PEEK):
            outcome = self._take_signal(wait)
            if outcome is None:
                if sight is watcher.Sight.ARRIVED and wait.trouble is None:
                    wait.hub.watcher.absent(wait.ticket)
                self._check_trouble(wait)
                return False
        else:
            outcome = self._settled(wait)
        if self._is_complete(outcome):
            return True
        # The watcher has forgotten about it, and nobody has settled it.
        wait.hub.watcher.join(wait.ticket)
        return False

    @staticmethod
    def _is_complete(outcome):
        if outcome.status == body.FAILED:
            raise exception.Error(
                _('Deployment to server failed: %s') % outcome.reason
            )
        return outcome.status == body.COMPLETE

    def _settled(self, wait):
        """Return how somebody else has ended what is waited for."""
        row = self._row()
        if row is None or row.config_id != wait.config_id:
            raise exception.Error(
                _(
                    'The deployment was withdrawn by somebody else while it '
                    'waited for the signal of %s'
                )
                % wait.action
            )
        return body.Outcome(
            status=row.status,
            reason=row.status_reason,
            outputs=row.output_values or {},
        )

    def _take_signal(self, wait):
        """Fetch a signal and settle the row by it.

        :returns: how the action has ended; None if there is no signal.
        """
        hub, ticket = wait.hub, wait.ticket
        limit = cfg.CONF.heat_plugins.signal_body_limit
        try:
            content = hub.fetch(ticket.object_name, limit)
            outcome = body.outcome(body.parse(content), wait.declared)
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        except errors.NotFound:
            wait.trouble = None
            return None
        except errors.SignalError as exc:
            wait.trouble = _trouble(exc, wait.trouble)
            return None
        wait.trouble = None
        counts = rows.settle(
            self.context, ticket.deployment_id, ticket.config_id, outcome
        )
        try:
            # It may hold secrets, and nobody will ask for it again.
            hub.discard(ticket.object_name)
        except errors.SignalError as exc:
            LOG.info(
                'Signal %(name)s was taken, and stays in container '
                '%(container)s until its deployment is deleted: %(error)s',
                {
                    'name': ticket.object_name,
                    'container': hub.container,
                    'error': exc,
                },
            )
        return outcome if counts else self._settled(wait)

    def _check_cancelled(self, wait):
        """Fail if the stack's action was cancelled or is rolled back."""
        if wait.hub.cancelled(self.stack, since=wait.begun):
            self._withdraw(wait)
            raise exception.Error(
                _('%(action)s was cancelled before server %(server)s answered')
                % {'action': wait.action, 'server': wait.server_id}
            )

    def _check_trouble(self, wait):
        """Fail if the object store has been out of order for too long."""
        trouble = wait.trouble
        # What the object store does is nothing to the other transports.
        if wait.ticket is not None and wait.ticket.object_name is not None:
            trouble = trouble or wait.hub.watcher.trouble
            wait.hub.adopt(self.stack)
        if trouble is not None and _over_budget(trouble):
            raise exception.Error(
                _(
                    '%(action)s could not be handed over, or its signal not '
                    'be looked for, in the last %(seconds)d s: %(error)s'
                )
                % {
                    'action': wait.action,
                    'seconds': trouble.seconds,
                    'error': trouble.error,
                }
            )

    def _check_deadline(self, wait):
        """Look for the last time; fail if there is nothing by now."""
        now = time.monotonic()
        if now < wait.deadline:
            return False
        if wait.ticket is not None:
            outcome = None
            if wait.ticket.object_name is not None:
                outcome = self._take_signal(wait)
            if self._is_complete(outcome or self._settled(wait)):
                return True
        raise exception.Error(
            _(
                'Server %(server)s has not signalled %(action)s within '
                '%(seconds)d s (property "timeout")'
            )
            % {
                'server': wait.server_id,
                'action': wait.action,
                'seconds': now - wait.begun,
            }
        )

    def handle_signal(self, details):
        """Take a signal that came through Heat's APIs."""
        row = self._row()
        if row is None or row.status != self.IN_PROGRESS:
            # Nobody waits for it, or not any more.
            return None
        try:
            outcome = body.outcome(
                body.as_map(details), _declared_outputs(row.config)
            )
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        if not rows.settle(
            self.context, self.resource_id, row.config_id, outcome
        ):
            return None
        verb = 'succeeded' if outcome.status == body.COMPLETE else 'failed'
        return f'deployment {self.resource_id} {verb}'

    # --- an action is taken back -------------------------------------------

    def action_handler_task(self, action, args=None, action_prefix=None):
        """Run an action; if it ends before its signal, take it back.

        Heat tells a resource of a cancellation only once it has begun to
        look whether the action is complete.
        """
        try:
            yield from super().action_handler_task(
                action, args=args, action_prefix=action_prefix
            )
        finally:
            try:
                self._handle_cancel()
            except Exception:
                LOG.exception(
                    'Deployment %s could not be taken back from its server',
                    self.resource_id,
                )

    def _handle_cancel(self):
        wait, self._wait = self._wait, None
        if wait is not None:
            self._withdraw(wait)

    def _withdraw(self, wait):
        """Take an action back from its server, unless it has ended.

        The row goes, and with it the config from the server's metadata: an
        agent that has not fetched it never runs it. The row comes back, with
        the same id, at the next action.
        """
        if wait.hub is not None:
            wait.hub.watcher.leave(wait.ticket)
        row = self._row()
        if row is None or row.config_id != wait.config_id:
            return
        self._take_back(row)

    def _take_back(self, row):
        if row.status != self.IN_PROGRESS:
            return
        LOG.info(
            'Deployment %(id)s: %(action)s is taken back from server '
            '%(server)s',
            {
                'id': self.resource_id,
                'action': row.action,
                'server': row.server_id,
            },
        )
        if row.action != self.CREATE:
            self.data_set(UNDO_KEY, row.action)
        self._keep_inputs(row)
        self._delete_row()
        self._note_configs(self._delete_configs(self._made_configs(row)))

    def _delete_row(self):
        with self.rpc_client().ignore_error_by_name('NotFound'):
            self.rpc_client().delete_software_deployment(
                self.context, self.resource_id
            )

    # --- the resource goes -------------------------------------------------

    def handle_delete(self):
        wait = None
        with self.rpc_client().ignore_error_by_name('NotFound'):
            config = self._load_config()
            if self._is_to_be_undone(config) and self._may_be_reachable():
                wait = self._handle_action(self.DELETE, config=config)
        return Deletion(wait=wait, sweep=transports.Sweep(self))

    def _is_to_be_undone(self, config):
        """Say whether there is a DELETE action, and something to undo."""
        if not self._runs(self.DELETE, config):
            return False
        return (
            self.resource_id is None
            or not self._runs(self.CREATE, config)
            or UNDO_KEY in self.data()
            or bool(self._made_configs(self._row()))
        )

    def check_delete_complete(self, deletion):
        wait = deletion.wait
        if wait is not None and time.monotonic() > wait.next_server_look:
            wait.next_server_look = time.monotonic() + _SERVER_LOOK
            if not self._may_be_reachable():
                self._handle_cancel()
                deletion.wait = wait = None
        if not self._await(wait):
            return False
        deletion.wait = None
        self._delete_resource()
        return self._clean_up(deletion)

    def _clean_up(self, deletion):
        """Clean up the object store, and ride out its passing faults."""
        try:
            deletion.sweep.run()
        except errors.SignalError as exc:
            deletion.trouble = _trouble(exc, deletion.trouble)
            passing = isinstance(exc, (errors.Unavailable, errors.Conflict))
            if passing and not _over_budget(deletion.trouble):
                raise resource.PollDelay(_STORE_DELAY) from exc
            self._leave_behind(self.DELETE, deletion.sweep, exc)
        return True

    def _leave_behind(self, action, sweep, exc):
        """Go on although something may remain in the object store.

        The server cannot use it for anything, and its URL runs out; that is
        no reason to keep a stack from being deleted.
        """
        reason = _('Container %(container)s may be left behind: %(error)s')
        values = {'container': sweep.container, 'error': exc}
        LOG.warning(reason, values)
        self._add_event(action, self.IN_PROGRESS, reason % values)

    def _may_be_reachable(self):
        """Say whether to hand the server a config, or to go on waiting."""
        try:
            return self._server_reachable()
        except Exception as exc:
            # Nova is out of order; that says nothing about the server.
            LOG.warning(
                'Deployment %(id)s cannot find out about its server '
                '%(server)s: %(error)s',
                {
                    'id': self.resource_id,
                    'server': self.properties[self.SERVER],
                    'error': exc,
                },
            )
            return True

    def _server_reachable(self):
        """Say whether a server is there to be handed a config.

        Heat hands configs to the resource whose physical id is the server's.
        An OS::Heat::DeployedServer has its own uuid as that, and nobody else
        knows it; for others Nova is asked, if there is one.
        """
        server_id = self.properties[self.SERVER]
        server = db_api.resource_get_by_physical_resource_id(
            self.context, server_id
        )
        if server is not None:
            if server.action == self.DELETE:
                return False
            if server.uuid == server_id:
                return True
        nova = self.client_plugin('nova')
        if not nova.does_endpoint_exist('compute', 'nova'):
            return server is not None
        try:
            nova.get_server(server_id)
        except exception.EntityNotFound:
            return False
        return True

    def _delete_resource(self):
        """Delete all that the deployment has made in Heat and Keystone."""
        row = self._row()
        if row is not None:
            self._delete_row()
        for config_id in self._made_configs(row):
            self._delete_derived_config(config_id)
        self._note_configs(())
        self._delete_signals()
        self._delete_user()

    def _delete_swift_signal_url(self):
        """Leave the object store to `_clean_up`, which may take longer."""

    # --- what there is to see ----------------------------------------------

    def _row(self):
        """Return the deployment as Heat stores it, or None."""
        if self.resource_id is None:
            return None
        try:
            return deployment_objects.SoftwareDeployment.get_by_id(
                self.context, self.resource_id
            )
        except exception.NotFound:
            return None

    def get_attribute(self, key, *path):
        row = self._row()
        outputs = (row.output_values if row else None) or {}
        if key in outputs:
            return attributes.select_from_attribute(outputs[key], path)
        if key in self.ATTRIBUTES or key in self._declared_names(row):
            return None
        if key == TRANSPORT_ATTR:
            return self._last_transport(row)
        raise exception.InvalidTemplateAttribute(resource=self.name, key=key)

    def _resolve_attribute(self, name):
        # For who asks the API; templates come by `get_attribute`.
        return self.get_attribute(name)

    def _last_transport(self, row):
        """Return how the last action was to be signalled."""
        if row is None:
            return None
        inputs = row.config.config[rpc_api.SOFTWARE_CONFIG_INPUTS]
        values = {each['name']: each.get('value') for each in inputs}
        return values.get(self.DEPLOY_SIGNAL_TRANSPORT)

    def _declared_names(self, row):
        """Return the names of the outputs that the config declares."""
        config = row.config if row else None
        if self.properties[self.CONFIG]:
            with contextlib.suppress(exception.NotFound):
                config = config_objects.SoftwareConfig.get_by_id(
                    self.context, self.properties[self.CONFIG]
                )
        if config is None:
            return set()
        return {each['name'] for each in _declared_outputs(config)}

    def handle_check(self):
        if self.resource_id is None:
            # No action has concerned it so far.
            return
        row = self._row()
        if row is None:
            raise exception.Error(
                _('There is no deployment with id %s') % self.resource_id
            )
        if not self._server_reachable():
            raise exception.Error(
                _('There is no server with id %s') % row.server_id
            )

    def handle_adopt(self, resource_data=None):
        super().handle_adopt(resource_data)
        row = self._row()
        if row is None:
            raise exception.Error(
                _('There is no deployment with id %s to adopt')
                % self.resource_id
            )
        if row.status != self.COMPLETE:
            raise exception.Error(
                _(
                    'Deployment %(id)s is %(status)s, and only a COMPLETE '
                    'one can be adopted'
                )
                % {'id': self.resource_id, 'status': row.status}
            )
        self._note_configs([row.config_id])
        # Its last signal lay in the container of the abandoned stack.
        sweep = transports.Sweep(self)
        try:
            sweep.run()
        except errors.SignalError as exc:
            self._leave_behind(self.ADOPT, sweep, exc)

    def needs_replace_failed(self):
        """Say whether a failed deployment has to be made anew.

        One that was created before is repeated in place: a replacement would
        run CREATE, and after it DELETE, on the same server.
        """
        return self.action not in (self.UPDATE, self.SUSPEND, self.RESUME)

    def make_replacement(self, *args, **kwargs):
        replacement = super().make_replacement(*args, **kwargs)
        row = self._row()
        if row is not None:
            # If it is in progress its engine has died, and nobody waits for
            # its signal any more; its server is to run the other one.
            self._take_back(row)
        return replacement

    def _needs_update(self, *args, **kwargs):
        # Heat takes a failed resource for complete if nothing has changed.
        changed = super()._needs_update(*args, **kwargs)
        return changed or self.status == self.FAILED


def _declared_outputs(config):
    """Return the outputs that a stored config declares."""
    return config.config[rpc_api.SOFTWARE_CONFIG_OUTPUTS] or []


def _over_budget(trouble):
    return trouble.seconds > cfg.CONF.heat_plugins.swift_error_budget


def _trouble(error, before):
    return watcher.Trouble.of(error, before, time.monotonic)
