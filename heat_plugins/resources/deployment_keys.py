# SPDX-License-Identifier: Apache-2.0
"""What a deployment does when its server's URL no longer works."""

import uuid

from heat.common.i18n import _

from heat_plugins.configs import hooks
from heat_plugins.resources import deployment_schema
from heat_plugins.signals import transport_names

# How often one action is delivered because of changed keys, at most.
_DELIVERIES = 3


class Keys:
    """The part of a deployment that notices a changed account key."""

    def _check_key(self, wait):
        """Answer a changed key; say whether the action has ended."""
        if wait.signer is None or wait.hub.key_holds(wait.signer):
            return False
        if wait.signer == wait.refused_signer:
            return False
        wait.refused_signer = wait.signer
        outcome = self._take_signal(wait)
        if outcome is not None and self._is_complete(outcome):
            return True
        repeats = self._may_deliver_again(wait)
        reason = _(
            "The account's TempURL key was changed; server %(server)s can no "
            'longer send the result of %(action)s. %(then)s'
        )
        then = (
            _('Delivering it again, with a new URL')
            if repeats
            else _(
                'Set the former key as X-Account-Meta-Temp-URL-Key-2, or '
                'cancel the action and repeat it'
            )
        )
        values = {'server': wait.server.id, 'action': wait.action}
        self._tell(wait.action, reason % {**values, 'then': then})
        return repeats and self._deliver_again(wait)

    def _may_deliver_again(self, wait):
        """Say whether the server may run the action a second time."""
        if wait.deliveries >= _DELIVERIES:
            return False
        transport = self.properties[deployment_schema.SIGNAL_TRANSPORT]
        tool = self._tool(wait.action, wait.config)
        return (
            transport_names.canonical(transport) == transport_names.AUTO
            or hooks.name_of(tool or '') in hooks.REPEATABLE
        )

    def _deliver_again(self, wait):
        wait.deliveries += 1
        wait.hub.leave(wait.ticket)
        wait.ticket = None
        wait.has_begun = False
        wait.lost_ids.add(wait.config_id)
        wait.config_id = str(uuid.uuid4())
        return self._begin(wait)
