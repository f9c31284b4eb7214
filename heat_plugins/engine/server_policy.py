# SPDX-License-Identifier: Apache-2.0
"""Whose deployments a server takes, as the metadata of its resource says.

Heat itself lets every stack of a project deploy to every server of it. What
the key `deployment_policy` says is kept to where our classes hand something
to a server, and nowhere else; the page on threats tells what is left.
"""

from typing import Final

from heat.db import api as db_api
from heat.db import models
import sqlalchemy

#: The key in a server's metadata.
KEY: Final = 'deployment_policy'

#: Every stack of the project may deploy to the server, as without a policy.
ANY: Final = 'ANY'

#: Only the stack that has the server, with all that is nested in its root.
SAME_STACK: Final = 'SAME_STACK'


def refusal(context, server_id: str, root_stack_id: str) -> str | None:
    """Say why a server takes no deployment; None if it does.

    Several resources may have the server's id: anybody can give it to one of
    his own as `external_id`. So each of them has a say.

    :param root_stack_id: of the stack that the deployment is in.
    """
    resource, stack = models.Resource, models.Stack
    query = (
        sqlalchemy.select(
            resource.name,
            resource.root_stack_id,
            resource.rsrc_metadata,
            stack.name.label('stack_name'),
        )
        .join(stack, stack.id == resource.stack_id)
        .where(
            resource.physical_resource_id == server_id,
            stack.tenant == context.project_id,
        )
    )
    with db_api.context_manager.reader.using(context) as session:
        found = session.execute(query).all()
    for row in found:
        policy = (row.rsrc_metadata or {}).get(KEY, ANY)
        where = f'resource {row.name} of stack {row.stack_name}'
        if policy not in (ANY, SAME_STACK):
            return (
                f'The metadata of {where} has another {KEY} than {ANY} and '
                f'{SAME_STACK}; until that is mended, nothing is deployed to '
                f'server {server_id}'
            )
        if policy == SAME_STACK and row.root_stack_id != root_stack_id:
            return (
                f'Server {server_id} takes deployments of its own stack only: '
                f'{KEY} is {SAME_STACK} in the metadata of {where}'
            )
    return None
