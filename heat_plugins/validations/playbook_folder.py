# SPDX-License-Identifier: Apache-2.0
"""What a playbook is run with: a folder, for its process and no one else.

Nothing of it stands on a command line or in an environment: variables and
keys lie in files that only their owner may read, and that go with the folder.
"""

from collections import abc
import dataclasses
import json
import os
import pathlib
import sys
from typing import Any, Final

from heat_plugins import stored
from heat_plugins.content import sources
from heat_plugins.validations import catalogue
from heat_plugins.validations import inventory

PROJECT: Final = 'project'

#: What `guard` writes, a line of JSON each.
EVENTS: Final = 'events.jsonl'

_JOB = 'job.json'
_KEY = 'ssh_key'

# What of our own environment Ansible needs, or ssh.
_INHERITED = ('PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'SSH_AUTH_SOCK')


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlaybookJob:
    """A playbook to be run.

    :ivar timeout: the most seconds that it may take.
    :ivar output: the most bytes that it may print.
    :ivar secrets: the values to mask in all that it prints.
    """

    playbook: str
    timeout: int
    output: int = 16 * 1024 * 1024
    secrets: tuple[str, ...] = dataclasses.field(default=(), repr=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What all playbooks of a run share.

    :ivar content: the tree of files that the playbooks are in.
    :ivar hosts: what the playbooks check; by default this machine alone.
    :ivar variables: for the playbooks, over their own.
    :ivar key: a private key for ssh; '' for none.
    """

    content: sources.Content = dataclasses.field(repr=False)
    hosts: tuple[inventory.Host, ...] = (inventory.LOCALHOST,)
    login: inventory.Login = dataclasses.field(default_factory=inventory.Login)
    variables: abc.Mapping[str, Any] = dataclasses.field(
        default_factory=dict, repr=False
    )
    key: str = dataclasses.field(default='', repr=False)


def write(folder: pathlib.Path, setting: Setting, job: PlaybookJob) -> None:
    """Fill a folder, which is there and empty."""
    folder.chmod(0o700)
    for path, content in setting.content.items():
        file = folder / PROJECT / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        if content.startswith(b'#!'):
            file.chmod(0o700)
    login = setting.login
    if setting.key:
        _write(folder / _KEY, setting.key.rstrip() + '\n')
        login = dataclasses.replace(login, key_file=str(folder / _KEY))
    _write_json(
        folder / 'inventory/hosts.json', inventory.write(setting.hosts, login)
    )
    _write_json(folder / 'env/extravars', dict(setting.variables))
    _write_json(
        folder / 'env/settings',
        {
            # Seconds between two looks whether to stop.
            'pexpect_timeout': 1,
            'suppress_output_file': True,
            'fact_cache_type': 'memory',
        },
    )
    _write_json(folder / 'env/envvars', _ansible(folder, setting.content))
    # Whatever else on this machine is meant for others.
    _write(folder / 'ansible.cfg', '')
    _write_json(folder / _JOB, dataclasses.asdict(job))


def environment(mark: str, folder: pathlib.Path) -> dict[str, str]:
    """Return the environment of the process that runs a folder.

    :param mark: what its processes can be told by.
    """
    inherited = {
        name: os.environ[name] for name in _INHERITED if name in os.environ
    }
    # Ansible is in the folder of the Python that runs this.
    programs = pathlib.Path(sys.executable).parent
    return {
        **inherited,
        'PATH': f'{programs}:{inherited.get("PATH", os.defpath)}',
        'LC_ALL': 'C.UTF-8',
        'PYTHONUTF8': '1',
        'PYTHONUNBUFFERED': '1',
        'HEAT_PLUGINS_VALIDATION': mark,
        'ANSIBLE_CONFIG': str(folder / 'ansible.cfg'),
    }


def _ansible(
    folder: pathlib.Path, content: abc.Iterable[str]
) -> dict[str, str]:
    folders = {
        catalogue.PATHS[name]: ':'.join(
            str(folder / PROJECT / path) for path in paths
        )
        for name, paths in catalogue.paths(content).items()
    }
    known_hosts = folder / 'known_hosts'
    return {
        **folders,
        'ANSIBLE_NOCOLOR': '1',
        'ANSIBLE_LOCAL_TEMP': str(folder / 'tmp'),
        'ANSIBLE_HOST_KEY_CHECKING': 'True',
        # A server's key is unknown at first; later it must be the same.
        'ANSIBLE_SSH_ARGS': '-o BatchMode=yes -o ConnectTimeout=10 '
        '-o StrictHostKeyChecking=accept-new '
        f'-o UserKnownHostsFile={known_hosts} -o ControlMaster=no',
    }


def read(folder: pathlib.Path) -> PlaybookJob:
    """Read what `write` has written."""
    return stored.read(PlaybookJob, json.loads((folder / _JOB).read_text()))


def _write_json(file: pathlib.Path, value: Any) -> None:
    file.parent.mkdir(mode=0o700, exist_ok=True)
    _write(file, json.dumps(value))


def _write(file: pathlib.Path, text: str) -> None:
    file.touch(mode=0o600)
    file.write_text(text)
