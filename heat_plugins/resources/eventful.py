# SPDX-License-Identifier: Apache-2.0
"""Make the reasons of events, states and failures safe to show.

Reasons and signals quote what servers, services and users have sent. Heat
writes them to its database and log, and sends them to subscribers.
"""

from collections import abc
import contextlib
from typing import TYPE_CHECKING, Any, TypeAlias

from heat_plugins import foreign
from heat_plugins import masking

if TYPE_CHECKING:
    from heat.engine import resource

    _Resource: TypeAlias = resource.Resource
else:
    _Resource = object


class Eventful(_Resource):
    """Mixin for a resource type, in front of Heat's class."""

    def _add_event(self, action: str, status: str, reason: object) -> None:
        super()._add_event(action, status, shown(reason))

    def state_set(
        self,
        action: str,
        status: str,
        reason: object = 'state changed',
        *args: Any,
        **more: Any,
    ) -> Any:
        """Set the state, with a reason that is safe to show."""
        return super().state_set(action, status, shown(reason), *args, **more)

    @contextlib.contextmanager
    def _action_recorder(
        self, *args: Any, **kwargs: Any
    ) -> abc.Iterator[None]:
        # Heat logs why an action fails before it sets the state.
        with super()._action_recorder(*args, **kwargs), foreign.errors(shown):
            yield


def shown(reason: object) -> str:
    """Return a reason as one line that is safe to show and to store."""
    return foreign.stored(masking.signatures(str(reason)))
