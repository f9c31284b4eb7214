# SPDX-License-Identifier: Apache-2.0
"""Install a Heat plugin the way an operator does.

That is: pip install, and the ``plugin_dirs`` line that the plugin prints into
heat.conf. The installation is an editable one, so a source tree can be worked
on; restarting Heat loads what has changed.
"""

import hashlib
import os
import pathlib
import subprocess

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import venv

#: Heat's own classes alone; not even directories that Heat looks at itself.
NO_PLUGIN = 'plugin_dirs ='

#: What decides about entry points and the like: edit, and it is reinstalled.
_METADATA = ('setup.cfg', 'setup.py', 'pyproject.toml')


def find(given: str | None) -> pathlib.Path | None:
    """The source tree to load, from what the user asked for."""
    if given == 'none':
        return None
    if given is not None:
        path = pathlib.Path(given).expanduser().resolve()
        if not (path / 'heat_plugins').is_dir():
            raise errors.UsageError(
                f'{path} has no package heat_plugins',
                'Name a source tree of heat-plugins, or none.',
            )
        return path
    if (layout.CHECKOUT / 'setup.cfg').is_file():
        return layout.CHECKOUT
    return None


def install(home: layout.Home, source: pathlib.Path) -> str:
    """Install it unless it is; its plugin_dirs line for heat.conf."""
    with files.lock(home.lock('venv')):
        stamp = home.venv / 'plugin.json'
        wanted = {'source': str(source), 'metadata': digest(source)}
        if files.read_json(stamp) != wanted:
            output.say(f'Installing the Heat plugin from {source} ...')
            stamp.unlink(missing_ok=True)
            venv.pip(
                home,
                [
                    'install',
                    # Asks the network only for what is not there yet.
                    '--no-build-isolation',
                    '-c',
                    venv.CONSTRAINTS,
                    '--editable',
                    source,
                ],
                home.path / 'install.log',
            )
            files.write_json(stamp, wanted)
    return _line(home, source)


def digest(source: pathlib.Path) -> str:
    """Changes when the plugin must be installed again."""
    found = hashlib.sha256()
    for name in _METADATA:
        if (source / name).is_file():
            found.update((source / name).read_bytes())
    return found.hexdigest()


def _line(home: layout.Home, source: pathlib.Path) -> str:
    command = [str(home.python), '-m', 'heat_plugins']
    result = subprocess.run(
        command,
        env=environment.clean(home),
        cwd=home.path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    line: str = result.stdout.strip()
    if result.returncode or not line.startswith('plugin_dirs'):
        detail = (result.stderr or result.stdout).strip()
        raise errors.MinicloudError(
            f'python -m heat_plugins of {source} did not print the '
            f'plugin_dirs line:\n{os.linesep.join(detail.splitlines()[-5:])}',
            "Use --plugin none to run with Heat's own classes.",
        )
    return line
