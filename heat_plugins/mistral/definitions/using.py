# SPDX-License-Identifier: Apache-2.0
"""Cron triggers that keep a workflow from deletion.

Mistral deletes no workflow that a cron trigger runs. So they are looked for
before anything else changes. Those of the same stack are changed, or go, in
their turn; whatever others have made stays as it is, and so does the
workflow.
"""

from collections.abc import Callable, Collection, Mapping

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.mistral import workflow_service as service_module

#: Given names of cron triggers, returns those that the same stack has made.
Mine = Callable[[Collection[str]], Collection[str]]


def refuse(
    service: service_module.Service, names: Collection[str], mine: Mine
) -> Mapping[str, str]:
    """Refuse to let workflows go that triggers of others run.

    :returns: the workflow for each trigger of the same stack.
    :raises errors.Conflict: naming the triggers of others.
    """
    found = service.triggers(names) if names else {}
    own = mine(found) if found else ()
    others = {one: found[one] for one in found if one not in own}
    if others:
        raise errors.Conflict(explained(others))
    return found


def explained(triggers: Mapping[str, str]) -> str:
    """Return why workflows cannot go, and what helps.

    :param triggers: the workflow for each trigger.
    """
    told = bounds.listed(
        [f'"{name}" ({workflow})' for name, workflow in triggers.items()]
    )
    return (
        'Mistral refuses to delete a workflow that a cron trigger runs. '
        'Delete these triggers, or let them run other workflows, then retry: '
        f'{told}'
    )
