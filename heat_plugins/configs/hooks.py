# SPDX-License-Identifier: Apache-2.0
"""The hooks that run configs on a server, and their demands."""

from collections.abc import Collection, Iterator
from typing import Final

from heat_plugins import bounds
from heat_plugins import foreign
from heat_plugins.configs import config_problems

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
    near = _near(tool, known)
    hint = f' Did you mean "{near}"?' if near else ''
    return (
        f'"{foreign.line(tool, bounds.NAME)}" is not a hook of heat-agents. '
        'Unless the server has a hook of that name, it runs nothing and '
        f'sends no signal.{hint}'
    )


def _near(tool: str, known: Collection[str]) -> str | None:
    return bounds.closest(name_of(tool).lower(), sorted(known), 0.8)


def check_tool(
    tool: str,
    where: str,
    nameless: config_problems.Severity,
    known: Collection[str] = HOOKS,
) -> Iterator[config_problems.ConfigProblem]:
    """Yield the mistakes in the name of a hook.

    :param nameless: the severity of a name that no hook can have.
    :param known: the hooks that servers are known to have.
    """
    hook = name_of(tool)
    if not hook:
        yield config_problems.ConfigProblem(
            severity=nameless,
            code='impossible-tool',
            where=where,
            message=f'"{tool}" cannot name a hook: the agent fails on it and '
            'sends no signal; use one such as "script".',
        )
    elif hook not in known:
        is_near = _near(tool, known) is not None
        yield config_problems.ConfigProblem(
            severity=config_problems.Severity.WARNING
            if is_near
            else config_problems.Severity.NOTE,
            code='unknown-tool',
            where=where,
            message=warning(tool, known),
        )


def check_script(
    tool: str, config: object, where: str
) -> Iterator[config_problems.ConfigProblem]:
    """Yield what keeps a script from starting."""
    if name_of(tool) != SCRIPT or not isinstance(config, (str, type(None))):
        return
    first = (config or '').split('\n', 1)[0]
    if not first.startswith('#!'):
        yield config_problems.warning(
            code='no-interpreter',
            where=where,
            message='the script must begin with "#!", as in "#!/bin/sh", else '
            'heat-agents fail to start it ("Exec format error").',
        )
    elif first.endswith('\r'):
        yield config_problems.warning(
            code='carriage-returns',
            where=where,
            message='the script has Windows line ends, so the server cannot '
            'find its interpreter, whose name then ends in a carriage '
            'return; use line feeds only.',
        )
