# SPDX-License-Identifier: Apache-2.0
"""What Heat's database knows of a server: the resources that stand for it.

And whose deployments it takes, as their metadata says. Heat itself lets every
stack of a project deploy to every server of it. What the key
`deployment_policy` says is kept to where our classes deliver something to a
server, and nowhere else; the page on threats tells what is left.
"""

from collections.abc import Collection, Mapping
import contextlib
import dataclasses
from typing import Any, Final

from heat.common import exception
from heat.db import api as db_api
from heat.db import models
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins import foreign
from heat_plugins import pool as pools
from heat_plugins.deployments import deliveries
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import rows

LOG = foreign.logger(__name__)

#: The key in a server's metadata.
POLICY: Final = 'deployment_policy'

#: Every stack of the project may deploy to the server, as without a policy.
ANY: Final = 'ANY'

#: Only the stack that has the server, with all that is nested in its root.
SAME_STACK: Final = 'SAME_STACK'

# Where Heat keeps the id of the Zaqar queue that a server reads.
_QUEUE = 'metadata_queue_id'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource that has a server's id as its physical one.

    :ivar stack_id: of the stack that has the resource.
    :ivar root_stack_id: of the stack that has the resource.
    :ivar metadata: of the resource.
    :ivar has_queue: whether its server gets configs through Zaqar.
    :ivar is_itself: whether the id is the resource's own, which only
        Heat knows: that of an OS::Heat::DeployedServer.
    :ivar is_going: whether Heat deletes the server.
    """

    name: str
    stack_id: str
    stack_name: str
    root_stack_id: str
    metadata: Mapping[str, Any]
    has_queue: bool
    is_itself: bool = False
    is_going: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """A server of the project.

    :ivar resources: none if no stack has it, and perhaps several: anybody
        can give the id to a resource of his own as `external_id`.
    """

    id: str
    resources: tuple[Resource, ...]

    @property
    def has_queue(self) -> bool:
        return any(each.has_queue for each in self.resources)


class Servers:
    """Servers as the deployments of one stack see them.

    :param deployment: any of them.
    :param root_stack_id: of the stack at the root of its own.
    """

    def __init__(
        self, deployment: heat_types.Resource, root_stack_id: str
    ) -> None:
        self._deployment = deployment
        self._root_stack_id = root_stack_id

    def find(self, server_id: str) -> deliveries.Server:
        context = self._deployment.context
        found = find(context, server_id)
        return deliveries.Server(
            id=found.id,
            has_queue=found.has_queue,
            refusal=refusal(found, self._root_stack_id),
            find_name=lambda: path(context, found, self._root_stack_id),
        )

    def name(self, server_id: str) -> str:
        """Return what people call a server."""
        return self.find(server_id).name

    def is_there(self, server_id: str) -> bool:
        try:
            with rows.unquoted():
                return self.is_reachable(server_id)
        except Exception as exc:
            return self._doubt(server_id, exc)

    def is_reachable(self, server_id: str) -> bool:
        """Say whether a server is there to be given a config.

        Heat gives configs to the resource whose physical id is the server's.
        That of an OS::Heat::DeployedServer is its own UUID, which only Heat
        knows. For others this asks Nova, if there is one.

        :raises Exception: Nova's, and the database's.
        """
        return self._is_reachable(find(self._deployment.context, server_id))

    def _is_reachable(self, server: Server) -> bool:
        stay = [each for each in server.resources if not each.is_going]
        if server.resources and not stay:
            return False
        if any(each.is_itself for each in stay):
            return True
        nova = self._deployment.client_plugin('nova')
        if not nova.does_endpoint_exist('compute', 'nova'):
            return bool(stay)
        try:
            nova.get_server(server.id)
        except exception.EntityNotFound:
            return False
        return True

    def all_there(self, servers: Collection[Server]) -> set[str]:
        """Return the ids of those that can be given a config.

        Doubt counts as yes. Nova is asked for some at a time.
        """
        there = pools.Pool(attempts=1).each(self._is_there, servers)
        return {
            server.id
            for server, is_there in zip(servers, there, strict=True)
            if is_there
        }

    def _is_there(self, server: Server) -> bool:
        try:
            return self._is_reachable(server)
        except Exception as exc:
            return self._doubt(server.id, exc)

    def _doubt(self, server_id: str, exc: Exception) -> bool:
        # Nova is out of order; that says nothing about the server.
        LOG.warning(
            '%(deployment)s: cannot ask Nova whether server %(server)s '
            'exists; assuming that it does: %(error)s',
            {
                'deployment': self._deployment,
                'server': server_id,
                'error': exc,
            },
        )
        return True


def find(context: heat_types.Context, server_id: str) -> Server:
    """Look for a server in the stacks of a project.

    Heat's table has no index for physical ids, so each call reads it whole:
    ask once, and keep the answer.
    """
    return find_all(context, [server_id])[server_id]


def find_all(
    context: heat_types.Context, server_ids: Collection[str]
) -> dict[str, Server]:
    """Look for servers, by id; one that no stack has is without resources."""
    resource, stack, data = models.Resource, models.Stack, models.ResourceData
    has_queue = (
        sqlalchemy.select(data.id)
        .where(data.resource_id == resource.id, data.key == _QUEUE)
        .exists()
    )
    query = (
        sqlalchemy.select(
            resource.physical_resource_id,
            resource.uuid,
            resource.action,
            resource.name,
            resource.stack_id,
            stack.name.label('stack_name'),
            resource.root_stack_id,
            resource.rsrc_metadata,
            has_queue.label('has_queue'),
        )
        .join(stack, stack.id == resource.stack_id)
        .where(stack.tenant == context.project_id)
    )
    found: dict[str, list[Resource]] = {each: [] for each in server_ids}
    with db_api.context_manager.reader.using(context) as session:
        for some in rows.batches(found.keys()):
            for row in session.execute(
                query.where(resource.physical_resource_id.in_(some))
            ):
                found[row.physical_resource_id].append(_resource(row))
    return {
        server_id: Server(id=server_id, resources=tuple(resources))
        for server_id, resources in found.items()
    }


def _resource(row: Any) -> Resource:
    return Resource(
        name=row.name,
        stack_id=row.stack_id,
        stack_name=row.stack_name,
        root_stack_id=row.root_stack_id,
        metadata=row.rsrc_metadata or {},
        has_queue=row.has_queue,
        is_itself=row.uuid == row.physical_resource_id,
        is_going=row.action == 'DELETE',
    )


def path(
    context: heat_types.Context, server: Server, root_stack_id: str
) -> str:
    """Return a server's name for people: its resource's path in the stack.

    :param root_stack_id: of the stack whose reader is told.
    :returns: a path such as ``group.0.server``; the server's id if that
        stack has no resource for it, or the database does not say.
    """
    names: list[str] = []
    for each in server.resources:
        if each.root_stack_id == root_stack_id:
            with contextlib.suppress(db_exception.DBError):
                names = [*_above(context, each.stack_id), each.name]
                break
    return '.'.join(names) or server.id


def _above(context: heat_types.Context, stack_id: str) -> list[str]:
    """Return the names of the resources that a stack is nested in."""
    stack = models.Stack
    names: list[str] = []
    with db_api.context_manager.reader.using(context) as session:
        above: str | None = stack_id
        while above is not None:
            query = sqlalchemy.select(
                stack.owner_id, stack.parent_resource_name
            ).where(stack.id == above)
            row = session.execute(query).one_or_none()
            above = row and row.owner_id
            if row and row.owner_id:
                names.insert(0, row.parent_resource_name)
    return names


def refusal(server: Server, root_stack_id: str) -> str | None:
    """Say why a server takes no deployment; None if it does.

    Where several resources stand for the server, each of them has a say.

    :param root_stack_id: of the stack that the deployment is in.
    """
    for each in server.resources:
        policy = each.metadata.get(POLICY, ANY)
        where = f'resource {each.name} of stack {each.stack_name}'
        if policy not in (ANY, SAME_STACK):
            return (
                f'The metadata of {where} has an invalid {POLICY}; set it to '
                f'{ANY} or {SAME_STACK}. Until then, heat-engine deploys '
                f'nothing to server {server.id}'
            )
        if policy == SAME_STACK and each.root_stack_id != root_stack_id:
            return (
                f'Server {server.id} accepts only deployments of its own '
                f'stack: {POLICY} is {SAME_STACK} in the metadata of {where}'
            )
    return None
