# SPDX-License-Identifier: Apache-2.0
"""Whose deployments a server takes, as the metadata of its resource says.

Heat itself lets every stack of a project deploy to every server of it. What
the key `deployment_policy` says is kept to where our classes hand something
to a server, and nowhere else; the page on threats tells what is left.
"""

from typing import Final

from heat_plugins.engine import servers

#: The key in a server's metadata.
KEY: Final = 'deployment_policy'

#: Every stack of the project may deploy to the server, as without a policy.
ANY: Final = 'ANY'

#: Only the stack that has the server, with all that is nested in its root.
SAME_STACK: Final = 'SAME_STACK'


def refusal(server: servers.Server, root_stack_id: str) -> str | None:
    """Say why a server takes no deployment; None if it does.

    Where several resources stand for the server, each of them has a say.

    :param root_stack_id: of the stack that the deployment is in.
    """
    for each in server.resources:
        policy = each.metadata.get(KEY, ANY)
        where = f'resource {each.name} of stack {each.stack_name}'
        if policy not in (ANY, SAME_STACK):
            return (
                f'The metadata of {where} has another {KEY} than {ANY} and '
                f'{SAME_STACK}; until that is mended, nothing is deployed to '
                f'server {server.id}'
            )
        if policy == SAME_STACK and each.root_stack_id != root_stack_id:
            return (
                f'Server {server.id} takes deployments of its own stack only: '
                f'{KEY} is {SAME_STACK} in the metadata of {where}'
            )
    return None
