# SPDX-License-Identifier: Apache-2.0
"""The values of hidden parameters that a stack may have been given."""

from typing import Any

from heat.engine import stack as stacks

from heat_plugins import masking
from heat_plugins.engine import heat_types


def values(stack: heat_types.Stack) -> frozenset[str]:
    """Return the texts of hidden parameters of a stack and those above it.

    A stack may pass a hidden value to a nested one as a parameter that is not
    hidden there. The members of a group get it as values in their template.

    """
    found: set[str] = set()
    while True:
        for parameter in stack.parameters.params.values():
            if parameter.hidden():
                found.update(masking.texts(_value(parameter)))
        if stack.owner_id is None:
            return frozenset(found)
        stack = stacks.Stack.load(stack.context, stack_id=stack.owner_id)


def _value(parameter: Any) -> Any:
    try:
        return parameter.value()
    except Exception:
        # It has none, or one that its type forbids: no input has it either.
        return None
