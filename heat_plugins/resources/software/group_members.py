# SPDX-License-Identifier: Apache-2.0
"""Members of a group without nested stack, as the deployments they would be.

Such a member is no resource of any stack. What a deployment derives for its
server, and how it starts runs, is asked of one that is made for the moment
and never stored; what it keeps, the group keeps.
"""

import contextlib
import functools
from typing import Any

from heat_plugins.deployments.groups import members
from heat_plugins.resources.software import deployment


class MemberMixin:
    """Goes before one of our deployment classes; see `make`."""

    group: Any
    name: str

    def __init__(self, *args: Any) -> None:
        # The last that Heat does is to ask the stack what it knows of the
        # resource; as a stack is deleted it knows none.
        with contextlib.suppress(KeyError):
            super().__init__(*args)

    @property
    def names(self) -> list[str]:
        """Its name, after that of the group that it is a member of."""
        return [self.group.name, self.name]

    def data(self) -> Any:
        """Return what the group keeps."""
        return self.group.data()

    def data_set(self, key: str, value: str, redact: bool = False) -> None:
        """Have the group keep something."""
        self.group.data_set(key, value, redact)

    def data_delete(self, key: str) -> Any:
        """Have the group forget something."""
        return self.group.data_delete(key)

    def rpc_client(self) -> Any:
        """Return the group's; one will do for all members."""
        return self.group.rpc_client()

    def _add_event(self, action: str, status: str, reason: object) -> None:
        self.group._add_event(action, status, f'{self.name}: {reason}')


def make(group: Any, member: members.Member, properties: Any) -> Any:
    """Return a member as a deployment.

    :param properties: those of the group that members have.
    """
    definition = group.build_resource_definition(
        member.key,
        {**properties, group.SERVERS: {member.key: member.server_id}},
    )
    base = group.stack.env.get_class(definition.resource_type, member.key)
    # By the group's name, as there is no resource of the other one.
    made = _class(base)(group.name, definition, group.stack)
    made.group = group
    made.name = member.key
    made.resource_id = member.id
    made.action, made.status = group.action, group.status
    made.id, made.uuid = group.id, group.uuid
    made.root_stack_id = group.root_stack_id
    # Those of the group, which Heat has found by its name.
    made._stored_properties_data = None
    return made


def can_be_made(group: Any, kind: str) -> bool:
    """Say whether members are of our own class in the stack's environment."""
    found = group.stack.env.get_class(kind)
    return issubclass(found, deployment.DeploymentMixin)


@functools.cache
def _class(base: type) -> type:
    return type('Member', (MemberMixin, base), {})
