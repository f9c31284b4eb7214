# SPDX-License-Identifier: Apache-2.0
"""The hooks that run configs on a server, and what each requires."""

from collections.abc import Collection
from typing import Final

from heat_plugins import bounds
from heat_plugins import foreign

#: Seconds after which an unknown hook may be why a server does not answer:
#: agents poll every 30 s.
PATIENCE: Final = 60

#: Hooks that bring a server into a described state, so that a second run of
#: the same config does no harm.
REPEATABLE: Final = frozenset(
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
HOOKS: Final = REPEATABLE | {'ansible', 'cfn-init', 'docker-cmd', 'script'}

#: The hook that runs a config as a program, inputs in its environment.
SCRIPT: Final = 'script'


def name_of(tool: str) -> str:
    """Return the file that the agent runs for ``tool``."""
    return ''.join(c for c in tool if c in '-_' or c.isalnum())


def is_known(tool: str, known: Collection[str] = HOOKS) -> bool:
    """Say whether servers are known to have a hook."""
    return name_of(tool) in known


def warning(tool: str, known: Collection[str] = HOOKS) -> str:
    """Return the warning about a hook that servers may lack."""
    closest = near(tool, known)
    hint = f' Did you mean "{closest}"?' if closest else ''
    return (
        f'"{foreign.line(tool, bounds.NAME)}" is not a hook of heat-agents. '
        'Unless the server has a hook of that name, it runs nothing and '
        f'sends no signal.{hint}'
    )


def near(tool: str, known: Collection[str]) -> str | None:
    """Return the hook whose name resembles another most, if one does."""
    return bounds.closest(name_of(tool).lower(), sorted(known), 0.8)
