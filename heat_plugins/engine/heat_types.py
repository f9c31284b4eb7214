# SPDX-License-Identifier: Apache-2.0
"""Names for Heat's own objects, and how ours are made.

Heat ships no types: to the type checker its classes can be anything. The names
are for readers.
"""

from typing import Any, TypeAlias

from heat.common import context
from heat.common import exception
from heat.engine import properties
from heat.engine import resource
from heat.engine import rsrc_defn
from heat.engine import stack

Context: TypeAlias = context.RequestContext
Definition: TypeAlias = rsrc_defn.ResourceDefinition
Properties: TypeAlias = properties.Properties
Schema: TypeAlias = properties.Schema
Resource: TypeAlias = resource.Resource
Stack: TypeAlias = stack.Stack


def invalid(
    resource: Any, message: object, *path: str
) -> exception.StackValidationFailed:
    """Return the error, with its place in the template.

    :param path: of the property, if it is one.
    """
    template = resource.stack.t
    section = template.get_section_name(rsrc_defn.PROPERTIES)
    place = '.'.join([template.RESOURCES, resource.t.name, section, *path])
    # What Heat knows as a path has two colons behind it in heat-api.
    return exception.StackValidationFailed(message=f'{place}: {message}')


def in_project(context: Context, project_id: str, **more: Any) -> Context:
    """Return a context with the given project.

    An administrator may act on the stack of another project. What that
    creates belongs to the stack's project.

    :param more: other attributes of the new context.
    """
    if context.project_id == project_id and not more:
        return context
    return type(context).from_dict(
        {**context.to_dict(), 'project_id': project_id, **more}
    )
