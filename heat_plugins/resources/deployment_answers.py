# SPDX-License-Identifier: Apache-2.0
"""How a deployment takes results and reports that come as its signals."""

from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import rows
from heat_plugins.resources import deployment_records
from heat_plugins.resources import signal_events
from heat_plugins.resources import signallers
from heat_plugins.signals import beginning
from heat_plugins.signals import body
from heat_plugins.signals import transport_names

LOG = foreign.logger(__name__)


class Answers(signallers.Signalled):
    """The part of a deployment that takes what its server sends to Heat."""

    def handle_signal(self, details):
        """Take a signal that came through Heat's APIs."""
        row = self._row()
        if row is None or row.status != self.IN_PROGRESS:
            # Nobody waits for it, or not any more.
            return None
        if not beginning.is_for(details, row.config_id):
            LOG.info(
                '%(deployment)s has gone on to %(action)s, and a signal of '
                'what came before is dropped',
                {'deployment': self._label, 'action': row.action},
            )
            return None
        self._check_may_answer(row, details)
        if beginning.is_report(details):
            return self._take_report(row)
        try:
            outcome = body.outcome(
                body.as_map(details),
                deployment_records.declared_outputs(row.config),
                deployment_records.mask(row.config),
            )
        except errors.BadSignal as exc:
            outcome = body.failure(str(exc))
        if not rows.settle(
            self.context, self.resource_id, row.config_id, outcome
        ):
            return None
        verb = 'succeeded' if outcome.status == body.COMPLETE else 'failed'
        return f'deployment {self.resource_id} {verb}'

    def _check_may_answer(self, row, details):
        """Refuse a result, or a report, of another than the row's server.

        :raises exception.Error: it is one.
        """
        signaller = self._signaller()
        if signaller.is_of_project:
            # Users may answer for a server that cannot.
            return
        if signaller.is_of_server and (
            signaller.user_id != self._get_user_id()
            or self._last_transport(row) not in transport_names.BY_SIGNAL
        ):
            raise signal_events.refused(
                self,
                _(
                    'it was sent with other credentials than those given to '
                    'server %s for this action'
                )
                % self._server_name(self._server_of(row)),
            )
        naming = self.data().get(deployment_records.NAMING_KEY)
        if beginning.names_config(details):
            if naming != row.server_id:
                self.data_set(deployment_records.NAMING_KEY, row.server_id)
        elif naming == row.server_id:
            raise signal_events.refused(
                self,
                _(
                    'the agent of server %(server)s names the config that it '
                    'answers (%(key)s), and this result names none'
                )
                % {
                    'server': self._server_name(self._server_of(row)),
                    'key': beginning.CONFIG_ID,
                },
            )
