# SPDX-License-Identifier: Apache-2.0
"""What the tests of deployments share: a template, a clock, and an agent.

A :class:`DeploymentTestCase` has Heat's engine (``self.heat``), an object
store in memory (``self.swift``) and time that passes only where Heat would
sleep, or in :meth:`~DeploymentTestCase.step`. Its agent reads the configs
that a server is handed, as the real one does, and answers once to each.
"""

import contextlib
import copy
import json
from unittest import mock
import uuid

from heat.db import api as db_api
from heat.engine import resource
from heat.objects import software_config as config_objects
from heat.objects import software_deployment as deployment_objects
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy
import yaml

from heat_plugins.clients import heat_swift
from heat_plugins.engine import hubs
from heat_plugins.resources import software_config
from heat_plugins.resources import software_deployment
from heat_plugins.signals import watcher
from tests.unit import fake_swift
from tests.unit import heat_fixture

PROJECT = heat_fixture.PROJECT
CFN = 'http://cfn.invalid/v1'

OURS = {
    f'OS::Heat::{cls.__name__}': cls
    for cls in (
        software_config.SoftwareComponent,
        software_config.SoftwareConfig,
        software_deployment.SoftwareDeployment,
        software_deployment.SoftwareDeploymentGroup,
        software_deployment.SoftwareDeployments,
        software_config.StructuredConfig,
        software_deployment.StructuredDeployment,
        software_deployment.StructuredDeploymentGroup,
        software_deployment.StructuredDeployments,
    )
}

ALL_ACTIONS = ['CREATE', 'UPDATE', 'DELETE', 'SUSPEND', 'RESUME']

_TEMPLATE = yaml.safe_load("""
heat_template_version: "2021-04-16"
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: "#!/bin/sh"
      inputs: [{name: who, default: world}]
      outputs: [{name: answer}, {name: trouble, error_output: true}]
  server:
    type: OS::Heat::DeployedServer
    properties: {software_config_transport: POLL_SERVER_HEAT}
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: config}
      server: {get_resource: server}
      signal_transport: TEMP_URL_SIGNAL
""")


def template(config=None, resources=None, kind=None, **properties):
    """Return a template with a server, a config and its deployment.

    :param config: properties of the config that differ, or the id of another.
    :param resources: more resources, or None to leave one out.
    :param kind: the type of the deployment.
    :param properties: of the deployment; None leaves one out.
    """
    whole = copy.deepcopy(_TEMPLATE)
    parts = whole['resources']
    if isinstance(config, str):
        properties['config'] = config
    else:
        parts['config']['properties'].update(config or {})
    if kind is not None:
        parts['deployment']['type'] = kind
    _merge(parts['deployment']['properties'], properties)
    _merge(parts, resources or {})
    return whole


def deployment(**properties):
    return template(**properties)['resources']['deployment']


def component(*actions_and_configs):
    """Return a component's resource: pairs of actions and a config."""
    return {
        'type': 'OS::Heat::SoftwareComponent',
        'properties': {
            'configs': [
                {'actions': actions, 'tool': 'script', 'config': text}
                for actions, text in actions_and_configs
            ],
            'outputs': [{'name': 'answer'}],
        },
    }


def _merge(into, more):
    for name, value in more.items():
        if value is None:
            into.pop(name, None)
        else:
            into[name] = value


