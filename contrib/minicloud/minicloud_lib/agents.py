# SPDX-License-Identifier: Apache-2.0
"""Real agents, each confined to a folder that plays a server's disk.

An agent is os-collect-config, os-refresh-config, os-apply-config and the
heat-agents' programs, unmodified; with them, if asked for, what
``contrib/agent`` adds to an image. Environment variables and the places of
its templates keep it inside its folder:

    agents/NAME/bin         what heat-agents put into /usr/bin
                /etc        os-collect-config.conf, written by os-apply-config
                /hooks      script, ansible, json-file
                /refresh    os-refresh-config's steps
                /templates  os-apply-config's templates
                /image      heat-config-supervisor, if it is asked for
                /var        state: the metadata, what was deployed, outputs
                /agent.log
"""

from collections.abc import Mapping
import contextlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
from typing import Any

from minicloud_lib import environment
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import layout
from minicloud_lib import processes
from minicloud_lib import settings

#: Where heat-agents has the program of each hook.
HOOKS = {
    'script': 'heat-config-script/install.d/hook-script.py',
    'ansible': 'heat-config-ansible/install.d/hook-ansible.py',
    'json-file': 'heat-config-json-file/install.d/hook-json-file.py',
}

#: Installs heat-config-supervisor into an image.
SUPERVISOR = layout.SOURCE.parent / 'agent/install'

#: Seconds for hooks that are under way when an agent is stopped: none. A
#: server that loses power gives them none either.
STOP_SECONDS = 2

#: For root, os-apply-config also logs to a file in /var/log, wherever else
#: its folders are. That is the one thing that it looks at the user for.
_APPLY_CONFIG = """\
#!{python}
import os
import sys

from os_apply_config import apply_config

os.geteuid = lambda: -1
sys.exit(apply_config.main())
"""

#: Ansible wants a locale that os-collect-config cannot start in.
_PLAYBOOK = """\
#!/bin/sh
PATH="${PATH#*:}" LC_ALL=C.UTF-8 exec ansible-playbook "$@"
"""


