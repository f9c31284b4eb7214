# SPDX-License-Identifier: Apache-2.0
"""A Mistral in memory, for tests of resources.

It stands where Heat gets its mistralclient, keeps triggers, workflows and
so on as Mistral does, refuses what Mistral refuses in the words that
Mistral 23 uses, and runs nothing unless told to.
"""

import datetime
import functools
import itertools
import json
import uuid

from keystoneauth1 import exceptions
from mistralclient.api import base
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import yaml

from heat_plugins import cron_patterns
from heat_plugins.clients import heat_mistral
from heat_plugins.mistral import triggers
from tests.unit import heat_fixture


def refused(status, message):
    """Return the error that mistralclient raises for an answer."""
    return base.APIException(error_code=status, error_message=message)


UNAVAILABLE = refused(503, b'<html>Service Unavailable</html>')
DOWN = exceptions.ConnectFailure('Unable to establish connection')


def request(work):
    """Return a method that notes its call, and fails if a test wants that."""

    @functools.wraps(work)
    def method(self, *args, **kwargs):
        mistral, call = self.mistral, f'{self.NAME}.{work.__name__}'
        mistral.calls.append(call)
        fault = next((each for each in mistral.faults if each[0] == call), ())
        if not fault:
            return work(self, *args, **kwargs)
        mistral.faults.remove(fault)
        _, error, effect = fault
        if effect:
            work(self, *args, **kwargs)
        raise error

    return method


class Mistral:
    """What mistralclient's ``client()`` returns.

    :ivar now: the time that it is; tests may move it.
    :ivar calls: as 'manager.method', all of them in order.
    :ivar faults: of (call, error, effect): the next such call fails with
        that error; with an effect, after it has been carried out.
    """

    def __init__(self):
        self.now = datetime.datetime(2030, 1, 1, 12, 0, 30)
        self.calls = []
        self.faults = []
        for manager in Manager.__subclasses__():
            setattr(self, manager.NAME, manager(self))

    def fail(self, call, *errors, effect=False):
        self.faults += [(call, error, effect) for error in errors]

    def changes(self):
        """Return the calls that were to change something."""
        reads = ('.get', '.list', '.validate')
        return [call for call in self.calls if not call.endswith(reads)]


class Manager:
    """What the managers have in common; a subclass has ``NAME``."""

    def __init__(self, mistral):
        self.mistral = mistral
        self.rows = {}

    def only(self):
        (row,) = self.rows.values()
        return row

    def store(self, **row):
        row = {'id': str(uuid.uuid4()), **row}
        self.rows[row['id']] = row
        return shown(row)

    def keep(self, **row):
        if self.find(row['name']):
            raise refused(409, f'Duplicate entry: {row["name"]}')
        return self.store(**row)

    def find(self, identifier):
        for row in self.rows.values():
            if identifier in (row['id'], row['name']):
                return row
        return None

    def require(self, identifier):
        row = self.find(identifier)
        if row is None:
            raise refused(404, f'{self.NAME}: {identifier} not found')
        return row

    @request
    def get(self, identifier, namespace=''):
        return shown(self.require(identifier))

    @request
    def list(self, fields=(), sort_keys='', sort_dirs='', limit=None, **query):
        found = [
            row
            for row in self.rows.values()
            if all(fits(row[key], query[key]) for key in query)
        ]
        if sort_keys:
            key = sort_keys.partition(',')[0]
            newest = sort_dirs.startswith('desc')
            found.sort(key=lambda row: row[key], reverse=newest)
        return [shown(row) for row in found[:limit]]

    @request
    def delete(self, identifier, namespace=''):
        self.rows.pop(self.require(identifier)['id'])


def shown(row):
    return base.Resource(None, dict(row))


def read(definition):
    """Return the names and contents of a definition."""
    content = yaml.safe_load(definition)
    assert content.pop('version') == '2.0'
    return content.items()


def fits(value, query):
    """Say whether a value fits one of Mistral's filters."""
    kind, _, wanted = query.partition(':')
    return value in (wanted.split(',') if kind == 'in' else [wanted])


