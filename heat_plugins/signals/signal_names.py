# SPDX-License-Identifier: Apache-2.0
"""The names of signals in the object store, and the IDs that they contain.

One container for each root stack; in it one object for each deployment and
derived config, so that the signal of one action cannot pass for another's.

A group without nested stack has an ID of its own. The last part of it is
zeros. What belongs to the group, such as the deployments of its members, has
IDs that differ from it in that part alone: one query, or one listing, finds
all of it.
"""

import uuid

#: What the id of a group ends in: the last part of a UUID.
GROUP_TAIL = '0' * 12

#: How many characters all ids of a group have in common.
PREFIX_LENGTH = 36 - len(GROUP_TAIL)

#: The parameter default of an environment that says whether groups are nested.
GROUP_MEMBERS = 'heat_plugins_group_members'


def new_group_id() -> str:
    """Return an ID for a new group."""
    return str(uuid.uuid4())[:PREFIX_LENGTH] + GROUP_TAIL


def is_group(physical_id: str | None) -> bool:
    """Say whether a resource with this ID is a group without nested stack."""
    return (
        physical_id is not None
        and len(physical_id) == 36
        and physical_id.endswith(f'-{GROUP_TAIL}')
    )


def group_prefix(group_id: str) -> str:
    """Return the prefix of all IDs that belong to a group."""
    return group_id[:PREFIX_LENGTH]


def id_in_group(group_id: str, digest: str) -> str:
    """Return an ID that belongs to a group.

    :param digest: hexadecimal; its first twelve digits make the ID unique.
    """
    return group_prefix(group_id) + digest[: len(GROUP_TAIL)]


def folder_name(deployment_id: str) -> str:
    """Return the folder of a deployment, or of all members of a group."""
    if is_group(deployment_id):
        return group_prefix(deployment_id)
    return f'{deployment_id}/'


SIGNALS = 'signals/'


def container(root_stack_id: str) -> str:
    """Return the name of a root stack's container.

    Where container names are shared by all projects (Ceph without implicit
    tenants) the id keeps them apart.
    """
    return f'heat-plugins-{root_stack_id}'


def folder(deployment_id: str) -> str:
    """Return the prefix of all signals of a deployment, or of a group."""
    return f'{SIGNALS}{folder_name(deployment_id)}'


def signal(deployment_id: str, config_id: str) -> str:
    """Return the name of the object for the result of a derived config."""
    return f'{folder(deployment_id)}{config_id}'
