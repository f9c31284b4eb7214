# SPDX-License-Identifier: Apache-2.0
"""Use a mini cloud from a Python program: a test, a benchmark.

Nothing but the standard library is needed, so this can be imported into any
environment once the folder of this file is on ``sys.path``::

    cloud = minicloud_client.Cloud('tests')
    cloud.up(plugin='none')
    with cloud.agent('web', stack='my-stack', resource='server'):
        ...
    with cloud.faults([{'method': 'PUT', 'status': 503}]):
        ...
    puts = cloud.swift_requests(method='PUT')
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from typing import Any

from minicloud_lib import catalog
from minicloud_lib import cli
from minicloud_lib import errors
from minicloud_lib import files
from minicloud_lib import identity
from minicloud_lib import layout
from minicloud_lib import rest
from minicloud_lib import settings
from minicloud_lib.virtual import machine
from minicloud_lib.virtual import sockets

Answer = rest.Answer


class CommandError(Exception):
    """A command ended with an exit code other than 0; all that it said."""

    def __init__(self, result: subprocess.CompletedProcess[str]) -> None:
        command = ' '.join(str(part) for part in result.args)
        super().__init__(
            f'{command}: exit code {result.returncode}\n'
            f'{result.stdout}{result.stderr}'
        )
        self.returncode = result.returncode
        self.stdout = result.stdout
        self.stderr = result.stderr


class Cloud:
    """One instance of the mini cloud."""

    def __init__(
        self, name: str | None = None, home: str | os.PathLike[str] = ''
    ) -> None:
        name = name or os.environ.get('MINICLOUD_NAME', 'default')
        self._instance = layout.Home.find(os.fspath(home)).instance(name)
        self._sessions: dict[str, Session] = {}

    @property
    def name(self) -> str:
        return self._instance.name

    @property
    def path(self) -> pathlib.Path:
        """The folder of the instance."""
        return self._instance.path

    # Up and down

    def up(
        self,
        plugin: str | os.PathLike[str] | None = None,
        conf: Sequence[str | os.PathLike[str]] = (),
        executor_threads: int | None = None,
        profile: str | None = None,
        extras: Sequence[str] = (),
        omitted: Sequence[str] = (),
        rgw_url: str | None = None,
        implicit_tenants: bool | None = None,
    ) -> None:
        """Start it; on a running cloud, restart what the options change."""
        arguments = ['up']
        if plugin is not None:
            arguments += ['--plugin', os.fspath(plugin)]
        if conf:
            arguments += ['--conf', *(os.fspath(file) for file in conf)]
        if executor_threads:
            arguments += ['--executor-threads', str(executor_threads)]
        if profile:
            arguments += ['--profile', profile]
        for extra in extras:
            arguments += ['--with', extra]
        for service in omitted:
            arguments += ['--without', service]
        if rgw_url:
            arguments += ['--rgw-url', rgw_url]
        if implicit_tenants is not None:
            no = '' if implicit_tenants else 'no-'
            arguments += [f'--{no}rgw-implicit-tenants']
        self.minicloud(*arguments)

    def down(self, purge: bool = False) -> None:
        self.minicloud('down', *(['--purge'] if purge else []))
        self._sessions.clear()

    def start(self, service: str) -> None:
        self.control('start', service)

    def stop(self, service: str) -> None:
        self.control('stop', service)

    def restart(self, service: str) -> None:
        """SIGTERM, and a new start; returns when it answers again."""
        self.control('restart', service)

    def kill(self, service: str) -> None:
        """SIGKILL; ``start`` brings it back."""
        self.control('kill', service)

    def revive(self) -> None:
        """Start the services that do not run; costs little if all do."""
        found = settings.require(self._instance)
        for service in catalog.services(found.profile).values():
            absent = service.on_demand or service.name in found.omitted
            if not absent and not service.process(self._instance):
                self.start(service.name)

    def status(self) -> dict[str, Any]:
        """Return the output of ``minicloud status --format json``."""
        result = self.minicloud('status', '--format', 'json', check=False)
        if not result.stdout:
            raise CommandError(result)
        found: dict[str, Any] = json.loads(result.stdout)
        return found

    def usage(self, service: str) -> dict[str, Any]:
        """Whether a service runs, its pid, CPU seconds, memory, threads.

        It costs the service nothing, so it can be asked often.
        """
        profile = settings.require(self._instance).profile
        return catalog.find(profile, service)[0].about(self._instance)

    def log(self, service: str) -> pathlib.Path:
        return self._instance.log(service)

    # Credentials of a user

    def env(self, user: str = 'demo') -> dict[str, str]:
        """An environment for commands: demo, other, reader or admin."""
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith('OS_')
        }
        home = self._instance.home
        return {
            **inherited,
            **settings.require(self._instance).user_env(user),
            'MINICLOUD_HOME': str(home.path),
            'MINICLOUD_NAME': self.name,
            'MINICLOUD_HEAT_CONF': str(self._instance.conf / 'heat.conf'),
            'PATH': f'{home.bin}:{os.environ.get("PATH", os.defpath)}',
        }

    def openstack(self, *arguments: str, user: str = 'demo') -> str:
        """Return the output of ``openstack``; raise if it fails.

        It takes one or two seconds; ``session`` is the quick way.
        """
        return _run(['openstack', *arguments], self.env(user)).stdout

    def session(self, user: str = 'demo') -> 'Session':
        """The services' REST APIs as one of the users, logged in once."""
        if user not in self._sessions:
            self._sessions[user] = Session(
                settings.require(self._instance), user
            )
        return self._sessions[user]

    # Looking inside

    def resource_classes(self) -> dict[str, str]:
        """The class behind each of Heat's resource types, by full name."""
        found: dict[str, str] = files.read_json(
            self._instance.heat_classes, {}
        )
        return found

    def swift_requests(
        self, since: float = 0, method: str = '.*', path: str = '.*'
    ) -> list[dict[str, Any]]:
        """The requests that Swift has answered, oldest first.

        Only those from a time on (as ``time.time()`` gives it), and only
        those whose method and path match these regular expressions in full.
        """
        return [
            entry
            for entry in _lines(self._instance.swift_requests)
            if entry['time'] >= since
            and re.fullmatch(method, entry['method'])
            and re.fullmatch(path, entry['path'])
        ]

    def heat_counters(self, since: float = 0) -> list[dict[str, Any]]:
        """A sample for each second: cumulative counts, from Heat's start."""
        return [
            entry
            for entry in _lines(self._instance.heat_counters)
            if entry['time'] >= since
        ]

    # Going wrong

    def set_faults(self, rules: Sequence[Mapping[str, Any]]) -> None:
        """Let Swift misbehave from its next request on.

        minicloud_lib/services/swift_faults.py says what a rule holds.
        """
        files.write_json(self._instance.faults, list(rules))

    def clear_faults(self) -> None:
        self._instance.faults.unlink(missing_ok=True)

    @contextlib.contextmanager
    def faults(self, rules: Sequence[Mapping[str, Any]]) -> Iterator[None]:
        """Let Swift misbehave for as long as the block runs."""
        self.set_faults(rules)
        try:
            yield
        finally:
            self.clear_faults()

    # Servers

    def agent(
        self,
        name: str,
        stack: str | None = None,
        resource: str | None = None,
        *,
        interval: float = 2.0,
        user: str = 'demo',
        wait: float = 60.0,
        supervised: bool = False,
    ) -> 'Agent':
        """A server; it is not switched on before ``start`` or ``with``."""
        options = [
            *('--interval', str(interval)),
            *('--as', user),
            *('--wait', str(wait)),
            *(['--supervised'] if supervised else []),
        ]
        return Agent(self, name, stack, resource, options)

    def server(
        self,
        name: str,
        stack: str,
        resource: str,
        *,
        supervised: bool = False,
        user_data: str | os.PathLike[str] | None = None,
        boot: bool = False,
    ) -> 'Server':
        """A virtual machine; it is not started before ``start`` or ``with``.

        :param user_data: a file: what a template has as ``user_data``.
        :param boot: not to go on from the snapshot.
        """
        options = [
            *('--stack', stack, '--resource', resource),
            *(['--supervised'] if supervised else []),
            *(['--user-data', os.fspath(user_data)] if user_data else []),
            *(['--boot'] if boot else []),
        ]
        return Server(self, name, options)

    def agents(self) -> list[dict[str, Any]]:
        """Return the output of ``minicloud agent list --format json``."""
        output = self.minicloud('agent', 'list', '--format', 'json').stdout
        found: list[dict[str, Any]] = json.loads(output)
        return found

    def minicloud(
        self, *arguments: str, check: bool = True
    ) -> subprocess.CompletedProcess[str]:
        """Run the command of that name for this instance."""
        launcher = layout.SOURCE / 'minicloud'
        home = str(self._instance.home.path)
        options = ['--home', home, '--name', self.name]
        command = [sys.executable, str(launcher), *options, *arguments]
        return _run(command, dict(os.environ), check)

    def control(self, *arguments: str) -> None:
        """Do what the command does, in this process, which is quicker.

        A process that it starts belongs to the caller's, as a child.
        """
        try:
            cli.run(self._instance, arguments)
        except errors.MinicloudError as error:
            failed = subprocess.CompletedProcess(
                ['minicloud', *arguments],
                error.exit_code,
                stdout='',
                stderr=cli.explained(error) + '\n',
            )
            raise CommandError(failed) from error


