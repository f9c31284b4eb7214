# SPDX-License-Identifier: Apache-2.0
"""Running a playbook with ansible-runner, in a private data directory.

No secret is on a command line or in an environment: variables and keys lie in
files that only their owner may read, and that are deleted with the directory.
Events are read from ansible-runner's artifacts.

Nothing here waits, and no pipe is read: so it works among green threads, too.
"""

from collections import abc
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from heat_plugins import bounds
from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory
from heat_plugins.validations import keeper

# Seconds for attempts to end the processes of a playbook.
_TIMEOUT = 60.0

# The most hosts at once.
_FORKS = 5

_KEY = 'ssh_key'

# Files of events, such as 3-0a1b.json; other files lie next to them.
_EVENT = re.compile(r'([0-9]{1,9})-[0-9a-f-]+\.json')

# The variables of our own environment that Ansible or ssh need.
_INHERITED = ('HOME', 'USER', 'LOGNAME', 'TMPDIR', 'SSH_AUTH_SOCK')


#: The most playbooks that run at once.
MOST_AT_ONCE = 16


@dataclasses.dataclass(frozen=True, kw_only=True)
class ValidationOrder:
    """The validations to run, and their shared settings.

    :ivar at_once: the most playbooks at once.
    :ivar secrets: the values to mask in all that they report.
    :ivar content: the tree of files that the playbooks are in.
    :ivar hosts: of the inventory; by default this machine alone.
    :ivar variables: for the playbooks, over their own.
    :ivar key: a private key for ssh; '' for none.
    :ivar timeout: the most seconds that a playbook may take.
    """

    validations: tuple[catalogue.Validation, ...] = ()
    content: sources.Content = dataclasses.field(repr=False)
    hosts: tuple[inventory.Host, ...] = (inventory.LOCALHOST,)
    login: inventory.Login = dataclasses.field(default_factory=inventory.Login)
    variables: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    key: str = dataclasses.field(default='', repr=False)
    timeout: int = 1800
    at_once: int = 4
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.at_once <= MOST_AT_ONCE:
            raise errors.Invalid(
                'The number of validations at a time must be 1 to '
                f'{MOST_AT_ONCE}, not {self.at_once}'
            )


class Playbook:
    """A playbook that runs."""

    def __init__(self, order: ValidationOrder, path: str) -> None:
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix='validation-'))
        self._artifacts = self._folder / 'artifacts/run'
        try:
            _write(self._folder, order)
            runner = ['ansible-runner', 'run', str(self._folder)]
            options = ['--playbook', path, '--ident', 'run', '--quiet']
            # -P: the files in the folder are not ours.
            python = [sys.executable, '-P', '-m', keeper.__name__]
            inherited = {
                name: os.environ[name]
                for name in _INHERITED
                if name in os.environ
            }
            with (self._folder / 'log').open('wb') as log:
                self._process = subprocess.Popen(
                    [
                        *python,
                        str(self._folder),
                        *runner,
                        *options,
                        f'--forks={_FORKS}',
                    ],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._folder,
                    env={
                        **inherited,
                        'PATH': _path(),
                        'LC_ALL': 'C.UTF-8',
                        'PYTHONUTF8': '1',
                        'PYTHONUNBUFFERED': '1',
                        # The machine's configuration serves other uses.
                        'ANSIBLE_CONFIG': str(self._folder / 'ansible.cfg'),
                    },
                    start_new_session=True,
                )
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def ended(self) -> bool:
        """Return whether the playbook and its processes have ended."""
        done = (self._folder / keeper.ENDED).exists()
        return done or self._process.poll() is not None

    def news(self) -> list[dict[str, Any]]:
        """Return ansible-runner's events since the last call."""
        events = {}
        with contextlib.suppress(FileNotFoundError):
            for entry in os.scandir(self._artifacts / 'job_events'):
                if match := _EVENT.fullmatch(entry.name):
                    events[int(match[1])] = pathlib.Path(entry.path)
        happened = []
        for _, file in sorted(events.items()):
            # A playbook on this machine can write files there, too.
            with contextlib.suppress(ValueError):
                event = bounds.read_json(file.read_bytes())
                happened += [event] if isinstance(event, dict) else []
            file.unlink()
        return happened

    def status(self) -> str:
        """Return the final status by ansible-runner; '' if it was killed."""
        with contextlib.suppress(OSError):
            return (self._artifacts / 'status').read_text()
        return ''

    def complaint(self) -> str:
        """Return the output of ansible-runner itself."""
        with contextlib.suppress(OSError):
            return (self._folder / 'log').read_text(errors='replace')
        return ''

    def stop(self) -> None:
        """Ask the keeper to end the playbook and its processes."""
        if self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.close()

    def close(self) -> int:
        """End the playbook, and delete its directory.

        :return: the number of its processes that are left.
        """
        self.stop()
        try:
            left = self._process.wait(timeout=_TIMEOUT)
        except subprocess.TimeoutExpired:
            left = 1
        shutil.rmtree(self._folder, ignore_errors=True)
        return max(left, 0)


def check() -> None:
    """Refuse to run playbooks on a machine without Ansible.

    :raises errors.Refused: Ansible or ansible-runner is not installed.
    """
    programs = {
        'ansible-runner': 'ansible-runner',
        'ansible-playbook': 'ansible-core',
    }
    missing = [
        package
        for program, package in programs.items()
        if shutil.which(program, path=_path()) is None
    ]
    if missing:
        raise errors.Refused(
            f'{" and ".join(missing)} not found on {os.uname().nodename}, '
            'the machine that runs the playbooks; install there: pip install '
            f'{" ".join(missing)}'
        )


def _path() -> str:
    """Return the PATH for Ansible's programs."""
    # Ansible is in the folder of the Python that runs this.
    programs = pathlib.Path(sys.executable).parent
    return f'{programs}:{os.environ.get("PATH", os.defpath)}'


def _write(folder: pathlib.Path, order: ValidationOrder) -> None:
    """Write the files of an order into an empty private data directory."""
    project = folder / 'project'
    for path, content in order.content.items():
        file = project / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if content.startswith(b'#!'):
            file.chmod(0o700)
    login = order.login
    if order.key:
        login = dataclasses.replace(login, key_file=str(folder / _KEY))
    variables = {
        catalogue.PATHS[name]: ':'.join(str(project / path) for path in paths)
        for name, paths in catalogue.paths(order.content).items()
    }
    variables |= {
        'ANSIBLE_NOCOLOR': '1',
        'ANSIBLE_LOCAL_TEMP': str(folder / 'tmp'),
        'ANSIBLE_HOST_KEY_CHECKING': 'True',
        # A server's key is unknown at first; later it must be the same.
        'ANSIBLE_SSH_ARGS': '-o BatchMode=yes -o ConnectTimeout=10 '
        '-o StrictHostKeyChecking=accept-new '
        f'-o UserKnownHostsFile={folder}/known_hosts -o ControlMaster=no',
    }
    texts = {
        _KEY: order.key.rstrip() + '\n',
        'ansible.cfg': '',
        'inventory/hosts.json': json.dumps(
            inventory.write(order.hosts, login)
        ),
        'env/extravars': json.dumps(dict(order.variables)),
        'env/settings': json.dumps(
            {
                'job_timeout': order.timeout,
                # Seconds between two polls whether that has passed.
                'pexpect_timeout': 1,
                'suppress_output_file': True,
                'fact_cache_type': 'memory',
            }
        ),
        'env/envvars': json.dumps(variables),
    }
    for name, text in texts.items():
        file = folder / name
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(text)
