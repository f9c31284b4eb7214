# SPDX-License-Identifier: Apache-2.0
"""Servers: their existence, names and deployment policies.

The metadata of the resources that stand for a server say whose deployments it
takes. Heat itself lets every stack of a project deploy to every server of it.
Our classes obey the key ``deployment_policy`` when they deliver to a server;
Heat's own do not. The page on threats lists what that leaves open.
"""

from collections import abc
import contextlib
from typing import Final

from heat.common import exception
from oslo_db import exception as db_exception

from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import pools
from heat_plugins.engine import heat_types
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows

LOG = foreign.logger(__name__)

#: The key in a server's metadata.
POLICY: Final = 'deployment_policy'

#: Every stack of the project may deploy to the server, as without a policy.
ANY: Final = 'ANY'

#: Only the stack that has the server, with all that is nested in its root.
SAME_STACK: Final = 'SAME_STACK'


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

    def find(self, server_id: str) -> heat_values.Server:
        """Look for a server in the stacks of the project.

        Heat's table has no index for physical ids, so each call reads it
        whole: ask once, and keep the answer.
        """
        known = resources.find_all(self._deployment.context, [server_id])
        return known[server_id]

    def name(self, server_id: str) -> str:
        """Return a server's name for people: its resource, else its ID."""
        return self.name_of(self.find(server_id))

    def name_of(self, server: heat_values.Server) -> str:
        """Return a server's path in the stack, for people."""
        return path(self._deployment.context, server, self._root_stack_id)

    def is_reachable(self, server: heat_values.Server) -> bool:
        """Say whether a server is there to be given a config.

        Heat gives configs to the resource whose physical id is the server's.
        That of an OS::Heat::DeployedServer is its own UUID, which only Heat
        knows. For others this asks Nova, if there is one.

        :raises Exception: Nova's.
        """
        stay = [each for each in server.resources if not each.is_deleting]
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

    def is_there(self, server: heat_values.Server) -> bool:
        """Say whether a server can be given a config; doubt counts as yes."""
        try:
            with rows.unquoted():
                return self.is_reachable(server)
        except Exception as exc:
            # Nova is out of order; that says nothing about the server.
            LOG.warning(
                '%(deployment)s: cannot ask Nova whether server %(server)s '
                'exists; assuming that it does: %(error)s',
                {
                    'deployment': self._deployment,
                    'server': server.id,
                    'error': exc,
                },
            )
            return True

    def all_there(
        self, servers: abc.Collection[heat_values.Server]
    ) -> set[str]:
        """Return the ids of those that can be given a config.

        Nova is asked for some at a time.
        """
        there = pools.Pool(attempts=1).each(self.is_there, servers)
        return {
            server.id
            for server, is_there in zip(servers, there, strict=True)
            if is_there
        }


def started(action: str, name: str) -> str:
    """Return the reason of the event that a server has started an action."""
    return heat_values.event_reason(
        heat_values.EventKind.STARTED, f'{action} on server {name}'
    )


def path(
    context: heat_types.Context, server: heat_values.Server, root_stack_id: str
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
                names = [*resources.above(context, each.stack_id), each.name]
                break
    return '.'.join(names) or server.id


def refusal(server: heat_values.Server, root_stack_id: str) -> str | None:
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
