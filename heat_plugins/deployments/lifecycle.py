# SPDX-License-Identifier: Apache-2.0
"""What a deployment does in the life of its stack."""

from collections import abc

from heat_plugins import foreign
from heat_plugins.deployments import deliveries
from heat_plugins.deployments import delivering
from heat_plugins.deployments import failures
from heat_plugins.deployments import histories
from heat_plugins.deployments import outside
from heat_plugins.deployments import updates
from heat_plugins.deployments import waiters

LOG = foreign.logger(__name__)


class Lifecycle:
    """Decides which actions of one deployment its server is given."""

    def __init__(
        self,
        resource: outside.Resource,
        *,
        terms: deliveries.Terms,
        servers: outside.Servers,
        template: outside.Template,
        engine: outside.Engine,
    ) -> None:
        self._resource = resource
        self._terms = terms
        self._servers = servers
        self._engine = engine
        self._history = histories.History(resource, engine.rows)
        self._deliverer = delivering.Deliverer(
            resource,
            template=template,
            history=self._history,
            rows=engine.rows,
        )

    def waiter(
        self,
        action: str,
        source: deliveries.Source,
        *,
        delivers: bool = True,
    ) -> waiters.Waiter | None:
        """Return what delivers an action and waits; None if nothing runs.

        :param delivers: see `updates.Step`.
        :raises failures.Error: the server takes nothing from this stack; a
            DELETE is left out without that.
        """
        if not source.runs(action, self._terms.actions):
            return None
        server = self._servers.find(self._terms.server_id)
        if server.refusal is not None:
            if action != 'DELETE':
                raise failures.Error(server.refusal)
            LOG.warning(
                '%(deployment)s is deleted without running DELETE: %(why)s',
                {
                    'deployment': self._resource.label,
                    'why': server.refusal,
                },
            )
            return None
        self._resource.take_id()
        return waiters.Waiter(
            deliveries.Order(
                action=action,
                source=source,
                server=server,
                terms=self._terms,
            ),
            resource=self._resource,
            history=self._history,
            deliverer=self._deliverer,
            engine=self._engine,
            resumes=not delivers,
        )

    def undoing(
        self,
        source: deliveries.Source | None,
        taken_over: abc.Callable[[], abc.Collection[str]],
    ) -> waiters.Waiter | None:
        """Return what delivers DELETE and waits; None if nothing runs.

        :param source: None if the template's config is gone.
        :param taken_over: returns the servers on which others have run CREATE
            in this one's place.
        """
        if source is None or not source.runs('DELETE', self._terms.actions):
            return None
        server_id = self._terms.server_id
        if self._has_given_way(taken_over):
            self._tell_not_undone(
                f'another deployment replaced it on server {server_id}'
            )
            return None
        if not self._has_done_anything(source):
            return None
        if not self._servers.is_there(server_id):
            self._tell_not_undone(f'server {server_id} no longer exists')
            return None
        step = updates.repeated('DELETE', self._history.row(), repeats=True)
        if step is None:
            return None
        return self.waiter('DELETE', source, delivers=step.delivers)

    def _has_given_way(
        self, taken_over: abc.Callable[[], abc.Collection[str]]
    ) -> bool:
        """Say whether another one has run CREATE there in this one's place.

        Until then, a DELETE must undo what this one did.
        """
        return (
            histories.GIVEN_WAY_KEY in self._resource.data()
            and self._terms.server_id in taken_over()
        )

    def _has_done_anything(self, source: deliveries.Source) -> bool:
        return (
            self._resource.resource_id is None
            or not source.runs('CREATE', self._terms.actions)
            or histories.UNDO_KEY in self._resource.data()
            or bool(self._history.configs(self._history.row()))
        )

    def _tell_not_undone(self, why: str) -> None:
        LOG.info(
            '%(deployment)s is deleted without running DELETE: %(why)s',
            {'deployment': self._resource.label, 'why': why},
        )
