# SPDX-License-Identifier: Apache-2.0
"""Which actions a config serves, and which hook runs on the server for each.

This follows the agent: for a component it takes the first entry whose
``actions`` contain the action, and without one it runs nothing and signals
nothing. So the code that starts an action asks here first.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from heat_plugins import bounds
from heat_plugins import foreign

#: The group that tells the agent to choose an entry by action.
COMPONENT = 'component'

#: The group of a config that was withdrawn from its server. Agents have no
#: hook of that name, so they log the config, and run and signal nothing.
WITHDRAWN = 'heat-plugins-withdrawn'

#: The actions that Heat itself starts on a deployment.
LIFECYCLE = ('CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME')

#: What an entry of a component serves when its template names no actions.
DEFAULT = ('CREATE', 'UPDATE')


def entries(config: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the entries of a component's config with their positions.

    Entries that are not maps are skipped, so a config that is invalid or not
    known yet has no entries.
    """
    listed = config.get('configs') if isinstance(config, Mapping) else None
    for index, entry in enumerate(sequence(listed)):
        if isinstance(entry, Mapping):
            yield index, entry


def sequence(value: object) -> Sequence[Any]:
    """Return ``value`` if it is a list, else an empty one."""
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return value
    return ()


def entry_actions(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the actions that one entry of a component names, in order."""
    named = entry.get('actions')
    if named is None:
        return DEFAULT
    return tuple(str(a) for a in sequence(named) if isinstance(a, (str, int)))


def actions(group: str | None, config: object) -> tuple[str, ...]:
    """Return the actions that a config offers by name, in its own order.

    :param config: its body; for a component ``{'configs': [...]}``.
    :returns: each action once; empty for a config that is no component,
        which runs for whatever action its deployment lists.
    """
    if group != COMPONENT:
        return ()
    offered = (a for _, entry in entries(config) for a in entry_actions(entry))
    return tuple(dict.fromkeys(offered))


def serves(group: str | None, config: object, action: str) -> bool:
    """Say whether an agent that is given ``action`` runs anything."""
    return group != COMPONENT or action in actions(group, config)


def entry(config: object, action: str) -> Mapping[str, Any] | None:
    """Return the entry of a component that the agent runs for ``action``.

    :returns: the entry as it is stored, or None if the agent runs nothing.
    """
    for _, candidate in entries(config):
        if action in entry_actions(candidate):
            return candidate
    return None


def for_server(group: str | None, config: object) -> object:
    """Return a config's body in a form that the agent's hooks can read.

    Heat stores null where a template leaves ``config`` out. The hooks for
    scripts and Puppet write the body to a file, and fail on a null; they
    accept an empty text.

    :returns: a copy if something had to change, else ``config`` itself.
    """
    if group != COMPONENT or not isinstance(config, Mapping):
        return config
    listed = config.get('configs')
    filled = [
        {**e, 'config': ''}
        if isinstance(e, Mapping) and e.get('config') is None
        else e
        for e in sequence(listed)
    ]
    return config if filled == listed else {**config, 'configs': filled}


#: Hooks that put each input into the environment of what they run.
ENVIRONMENT_HOOKS = frozenset({'script'})

#: Hooks that bring a server into a described state, so that a second run of
#: the same config does no harm.
REPEATABLE_HOOKS: Final = frozenset(
    {
        'apply-config',
        'chef',
        'docker-compose',
        'hiera',
        'json-file',
        'kubelet',
        'puppet',
        'salt',
    }
)

#: The hooks that heat-agents ships.
HOOKS: Final = REPEATABLE_HOOKS | {
    'ansible',
    'cfn-init',
    'docker-cmd',
    'script',
}

#: Seconds after which an unknown hook may be why a server does not answer:
#: agents poll every 30 s.
HOOK_PATIENCE: Final = 60


def hook_for(group: str | None, config: object, action: str) -> str | None:
    """Return the name of the hook that runs a config for an action."""
    if group != COMPONENT:
        return group
    candidate = entry(config, action)
    return None if candidate is None else candidate.get('tool')


def hook_file(tool: str) -> str:
    """Return the file that the agent runs for ``tool``."""
    return ''.join(c for c in tool if c in '-_' or c.isalnum())


def is_known_hook(tool: str, known: Collection[str] = HOOKS) -> bool:
    """Say whether servers are known to have a hook."""
    return hook_file(tool) in known


def hook_warning(tool: str, known: Collection[str] = HOOKS) -> str:
    """Return the warning about a hook that servers may lack."""
    closest = similar_hook(tool, known)
    hint = f' Did you mean "{closest}"?' if closest else ''
    return (
        f'"{foreign.line(tool, bounds.NAME)}" is not a hook of heat-agents. '
        'Unless the server has a hook of that name, it runs nothing and '
        f'sends no signal.{hint}'
    )


def similar_hook(tool: str, known: Collection[str]) -> str | None:
    """Return the hook with the name most similar to another, if any."""
    return bounds.closest(hook_file(tool).lower(), sorted(known), 0.8)


def agent_inputs(
    declared: Iterable[Mapping[str, Any]], hook: str | None
) -> list[dict[str, Any]]:
    """Return inputs, with values, in the form for an agent.

    The agents in the field (heat-agents, os-collect-config) fail on values
    that Heat permits: a null input becomes the text ``None``, an input without
    a value ends the agent's whole run, and the hooks that pass inputs as
    environment variables crash on numbers.

    Maps and lists stay as they are. Numbers and booleans stay if the hook can
    use them; a hook that passes environment variables gets the text that the
    agent itself would make of them.
    """
    return [_input(dict(declaration), hook) for declaration in declared]


def _input(given: dict[str, Any], hook: str | None) -> dict[str, Any]:
    """Return an input as the hook of a server's agent can take it."""
    value = given.get('value')
    if value is None:
        given['value'] = ''
    elif isinstance(value, (bool, int, float)) and (hook in ENVIRONMENT_HOOKS):
        given.update(value=str(value), type='String')
        given.pop('default', None)
    return given
