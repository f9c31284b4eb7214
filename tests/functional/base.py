# SPDX-License-Identifier: Apache-2.0
"""What the functional tests share: stacks, and a look behind them.

Everything here goes through the services' REST APIs, as any user's program
would. Servers are real agents (`minicloud_client.Cloud.agent`); a test plays
a server itself only for what no agent would send, with `Deployment.put`.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import copy
import dataclasses
import itertools
import json
import os
import pathlib
import signal
import sys
import time
from typing import Any
import urllib.parse

import psutil

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'contrib/minicloud'))

import minicloud_client  # noqa: E402
from minicloud_lib import catalog  # noqa: E402
from minicloud_lib import rest  # noqa: E402
from minicloud_lib import settings  # noqa: E402

from tests.functional import warm_openstack  # noqa: E402

Template = dict[str, Any]

_numbers = itertools.count(1)

#: Writes its input to the output ``greeting`` and to its stdout.
SCRIPT = """\
#!/bin/sh
echo "$deploy_action for $who"
printf 'hello %s' "$who" > "$heat_outputs_path.greeting"
"""


class NotShown(Exception):
    """Heat's API has not shown what was asked for; its answer."""


def _shown(answer: rest.Answer) -> rest.Answer:
    if not answer.ok:
        raise NotShown(answer)
    return answer


class Cloud(minicloud_client.Cloud):
    """A cloud whose environment has the command openstack that is warm.

    :ivar conf: a file of options for Heat.
    """

    conf: pathlib.Path

    def env(self, user: str = 'demo') -> dict[str, str]:
        found = super().env(user)
        folder = os.environ.get(warm_openstack.FOLDER)
        if folder:
            found['PATH'] = f'{folder}{os.pathsep}{found["PATH"]}'
        return found

    def software(self, words: str, *more: str) -> Any:
        """Return what ``openstack software deployment …`` shows."""
        command = 'software', 'deployment', *words.split(), '-f', 'json'
        return json.loads(self.openstack(*command, *more) or 'null')

    def again(self, **options: Any) -> None:
        """Start it with other options, and what `conf` says now."""
        self.up(conf=[self.conf], **options)

    def crash(self, service: str) -> None:
        """SIGKILL a service now; the command ``kill`` takes a second."""
        for process in self._processes(service):
            process.kill()

    @contextlib.contextmanager
    def frozen(self, service: str) -> Iterator[None]:
        """Let a service answer nothing within the context."""
        for process in self._processes(service):
            process.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in self._processes(service):
                process.signal(signal.SIGCONT)

    def _processes(self, service: str) -> list[Any]:
        profile = settings.require(self._instance).profile
        services = catalog.find(profile, service)
        found = (one.process(self._instance) for one in services)
        return [process for process in found if process]


def until(true, seconds=90, pause=1):
    """Wait until a function returns something true; return that.

    What takes long is asked for less often: to ask is work for the cloud.

    :param pause: the most seconds between two questions.
    """
    begun = time.monotonic()
    while True:
        found = true()
        if found:
            return found
        waited = time.monotonic() - begun
        assert waited < seconds, f'not within {seconds} s'
        time.sleep(min(max(0.2, waited / 10), pause))


