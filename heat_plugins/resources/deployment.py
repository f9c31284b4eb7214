# SPDX-License-Identifier: Apache-2.0
"""What our deployment classes do that Heat's do not.

`DeploymentMixin` goes before one of Heat's two deployment classes. It keeps
their properties, attributes and inputs, and replaces how an action is handed
to the server (``deployment_handover``), how its beginning and its end are
noticed (``deployment_beginning``, ``deployment_waiting``,
``deployment_answers``), how it is taken back, and how all goes in the end
(``deployment_deletion``). ``deployment_keys`` answers a changed key, and
``deployment_triggers`` starts other actions.
"""

import contextlib

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.objects import resource as resource_objects
from heat.objects import software_config as config_objects
from heat.rpc import api as rpc_api

from heat_plugins import errors
from heat_plugins.engine import rows
from heat_plugins.resources import deployment_answers
from heat_plugins.resources import deployment_beginning
from heat_plugins.resources import deployment_deletion
from heat_plugins.resources import deployment_handover
from heat_plugins.resources import deployment_keys
from heat_plugins.resources import deployment_records
from heat_plugins.resources import deployment_schema
from heat_plugins.resources import deployment_sweep
from heat_plugins.resources import deployment_triggers
from heat_plugins.resources import deployment_waiting
from heat_plugins.resources import eventful
from heat_plugins.resources import heats_loop
from heat_plugins.resources import transports
from heat_plugins.signals import transport_names


