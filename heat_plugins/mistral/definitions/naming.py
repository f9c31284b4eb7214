# SPDX-License-Identifier: Apache-2.0
"""The names that the workflows of a definition get in Mistral.

Mistral keeps the workflows of a project in one list, so that two stacks
from one template need different names. They are ``<stack>.<resource>.<name
in the definition>``, as far as Mistral's language and its limit allow.
"""

import hashlib
import re
from typing import Final

from heat_plugins.mistral.definitions import definition_reading

#: The most characters that Mistral takes.
LIMIT: Final = 255

_DIGITS: Final = 10


def names(
    definition: definition_reading.Definition,
    stack: str,
    resource: str,
    explicit: str | None = None,
) -> dict[str, str]:
    """Return the name in Mistral for each name in the definition.

    :param explicit: what the template says: the name of an only workflow,
        or what the names of several begin with.
    """
    shorts = list(definition.workflows)
    if definition.workbook:
        # Mistral itself joins these two names.
        book = book_name(definition, stack, resource, explicit)
        return {short: f'{book}.{short}' for short in shorts}
    if explicit and len(shorts) == 1:
        return {shorts[0]: explicit}
    first = explicit or f'{stack}.{resource}'
    return {short: _fit(f'{first}.{short}', LIMIT) for short in shorts}


def book_name(
    definition: definition_reading.Definition,
    stack: str,
    resource: str,
    explicit: str | None = None,
) -> str:
    """Return the name of a workbook in Mistral.

    It is so short that the longest name in the workbook still fits.
    """
    members = [*definition.workflows, *definition.actions]
    longest = max(len(member) for member in members)
    first = explicit or f'{stack}.{resource}'
    return _fit(first, max(LIMIT - 1 - longest, _DIGITS + 1))


def _fit(name: str, limit: int) -> str:
    """Make a name fit; what is changed gets a hash of what it was.

    Mistral reads the call of a workflow up to the first blank, bracket or
    equals sign, all of which Heat allows in the name of a resource.
    """
    fitting = re.sub(r'[^\w.-]', '_', name)
    if fitting == name and len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
    return f'{fitting[: limit - _DIGITS - 1]}-{digest}'