class Agent:
    """A real agent that plays one server of a stack."""

    def __init__(
        self,
        cloud: Cloud,
        name: str,
        stack: str | None,
        resource: str | None,
        options: Sequence[str],
    ) -> None:
        self._cloud = cloud
        self.name = name
        self._server: list[str] = []
        if stack and resource:
            self._server = [
                *('--stack', stack),
                *('--resource', resource),
                *options,
            ]

    @property
    def path(self) -> pathlib.Path:
        """The folder that is the server's disk."""
        return self._cloud.path / 'agents' / self.name

    @property
    def log(self) -> pathlib.Path:
        return self.path / 'agent.log'

    def start(self) -> 'Agent':
        """Switch it on; waits until Heat knows the server."""
        self._cloud.control('agent', 'start', self.name, *self._server)
        return self

    def once(self) -> str:
        """Poll once and run what is new; what the agent printed."""
        result = self._cloud.minicloud(
            'agent', 'once', self.name, *self._server
        )
        return result.stdout + result.stderr

    def stop(self, remove: bool = False) -> None:
        """Switch it off, hooks and all; perhaps forget its disk."""
        self._cloud.control(
            'agent', 'stop', self.name, *(['--remove'] if remove else [])
        )

    def __enter__(self) -> 'Agent':
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class Server:
    """A virtual machine that is one server of a stack."""

    def __init__(
        self, cloud: Cloud, name: str, options: Sequence[str]
    ) -> None:
        self._cloud = cloud
        self._machine = machine.Server(cloud._instance, name)
        self._options = options
        self.name = name

    @property
    def path(self) -> pathlib.Path:
        return self._machine.path

    @property
    def console(self) -> pathlib.Path:
        return self._machine.console

    def start(self) -> 'Server':
        """Start it: as a new one, or again."""
        options = [] if self.path.is_dir() else self._options
        self._cloud.minicloud('server', 'start', self.name, *options)
        return self

    def stop(self) -> None:
        """Shut it down in order."""
        self._cloud.minicloud('server', 'stop', self.name)

    def kill(self) -> None:
        """Cut its power."""
        self._cloud.minicloud('server', 'kill', self.name)

    def plug(self) -> None:
        self._cloud.minicloud('server', 'plug', self.name)

    def unplug(self) -> None:
        """Pull the plug of its network."""
        self._cloud.minicloud('server', 'unplug', self.name)

    def run(
        self, command: str, seconds: float = 60, stdin: bytes = b''
    ) -> sockets.Result:
        """Run a command of the shell on it, as root."""
        return self._machine.inside.run(command, seconds, stdin)

    def __enter__(self) -> 'Server':
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()


