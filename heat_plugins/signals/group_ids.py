# SPDX-License-Identifier: Apache-2.0
"""The IDs of groups without nested stack, and of their deployments.

The last part of a group's id is zeros. What belongs to the group, such as
the deployments of its members, has ids that differ from it in that part
alone: one query, or one listing, finds all of it.
"""

import uuid

#: What the id of a group ends in: the last part of a UUID.
TAIL = '0' * 12

#: How many characters all ids of a group have in common.
KEPT = 36 - len(TAIL)


def new() -> str:
    """Return an ID for a new group."""
    return str(uuid.uuid4())[:KEPT] + TAIL


def is_one(physical_id: str | None) -> bool:
    """Say whether a resource with this ID is a group without nested stack."""
    return (
        physical_id is not None
        and len(physical_id) == 36
        and physical_id.endswith(f'-{TAIL}')
    )


def prefix(group_id: str) -> str:
    """Return the prefix of all IDs that belong to a group."""
    return group_id[:KEPT]


def below(group_id: str, digest: str) -> str:
    """Return an ID that belongs to a group.

    :param digest: hexadecimal; its first twelve digits make the ID unique.
    """
    return prefix(group_id) + digest[: len(TAIL)]


def owner(deployment_id: str) -> str:
    """Return the folder of a deployment, or of all members of a group."""
    if is_one(deployment_id):
        return prefix(deployment_id)
    return f'{deployment_id}/'
