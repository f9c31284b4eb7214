# SPDX-License-Identifier: Apache-2.0
"""Make the reasons of events, states and failures safe to show.

Reasons and signals quote what servers, services and users have sent. Heat
writes them to its database and log, and sends them to subscribers.
"""

from collections import abc
import contextlib
from typing import TYPE_CHECKING, TypeAlias

from heat.common import exception
from heat.common.i18n import _

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import masking
from heat_plugins.engine import heat_types
from heat_plugins.timeline import kinds

if TYPE_CHECKING:
    from heat.engine import resource

    _Resource: TypeAlias = resource.Resource
else:
    _Resource = object


# Other errors may quote secrets.
_SHOWN = (errors.Error, exception.HeatException)


class Eventful(_Resource):
    """Mixin for a resource type, in front of Heat's class."""

    def _add_event(self, action: str, status: str, reason: object) -> None:
        super()._add_event(action, status, shown(reason))

    def state_set(
        self,
        action: str,
        status: str,
        reason: object = 'state changed',
        *args: object,
        **more: object,
    ) -> object:
        """Set the state, with a reason that is safe to show."""
        return super().state_set(action, status, shown(reason), *args, **more)

    @contextlib.contextmanager
    def _action_recorder(
        self, *args: object, **kwargs: object
    ) -> abc.Iterator[None]:
        # Heat logs why an action fails before it sets the state.
        with super()._action_recorder(*args, **kwargs), foreign.errors(shown):
            yield


def shown(reason: object) -> str:
    """Return a reason as one line that is safe to show and to store."""
    return foreign.stored(masking.signatures(str(reason)))


def ambiguous() -> errors.Refused:
    """Return the refusal of a signal that starts nothing and is no result."""
    return errors.Refused(
        _(
            'the signal must be exactly {"trigger": "<action>", '
            '"input_values": {…}} or {"operate": {…}}, and the config must '
            'not have an output of that name'
        )
    )


def not_triggered(
    resource: heat_types.Resource, exc: Exception, member: str | None = None
) -> exception.Error:
    """Write the event of a trigger; return the exception to raise.

    :param member: of the resource, if that is a group.
    """
    reason = str(exc) if isinstance(exc, _SHOWN) else type(exc).__name__
    return _write(resource, kinds.EventKind.NOT_TRIGGERED, reason, member)


def refused(resource: heat_types.Resource, why: str) -> exception.Error:
    """Write the event of a result; return the exception to raise."""
    return _write(resource, kinds.EventKind.RESULT_REFUSED, why)


def _write(
    resource: heat_types.Resource,
    kind: kinds.EventKind,
    text: str,
    member: str | None = None,
) -> exception.Error:
    reason = kinds.reason(kind, shown(text))
    resource._add_event(
        'SIGNAL',
        resource.FAILED,
        reason if member is None else f'{member}: {reason}',
    )
    return exception.Error(text)
