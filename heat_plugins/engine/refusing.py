# SPDX-License-Identifier: Apache-2.0
"""The error for a resource whose properties cannot be what they are."""

from typing import Any

from heat.common import exception
from heat.engine import rsrc_defn


def invalid(
    resource: Any, message: object, *path: str
) -> exception.StackValidationFailed:
    """Return the error, with its place in the template.

    :param path: of the property, if it is one.
    """
    template = resource.stack.t
    section = template.get_section_name(rsrc_defn.PROPERTIES)
    return exception.StackValidationFailed(
        path=[template.RESOURCES, resource.t.name, section, *path],
        message=str(message),
    )
