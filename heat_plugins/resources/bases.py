# SPDX-License-Identifier: Apache-2.0
"""What our resource types share: a mixin, reasons, and schemas.

Reasons and signals quote what servers, services and users have sent. Heat
writes them to its database and log, and sends them to subscribers. So the
reasons of events, states and failures are made safe to show.

A refused signal leaves only an event: Heat answers its sender before it
handles the signal, and would log another exception with a traceback.

A request that shows a resource reads the properties that its last action had:
outside of an action Heat resolves no reference to another resource.
"""

from collections import abc
import contextlib
import functools
import traceback
from typing import TYPE_CHECKING, Any, TypeAlias

from heat.common import exception
from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import properties
from heat.engine import resource

from heat_plugins import errors
from heat_plugins import foreign
from heat_plugins import heat_values
from heat_plugins import masking
from heat_plugins.engine import heat_types

if TYPE_CHECKING:
    _Resource: TypeAlias = resource.Resource
else:
    _Resource = object


LOG = foreign.logger(__name__)

# Other errors may quote secrets.
_SHOWN = (errors.Error, exception.HeatException)


class Eventful(_Resource):
    """Mixin for a resource type, in front of Heat's class."""

    # Otherwise Heat reads the attributes of the whole stack after each signal,
    # also after one that was refused.
    signal_needs_metadata_updates = False

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

    def _resolve_any_attribute(self, name: str) -> object:
        with self.frozen_properties():
            return super()._resolve_any_attribute(name)

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


def refused(
    signalled: heat_types.Resource,
    exc: Exception,
    kind: heat_values.EventKind = heat_values.EventKind.NOT_TRIGGERED,
) -> resource.NoActionRequired:
    """Write the event of a refused signal; return the exception to raise."""
    text = str(exc)
    if not isinstance(exc, _SHOWN):
        text = type(exc).__name__
        # Messages may quote secrets, those of its causes, too.
        where = ''.join(traceback.format_tb(exc.__traceback__))
        LOG.error('%s: cannot handle a signal: %s\n%s', signalled, text, where)
    reason = heat_values.event_reason(kind, shown(text))
    signalled._add_event('SIGNAL', signalled.FAILED, reason)
    return resource.NoActionRequired(signalled.name, text)


# Schemas


def _property(kind: str, description: str, **more: Any) -> properties.Schema:
    """Return the schema of a property that changes in place by default."""
    return properties.Schema(
        kind, description, **{'update_allowed': True, **more}
    )


text = functools.partial(_property, properties.Schema.STRING)
number = functools.partial(_property, properties.Schema.INTEGER)
flag = functools.partial(_property, properties.Schema.BOOLEAN, default=False)
mapping = functools.partial(_property, properties.Schema.MAP)
several = functools.partial(_property, properties.Schema.LIST)
anything = functools.partial(_property, properties.Schema.ANY)

#: A workflow to run. Heat knows no type that is a map or a text.
CALLED = anything(
    _(
        'Workflow to run: its name or ID, or a map with "name" (name or ID, '
        'required), "input" (a map of input values) and "params" (a map of '
        'further parameters, such as "env").'
    ),
    required=True,
)


def live(kind: str, description: str) -> attributes.Schema:
    """Return the schema of an attribute that changes by itself.

    Heat does not cache it.
    """
    return attributes.Schema(
        description, type=kind, cache_mode=attributes.Schema.CACHE_NONE
    )


class AttributesSchema(dict[str, Any]):
    """The attributes of a class of ours.

    Heat copies them only to require them of a provider template that replaces
    the class. A provider template for Heat's own class lacks ours.
    """

    def __init__(self, heats: abc.Mapping[str, Any], ours: Any) -> None:
        super().__init__(heats | ours)
        self._heats = heats

    def copy(self) -> dict[str, Any]:
        """Return the attributes that a provider template must have."""
        return dict(self._heats)
