# SPDX-License-Identifier: Apache-2.0
"""The virtual environment that the services and agents run in."""

from collections.abc import Sequence
import contextlib
import hashlib
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import output
from minicloud_lib import processes

REQUIREMENTS = layout.SOURCE / 'requirements.txt'
CONSTRAINTS = layout.SOURCE / 'constraints.txt'

#: Its wheel holds release notes only; the agent's programs are in the sdist.
HEAT_AGENTS = 'heat-agents'

#: What a user of the cloud calls.
COMMANDS = ('mistral', 'openstack', 'swift')


def ensure(home: layout.Home) -> None:
    """Build the environment if it is missing or not what is asked for."""
    with files.lock(home.lock('venv')):
        if files.read_json(_stamp(home)) != _wanted():
            _refuse_while_used(home)
            _install(home)
        _write_commands(home)


def _install(home: layout.Home) -> None:
    log = home.path / 'install.log'
    log.unlink(missing_ok=True)
    output.say(
        f'Installing OpenStack into {home.venv} (once, a minute or two) ...'
    )
    _stamp(home).unlink(missing_ok=True)
    if not _usable(home):
        shutil.rmtree(home.venv, ignore_errors=True)
        files.make_folder(home.path)
        _run([sys.executable, '-m', 'venv', home.venv], log)
    pip(home, ['install', '-r', REQUIREMENTS, '-c', CONSTRAINTS], log)
    _fetch_heat_agents(home, log)
    files.write_json(_stamp(home), _wanted())


def pip(
    home: layout.Home, arguments: Sequence[object], log: pathlib.Path
) -> None:
    """Run pip in the environment; its output goes to a log."""
    command = [
        home.python,
        '-m',
        'pip',
        '--disable-pip-version-check',
        '--no-input',
        *arguments,
    ]
    _run(command, log)


def add(home: layout.Home, name: str) -> None:
    """Install ``requirements-<name>.txt`` as well, unless it is there."""
    requirements = layout.SOURCE / f'requirements-{name}.txt'
    with files.lock(home.lock('venv')):
        stamp = home.venv / f'minicloud-{name}.txt'
        wanted = requirements.read_text(encoding='utf-8')
        if stamp.exists() and stamp.read_text(encoding='utf-8') == wanted:
            return
        output.say(f'Installing what {name} needs (once, half a minute) ...')
        pip(
            home,
            ['install', '-r', requirements, '-c', CONSTRAINTS],
            home.path / 'install.log',
        )
        files.write(stamp, wanted)


def _stamp(home: layout.Home) -> pathlib.Path:
    return home.venv / 'minicloud.json'


def _wanted() -> dict[str, str]:
    digest = hashlib.sha256()
    for file in (REQUIREMENTS, CONSTRAINTS):
        digest.update(file.read_bytes())
    return {
        'requirements': digest.hexdigest(),
        'python': f'{sys.version_info.major}.{sys.version_info.minor}',
    }


def _usable(home: layout.Home) -> bool:
    """Whether an older environment can be brought up to date in place."""
    version = f'python{sys.version_info.major}.{sys.version_info.minor}'
    if not (home.venv / 'lib' / version).is_dir():
        return False
    check = [str(home.python), '-m', 'pip', '--version']
    try:
        return subprocess.run(check, capture_output=True).returncode == 0
    except OSError:
        return False


def _refuse_while_used(home: layout.Home) -> None:
    # Services import as they go: swapping packages under them breaks them.
    from minicloud_lib import catalog

    busy = [
        instance.name
        for instance in home.instances()
        if catalog.running(instance)
    ]
    if busy and home.venv.is_dir():
        raise errors.MinicloudError(
            'the requirements have changed, but these instances run with '
            'the old ones: ' + ', '.join(busy),
            ' && '.join(f'minicloud down --name {name}' for name in busy),
        )


def _write_commands(home: layout.Home) -> None:
    """Offer the clients without putting another python into the PATH."""
    for name in COMMANDS:
        program = shlex.quote(str(home.venv / 'bin' / name))
        cache = shlex.quote(str(home.cache))
        files.write(
            home.bin / name,
            '#!/bin/sh\n'
            '# Else it would keep its cache in the home of its caller.\n'
            f'export XDG_CACHE_HOME={cache}\n'
            f'exec {program} "$@"\n',
            mode=0o700,
        )
    program = shlex.quote(str(home.venv / 'bin/heat-plugins-status'))
    files.write(
        home.bin / 'heat-plugins-status',
        '#!/bin/sh\n'
        '# "minicloud env" names the heat.conf of its cloud.\n'
        f'exec {program} ${{MINICLOUD_HEAT_CONF:+--config-file '
        '"$MINICLOUD_HEAT_CONF"} "$@"\n',
        mode=0o700,
    )
    (home.bin / 'minicloud').unlink(missing_ok=True)
    (home.bin / 'minicloud').symlink_to(layout.SOURCE / 'minicloud')


def _fetch_heat_agents(home: layout.Home, log: pathlib.Path) -> None:
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(
            stack.enter_context(tempfile.TemporaryDirectory(dir=home.path))
        )
        # Its metadata needs pbr and wheel, which are there already.
        pip(
            home,
            [
                'download',
                '--no-binary',
                HEAT_AGENTS,
                '--no-deps',
                '--no-build-isolation',
                '--dest',
                folder,
                '-c',
                CONSTRAINTS,
                HEAT_AGENTS,
            ],
            log,
        )
        archive = next(folder.glob('*.tar.gz'))
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter='data')
        unpacked = next(path for path in folder.iterdir() if path.is_dir())
        shutil.rmtree(home.heat_agents, ignore_errors=True)
        shutil.move(unpacked, home.heat_agents)


def _run(command: Sequence[object], log: pathlib.Path) -> None:
    # Whatever environment we were started from must not leak into this one.
    env = {
        name: value
        for name, value in os.environ.items()
        if name not in ('PYTHONPATH', 'PYTHONHOME', 'VIRTUAL_ENV')
    }
    files.make_folder(log.parent)
    processes.run(command, env, log)
