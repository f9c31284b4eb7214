# SPDX-License-Identifier: Apache-2.0
"""Horizon with heat-dashboard and the pages of heat-plugins.

It has an environment of its own: its Django and what is behind that must not
decide about Heat's versions.
"""

import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import processes
from minicloud_lib.settings import Settings

_REQUIREMENTS = layout.SOURCE / 'requirements-dashboard.txt'
_OURS = layout.CHECKOUT / 'contrib/dashboard'

#: What decides whether it is installed again.
_SOURCES = (
    _REQUIREMENTS,
    _OURS / 'pyproject.toml',
)


def install(home: layout.Home) -> None:
    """Make the environment, unless it is what is asked for."""
    with files.lock(home.lock('dashboard')):
        stamp = home.dashboard / 'minicloud.json'
        enabled = sorted((_OURS / 'heat_plugins_dashboard/enabled').glob('_*'))
        digest = hashlib.sha256()
        for file in (*_SOURCES, *enabled):
            digest.update(file.read_bytes())
        wanted = {'sources': digest.hexdigest(), 'python': sys.version}
        if files.read_json(stamp) == wanted:
            return
        output.say(
            f'Installing Horizon into {home.dashboard} (once, a minute) ...'
        )
        stamp.unlink(missing_ok=True)
        _install(home)
        files.write_json(stamp, wanted)


def _install(home: layout.Home) -> None:
    log = home.path / 'install.log'
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ('PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV')
    }
    python = home.dashboard / 'bin/python'
    if not python.exists():
        processes.run([sys.executable, '-m', 'venv', home.dashboard], env, log)
    pip = [python, '-m', 'pip', '--disable-pip-version-check', 'install']
    processes.run([*pip, '-r', _REQUIREMENTS], env, log)
    # All that they need is there.
    ours = ['--no-build-isolation', '--no-deps', '--editable', _OURS]
    processes.run([*pip, *ours], env, log)
    packages = _packages(python)
    # The tree itself is not installed again: others use it meanwhile.
    files.write(packages / 'heat_plugins.pth', f'{layout.CHECKOUT}\n')
    local = packages / 'openstack_dashboard/local'
    for folder in (local, local / 'enabled'):
        folder.mkdir(exist_ok=True)
        (folder / '__init__.py').touch()
    for source in (
        packages / 'heat_dashboard/enabled',
        _OURS / 'heat_plugins_dashboard/enabled',
    ):
        for file in source.glob('_[0-9]*.py'):
            shutil.copy(file, local / 'enabled')
    env |= {
        'DJANGO_SETTINGS_MODULE': 'minicloud_lib.horizon_settings',
        'PYTHONPATH': str(layout.SOURCE),
    }
    for arguments in (['collectstatic', '--noinput'], ['compress', '--force']):
        processes.run([python, '-m', 'django', *arguments], env, log)


def _packages(python: pathlib.Path) -> pathlib.Path:
    """Return the folder of the environment's packages."""
    command = [
        python,
        '-c',
        'import sysconfig as s; print(s.get_path("purelib"))',
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        raise errors.MinicloudError(f'{python}: {result.stderr.strip()}')
    return pathlib.Path(result.stdout.strip())


def render(instance: layout.Instance, settings: Settings) -> str:
    """Return what the settings of an instance read."""
    sessions = files.make_folder(instance.data / 'dashboard-sessions')
    return json.dumps(
        {
            'auth_url': settings.auth_url,
            'ca_file': settings.ca_file,
            'secret_key': settings.secrets['dashboard'],
            'sessions': str(sessions),
        }
    )


def fill(settings: Settings) -> None:
    """Say where it is, and who may log in."""
    output.say(
        f'Horizon at {settings.url("dashboard")}: user demo, password '
        f'{settings.secrets["demo"]}; others: minicloud env --as USER'
    )
