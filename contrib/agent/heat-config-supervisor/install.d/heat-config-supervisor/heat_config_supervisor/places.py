# SPDX-License-Identifier: Apache-2.0
"""Where things are on a server; heat-agents' variables count here, too."""

from __future__ import annotations

import os
import pathlib
import re
import shlex
import sys

#: The folder with our programs.
PROGRAMS = pathlib.Path(__file__).resolve().parent.parent

_OUTPUTS = re.compile('HEAT_[A-Z]+_OUTPUTS')


def _folder(variable: str, default: str) -> pathlib.Path:
    return pathlib.Path(os.environ.get(variable) or default)


def state() -> pathlib.Path:
    """Return the folder that must survive a reboot."""
    return _folder(
        'HEAT_CONFIG_SUPERVISOR_STATE', '/var/lib/heat-config/supervisor'
    )


def make_private(folder: pathlib.Path) -> None:
    """Create a folder of the state, closed to all other users.

    A user who may open a file for reading may lock it, and keep every result
    on the server. So folders that others may enter are closed, too.
    """
    for each in (state(), folder):
        # The mode is not that of parents.
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
        if each.stat().st_mode & 0o077:
            each.chmod(0o700)


def wrappers() -> pathlib.Path:
    """Return the folder that 55-heat-config takes for that of the hooks."""
    return state() / 'hooks'


def hooks() -> list[pathlib.Path]:
    """The folders with the hooks, as 55-heat-config would search them."""
    folders = (
        os.environ.get('HEAT_CONFIG_SUPERVISED_HOOKS'),
        '/usr/libexec/heat-config/hooks',
        '/var/lib/heat-config/hooks',
    )
    return [pathlib.Path(folder) for folder in folders if folder]


def outputs() -> list[pathlib.Path]:
    """The folders in which hooks read outputs, as heat-agents name them."""
    folders = [
        pathlib.Path(folder)
        for variable, folder in os.environ.items()
        if _OUTPUTS.fullmatch(variable)
    ]
    run = pathlib.Path('/var/run/heat-config')
    return [*folders, *run.glob('heat-config-*')]


def notifier() -> str:
    """The program of heat-agents that sends results."""
    return os.environ.get('HEAT_CONFIG_SUPERVISED_NOTIFY') or (
        'heat-config-notify'
    )


def deployed(config_id: str) -> pathlib.Path:
    """Where 55-heat-config notes that a config has been begun."""
    folder = _folder('HEAT_CONFIG_DEPLOYED', '/var/lib/heat-config/deployed')
    return folder / f'{config_id}.json'


def metadata() -> pathlib.Path:
    """The configs that the server is given at present."""
    return _folder('HEAT_SHELL_CONFIG', '/var/run/heat-config/heat-config')


def collect_configuration() -> pathlib.Path:
    """Return the configuration file of os-collect-config."""
    return _folder('HEAT_CONFIG_COLLECT_CONF', '/etc/os-collect-config.conf')


def collect() -> list[str]:
    """Return the command line of one extra collection.

    It has a cache of its own. In that of the service it would note configs
    as seen which the service then never runs.
    """
    command = os.environ.get('HEAT_CONFIG_COLLECT')
    cache = state() / 'collected'
    return [
        *shlex.split(command or 'os-collect-config --one-time'),
        *('--cachedir', str(cache)),
        *('--backup-cachedir', f'{cache}-backup'),
    ]


def refresh_lock() -> pathlib.Path:
    """Return the lock of os-refresh-config, held while it runs configs."""
    return _folder(
        'HEAT_CONFIG_REFRESH_LOCK', '/var/run/os-refresh-config.lock'
    )


def quick() -> str:
    """When to ask for configs every second: always, recent or never."""
    wanted = os.environ.get('HEAT_CONFIG_QUICK')
    return wanted if wanted in ('always', 'never') else 'recent'


def time_limit() -> float | None:
    """The most seconds for a config, as the image's author has set it."""
    try:
        return float(os.environ['HEAT_CONFIG_TIMEOUT'])
    except (KeyError, ValueError):
        return None


def command(name: str, *arguments: str) -> list[str]:
    """The command line of one of our own commands."""
    program = PROGRAMS / 'heat-config-supervisor'
    return [sys.executable, str(program), name, *arguments]