class Workflows(Manager):
    """The workflows; ``add`` makes one.

    :ivar refusal: what Mistral says of each definition, or None.
    """

    NAME = 'workflows'

    refusal = None

    def add(self, name, *inputs, **more):
        row = {
            'name': name,
            'inputs': list(inputs),
            'namespace': '',
            'project_id': heat_fixture.PROJECT,
            'definition': '',
            **more,
        }
        return self.store(**row).id

    def names(self):
        return {row['name'] for row in self.rows.values()}

    def texts(self):
        return {
            name: dict(read(self.find(name)['definition']))[name]
            for name in self.names()
        }

    @request
    def validate(self, definition):
        yaml.safe_load(definition)
        return {'valid': self.refusal is None, 'error': self.refusal}

    @request
    def create(self, definition, namespace=''):
        for name, spec in read(definition):
            if self.find(name):
                raise refused(409, f'Duplicate entry: {name}')
            more = {'definition': definition, 'namespace': namespace}
            self.add(name, *spec.get('input', ()), **more)

    @request
    def update(self, definition, namespace=''):
        for name, spec in read(definition):
            inputs = spec.get('input', [])
            self.require(name).update(definition=definition, inputs=inputs)

    @request
    def delete(self, identifier, namespace=''):
        row = self.require(identifier)
        for trigger in self.mistral.cron_triggers.rows.values():
            if trigger['workflow_id'] == row['id']:
                said = "Can't delete workflow that has cron triggers"
                raise refused(400, f'{said} associated. [{trigger["id"]}]')
        self.rows.pop(row['id'])

    def take(self, identifier, given):
        """Return a workflow that is to run with an input."""
        row = self.find(identifier)
        if row is None:
            raise refused(
                404, f'Workflow not found [workflow_identifier={identifier}]'
            )
        required = {each for each in row['inputs'] if isinstance(each, str)}
        maps = [each for each in row['inputs'] if isinstance(each, dict)]
        missing = sorted(required - given.keys())
        optional = {*itertools.chain(*maps)}
        unexpected = sorted(given.keys() - required - optional)
        if missing or unexpected:
            raise refused(400, f'Invalid input [{missing=}, {unexpected=}]')
        return row


class Workbooks(Manager):
    NAME = 'workbooks'


class Executions(Manager):
    NAME = 'executions'

    @request
    def begin(self, data):
        """Start an execution, once for each id."""
        if data['id'] not in self.rows:
            workflow = self.mistral.workflows.take(
                data.get('workflow_name') or data.get('workflow_id'),
                json.loads(data.get('input') or '{}'),
            )
            self.rows[data['id']] = {
                **dict.fromkeys(('name', 'workflow_namespace'), ''),
                **dict.fromkeys(('description', 'updated_at'), ''),
                **dict.fromkeys(('output', 'published_global'), '{}'),
                'workflow_name': workflow['name'],
                'state': 'RUNNING',
                'state_info': None,
                'tasks': [],
                'created_at': f'{len(self.rows):09}',
                **data,
            }
        return shown(self.rows[data['id']])

    def list(self, nulls='', include_output=True, marker='', **query):
        assert nulls == 'task_execution_id'
        return super().list(**query)

    @request
    def update(self, identifier, state):
        self.require(identifier).update(state=state)

    def delete(self, identifier, force=None):
        if self.find(identifier) and not force:
            raise refused(403, 'Only completed executions can be deleted')
        super().delete(identifier)

    def latest(self):
        return list(self.rows.values())[-1]


class Tasks(Manager):
    NAME = 'tasks'

    @request
    def list(self, execution):
        row = self.mistral.executions.require(execution)
        return [shown(task) for task in row['tasks']]


class CronTriggers(Manager):
    """The cron triggers; ``fire`` lets one run."""

    NAME = 'cron_triggers'

    @request
    def create(
        self,
        name,
        workflow_identifier,
        workflow_input=None,
        workflow_params=None,
        pattern=None,
        first_time=None,
        count=None,
    ):
        given = workflow_input or {}
        workflow = self.mistral.workflows.take(workflow_identifier, given)
        if first_time:
            due = datetime.datetime.strptime(first_time, '%Y-%m-%d %H:%M')
            if due < self.mistral.now + datetime.timedelta(seconds=60):
                said = 'must be at least 1 minute in the future.'
                raise refused(400, f'first_execution_time {said}')
            if not pattern:
                count = 1
        else:
            due = next(cron_patterns.times(pattern, self.mistral.now))
        return self.keep(
            name=name,
            workflow_name=workflow['name'],
            workflow_id=workflow['id'],
            workflow_input=json.dumps(given),
            workflow_params=json.dumps(workflow_params or {}),
            pattern=pattern,
            first_execution_time=first_time and f'{first_time}:00',
            next_execution_time=str(due),
            remaining_executions=count,
        )

    def fire(self, name, times=1):
        for _ in range(times):
            row = self.require(name)
            due = datetime.datetime.fromisoformat(row['next_execution_time'])
            self.mistral.now = due
            if row['remaining_executions'] is not None:
                row['remaining_executions'] -= 1
                if row['remaining_executions'] == 0:
                    del self.rows[row['id']]
                    continue
            following = next(cron_patterns.times(row['pattern'], due))
            row['next_execution_time'] = str(following)