class Agent:
    def __init__(self, instance: layout.Instance, name: str) -> None:
        if not re.fullmatch(r'[A-Za-z0-9][A-Za-z0-9._-]*', name):
            raise errors.UsageError(
                f'{name!r} cannot name an agent',
                'Use letters, digits, dots, - and _.',
            )
        self.instance = instance
        self.name = name
        self.path = instance.agents / name

    @property
    def log(self) -> pathlib.Path:
        return self.path / 'agent.log'

    @property
    def pid_file(self) -> pathlib.Path:
        return self.path / 'agent.pid'

    @property
    def process(self) -> processes.Process | None:
        return processes.find(self.pid_file)

    def about(self) -> dict[str, Any]:
        running = self.process
        record: dict[str, Any] = files.read_json(self.path / 'agent.json', {})
        return {
            'name': self.name,
            'running': running is not None,
            'pid': running.pid if running else None,
            'folder': str(self.path),
            'supervised': False,
            **record,
        }

    def set_up(
        self,
        bootstrap: Mapping[str, Any],
        server: Mapping[str, Any],
        interval: float,
    ) -> None:
        """Make the folder, as an image and its first boot would.

        What the same server has left there stays, as on a reboot.

        :param server: which one it is: ``stack`` and ``resource``, or the
            name that Nova has for it, ``server``; and whether its image has
            heat-config-supervisor: ``supervised``.
        """
        before = self.about()
        if any(before.get(key) != value for key, value in server.items()):
            self.remove()
        programs = self.instance.home.heat_agents
        common = programs / 'heat-config'
        for folder in ('bin', 'etc', 'var/cache', 'var/run', 'tmp'):
            files.make_folder(self.path / folder)
        _copy(common / 'bin/heat-config-notify', self.path / 'bin')
        files.write(self.path / 'bin/ansible-playbook', _PLAYBOOK, mode=0o700)
        if os.geteuid() == 0:
            files.write(
                self.path / 'bin/os-apply-config',
                _APPLY_CONFIG.format(python=self.instance.home.python),
                mode=0o700,
            )
        for step in ('20-os-apply-config', '55-heat-config'):
            _copy(
                common / 'os-refresh-config/configure.d' / step,
                self.path / 'refresh/configure.d',
            )
        for hook, program in HOOKS.items():
            _copy(programs / program, self.path / 'hooks', hook)
        if server['supervised']:
            self._install_supervisor()
        # It renders each template to the same path below /, so a template
        # at our own path ends up in our folder.
        templates = self.path / 'templates' / self.path.relative_to('/')
        source = common / 'os-apply-config'
        _copy(source / 'etc/os-collect-config.conf', templates / 'etc')
        _copy(
            source / 'var/run/heat-config/heat-config',
            templates / 'var/run/heat-config',
        )
        files.write(
            self.path / 'etc/os-collect-config.conf',
            _first_configuration(bootstrap),
        )
        files.write_json(
            self.path / 'agent.json', {**server, 'interval': interval}
        )

    def _install_supervisor(self) -> None:
        steps = self.path / 'image/usr/libexec/os-refresh-config'
        files.make_folder(steps.parent)
        if not steps.is_symlink():
            steps.symlink_to(self.path / 'refresh')
        subprocess.run(
            [SUPERVISOR],
            env={**self._environment(), 'DESTDIR': str(self.path / 'image')},
            stdout=subprocess.DEVNULL,
            check=True,
        )

    @property
    def _supervisor(self) -> pathlib.Path:
        return self.path / 'image/usr/libexec/heat-config-supervisor'

    def start(self, interval: float) -> processes.Process:
        if self.process:
            raise errors.MinicloudError(
                f'agent {self.name} is running already',
                f'minicloud agent stop {self.name}',
            )
        command = self._command(interval)
        if self.about()['supervised']:
            # The image has units for the first two of these.
            program = str(self._supervisor / 'heat-config-supervisor')
            boot = '"$0" deliver & "$0" watch & exec "$@"'
            command = ['/bin/sh', '-c', boot, program, *command]
        return processes.spawn(
            command,
            pid_file=self.pid_file,
            log=self.log,
            env=self._environment() | self._watching(interval),
            folder=self.path / 'var',
        )

    def _watching(self, interval: float) -> dict[str, str]:
        """Return what heat-config-supervisor watches configs with.

        An agent that polls each second anyway has no use for that.
        """
        once = [*self._command(interval), '--one-time']
        return {
            'HEAT_CONFIG_QUICK': 'never' if interval <= 2 else 'always',
            'HEAT_CONFIG_COLLECT': shlex.join(once),
            'HEAT_CONFIG_COLLECT_CONF': str(
                self.path / 'etc/os-collect-config.conf'
            ),
            'HEAT_CONFIG_REFRESH_LOCK': f'{self.path}/var/refresh.lock',
        }

    def once(self) -> int:
        """Collect, and run what is new, once; the exit code of that."""
        result = subprocess.run(
            [*self._command(1), '--one-time'],
            cwd=self.path / 'var',
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        return result.returncode

    def stop(self) -> bool:
        """Stop it with its hooks; false if it did not run."""
        running = self.process
        if running:
            running.stop(STOP_SECONDS)
        self.pid_file.unlink(missing_ok=True)
        return running is not None

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _command(self, interval: float) -> list[str]:
        refresh = (
            f'os-refresh-config --lockfile {self.path}/var/refresh.lock '
            '--log-level INFO'
        )
        return [
            str(self.instance.home.venv / 'bin/os-collect-config'),
            # First: what comes after it on the command line wins over it.
            '--config-file',
            str(self.path / 'etc/os-collect-config.conf'),
            '--command',
            refresh,
            '--cachedir',
            str(self.path / 'var/cache/collect'),
            '--backup-cachedir',
            str(self.path / 'var/cache/collect-backup'),
            '--min-polling-interval',
            str(min(1.0, interval)),
            '--polling-interval',
            str(interval),
            '--local-path',
            str(self.path / 'var/local-data'),
            '--heat_local-path',
            str(self.path / 'var/heat-local'),
            '--cfn-heat-metadata-hint',
            str(self.path / 'var/cfn-metadata-server'),
        ]

    def _environment(self) -> dict[str, str]:
        env = environment.clean(self.instance.home, self.path)
        var = self.path / 'var'
        env.update(
            {
                'PATH': f'{self.path}/bin:{env["PATH"]}',
                # What the agent's programs print, and what they read, is
                # taken for ASCII otherwise.
                'LC_ALL': 'C',
                'OS_REFRESH_CONFIG_BASE_DIR': f'{self.path}/refresh',
                'OS_CONFIG_APPLIER_TEMPLATES': f'{self.path}/templates',
                'OS_CONFIG_FILES_PATH': f'{var}/cache/os_config_files.json',
                'HEAT_SHELL_CONFIG': f'{var}/run/heat-config/heat-config',
                'HEAT_CONFIG_HOOKS': f'{self.path}/hooks',
                'HEAT_CONFIG_DEPLOYED': f'{var}/deployed',
                'HEAT_CONFIG_DEPLOYED_OLD': f'{var}/run/deployed',
                'HEAT_CONFIG_NOTIFY': f'{self.path}/bin/heat-config-notify',
                'HEAT_CONFIG_SUPERVISOR': str(self._supervisor),
                'HEAT_CONFIG_SUPERVISOR_STATE': f'{var}/supervisor',
                'HEAT_SCRIPT_WORKING': f'{var}/script',
                'HEAT_SCRIPT_OUTPUTS': f'{var}/run/script',
                'HEAT_ANSIBLE_WORKING': f'{var}/ansible',
                'HEAT_ANSIBLE_OUTPUTS': f'{var}/run/ansible',
            }
        )
        found = settings.load(self.instance)
        if found and found.ca_file:
            # As where it is among those that the server's image trusts.
            for reader in ('REQUESTS_CA_BUNDLE', 'SSL_CERT_FILE'):
                env[reader] = found.ca_file
        return env


def known(instance: layout.Instance) -> list[Agent]:
    """All agents that were ever started and not removed."""
    with contextlib.suppress(FileNotFoundError):
        return [
            Agent(instance, path.name)
            for path in sorted(instance.agents.iterdir())
            if path.is_dir()
        ]
    return []


def find(instance: layout.Instance, name: str) -> Agent:
    agent = Agent(instance, name)
    if not agent.path.is_dir():
        raise errors.UsageError(
            f'there is no agent {name!r}',
            'See minicloud agent list.',
        )
    return agent


def stop_all(instance: layout.Instance) -> None:
    processes.stop_all(
        [agent.pid_file for agent in known(instance)], STOP_SECONDS
    )


def _first_configuration(bootstrap: Mapping[str, Any]) -> str:
    """What cloud-init would leave for os-collect-config to begin with."""
    lines = ['[DEFAULT]']
    lines += [
        f'collectors = {collector}'
        for collector in bootstrap.get('collectors') or []
    ]
    for section, options in bootstrap.items():
        if isinstance(options, Mapping):
            lines += ['', f'[{section}]']
            lines += [
                f'{name} = {value}'
                for name, value in options.items()
                if value is not None
            ]
    return '\n'.join(lines) + '\n'


def _copy(
    source: pathlib.Path, folder: pathlib.Path, name: str | None = None
) -> None:
    files.make_folder(folder)
    target = folder / (name or source.name)
    shutil.copyfile(source, target)
    # A template's mode becomes that of the file made from it.
    target.chmod(0o700 if _is_program(source) else 0o600)


def _is_program(path: pathlib.Path) -> bool:
    with path.open('rb') as stream:
        return stream.read(2) == b'#!'
