# SPDX-License-Identifier: Apache-2.0
"""Heat's engine in one process, for tests of resource classes.

Real are the template parser, stacks and resources, the database (SQLite in
memory), and behind the RPC client the engine's own code for software configs
and deployments. RPC is a direct call, Keystone is the stand-in that Heat
ships, nothing sleeps, and no other service is there. Heat's own test base
needs libraries that Heat does not require, and changes between releases.

Where a resource waits for something from outside, say what happens instead of
every sleep, or take the task and step it by hand::

    self.heat.meanwhile = lambda: signal(stack['deployment'])
    self.heat.run(stack, 'CREATE')

    task = self.heat.begin(stack, 'CREATE')
    self.assertFalse(task.step())  # still waiting
"""

import collections
import contextlib
import copy
import functools
import json
import sqlite3
from unittest import mock
import uuid

from heat.common import context
from heat.common import exception
from heat.common import messaging
from heat.common import template_format
from heat.db import api as db_api
from heat.db import models
from heat.engine import environment
from heat.engine import resource
from heat.engine import resources
from heat.engine import scheduler
from heat.engine import service
from heat.engine import service_software_config
from heat.engine import stack as heat_stack
from heat.engine import template as heat_template
from heat.engine import update as stack_update
from heat.objects import stack as stack_objects
from heat.rpc import client as rpc_client
from keystoneauth1 import access
from keystoneauth1 import fixture as keystone_fixture
from keystoneauth1 import plugin
from oslo_config import cfg
from oslo_messaging.rpc import dispatcher
import sqlalchemy
import testtools

from heat_plugins import config
from heat_plugins.engine import run_room
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.runs import triggering

PROJECT = '0123456789abcdef0123456789abcdef'

_KEYSTONE = (
    'heat.engine.clients.os.keystone.fake_keystoneclient.FakeKeystoneClient'
)

cfg.CONF.import_opt(
    'keystone_backend', 'heat.engine.clients.os.keystone.heat_keystoneclient'
)

# Else each connection that goes back to its pool lets other processes run:
# on a busy machine, a third of the tests' time.
db_api.context_manager.configure(thread_checkin=False)


Call = collections.namedtuple('Call', 'method arguments')


class Rpc(rpc_client.EngineClient):
    """Heat's RPC client, with the engine at the other end of a function call.

    It refuses any call that is not for software configs and deployments.

    :ivar calls: every call so far.
    """

    ANSWERED = frozenset(
        name
        for name in dir(service.EngineService)
        if 'software_config' in name or 'software_deployment' in name
    )

    def __init__(self):
        self.calls = []
        # Its constructor starts threads; of what that sets up, calls for
        # configs and deployments use this one attribute.
        self.engine = object.__new__(service.EngineService)
        self.engine.software_config = (
            service_software_config.SoftwareConfigService()
        )

    def call(self, ctxt, msg, version=None, timeout=None):
        method, arguments = msg
        # What travels is JSON: nobody shares lists with the other side, and
        # what cannot travel is found here.
        arguments = json.loads(json.dumps(arguments))
        self.calls.append(Call(method, arguments))
        assert method in self.ANSWERED, f'{method}({arguments})'
        try:
            answer = getattr(self.engine, method)(ctxt, **arguments)
        except dispatcher.ExpectedException as exc:
            raise exc.exc_info[1] from None
        return json.loads(json.dumps(answer))

    def cast(self, ctxt, msg, version=None):
        self.call(ctxt, msg, version)


class Auth(plugin.BaseAuthPlugin):
    """A Keystone login without a Keystone.

    :ivar endpoints: URL by service type.
    """

    def __init__(self):
        super().__init__()
        self.tokens = 0
        self.endpoints = {'orchestration': f'http://heat.invalid/v1/{PROJECT}'}

    def get_token(self, session, **kwargs):
        self.tokens += 1
        return 'unused'

    def get_endpoint(self, session, service_type=None, **kwargs):
        return self.endpoints.get(service_type)

    def get_access(self, session):
        return access.create(body=keystone_fixture.V3Token())