def software(
    *,
    deployments: int = 1,
    script: str = SCRIPT,
    config: Template | None = None,
    outputs: list[Template] | None = None,
    server: Template | None = None,
    **properties: Any,
) -> Template:
    """Return a template: a server, a config and some deployments of it.

    They are called ``server``, ``config`` and ``deployment`` (``deployment0``
    and so on if there are several). The stack's parameter ``who`` is the
    config's input; each deployment's outputs are outputs of the stack.

    :param config: the config resource, in place of a script.
    :param outputs: what the config declares.
    :param server: the server's properties.
    :param properties: of each deployment, over the defaults.
    """
    names = ['deployment']
    if deployments != 1:
        names = [f'deployment{number}' for number in range(deployments)]
    declared = outputs or [{'name': 'greeting'}]
    resources: Template = {
        'server': {
            'type': 'OS::Heat::DeployedServer',
            'properties': server or {},
        },
        'config': {
            # Heat begins one thing a second of those that need no other.
            'depends_on': ['server'],
            **(
                config
                or {
                    'type': 'OS::Heat::SoftwareConfig',
                    'properties': {
                        'group': 'script',
                        'inputs': [{'name': 'who'}],
                        'outputs': declared,
                        'config': script,
                    },
                }
            ),
        },
    }
    for name in names:
        resources[name] = {
            'type': 'OS::Heat::SoftwareDeployment',
            'properties': {
                'server': {'get_resource': 'server'},
                'config': {'get_resource': 'config'},
                'signal_transport': 'TEMP_URL_POLL',
                'input_values': {'who': {'get_param': 'who'}},
                'name': name,
                **properties,
            },
        }
    if deployments > 2:
        resources['end'] = {
            'type': 'OS::Heat::Value',
            'properties': {'value': 'so that deletion begins with one'},
            'depends_on': names,
        }
    shown = [*(one['name'] for one in declared), 'deploy_stdout']
    return {
        'heat_template_version': '2021-04-16',
        'parameters': {'who': {'type': 'string', 'default': 'world'}},
        'resources': resources,
        'outputs': {
            f'{name}_{output}': {'value': {'get_attr': [name, output]}}
            for name in names
            for output in shown
        },
    }


def group(count: int, **properties: Any) -> Template:
    """Return a template with a ``group`` of deployments that nobody answers.

    :param properties: of the group.
    """
    template = software(deployments=0)
    template['outputs'] = {}
    template['resources']['group'] = {
        'type': 'OS::Heat::SoftwareDeploymentGroup',
        'properties': {
            'servers': {
                f'member{number}': {'get_resource': 'server'}
                for number in range(count)
            },
            'config': {'get_resource': 'config'},
            'signal_transport': 'NO_SIGNAL',
            'input_values': {'who': {'get_param': 'who'}},
            'name': 'group',
            **properties,
        },
    }
    return template


@dataclasses.dataclass(frozen=True)
class Deployment:
    """A software deployment as Heat's API shows it, with its config.

    :ivar inputs: of the derived config, value by name.
    """

    id: str
    status: str
    reason: str
    action: str
    config: Template
    inputs: Template

    @property
    def signal_url(self) -> str:
        return str(self.inputs['deploy_signal_id'])

    def put(self, body: bytes) -> int:
        """Signal as a server would; the HTTP status that it got."""
        return put(self.signal_url, body)

    def answer(self, **outputs: Any) -> None:
        """Send the server's result."""
        answer(self.config, **outputs)


def value(config: Template, name: str) -> str:
    """Return an input of a derived config."""
    return next(
        str(one['value']) for one in config['inputs'] if one['name'] == name
    )


def signal_url(config: Template) -> str:
    """Return where a server sends the result of a config that it is given."""
    return value(config, 'deploy_signal_id')


def body(**outputs: Any) -> bytes:
    """Return what a server sends as its result."""
    return json.dumps({'deploy_status_code': 0, **outputs}).encode()


def answer(config: Template, **outputs: Any) -> None:
    """Send a server's result of a config that it was given."""
    assert put(signal_url(config), body(**outputs)) == 201


def put(url: str, body: bytes) -> int:
    """PUT to a URL, with no credentials; the HTTP status."""
    return rest.send('PUT', url, body=body).status


def post(url: str, body: bytes) -> int:
    """POST JSON to a URL, with no credentials; the HTTP status."""
    headers = {'Content-Type': 'application/json'}
    return rest.send('POST', url, body=body, headers=headers).status


def delete_container(session: minicloud_client.Session, name: str) -> None:
    """Delete a container of the object store, and what is in it."""
    listing = session.get('object-store', f'/{name}?format=json')
    for entry in (listing.json() or ()) if listing.ok else ():
        path = f'/{name}/{urllib.parse.quote(entry["name"])}'
        session.delete('object-store', path)
    answer = session.delete('object-store', f'/{name}')
    assert answer.status in (204, 404), answer


