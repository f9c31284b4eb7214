# SPDX-License-Identifier: Apache-2.0
"""How a signal starts a run of a deployment's action, and what shows it."""

from heat.common import exception
from heat.common.i18n import _
from heat.objects import software_config as config_objects

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.engine import own_heat
from heat_plugins.engine import rows
from heat_plugins.engine import run_ledgers as engine_runs
from heat_plugins.engine import run_watching
from heat_plugins.resources import deployment_records
from heat_plugins.resources import deployment_schema
from heat_plugins.resources import signal_events
from heat_plugins.resources import signallers
from heat_plugins.resources import transports
from heat_plugins.runs import orchestration
from heat_plugins.runs import summary
from heat_plugins.runs.records import record_names as run_names
from heat_plugins.runs.start import starting
from heat_plugins.runs.start import targets
from heat_plugins.runs.start import trigger_signals

LOG = foreign.logger(__name__)

#: The key in a resource's data for the URL that a template has asked for.
URL_KEY = 'heat_plugins_trigger_url'

#: So many runs are in the attribute.
SHOWN = 10


class Triggers(signallers.Signalled):
    """The part of a deployment that starts runs."""

    # Signals

    @rows.unquoted()
    def handle_signal(self, details):
        """Start a run if a signal asks for one; else it is a result.

        Heat answers whoever sends a signal before it looks at it, so that
        an event says what became of it.
        """
        row = self._row()
        declared = (
            deployment_records.declared_outputs(row.config) if row else ()
        )
        wanted = trigger_signals.read(details, declared)
        if wanted is not None:
            return self._trigger(wanted, row)
        resting = row is None or row.status != self.IN_PROGRESS
        if trigger_signals.cannot_be_result(details, declared) or (
            resting and trigger_signals.looks_like_one(details)
        ):
            reason = _(
                'it is not exactly {"trigger": "<action>", "input_values": '
                '{…}}, or the config has an output called "trigger"'
            )
            raise signal_events.not_triggered(self, errors.Refused(reason))
        return super().handle_signal(details)

    def _trigger(self, wanted, row):
        try:
            run = self._start(wanted, row)
        except Exception as exc:
            raise signal_events.not_triggered(self, exc) from exc
        LOG.info(
            '%(deployment)s: run %(run)s of %(action)s has begun, by a signal',
            {
                'deployment': self._label,
                'run': run.id,
                'action': run.action,
            },
        )
        return f'run {run.id} of {run.action} has begun'

    def _start(self, wanted, row):
        self._check_may_trigger()
        if self.status == self.IN_PROGRESS:
            raise errors.Refused(
                f'the deployment is {self.action}_{self.status}; send it '
                'again when that has ended'
            )
        if self.resource_id is None:
            raise errors.Refused(
                'its server has been given nothing so far; a component needs '
                'an entry for CREATE, if only an empty one'
            )
        if not self._may_be_reachable():
            raise errors.Refused(
                f'server {self._server_name(self._server())} is not there '
                'any more'
            )
        if refusal := self._refusal(self._server()):
            raise errors.Refused(refusal)
        target = self._target(row, wanted.action)
        order = starting.Order(action=wanted.action, inputs=wanted.inputs)
        # Before the object store is asked for anything.
        starting.check(target, order)
        hub = transports.hub_for(self)
        is_new = self.data().get(rows.CONTAINER_KEY) != hub.container
        if is_new:
            # The server gets a URL to it, whatever transport the stack uses;
            # until then it must not go with another deployment.
            self.data_set(rows.CONTAINER_KEY, hub.container)
        try:
            run = hub.call(
                self.stack,
                lambda: engine_runs.ledger_for(self, hub).start(target, order),
            )
        except errors.AlreadyRunning:
            # That one has a URL to the container, too.
            raise
        except Exception:
            if is_new:
                self.data_delete(rows.CONTAINER_KEY)
            raise
        run_watching.follow(engine_runs.ledger_for(self, hub), run.stack_id)
        return run

    def _target(self, row, action):
        """Return this deployment as what a run is started on."""
        above = self.stack.path_in_stack()
        path = [name for name, _stack in above if name] + [self.name]
        heat = own_heat.Heat(self.rpc_client(), self.context)
        server = self._server_of(row) if row else self._server()
        name = self._server_name(server)
        config = self._given(row, action)
        return targets.Target(
            root=heat.stack(transports.root_stack_id(self)),
            path='.'.join(path),
            resource=orchestration.Resource(
                name=self.name,
                type=self.type(),
                physical_id=self.resource_id,
                status=f'{self.action}_{self.status}',
                stack_id=self.stack.id,
            ),
            deployment=orchestration.Deployment(
                id=self.resource_id,
                server_id=server.id,
                config_id=config.id,
                action=self.action,
                status=self.status,
                reason=None,
            ),
            config=config,
            declared=targets.declared_inputs(self._source(), config),
            server_name=None if name == server.id else name,
            guarded=True,
            timeout=self.properties[deployment_schema.TIMEOUT],
            delivery_timeout=self.properties[
                deployment_schema.DELIVERY_TIMEOUT
            ],
        )

    def _given(self, row, action):
        """Return what the server was given last, or would be given now.

        The latter is where an action was taken back from it.
        """
        if row is not None:
            return own_heat.config(row.config)
        # What it takes to be signalled is not made: a run has its own.
        self._signalling = deliveries.NOTHING
        try:
            params = self._build_derived_config_params(
                action, self._load_config()
            )
        finally:
            self._signalling = None
        return orchestration.Config(id='', **params)

    def _source(self):
        """Return the template's config; None if it names none."""
        if not self.properties[self.CONFIG]:
            return None
        return own_heat.config(
            config_objects.SoftwareConfig.get_by_id(
                self.context, self.properties[self.CONFIG]
            )
        )

    # Attributes

    def _last_runs(self):
        """Return what has become of the last runs, the newest first."""
        if self.resource_id is None:
            return []
        hub = transports.hub_for(self)
        try:
            found = hub.call(
                self.stack,
                lambda: engine_runs.ledger_for(self, hub).latest(
                    hub.root_stack_id, self.resource_id, SHOWN
                ),
            )
        except errors.Error as exc:
            # No stack is to fail of this.
            LOG.info(
                '%(deployment)s: its runs cannot be shown: %(error)s',
                {'deployment': self._label, 'error': exc},
            )
            return None
        return [summary.of(run) for run in found]

    def _trigger_url(self):
        return self.data().get(URL_KEY)

    # Life

    def handle_create(self):
        self._offer_trigger_url()
        return super().handle_create()

    def _offer_trigger_url(self):
        """Make the URL to send triggers to, or take it back.

        It is signed with a key of the deployment's user. CFN_SIGNAL uses
        the same one, and gets another for the action that is to come.
        """
        wanted = self.properties[deployment_schema.TRIGGER_URL]
        if wanted and self._trigger_url() is None:
            url = self._get_ec2_signed_url(never_expire=True)
            if not url:
                raise exception.Error(
                    _(
                        'No key pair can be made for "trigger_url"; '
                        "heat-engine's log says why. Heat needs its stack "
                        'domain for it (stack_user_domain_id in heat.conf)'
                    )
                )
            self.data_set(URL_KEY, url, redact=True)
        elif not wanted and self._trigger_url() is not None:
            self._delete_keypair()
            if self.password is None:
                # Neither HEAT_SIGNAL nor ZAQAR_SIGNAL has use for it.
                self._delete_user()
            self.data_delete(URL_KEY)

    def _is_done_but_for_triggers(self, prop_diff):
        """Say whether an update has nothing to do with the server."""
        if not prop_diff.keys() <= set(deployment_schema.CONSENTS):
            return False
        row = self._row()
        return row is not None and row.status == self.COMPLETE

    def _delete_resource(self):
        super()._delete_resource()
        self.data_delete(URL_KEY)

    def _clean_up(self, deletion):
        if deletion.sweep.container is None and self.resource_id is not None:
            self._end_runs()
        return super()._clean_up(deletion)

    def _end_runs(self):
        """Take from the server what goes on; with the last one, forget all.

        A deployment that holds a URL does so as it cleans up after that.
        """
        hub = transports.hub_for(self)
        if hub.is_shut:
            # It costs a token and a request to hear the same again.
            return
        try:
            hub.call(self.stack, lambda: self._end_runs_in(hub))
        except errors.ServiceError as exc:
            # Most likely there is no object store, and so no runs.
            LOG.info(
                '%(deployment)s: runs of it may be left behind in container '
                '%(container)s: %(error)s',
                {
                    'deployment': self._label,
                    'container': hub.container,
                    'error': exc,
                },
            )

    def _end_runs_in(self, hub):
        is_last = not (
            rows.has_deployments(self.context, hub.root_stack_id)
            or rows.container_in_use(
                self.context, hub.root_stack_id, hub.container
            )
        )
        mine = run_names.open_folder(self.resource_id)
        has_runs = hub.below(hub.container, mine)
        if is_last:
            engine_runs.withdraw(self, hub.store, hub.container)
            hub.drop_container(hub.container)
            return
        if has_runs:
            engine_runs.withdraw(
                self, hub.store, hub.container, of=self.resource_id
            )