class DeploymentMixin(
    deployment_triggers.Triggers,
    deployment_answers.Answers,
    deployment_handover.HandOver,
    deployment_waiting.Waiting,
    deployment_keys.Keys,
    deployment_beginning.Beginning,
    deployment_deletion.Deleting,
    deployment_records.Records,
    eventful.Eventful,
    heats_loop.Blocking,
):
    """The behaviour of our deployment classes; see the module."""

    # The template that it is checked for, and the version of the row that was
    # read for that.
    _checked_for = None

    # An update mends what a check has found fault with.
    always_replace_on_check_failed = False

    SIGNAL_TRANSPORTS = transport_names.NAMES
    TIMEOUT = deployment_schema.TIMEOUT
    SIGNAL_URL_LIFETIME = deployment_schema.SIGNAL_URL_LIFETIME

    def validate(self):
        """Validate as Heat does, and refuse what this cloud cannot have."""
        super().validate()
        transports.check(self)

    def get_attribute(self, key, *path):
        """Return an output of the last action, or what Heat adds to those.

        :raises exception.InvalidTemplateAttribute: there is no such one.
        """
        row = self._row()
        outputs = (row.output_values if row else None) or {}
        if key in outputs:
            return attributes.select_from_attribute(outputs[key], path)
        if key in self.ATTRIBUTES or key in self._declared_names(row):
            return None
        if key == deployment_schema.TRANSPORT_ATTR:
            return self._last_transport(row)
        if key == deployment_schema.RUNS_ATTR:
            return attributes.select_from_attribute(self._last_runs(), path)
        if key == deployment_schema.TRIGGER_URL:
            return self._trigger_url()
        raise exception.InvalidTemplateAttribute(resource=self.name, key=key)

    def _resolve_attribute(self, name):
        # For who asks the API; templates come by `get_attribute`.
        return self.get_attribute(name)

    def store_attributes(self):
        """Keep what was resolved, unless another action has begun since.

        Heat forgets what it keeps when an action begins. Whoever showed the
        stack at that moment would keep the outputs of the action before it,
        which are shown from then on.
        """
        if not self.attributes.has_new_cached_attrs():
            return
        found = resource_objects.Resource.get_obj(
            self.context, self.id, refresh=True, fields=('action', 'status')
        )
        if (found.action, found.status) == self.state:
            super().store_attributes()

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
        return {
            each['name']
            for each in deployment_records.declared_outputs(config)
        }

    def handle_check(self):
        """Hold that the deployment and its server are there.

        :raises exception.Error: one of them is not.
        """
        if self.resource_id is None:
            # No action has concerned it so far.
            return
        row = self._row()
        if row is None:
            raise exception.Error(
                _(
                    'There is no deployment with id %s any more; an update '
                    'of the stack makes it again'
                )
                % self.resource_id
            )
        if not self._server_reachable():
            raise exception.Error(
                _('There is no server with id %s') % row.server_id
            )

    def handle_adopt(self, resource_data=None):
        """Take over a deployment that was abandoned.

        :raises exception.Error: it is not there, or not complete.
        """
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
        sweep = deployment_sweep.Sweep(self)
        try:
            sweep.run()
        except errors.ServiceError as exc:
            self._leave_behind(self.ADOPT, sweep, exc)

    def needs_replace_failed(self):
        """Say whether a failed deployment has to be made anew.

        One that was created before is repeated in place: a replacement would
        run CREATE, and after it DELETE, on the same server.
        """
        if self.action == self.ADOPT:
            # It may be there and only not be complete.
            return self._row() is None
        return self.action not in (
            self.UPDATE,
            self.SUSPEND,
            self.RESUME,
            self.CHECK,
        )

    def take_back(self):
        """Take from its server what is in progress, and nobody waits for."""
        row = self._row()
        if row is not None:
            self._take_back(row)

    def give_way(self):
        """Leave the server to another one, that is made in this one's place.

        What has come from this one by now does not count any more. If it is
        in progress its engine has died, and nobody waits for its signal.
        """
        if self.action in (self.CREATE, self.DELETE):
            # What it may have done is the other one's as soon as that runs
            # its own CREATE there; this one goes after that.
            self.data_set(deployment_records.GIVEN_WAY_KEY, self.action)
        row = self._row()
        if row is not None and row.status != self.FAILED:
            self._withdraw_row(row)

    @rows.unquoted()
    def update_convergence(self, template_id, *args, **kwargs):
        """Check this one for another traversal of its stack."""
        self._checked_for = template_id, self._atomic_key
        return super().update_convergence(template_id, *args, **kwargs)

    def state_set(self, action, status, *args, **kwargs):
        """Note what is being done, or how it has ended.

        :raises exception.UpdateInProgress: another check of this one does
            it, or has done so.
        """
        if (action, status) == (self.UPDATE, self.IN_PROGRESS):
            self._hold_that_it_is_due()
        return super().state_set(action, status, *args, **kwargs)

    def _hold_that_it_is_due(self):
        """Raise if an update is not what is to be done any more.

        A check that meets another one at work tries again a moment later,
        and Heat lets it do what was to be done before. The server would be
        given the same UPDATE twice; and the stack, complete after the first,
        would fail of the template that the second still refers to, where the
        database looks at that.
        """
        if self._checked_for is None:
            return
        template_id, version = self._checked_for
        if self._atomic_key == version:
            return
        found = resource_objects.Resource.get_obj(
            self.context, self.id, refresh=True
        )
        is_done = (
            found.current_template_id == template_id
            and found.status == self.COMPLETE
        )
        if is_done or (found.action, found.status) == (
            self.CREATE,
            self.FAILED,
        ):
            raise exception.UpdateInProgress(resource_name=self.name)

    @rows.unquoted()
    def make_replacement(self, new_tmpl_id, *args, **kwargs):
        """Make what takes the place of this one, which goes on no more.

        :raises exception.UpdateInProgress: another one has by now.
        """
        if not rows.may_be_replaced(self.context, self.id, new_tmpl_id):
            # Two checks of it, or a message that was sent twice.
            raise exception.UpdateInProgress(resource_name=self.name)
        has_failed = self.state in (
            (self.CREATE, self.FAILED),
            (self.DELETE, self.FAILED),
        )
        if has_failed:
            # First, as nobody comes here again if this engine dies.
            self.give_way()
        replacement = super().make_replacement(new_tmpl_id, *args, **kwargs)
        if not has_failed:
            self.take_back()
        return replacement

    def _needs_update(self, *args, **kwargs):
        # Heat takes a failed resource for complete if nothing has changed.
        changed = super()._needs_update(*args, **kwargs)
        return changed or self.status == self.FAILED