class Database:
    """Heat's database, in memory: the same for all tests of a process."""

    def __init__(self):
        engine = db_api.get_engine()
        models.BASE.metadata.create_all(engine)
        run_tables.upgrade(engine)
        names = [*models.BASE.metadata.tables, *run_tables.METADATA.tables]
        self._empty = ''.join(f'DELETE FROM {name};' for name in names)
        # Nothing cuts its one connection, whatever a test says of the time.
        engine.pool._pre_ping, engine.pool._recycle = False, -1
        for begin in list(engine.dispatch.begin):
            sqlalchemy.event.remove(engine, 'begin', begin)
        sqlalchemy.event.listen(engine, 'begin', self._begin)
        with engine.connect() as connection:
            self._sqlite = connection.connection.dbapi_connection

    @staticmethod
    def _begin(connection):
        """Do what oslo.db's listener would do, ten times as fast."""
        if 'in_transaction' not in connection.info:
            connection.connection.dbapi_connection.execute('BEGIN')
            connection.info['in_transaction'] = True

    @property
    def changes(self):
        return self._sqlite.total_changes

    def empty(self):
        self._sqlite.executescript(self._empty)

    def save(self):
        """Return what puts the rows of now back."""
        saved = sqlite3.connect(':memory:', check_same_thread=False)
        self._sqlite.backup(saved)
        return functools.partial(saved.backup, self._sqlite)


database = functools.cache(Database)


class Heat:
    """An engine with a fresh database.

    :ivar rpc: what every resource's ``rpc_client()`` returns.
    :ivar auth: the login of every context, with the cloud's endpoints.
    :ivar meanwhile: called wherever Heat would sleep for a second.
    :ivar waited: for how many seconds Heat would have slept in the action at
        hand.
    """

    def __init__(self, types):
        """Register resource classes by type while this is started."""
        self._types = types
        self._cleanup = contextlib.ExitStack()

    def setup(self):
        """Start with an empty database."""
        with contextlib.ExitStack() as cleanup:
            self.meanwhile = lambda: None
            self.waited = 0
            cleanup.enter_context(
                mock.patch.object(scheduler.TaskRunner, '_sleep', self._sleep)
            )
            self._configure(cleanup)
            self.database = database()
            # A test before this one may have used it otherwise.
            self.database.empty()
            cleanup.callback(self.database.empty)
            # Once for all tests: to load its drivers takes long.
            messaging.setup('fake://', optional=True)
            resources.initialise()
            self._register(cleanup)
            self.rpc = Rpc()
            cleanup.enter_context(
                mock.patch.object(
                    rpc_client, 'EngineClient', return_value=self.rpc
                )
            )
            self.auth = Auth()
            cleanup.enter_context(
                mock.patch.object(
                    context.RequestContext,
                    '_create_auth_plugin',
                    return_value=self.auth,
                )
            )
            self.context = new_context()
            self._cleanup = cleanup.pop_all()

    def cleanup(self):
        self._cleanup.close()

    def _sleep(self, seconds):
        if seconds:
            self.waited += seconds
            assert self.waited <= 1000, 'nobody does what a stack waits for'
            self.meanwhile()

    def _configure(self, cleanup):
        cfg.CONF([], project='heat', default_config_files=[])
        cleanup.callback(cfg.CONF.reset)
        cleanup.callback(cfg.CONF.clear)
        for name, value in {
            'keystone_backend': _KEYSTONE,
            'stack_domain_admin': 'admin',
            'stack_domain_admin_password': 'unused',
            'stack_user_domain_id': 'users',
            # A resource that fails is not tried again.
            'action_retry_limit': 0,
            'error_wait_time': None,
            # Nothing of the machine's own Heat is to be read.
            'environment_dir': '/nonexistent',
            'template_dir': '/nonexistent',
            'plugin_dirs': [],
        }.items():
            cfg.CONF.set_override(name, value)
        cfg.CONF.set_override('connection', 'sqlite://', 'database')
        # No other engine dies, and no thread is to look into the database.
        config.register_opts(cfg.CONF)
        cfg.CONF.set_override('rescue_interval', 0, config.GROUP)
        run_room.install(triggering)

    def _register(self, cleanup):
        registry = resources.global_env().registry
        before = copy.copy(registry._registry)

        def restore():
            registry._registry = before

        registry._registry = copy.copy(before)
        cleanup.callback(restore)
        for name, cls in self._types.items():
            resource._register_class(name, cls)

    def stack(self, template, name='stack', parameters=None, **options):
        """Return a stack, stored and not created.

        :param template: its text, or a map.
        """
        stack = heat_stack.Stack(
            self.context, name, self._template(template, parameters), **options
        )
        stack.store()
        return stack

    def create(self, template, name='stack', **options):
        """Validate and create a stack as the engine does, and return it."""
        stack = self.stack(template, name, **options)
        stack.validate()
        self.run(stack, stack.CREATE)
        return stack

    def run(self, stack, action):
        """Run a stack's CREATE, SUSPEND, RESUME or CHECK to its end."""
        self.waited = 0
        getattr(stack, action.lower())()
        # What the engine does last; until then the row says IN_PROGRESS.
        stack.persist_state_and_release_lock(uuid.uuid4().hex)
        _expect(stack, action)

    def update(self, stack, template):
        self.waited = 0
        stack.update(self._changed(stack, template))
        _expect(stack, stack.UPDATE)

    def preview(self, stack, template):
        """Return the names of resources, by what an update does to them."""
        found = self.load(stack)
        changed = self._changed(found, template)
        return stack_update.StackUpdate(found, changed, None).preview()

    def delete(self, stack):
        self.waited = 0
        stack.delete()
        _expect(stack, stack.DELETE)

    def load(self, stack, context=None):
        """Return the stack anew from the database, with no memory.

        Hold on to it: a resource of it does not keep it alive.
        """
        return heat_stack.Stack.load(context or self.context, stack.id)

    def change(self, resource_id, **values):
        """Change a resource's row as another engine would; return its id."""
        row = db_api.resource_get(self.context, resource_id)
        db_api.resource_update(
            self.context, row.id, values, row.atomic_key, row.engine_id
        )
        return row.id

    def stop(self, stack):
        row = stack_objects.Stack.get_by_id(self.context, stack.id)
        row.update_and_save(
            {'current_traversal': 'another', 'status': 'FAILED'}
        )

    def outputs(self, stack):
        """Return the values of a stack's outputs, as stack-show has them."""
        stack._update_all_resource_data(for_resources=False, for_outputs=True)
        return {name: o.get_value() for name, o in stack.outputs.items()}

    def _changed(self, stack, template):
        changed = heat_stack.Stack(
            self.context,
            stack.name,
            self._template(template),
            **stack.get_kwargs_for_cloning(),
        )
        changed.validate()
        return changed

    def _template(self, template, parameters=None):
        if isinstance(template, str):
            template = template_format.parse(template)
        return heat_template.Template(
            template, env=environment.Environment(parameters or {})
        )

    def start(self, task, /, *args, **kwargs):
        """Start something that Heat runs as a task.

        :param task: such as ``stack['name'].create``.
        :returns: a scheduler.TaskRunner, started: ``step()`` goes on for a
            second and returns whether it has ended.
        """
        runner = scheduler.TaskRunner(task, *args, **kwargs)
        runner.start()
        return runner

    def begin(self, stack, action, template=None):
        """Start to create, update, suspend, resume or check a stack.

        A failure is in ``stack.status``.
        """
        if action == stack.UPDATE:
            changed = self._changed(stack, template)
            return self.start(stack.update_task, changed)
        if action == stack.CREATE:
            stack.validate()
            stack._store_resources()
        return self.start(stack.stack_task, action=action)

    def deployments_of(self, server_id):
        """Return the configs that a server's agent would be given now."""
        return self.rpc.engine.metadata_software_deployments(
            self.context, server_id
        )


