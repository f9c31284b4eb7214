# SPDX-License-Identifier: Apache-2.0
"""Convert a config to the form that the agents on servers can read.

The agents in the field (heat-agents, os-collect-config) fail on values that
Heat permits: a null input becomes the text ``None``, an input without a value
ends the agent's whole run, and the hooks that pass inputs as environment
variables crash on numbers.
"""

from collections import abc
from typing import Any

from heat_plugins.configs import actions

#: Hooks that put each input into the environment of what they run.
ENVIRONMENT_HOOKS = frozenset({'script'})


def tool(group: str | None, config: object, action: str) -> str | None:
    """Return the name of the hook that runs a config for an action."""
    if group != actions.COMPONENT:
        return group
    entry = actions.entry(config, action)
    return None if entry is None else entry.get('tool')


def inputs(
    declared: abc.Iterable[abc.Mapping[str, Any]], hook: str | None
) -> list[dict[str, Any]]:
    """Return inputs, with values, in the form for an agent.

    Maps and lists stay as they are. Numbers and booleans stay if the hook can
    use them; a hook that passes environment variables gets the text that the
    agent itself would make of them.
    """
    return [_input(dict(declaration), hook) for declaration in declared]


def _input(given: dict[str, Any], hook: str | None) -> dict[str, Any]:
    value = given.get('value')
    if value is None:
        given['value'] = ''
    elif isinstance(value, (bool, int, float)) and (hook in ENVIRONMENT_HOOKS):
        given.update(value=str(value), type='String')
        given.pop('default', None)
    return given
