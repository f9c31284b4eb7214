# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal to a resource, and what that lets them do.

Heat lets every user of a stack's domain signal every resource of the stack:
so does the holder of the credentials of any of its servers. It also lets every
user of the project, with no more than the role reader. So a signal that starts
something, or the result of a server that a user sends in its place, needs a
user who may update the stack, as Heat's policy says. What servers may do, each
resource type says.
"""

import dataclasses

from heat_plugins import errors

#: The property that lets servers start actions.
BY_SERVERS = 'trigger_by_servers'

#: The policy of Heat that lets a user signal something that counts.
POLICY = 'stacks:update'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signaller:
    """Who sends a signal.

    :ivar user_id: None if heat-engine cannot know it.
    :ivar is_of_project: whether it is a user of the stack's project, or an
        administrator; False if heat-engine cannot know it.
    :ivar may_update: whether Heat's policy lets that user update the stack.
    """

    user_id: str | None
    is_of_project: bool
    may_update: bool = False

    @property
    def is_of_server(self) -> bool:
        """Whether it has credentials of the stack, as its servers do."""
        return self.user_id is not None and not self.is_of_project


UNKNOWN = Signaller(user_id=None, is_of_project=False)


def check_may_start(signaller: Signaller, *, servers_may: bool) -> None:
    """Refuse a signal that starts something its sender may not start.

    :param servers_may: whether servers of the stack may start it.
    :raises errors.Refused: the sender may not.
    """
    if signaller.is_of_project:
        check_may_update(signaller)
    elif not servers_may:
        why = 'heat-engine cannot tell whose credentials sent it'
        if signaller.is_of_server:
            why = "it was sent with credentials of the stack's servers"
        raise errors.Refused(
            f'{why}. To permit that, set property "{BY_SERVERS}"'
        )


def check_may_update(signaller: Signaller) -> None:
    """Refuse a signal of a user of the project who may only read.

    :raises errors.Refused: Heat's policy does not permit the user to update
        the stack.
    """
    if not signaller.may_update:
        raise errors.Refused(
            f'its sender may not update the stack (policy {POLICY} of Heat)'
        )