class DeploymentTestCase(heat_fixture.HeatTestCase):
    """A test of deployments; see the module.

    :ivar now: the time in seconds, by `time.monotonic`.
    :ivar handed: the configs that the agents have been handed so far.
    :ivar answer: what an agent answers to a config: a map, bytes, or None
        to leave it waiting; or a function that is given the config.
    :ivar meanwhile: called whenever a second passes, after the agent.
    """

    TYPES = OURS

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.heat.auth.endpoints['object-store'] = 'http://swift.invalid'
        self.replace('time.monotonic', lambda: self.now)
        init, more = watcher.Watcher.__init__, {'sleep': self._sleep}
        self.patch(init, '__defaults__', (lambda: self.now,))
        self.patch(init, '__kwdefaults__', {'stack_id': '', **more})
        self.swift, plugin = fake_swift.Cluster(), heat_swift.SwiftClientPlugin
        self.patch(plugin, '_create', lambda *_: self.swift.store(PROJECT))
        hubs.HUBS.kept.clear()
        self.addCleanup(hubs.HUBS.kept.clear)
        self.patch(hubs, 'in_background', self._at_once)
        self.configure(temp_url_secret='s3cret')
        self.handed = []
        self._looked_at = None
        self.answer = {}
        self.meanwhile = lambda: None
        self.heat.meanwhile = self._second
        self._keep_what_is_made()

    def _at_once(self, do, *args):
        do(*args)
        return lambda: None

    def _keep_what_is_made(self):
        """Hold on to stacks, and end all tasks while those are there.

        A resource refers to its stack, and the stack to its definition, by
        weak references.
        """
        kept = []

        def keeping(make):
            def made(*args, **options):
                stack = make(*args, **options)
                kept.extend((stack, stack.defn))
                return stack

            return made

        for name in ('stack', 'load'):
            self.patch(self.heat, name, keeping(getattr(self.heat, name)))
        start = self.heat.start

        def started(*args, **options):
            task = start(*args, **options)
            self.addCleanup(task.cancel)
            return task

        self.patch(self.heat, 'start', started)
        self.addCleanup(kept.clear)

    def replace(self, name, value):
        self.enterContext(mock.patch(name, value))

    def configure(self, **options):
        for name, value in options.items():
            cfg.CONF.set_override(name, value, 'heat_plugins')

    def break_database(self, owner, function, times, *, after=False):
        """Let a function fail a few times, before or after its work.

        :returns: a list of as many as it will still fail.
        """
        real = getattr(owner, function)
        left = [None] * times

        def failing(*args, **kwargs):
            if not left:
                return real(*args, **kwargs)
            left.pop()
            if after:
                real(*args, **kwargs)
            raise db_exception.DBConnectionError(
                f'[parameters: {args} {kwargs}]'
            )

        self.patch(owner, function, failing)
        return left

    # Time

    def _second(self):
        self._sleep(None, 1)

    def _sleep(self, woken, seconds):
        """Let time pass for who blocks until a signal is seen."""
        assert seconds > 0
        self.now += seconds
        self.work()
        self.meanwhile()

    def step(self, task, seconds=1):
        """Let time pass, with agents at work; say if the task has ended."""
        for _ in range(seconds):
            self._second()
            if task.step():
                return True
        return False

    def finish(self, task, seconds=600):
        assert self.step(task, seconds), 'it goes on and on'

    # Servers

    def work(self):
        """Be the agents of all servers, which look for what has changed."""
        changes = self.heat.database.changes, len(self.handed)
        if changes == self._looked_at:
            return
        self._looked_at = changes
        for server_id in self.servers():
            for config in self.heat.deployments_of(server_id):
                if config['id'] not in [each['id'] for each in self.handed]:
                    self.handed.append(config)
                    answer = self.answer
                    if 'deploy_signal_id' not in inputs(config):
                        continue
                    if callable(answer):
                        answer = answer(config)
                    if answer is not None:
                        self.send(config, answer)

    def servers(self):
        return {row.server_id for row in self.deployment_rows()}

    def send(self, config, answer=None):
        """Answer to a config as an agent does; return the HTTP status."""
        given = inputs(config)
        assert given['deploy_signal_verb'] == 'PUT'
        if not isinstance(answer, bytes):
            answer = json.dumps(answer or {}).encode()
        return self.swift.put_signed(given['deploy_signal_id'], answer)

    def in_metadata(self, stack, server='server'):
        found = stack[server].metadata_get(refresh=True)
        return found.get('deployments', [])

    # What there is

    def deployment_rows(self):
        return deployment_objects.SoftwareDeployment.get_all(
            heat_fixture.new_context(is_admin=True)
        )

    def config_ids(self):
        found = config_objects.SoftwareConfig.get_all(
            self.heat.context, limit=None, marker=None
        )
        return {row.id for row in found}

    def containers(self):
        return [name for _, name in self.swift.containers]

    def objects(self, stack):
        there = self.swift.container(f'heat-plugins-{stack.id}', PROJECT)
        return None if there is None else sorted(there.objects)

    def assert_withdrawn(self, stack, reason='', server='server'):
        """Hold that the server has nothing, and that the row says why."""
        (row,) = self.deployment_rows()
        assert row.status == 'FAILED'
        assert reason in row.status_reason
        assert self.in_metadata(stack, server) == []
        server_id = stack[server].resource_id
        assert row.server_id == server_id
        # Heat's own code delivers what a row names, whatever its status.
        for config in self.heat.deployments_of(server_id):
            assert config['group'] == 'heat-plugins-withdrawn'

    def assert_nothing_left(self):
        assert self.deployment_rows() == []
        assert self.config_ids() == set()
        assert self.containers() == []
        self.assert_nothing_waits()

    def assert_nothing_waits(self):
        assert sum(len(hub.watcher) for hub in hubs.HUBS.values()) == 0

    # Stacks

    def created(self, whole=None, **options):
        return self.heat.create(whole or template(), **options)

    def update(self, stack, whole):
        self.heat.update(self.heat.load(stack), whole)

    def act(self, stack, action):
        self.heat.run(self.heat.load(stack), action)

    def delete(self, stack):
        self.heat.delete(self.heat.load(stack))

    def adopt(self, stack):
        again = self.heat.load(stack)
        data = again.prepare_abandon()
        self.heat.delete(again)
        data['resources'] = {
            name: {**value} for name, value in data['resources'].items()
        }
        adopted = self.heat.stack(
            data['template'], 'adopted', adopt_stack_data=data
        )
        adopted._store_resources()
        task = self.heat.start(adopted.stack_task, action=adopted.ADOPT)
        self.finish(task)
        return adopted

    def waiting(self, whole=None, action='CREATE', stack=None):
        """Begin an action that nobody answers; return stack and task."""
        self.answer = None
        if stack is None:
            stack = self.heat.stack(whole or template())
        task = self.heat.begin(stack, action, whole)
        for _ in range(9):
            assert not self.step(task), stack.status_reason
        return stack, task

    def moon(self, stack):
        """Return a template for an update that a worker is to check."""
        whole = template(
            stack['config'].FnGetRefId(),
            server=stack['server'].FnGetRefId(),
            input_values={'who': 'moon'},
        )
        db_api.stack_update(stack.context, stack.id, {'convergence': True})
        return self.heat.stack(whole, name='other')

    def checked(self, stack, number):
        """Return a resource as a worker loads it."""
        found, *scope = resource.Resource.load(
            stack.context,
            number,
            stack.current_traversal,
            True,
            {name: stack[name].node_data() for name in ('config', 'server')},
        )
        # Its references are weak.
        self.addCleanup(scope.clear)
        return found

    def completes(self, task, stack):
        """Let an action end, with what the engine does last."""
        self.finish(task)
        assert stack.status == 'COMPLETE'
        stack.persist_state_and_release_lock('engine')

    def failed(self, task, stack, name='deployment'):
        """Let a task end, and return why the resource has failed."""
        self.finish(task)
        assert stack.status == 'FAILED'
        assert stack[name].status == 'FAILED'
        # What the engine does last.
        stack.persist_state_and_release_lock(uuid.uuid4().hex)
        return stack[name].status_reason

    def fails(self, whole, answer, name='stack'):
        """Create a stack that fails; return it and the reason."""
        self.answer = answer
        stack = self.heat.stack(whole, name)
        task = self.heat.begin(stack, 'CREATE')
        return stack, self.failed(task, stack)

    def dies(self, stack, action='CREATE'):
        """Be the rescue that notices a dead engine, or Heat without it."""
        again = self.heat.load(stack)
        if 'deployment' in again:
            again['deployment'].state_set(action, 'FAILED', 'It has died')
        again.state_set(action, 'FAILED', 'It has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)

    def actions(self, since=0):
        given = map(inputs, self.handed[since:])
        return [each['deploy_action'] for each in given]

    @contextlib.contextmanager
    def counting_queries(self):
        statements = []

        def note(connection, cursor, statement, *args):
            if statement != 'BEGIN':
                statements.append(statement)

        engine = db_api.get_engine()
        sqlalchemy.event.listen(engine, 'before_cursor_execute', note)
        try:
            yield statements
        finally:
            sqlalchemy.event.remove(engine, 'before_cursor_execute', note)


def inputs(config):
    return {each['name']: each['value'] for each in config['inputs']}


def events(stack):
    with db_api.context_manager.reader.using(stack.context):
        return [
            event.resource_status_reason
            for event in db_api.event_get_all_by_stack(stack.context, stack.id)
        ]