def token(keystone: str, user: Template, project_id: str) -> str:
    """Return a token of a user: an ID, or a name with a domain; a password."""
    body = {
        'auth': {
            'identity': {'methods': ['password'], 'password': {'user': user}},
            'scope': {'project': {'id': project_id}},
        }
    }
    url = keystone.rstrip('/').removesuffix('/v3') + '/v3/auth/tokens'
    answer = rest.send('POST', url, body=body)
    assert answer.status == 201, answer
    return str(answer.headers['X-Subject-Token'])


@contextlib.contextmanager
def in_demo(cloud: minicloud_client.Cloud, name: str, *roles: str) -> Any:
    """Give a user roles in the project demo; return a session there."""
    admin, demo, user = map(cloud.session, ('admin', 'demo', name))
    granted = []
    for role in roles:
        found = admin.get('identity', f'/roles?name={role}').json()['roles']
        granted.append(
            f'/projects/{demo.project_id}/users/{user.user_id}'
            f'/roles/{found[0]["id"]}'
        )
        assert admin.put('identity', granted[-1]).ok
    login = {'id': user.user_id, 'password': cloud.env(name)['OS_PASSWORD']}
    session = copy.copy(demo)
    session._client = copy.copy(demo._client)
    keystone = admin.endpoint('identity')
    session._client.token = token(keystone, login, demo.project_id)
    try:
        yield session
    finally:
        for path in granted:
            assert admin.delete('identity', path).ok


@contextlib.contextmanager
def no_store(cloud: minicloud_client.Cloud) -> Iterator[None]:
    """Leave the object store out of a cloud's catalogue meanwhile."""
    admin = cloud.session('admin')
    found = admin.get('identity', '/services?type=object-store').json()
    path = f'/endpoints?service_id={found["services"][0]["id"]}'
    endpoints = admin.get('identity', path).json()['endpoints']
    for each in endpoints:
        assert admin.delete('identity', f'/endpoints/{each["id"]}').ok
    try:
        yield
    finally:
        names = 'interface', 'region_id', 'service_id', 'url'
        for each in endpoints:
            body = {'endpoint': {name: each[name] for name in names}}
            assert admin.post('identity', '/endpoints', body).ok


def has_ours(cloud: minicloud_client.Cloud) -> bool:
    """Whether the engine that runs has our types; the pages' check."""
    path = '/resource_types/OS::Heat::SoftwareDeployment'
    shown = cloud.session().get('orchestration', path)
    assert shown.ok, shown
    return 'signal_url_lifetime' in shown.json()['properties']


def alive(*commands: str) -> int:
    """Return how many processes of this machine have such a command line."""
    return sum(
        ' '.join(each.info['cmdline'] or ()) in commands
        for each in psutil.process_iter(['cmdline'])
    )


def curl_environment(cloud: minicloud_client.Cloud) -> dict[str, str]:
    """Return an environment in which curl trusts a cloud's authority."""
    env = dict(os.environ)
    if authority := cloud.env().get('OS_CACERT'):
        env['CURL_CA_BUNDLE'] = authority
    return env


