# SPDX-License-Identifier: Apache-2.0
"""Who sends a signal to a deployment, and what that lets them do.

Heat lets every user of a stack's domain signal every resource of the stack:
so does the holder of the credentials of any of its servers.
"""

import dataclasses

from heat_plugins import errors

#: The property that lets servers start actions.
BY_SERVERS = 'trigger_by_servers'


@dataclasses.dataclass(frozen=True, kw_only=True)
class Signaller:
    """Who sends a signal.

    :ivar user_id: None if heat-engine cannot know it.
    :ivar is_of_project: whether it is a user of the stack's project, or an
        administrator; False if heat-engine cannot know it.
    """

    user_id: str | None
    is_of_project: bool

    @property
    def is_of_server(self) -> bool:
        """Whether it has credentials of the stack, as its servers do."""
        return self.user_id is not None and not self.is_of_project


UNKNOWN = Signaller(user_id=None, is_of_project=False)


def check_may_trigger(signaller: Signaller, *, is_permitted: bool) -> None:
    """Refuse a trigger that the template lets no server send.

    :param is_permitted: whether the template lets servers send it.
    :raises errors.Refused: it came with credentials of the stack, or
        perhaps did.
    """
    if signaller.is_of_project or is_permitted:
        return
    why = 'heat-engine cannot tell whose credentials sent it'
    if signaller.is_of_server:
        why = "it was sent with credentials of the stack's servers"
    raise errors.Refused(f'{why}. To permit that, set property "{BY_SERVERS}"')
