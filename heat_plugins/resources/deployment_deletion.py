# SPDX-License-Identifier: Apache-2.0
"""How a deployment goes, and all that was made for it."""

import dataclasses
import time

from heat.common import exception
from heat.common.i18n import _
from heat.db import api as db_api
from heat.engine import resource

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins.engine import rows
from heat_plugins.resources import deployment_records
from heat_plugins.resources import deployment_sweep
from heat_plugins.resources import deployment_waiting
from heat_plugins.resources import transports
from heat_plugins.signals import watcher

LOG = foreign.logger(__name__)


@dataclasses.dataclass(kw_only=True)
class Deletion:
    """A deployment that goes.

    :ivar wait: for the DELETE action; None if it has ended or there is none.
    :ivar sweep: what is to be cleaned up in the object store.
    :ivar undone: whether nothing of it is left in Heat and Keystone.
    :ivar trouble: since when the object store refuses that.
    """

    wait: deployment_waiting.Wait | None
    sweep: deployment_sweep.Sweep
    undone: bool = False
    trouble: watcher.Trouble | None = None


class Deleting:
    """The part of a deployment that undoes what it did and cleans up."""

    def handle_delete(self):
        """Begin with the DELETE action, if there is one to run."""
        return Deletion(
            wait=self._begin_to_undo(), sweep=deployment_sweep.Sweep(self)
        )

    def _begin_to_undo(self):
        config = None
        with self.rpc_client().ignore_error_by_name('NotFound'):
            config = self._load_config()
        if config is None or not self._is_to_be_undone(config):
            return None
        if not self._may_be_reachable():
            LOG.info(
                '%(deployment)s is deleted without running DELETE: server '
                '%(server)s is not there any more',
                {
                    'deployment': self._label,
                    'server': self.properties[self.SERVER],
                },
            )
            return None
        try:
            return self._handle_action(self.DELETE, config=config)
        except transports.NoAnswer as exc:
            self._do_not_undo(exc)
            return None

    def _is_to_be_undone(self, config):
        """Say whether there is a DELETE action, and something to undo."""
        if not self._runs(self.DELETE, config):
            return False
        if self._has_given_way():
            LOG.info(
                '%(deployment)s is deleted without running DELETE: another '
                'one was created on server %(server)s in its place',
                {
                    'deployment': self._label,
                    'server': self.properties[self.SERVER],
                },
            )
            return False
        return (
            self.resource_id is None
            or not self._runs(self.CREATE, config)
            or deployment_records.UNDO_KEY in self.data()
            or bool(self._made_configs(self._row()))
        )

    def _has_given_way(self):
        """Say whether another one has run CREATE there in this one's place.

        Until then, what this one did is to be undone.
        """
        if deployment_records.GIVEN_WAY_KEY not in self.data():
            return False
        servers = rows.data_of_later(
            self.context,
            self.stack.id,
            self.name,
            self.id,
            deployment_records.TAKEN_OVER_KEY,
        )
        return self.properties[self.SERVER] in servers

    def _do_not_undo(self, why):
        """Go on without the DELETE action; nobody could tell how it ended.

        To fail would be to fail each time: what is missing may never come
        back, and a stack has to go all the same.
        """
        self._wait = None
        reason = _('DELETE was not run on server %(server)s: %(why)s')
        name = self._server_name(self._server())
        self._tell(self.DELETE, reason % {'server': name, 'why': why})

    def check_delete_complete(self, deletion):
        """Say whether all is undone and cleaned up."""
        wait = deletion.wait
        if wait is not None and time.monotonic() > wait.next_server_look:
            wait.next_server_look = (
                time.monotonic() + deployment_waiting.SERVER_LOOK
            )
            if not self._may_be_reachable():
                self._handle_cancel()
                deletion.wait = wait = None
        try:
            if not self._await(wait):
                return False
        except transports.NoAnswer as exc:
            self._do_not_undo(exc)
            # It has been given its time.
            deletion.trouble = wait.trouble
        deletion.wait = None
        if not deletion.undone:
            self._delete_resource()
            deletion.undone = True
        return self._clean_up(deletion)

    def _clean_up(self, deletion):
        """Clean up the object store, and ride out its passing faults."""
        try:
            deletion.sweep.run()
        except errors.ServiceError as exc:
            deletion.trouble = deployment_waiting.trouble(
                exc, deletion.trouble
            )
            passing = exc.may_pass or isinstance(exc, errors.Conflict)
            if passing and not deployment_waiting.over_budget(
                deletion.trouble
            ):
                raise resource.PollDelay(
                    deployment_waiting.STORE_DELAY
                ) from exc
            self._leave_behind(self.DELETE, deletion.sweep, exc)
        return True

    def _leave_behind(self, action, sweep, exc):
        """Go on although something may remain in the object store.

        The server cannot use it for anything, and its URL runs out; that is
        no reason to keep a stack from being deleted.
        """
        reason = _('Container %(container)s may be left behind: %(error)s')
        values = {'container': sweep.container, 'error': exc}
        self._tell(action, reason % values)

    def _tell(self, action, message):
        """Say in an event, and to the operator, what goes otherwise."""
        LOG.warning('%s: %s', self._label, message)
        self._add_event(action, self.IN_PROGRESS, message)

    def _may_be_reachable(self):
        """Say whether to hand the server a config, or to go on waiting."""
        try:
            with rows.unquoted():
                return self._server_reachable()
        except Exception as exc:
            # Nova is out of order; that says nothing about the server.
            LOG.warning(
                '%(deployment)s: Nova does not tell whether server '
                '%(server)s is there, which counts as yes: %(error)s',
                {
                    'deployment': self._label,
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