def new_context(**values):
    """Return a request context; ``values`` replace its fields."""
    return context.RequestContext.from_dict(
        {
            'tenant': 'project',
            'project_id': PROJECT,
            'username': 'user',
            'user_id': uuid.UUID(int=1).hex,
            'password': 'unused',
            'roles': ['member'],
            'is_admin': False,
            'auth_url': 'http://keystone.invalid:5000/v3',
            'auth_token': 'unused',
            **values,
        }
    )


def _expect(stack, action):
    state = (stack.action, stack.status)
    if state != (action, stack.COMPLETE):
        failed = '; '.join(
            f'{r.name}: {r.status_reason}'
            for r in stack.values()
            if r.status == r.FAILED
        )
        raise AssertionError(f'{state}: {stack.status_reason} [{failed}]')


class HeatTestCase(testtools.TestCase):
    """A test with an engine of its own in ``self.heat``."""

    #: Resource class by type, in place of Heat's own.
    TYPES = {}

    def setUp(self):
        super().setUp()
        self.heat = Heat(self.TYPES)
        self.heat.setup()
        self.addCleanup(self.heat.cleanup)

    def why_invalid(self, template, *errors):
        """Return why a template is refused; by these errors of Heat, too."""
        stack = self.heat.stack(template, name=self.getUniqueString())
        error = self.assertRaises(
            (exception.StackValidationFailed, *errors), stack.validate
        )
        return str(error)