class Session:
    """The REST APIs of the cloud, as one user.

    ``session.get('orchestration', '/stacks')`` and so on: the address of the
    service is put before the path. An answer is returned whatever it is.
    """

    def __init__(self, found: settings.Settings, user: str) -> None:
        self._login = (found.auth_url, user, found.secrets[user])
        rest.trust(found.ca_file)
        self._log_in()

    def _log_in(self) -> None:
        self._client = identity.Client(*self._login)
        self._until = time.monotonic() + 3600

    @property
    def token(self) -> str | None:
        if time.monotonic() > self._until:
            self._log_in()
        return self._client.token

    @property
    def project_id(self) -> str:
        return self._client.project_id

    @property
    def user_id(self) -> str:
        return self._client.user_id

    def endpoint(self, service_type: str) -> str:
        """The address of a service, by its type in the catalog."""
        return self._client.endpoint(service_type)

    def request(
        self,
        method: str,
        service_type: str,
        path: str = '',
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = 60,
    ) -> Answer:
        """Send bytes as they are, and anything else as JSON."""
        return rest.send(
            method,
            self.endpoint(service_type) + path,
            token=self.token,
            body=body,
            headers=headers,
            timeout=timeout,
        )

    def get(self, service_type: str, path: str = '', **other: Any) -> Answer:
        return self.request('GET', service_type, path, **other)

    def post(
        self, service_type: str, path: str = '', body: Any = None, **other: Any
    ) -> Answer:
        return self.request('POST', service_type, path, body, **other)

    def put(
        self, service_type: str, path: str = '', body: Any = None, **other: Any
    ) -> Answer:
        return self.request('PUT', service_type, path, body, **other)

    def patch(
        self, service_type: str, path: str = '', body: Any = None, **other: Any
    ) -> Answer:
        return self.request('PATCH', service_type, path, body, **other)

    def delete(
        self, service_type: str, path: str = '', **other: Any
    ) -> Answer:
        return self.request('DELETE', service_type, path, **other)


def _run(
    command: Sequence[str | os.PathLike[str]],
    env: Mapping[str, str],
    check: bool = True,
) -> subprocess.CompletedProcess[str]:
    result = subprocess.run(
        [os.fspath(part) for part in command],
        env=dict(env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if check and result.returncode:
        raise CommandError(result)
    return result


def _lines(path: pathlib.Path) -> Iterator[dict[str, Any]]:
    """The JSON lines of a file; the last may be half written."""
    try:
        text = path.read_text(encoding='utf-8')
    except FileNotFoundError:
        return
    for line in text.splitlines(keepends=True):
        if line.endswith('\n'):
            yield json.loads(line)