class EventTriggers(Manager):
    """The event triggers; one for each event, workflow and project."""

    NAME = 'event_triggers'

    @request
    def create(self, **values):
        self.mistral.workflows.take(
            values['workflow_id'], values['workflow_input']
        )
        row = {
            'id': str(uuid.uuid4()),
            'project_id': heat_fixture.PROJECT,
            **values,
            'workflow_input': json.dumps(values['workflow_input']),
            'workflow_params': json.dumps(values['workflow_params']),
        }
        self._hold_unique(row)
        return self.store(**row)

    def list(self):
        # Mistral 23 answers 500 to every filter.
        return super().list()

    def _hold_unique(self, row):
        place = ('exchange', 'topic', 'event', 'workflow_id', 'project_id')
        for other in self.rows.values():
            if other['id'] != row['id'] and all(
                other[key] == row[key] for key in place
            ):
                raise refused(409, 'Duplicate entry for EventTrigger')

    @request
    def update(self, identifier, values):
        row = self.require(identifier)
        assert not values.keys() & {'exchange', 'topic', 'event'}
        self._hold_unique({**row, **values})
        row.update(values)


class Environments(Manager):
    NAME = 'environments'

    @request
    def create(self, **row):
        return self.keep(**row)

    @request
    def update(self, **row):
        self.require(row['name']).update(row)


class Actions(Manager):
    NAME = 'actions'

    @request
    def validate(self, definition):
        ((_, spec),) = read(definition)
        return {'valid': 'base' in spec, 'error': "'base' is required"}

    @request
    def create(self, definition, scope='private'):
        ((name, spec),) = read(definition)
        inputs = ', '.join(map(str, spec.get('input', [])))
        return [self.keep(name=name, definition=definition, input=inputs)]

    @request
    def update(self, definition, scope='private'):
        ((name, _spec),) = read(definition)
        self.require(name).update(definition=definition)


class MistralTestCase(heat_fixture.HeatTestCase):
    """A test with such a Mistral in ``self.mistral``."""

    #: The type of the resource ``it`` in a template, and its properties.
    TYPE = ''
    PROPERTIES = {}
    #: By which errors Heat refuses properties of it, beside the usual one.
    ERRORS = ()

    def setUp(self):
        super().setUp()
        self.mistral = Mistral()
        plugin = heat_mistral.MistralClientPlugin
        self.patch(plugin, '_create', lambda plugin: self.mistral)
        self.patch(triggers, 'now', lambda: self.mistral.now)
        self.heat.auth.endpoints['workflowv2'] = 'http://mistral.invalid/v2'

    def template(self, **properties):
        """Return a template; properties that are None are left out."""
        every = {**self.PROPERTIES, **properties}.items()
        given = {name: value for name, value in every if value is not None}
        return {
            'heat_template_version': '2021-04-16',
            'resources': {'it': {'type': self.TYPE, 'properties': given}},
        }

    @property
    def it(self):
        return self.stack['it']

    def make(self, **properties):
        """Create a stack; forget the calls that this took."""
        self.stack = self.heat.stack(self.template(**properties))
        self.stack.validate()
        self.heat.run(self.stack, self.stack.CREATE)
        self.mistral.calls.clear()
        return self.it

    def update(self, **properties):
        self.heat.update(self.stack, self.template(**properties))

    def delete(self):
        self.heat.delete(self.heat.load(self.stack))
        return list(getattr(self.mistral, self.it.entity).rows.values())

    def no_patience(self):
        """Let no action retry while Mistral fails."""
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        conf.config(group='heat_plugins', mistral_error_budget=0)

    def check_fails(self):
        self.assertRaises(AssertionError, self.heat.run, self.stack, 'CHECK')
        return self.it.status_reason

    def invalid(self, **properties):
        return self.why_invalid(self.template(**properties), *self.ERRORS)

    def refused(self, **properties):
        """Let a stack fail to be created; return the reason."""
        self.assertRaises(AssertionError, self.make, **properties)
        return self.it.status_reason

    def refused_update(self, **properties):
        self.assertRaises(AssertionError, self.update, **properties)
        assert self.it.status == 'FAILED'
        return self.it.status_reason

    def attribute(self, name):
        stack = self.heat.load(self.stack)
        return stack['it'].FnGetAtt(name)