class Stack:
    """A stack, made and deleted over the REST API."""

    def __init__(
        self,
        session,
        template,
        *,
        name=None,
        timeout_mins=5,
        tags=None,
        **parameters,
    ):
        """Begin to make it."""
        self.name = name or f'stack{next(_numbers)}'
        self._session = session
        body: Template = {
            'stack_name': self.name,
            'template': template,
            'timeout_mins': timeout_mins,
            'parameters': parameters,
            **({'tags': tags} if tags else {}),
        }
        answer = session.post('orchestration', '/stacks', body)
        assert answer.status == 201, answer
        self.id = str(answer.json()['stack']['id'])
        self._path = f'/stacks/{self.name}/{self.id}'
        #: The path of its container for signals.
        self.container = f'/heat-plugins-{self.id}'

    def acting_as(self, session: minicloud_client.Session) -> 'Stack':
        """Return it in the hands of somebody else of its project."""
        other = copy.copy(self)
        other._session = session
        return other

    # What it does

    def update(self, template, *, timeout_mins=5, **parameters):
        """Begin an update; ``wait`` says how it ends."""
        more = {'timeout_mins': timeout_mins, 'parameters': parameters}
        self._act('PUT', template=template, **more)

    def action(self, **body: Any) -> None:
        """Begin another action, such as ``suspend=None``."""
        self._act('POST', '/actions', **body)

    def delete(self) -> None:
        """Begin to delete it; ``wait`` says how that ends."""
        # Deleting what is just gone makes Heat stumble over credentials that
        # it has no more.
        if self.status == 'DELETE_COMPLETE':
            return
        answer = self._session.delete('orchestration', self._path)
        assert answer.status in (204, 404), answer

    def preview(self, template, **parameters):
        """Return what an update would do, with the names of resources."""
        body = {'template': template, 'parameters': parameters}
        answer = self._act('PUT', '/preview', **body)
        return {
            kind: [one['resource_name'] for one in found]
            for kind, found in answer.json()['resource_changes'].items()
        }

    def mark(self, resource: str) -> None:
        """Mark a resource unhealthy."""
        self._act('PATCH', f'/resources/{resource}', mark_unhealthy=True)

    def signal(self, resource: str, details: Any) -> None:
        path = f'{self._path}/resources/{resource}/signal'
        answer = self._session.post('orchestration', path, details)
        assert answer.ok, answer

    def _act(self, method: str, place: str = '', **body: Any) -> rest.Answer:
        path = f'{self._path}{place}'
        answer = self._session.request(method, 'orchestration', path, body)
        assert answer.ok, answer
        return answer

    def wait(self, status: str | None = None, seconds: float = 150) -> str:
        """Wait until nothing is in progress; the status, or the one given.

        Some actions begin a moment after Heat has agreed to them.
        """
        action = status.partition('_')[0] if status else ''

        def ended() -> Template | None:
            found = self.show(resolve_outputs=False)
            state = found['stack_status']
            if state.endswith('IN_PROGRESS') or not state.startswith(action):
                return None
            return found

        found = until(ended, seconds)
        if status is not None:
            assert found['stack_status'] == status, (
                f'{found["stack_status"]}: {found["stack_status_reason"]}'
            )
        return str(found['stack_status'])

    def acts(self, status: str = 'COMPLETE', **body: Any) -> None:
        """Have it do something, and wait until that has ended."""
        self.action(**body)
        self.wait(f'{next(iter(body)).upper()}_{status}')

    def created(self) -> 'Stack':
        """Wait until it is complete; return it."""
        self.wait('CREATE_COMPLETE')
        return self

    def updated(self, template: Template, **options: Any) -> None:
        """Update it, and wait until that is complete."""
        self.update(template, **options)
        self.wait('UPDATE_COMPLETE')

    def remove(self) -> None:
        """Delete it, and wait until it is gone."""
        self.delete()
        self.wait('DELETE_COMPLETE')

    def purge(self) -> None:
        """Delete it, whatever state it is in."""
        purge([self])

    # How it looks

    def show(self, *, resolve_outputs: bool = True) -> Template:
        """Return what Heat says of it; outputs cost the engine work."""
        query = f'?resolve_outputs={resolve_outputs}'
        answer = self._session.get('orchestration', self._path + query)
        if answer.status == 404:
            return {
                'stack_status': 'DELETE_COMPLETE',
                'stack_status_reason': '',
            }
        return dict(_shown(answer).json()['stack'])

    @property
    def status(self) -> str:
        return str(self.show(resolve_outputs=False)['stack_status'])

    @property
    def reason(self) -> str:
        shown = self.show(resolve_outputs=False)
        return str(shown['stack_status_reason'])

    @property
    def outputs(self) -> Template:
        return {
            one['output_key']: one.get('output_value')
            for one in self.show()['outputs']
        }

    def resource(self, name: str, *attributes: str) -> Template:
        query = '&'.join(f'with_attr={one}' for one in attributes)
        return dict(self._get(f'/resources/{name}?{query}')['resource'])

    def members(self, group: str) -> set[str]:
        """Return the names of what is in the stack of a group."""
        return {
            str(one['resource_name'])
            for one in self._get('/resources?nested_depth=1')['resources']
            if one.get('parent_resource') == group
        }

    def events(self, name: str) -> list[Template]:
        return list(self._get(f'/resources/{name}/events')['events'])

    def metadata(self, server: str = 'server') -> list[Template]:
        """Return the configs that the agent of a server is given."""
        found = self._get(f'/resources/{server}/metadata')['metadata']
        return list(found.get('deployments', []))

    def _get(self, place: str) -> Template:
        answer = self._session.get('orchestration', f'{self._path}{place}')
        return dict(_shown(answer).json())

    def deployment(self, name: str = 'deployment') -> Deployment | None:
        """Return what stands behind a deployment resource, or None."""
        resource_id = self.resource(name)['physical_resource_id']
        if not resource_id:
            return None
        path = f'/software_deployments/{resource_id}'
        answer = self._session.get('orchestration', path)
        if answer.status == 404:
            return None
        # A row that Heat cannot show is a defect that a test is about.
        assert answer.ok, answer
        row = answer.json()['software_deployment']
        path = f'/software_configs/{row["config_id"]}'
        answer = self._session.get('orchestration', path)
        if answer.status == 404:
            return None
        config = answer.json()['software_config']
        return Deployment(
            id=row['id'],
            status=row['status'],
            reason=row['status_reason'],
            action=row['action'],
            config=config,
            inputs={one['name']: one['value'] for one in config['inputs']},
        )

    def waiting(self, name='deployment', action='CREATE', seconds=90):
        """Wait until a deployment has been handed to its server."""

        def handed_over() -> Deployment | None:
            state = self.resource(name)['resource_status']
            found = self.deployment(name)
            if found is None or found.status != 'IN_PROGRESS':
                return None
            return found if state == f'{action}_IN_PROGRESS' else None

        found = until(handed_over, seconds)
        assert isinstance(found, Deployment)
        assert found.action == action
        return found


