# SPDX-License-Identifier: Apache-2.0
"""Short forms of Heat's schemas: most properties change in place."""

from collections import abc
import functools
from typing import Any

from heat.common.i18n import _
from heat.engine import attributes
from heat.engine import properties


def _property(kind: str, description: str, **more: Any) -> properties.Schema:
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
