# SPDX-License-Identifier: Apache-2.0
"""How a deployment learns that its server has begun.

The agents keep silent until the end. What ``contrib/agent`` adds to them
reports, and stops what takes too long; inputs tell it how.
"""

import time

from heat.common import exception
from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import rows
from heat_plugins.resources import deployment_schema
from heat_plugins.signals import beginning
from heat_plugins.timeline import kinds

LOG = foreign.logger(__name__)

# The most bytes to fetch of a report, of which nothing is used.
_LIMIT = 16 * 1024


class Beginning:
    """The part of a deployment that takes reports of its server."""

    @staticmethod
    def _inputs_about(signalling):
        """Return the inputs that say how to report, and until when."""
        if signalling is None or signalling.timeout is None:
            return []
        values = {
            beginning.URL_INPUT: signalling.report_url,
            beginning.REPORTS_INPUT: signalling.takes_reports and 'true',
            beginning.TIMEOUT_INPUT: str(signalling.timeout),
        }
        return [
            {'name': name, 'type': 'String', 'value': value}
            for name, value in values.items()
            if value
        ]

    def _delivery_deadline(self, signalling):
        """Return when the server has to have reported; None if never."""
        limit = self.properties[deployment_schema.DELIVERY_TIMEOUT]
        if limit is None or not signalling.brings_reports:
            return None
        return time.monotonic() + limit

    def _check_begun(self, wait):
        """Note that the server has begun; say if the action has ended.

        :raises exception.Error: it has not begun, and there is no more time.
        """
        if wait.has_begun or wait.ticket is None or not wait.watched:
            return False
        if wait.hub.watcher.has_begun(wait.ticket):
            self._begun(wait)
            return False
        deadline = wait.delivery_deadline
        if deadline is None or time.monotonic() < deadline:
            return False
        if self._last_look(wait):
            return True
        try:
            has_begun = self._has_reported(wait)
        except errors.ServiceError:
            # Nobody can tell; how long to ride that out others decide.
            return False
        if has_begun:
            self._begun(wait)
            return False
        raise exception.Error(
            _(
                'Server %(server)s has not reported within %(seconds)d s '
                '(property "delivery_timeout") that it has begun %(action)s; '
                'it is off or unreachable, or its image has no '
                'heat-config-supervisor%(hook)s'
            )
            % {
                'server': self._server_name(wait.server),
                'hook': self._about_hook(wait),
                'seconds': self.properties[deployment_schema.DELIVERY_TIMEOUT],
                'action': wait.action,
            }
        )

    @staticmethod
    def _has_reported(wait):
        """Look for a report past the listing, or the rows, seen last."""
        ticket = wait.ticket
        if ticket.report_name is None:
            row = wait.hub.rows([ticket.deployment_id]).get(
                ticket.deployment_id
            )
            return row is not None and row.begun
        try:
            wait.hub.fetch(ticket.report_name, _LIMIT)
        except errors.NoObject:
            return False
        except errors.BadSignal:
            # It is too large, and there.
            pass
        return True

    def _begun(self, wait):
        wait.has_begun = True
        if rows.begin(self.context, self.resource_id, wait.config_id):
            self._add_event(
                wait.action,
                self.IN_PROGRESS,
                _started(wait.action, self._server_name(wait.server)),
            )
        LOG.info(
            '%(deployment)s: server %(server)s has begun %(action)s',
            {
                'deployment': self._label,
                'server': wait.server.id,
                'action': wait.action,
            },
        )

    def _take_report(self, row):
        """Take a report that came as a signal; return what the event says."""
        if not rows.begin(self.context, self.resource_id, row.config_id):
            return None
        return _started(row.action, self._server_name(self._server_of(row)))


def _started(action, server):
    return kinds.reason(
        kinds.Kind.STARTED,
        _('%(action)s on server %(server)s')
        % {'action': action, 'server': server},
    )