#: Makes stacks, as the fixture ``stacks`` does.
Make = Callable[..., Stack]


def purge(stacks: Sequence[Stack]) -> None:
    """Delete stacks, whatever state they are in, at the same time."""
    for stack in stacks:
        with contextlib.suppress(AssertionError, NotShown):
            stack.wait(seconds=2)
        stack.delete()
    for stack in stacks:
        stack.wait('DELETE_COMPLETE')


@dataclasses.dataclass(frozen=True)
class Leftovers:
    """What a project has in Heat and Swift, and its stacks in Keystone."""

    deployments: tuple[str, ...]
    configs: tuple[str, ...]
    containers: tuple[str, ...]
    stack_users: tuple[str, ...]

    @classmethod
    def of(cls, cloud: minicloud_client.Cloud) -> Any:
        session, admin = cloud.session(), cloud.session('admin')

        def ids(kind: str) -> tuple[str, ...]:
            found = session.get('orchestration', f'/{kind}').json()[kind]
            return tuple(one['id'] for one in found)

        listing = session.get('object-store', '?format=json').json()
        found = admin.get('identity', '/domains?name=heat').json()['domains']
        users = admin.get('identity', f'/users?domain_id={found[0]["id"]}')
        return cls(
            deployments=ids('software_deployments'),
            configs=ids('software_configs'),
            containers=tuple(one['name'] for one in listing or ()),
            stack_users=tuple(
                one['name']
                for one in users.json()['users']
                if not one['name'].endswith('admin')
            ),
        )

    def hold(self, cloud: minicloud_client.Cloud) -> None:
        """Hold that a project has what it had before.

        Heat deletes a stack's users after it has told of the end.
        """
        with contextlib.suppress(AssertionError):
            until(lambda: self.of(cloud) == self, 30)
        assert self.of(cloud) == self
