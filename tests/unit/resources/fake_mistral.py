# SPDX-License-Identifier: Apache-2.0
"""A Mistral in memory, for tests of resources.

It stands where Heat gets its mistralclient, keeps triggers, workflows and
so on as Mistral does, refuses what Mistral refuses in the words that
Mistral 23 uses, and runs nothing unless told to.
"""

import datetime
import itertools
import json
import uuid

from heat.objects import event
from keystoneauth1 import exceptions
from mistralclient.api import base
from oslo_config import cfg
from oslo_config import fixture as config_fixture
import yaml

from heat_plugins import cron_patterns
from heat_plugins.clients import heat_mistral
from heat_plugins.mistral import triggers
from tests.unit import heat_fixture

NOON = datetime.datetime(2030, 1, 1, 12, 0, 30)


def refused(status, message):
    """Return the error that mistralclient raises for an answer."""
    return base.APIException(error_code=status, error_message=message)


UNAVAILABLE = refused(503, b'<html>Service Unavailable</html>')
DOWN = exceptions.ConnectFailure('Unable to establish connection')


class Mistral:
    """What mistralclient's ``client()`` returns.

    :ivar now: the time that it is; tests may move it.
    :ivar calls: as 'manager.method', all of them in order.
    :ivar faults: of (call, error, effect): the next such call fails with
        that error; with an effect, after it has been carried out.
    """

    def __init__(self):
        self.now = NOON
        self.calls = []
        self.faults = []
        self.trusts = 0
        self.workflows = Workflows(self)
        self.workbooks = Workbooks(self)
        self.cron_triggers = CronTriggers(self)
        self.event_triggers = EventTriggers(self)
        self.executions = Executions(self)
        self.tasks = Tasks(self)
        self.environments = Environments(self)
        self.actions = Actions(self)

    def fail(self, call, *errors, effect=False):
        """Let the next such calls fail, one for each error."""
        self.faults += [(call, error, effect) for error in errors]

    def answer(self, call, work):
        """Do a call's work, or fail."""
        self.calls.append(call)
        for fault in self.faults:
            name, error, effect = fault
            if name == call:
                self.faults.remove(fault)
                if effect:
                    work()
                raise error
        return work()

    def changes(self):
        """Return the calls that were to change something."""
        reading = ('get', 'list', 'validate')
        return [
            call for call in self.calls if call.split('.')[1] not in reading
        ]


class Manager:
    """What the managers have in common."""

    def __init__(self, mistral):
        self.mistral = mistral
        self.rows = {}

    def _do(self, method, work, *given):
        return self.mistral.answer(
            f'{self.NAME}.{method}', lambda: work(*given)
        )

    def only(self):
        """Return the one row that there is."""
        (row,) = self.rows.values()
        return row

    def keep(self, row):
        """Store a row; refuse a name that is taken."""
        if self.find(row['name']):
            raise refused(409, f'Duplicate entry: {row["name"]}')
        row.setdefault('id', str(uuid.uuid4()))
        self.rows[row['id']] = row
        return row

    def find(self, identifier):
        """Return a row by its id or its name, or None."""
        for row in self.rows.values():
            if identifier in (row['id'], row['name']):
                return row
        return None

    def require(self, identifier):
        """Return a row by its id or its name."""
        row = self.find(identifier)
        if row is None:
            raise refused(404, f'{self.NAME}: {identifier} not found')
        return row

    def get(self, identifier, namespace=''):
        return shown(self._do('get', self.require, identifier))

    def list(self, fields=(), sort_keys='', sort_dirs='', limit=None, **query):
        def work():
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

        return self._do('list', work)

    def delete(self, identifier, namespace=''):
        return self._do('delete', self.remove, identifier)

    def remove(self, identifier):
        """Take a row away."""
        return self.rows.pop(self.require(identifier)['id'])


def shown(row):
    """Return a row as mistralclient does."""
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
        """Make a workflow with inputs, as a definition lists them."""
        identifier = str(uuid.uuid4())
        self.rows[identifier] = {
            'id': identifier,
            'name': name,
            'interface': {'input': list(inputs)},
            'namespace': '',
            'project_id': heat_fixture.PROJECT,
            'definition': '',
            **more,
        }
        return identifier

    def names(self):
        return {row['name'] for row in self.rows.values()}

    def texts(self):
        """Return the content of each workflow, by name."""
        return {
            row['name']: yaml.safe_load(row['definition'])[row['name']]
            for row in self.rows.values()
            if row['definition']
        }

    def validate(self, definition):
        yaml.safe_load(definition)
        answer = {'valid': self.refusal is None, 'error': self.refusal}
        return self._do('validate', lambda: answer)

    def create(self, definition, namespace=''):
        def work():
            for name, spec in read(definition):
                if self.find(name):
                    raise refused(409, f'Duplicate entry: {name}')
                self.add(
                    name,
                    *spec.get('input', ()),
                    definition=definition,
                    namespace=namespace,
                )

        return self._do('create', work)

    def update(self, definition, namespace=''):
        def work():
            for name, spec in read(definition):
                self.require(name).update(
                    definition=definition,
                    interface={'input': spec.get('input', [])},
                )

        return self._do('update', work)

    def remove(self, identifier):
        row = self.require(identifier)
        for trigger in self.mistral.cron_triggers.rows.values():
            if trigger['workflow_id'] == row['id']:
                said = "Can't delete workflow that has cron triggers"
                raise refused(400, f'{said} associated. [{trigger["id"]}]')
        return super().remove(identifier)

    def take(self, identifier, given):
        """Return a workflow that is to run with an input."""
        row = self.find(identifier)
        if row is None:
            raise refused(
                404, f'Workflow not found [workflow_identifier={identifier}]'
            )
        declared = row['interface']['input']
        required = {entry for entry in declared if isinstance(entry, str)}
        maps = [entry for entry in declared if isinstance(entry, dict)]
        optional = {*itertools.chain(*maps)}
        missing = sorted(required - given.keys())
        unexpected = sorted(given.keys() - required - optional)
        if missing or unexpected:
            raise refused(
                400,
                f'Invalid input [workflow={row["name"]}, '
                f'{missing=}, {unexpected=}]',
            )
        return row


class Workbooks(Manager):
    """The workbooks."""

    NAME = 'workbooks'


class Executions(Manager):
    """The executions."""

    NAME = 'executions'

    def begin(self, data):
        return shown(self._do('create', self.add, data))

    def add(self, data):
        """Make an execution as Mistral does, once for each id."""
        if data['id'] in self.rows:
            return self.rows[data['id']]
        workflow = self.mistral.workflows.take(
            data.get('workflow_name') or data.get('workflow_id'),
            json.loads(data.get('input') or '{}'),
        )
        row = {
            'name': '',
            'state': 'RUNNING',
            'state_info': None,
            'output': '{}',
            'published_global': '{}',
            'tasks': [],
            'workflow_namespace': '',
            'description': '',
            'created_at': f'{len(self.rows):09}',
            'updated_at': '',
            **data,
        }
        row.setdefault('workflow_name', workflow['name'])
        self.rows[row['id']] = row
        return row

    def list(self, nulls='', include_output=True, marker='', **query):
        assert nulls == 'task_execution_id'
        return super().list(**query)

    def update(self, identifier, state):
        self._do(
            'update', lambda: self.require(identifier).update(state=state)
        )

    def delete(self, identifier, force=None):
        def work():
            row = self.require(identifier)
            if row['state'] == 'RUNNING' and not force:
                raise refused(403, 'Only completed executions can be deleted')
            self.remove(identifier)

        return self._do('delete', work)

    def latest(self):
        """Return the execution that was begun last."""
        return list(self.rows.values())[-1]


class Tasks(Manager):
    """The tasks of executions."""

    NAME = 'tasks'

    def list(self, execution):
        row = self._do('list', self.mistral.executions.require, execution)
        return [shown(task) for task in row['tasks']]


class CronTriggers(Manager):
    """The cron triggers; ``fire`` lets one run."""

    NAME = 'cron_triggers'

    def create(self, name, workflow_identifier, **more):
        return shown(
            self._do('create', self.add, name, workflow_identifier, more)
        )

    def add(self, name, workflow_identifier, more):
        """Make a trigger as Mistral does."""
        first, pattern = more.get('first_time'), more.get('pattern')
        count = more.get('count')
        given = more.get('workflow_input') or {}
        workflow = self.mistral.workflows.take(workflow_identifier, given)
        if first:
            due = datetime.datetime.strptime(first, '%Y-%m-%d %H:%M')
            if due < self.mistral.now + datetime.timedelta(seconds=60):
                raise refused(
                    400,
                    'first_execution_time must be at least 1 minute in '
                    'the future.',
                )
            if not pattern:
                count = 1
        else:
            due = next(cron_patterns.times(pattern, self.mistral.now))
        row = self.keep(
            {
                'name': name,
                'workflow_name': workflow['name'],
                'workflow_id': workflow['id'],
                'workflow_input': json.dumps(given),
                'workflow_params': json.dumps(
                    more.get('workflow_params') or {}
                ),
                'pattern': pattern,
                'first_execution_time': first and f'{first}:00',
                'next_execution_time': str(due),
                'remaining_executions': count,
                'scope': 'private',
            }
        )
        self.mistral.trusts += 1
        return row

    def remove(self, identifier):
        row = super().remove(identifier)
        self.mistral.trusts -= 1
        return row

    def fire(self, name, times=1):
        """Let a trigger run, and the time pass."""
        for _ in range(times):
            row = self.require(name)
            due = datetime.datetime.fromisoformat(row['next_execution_time'])
            self.mistral.now = due
            if row['remaining_executions'] is not None:
                row['remaining_executions'] -= 1
                if row['remaining_executions'] == 0:
                    self.remove(name)
                    continue
            following = next(cron_patterns.times(row['pattern'], due))
            row['next_execution_time'] = str(following)


class EventTriggers(Manager):
    """The event triggers; one for each event, workflow and project."""

    NAME = 'event_triggers'

    PLACE = ('exchange', 'topic', 'event', 'workflow_id')

    def create(self, **values):
        return shown(self._do('create', lambda: self.add(**values)))

    def list(self):
        # Mistral 23 answers 500 to every filter.
        return super().list()

    def add(self, **values):
        """Make a trigger as Mistral does."""
        self.mistral.workflows.take(
            values['workflow_id'], values['workflow_input']
        )
        row = {
            'id': str(uuid.uuid4()),
            'project_id': heat_fixture.PROJECT,
            'scope': 'private',
            **values,
            'workflow_input': json.dumps(values['workflow_input']),
            'workflow_params': json.dumps(values['workflow_params']),
        }
        self._hold_unique(row)
        self.mistral.trusts += 1
        self.rows[row['id']] = row
        return row

    def _hold_unique(self, row):
        for other in self.rows.values():
            if other['id'] != row['id'] and all(
                other[key] == row[key] for key in (*self.PLACE, 'project_id')
            ):
                raise refused(409, 'Duplicate entry for EventTrigger')

    def update(self, identifier, values):
        def work():
            row = self.require(identifier)
            assert not values.keys() & {'exchange', 'topic', 'event'}
            self._hold_unique({**row, **values})
            row.update(values)

        return self._do('update', work)

    def remove(self, identifier):
        self.mistral.trusts -= 1
        return super().remove(identifier)


class Environments(Manager):
    """The environments."""

    NAME = 'environments'

    def create(self, **row):
        return shown(self._do('create', self.add, row))

    def add(self, row):
        """Make an environment."""
        return self.keep(row)

    def update(self, **row):
        self._do('update', lambda: self.require(row['name']).update(row))


class Actions(Manager):
    """The actions; ``std.echo`` is there."""

    NAME = 'actions'

    def __init__(self, mistral):
        super().__init__(mistral)
        self.rows['std.echo'] = {'id': 'std.echo', 'name': 'std.echo'}

    def validate(self, definition):
        return self._do('validate', self._validated, definition)

    def _validated(self, definition):
        ((_, spec),) = read(definition)
        if '<% $.' in str(spec) and ' %>' not in str(spec):
            return {'valid': False, 'error': 'Parse error'}
        if 'base' not in spec:
            return {'valid': False, 'error': "'base' is required"}
        return {'valid': True}

    def create(self, definition, scope='private'):
        return [shown(self._do('create', self.add, definition))]

    def add(self, definition):
        """Make an action."""
        ((name, spec),) = read(definition)
        inputs = ', '.join(map(str, spec.get('input', [])))
        row = {'name': name, 'definition': definition, 'input': inputs}
        return self.keep(row)

    def update(self, definition, scope='private'):
        ((name, _spec),) = read(definition)
        self._do(
            'update', lambda: self.require(name).update(definition=definition)
        )


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
        given = {**self.PROPERTIES, **properties}
        given = {k: value for k, value in given.items() if value is not None}
        return {
            'heat_template_version': '2021-04-16',
            'resources': {'it': {'type': self.TYPE, 'properties': given}},
        }

    @property
    def it(self):
        return self.stack['it']

    def make(self, **properties):
        """Create a stack; forget the calls that this took."""
        self.stack = self.heat.create(self.template(**properties))
        self.mistral.calls.clear()
        return self.it

    def update(self, **properties):
        self.heat.update(self.stack, self.template(**properties))

    def no_patience(self):
        """Let no action retry while Mistral fails."""
        conf = self.useFixture(config_fixture.Config(cfg.CONF))
        conf.config(group='heat_plugins', mistral_error_budget=0)

    def check_fails(self):
        """Check the stack in vain; return the reason."""
        self.assertRaises(AssertionError, self.heat.run, self.stack, 'CHECK')
        return self.it.status_reason

    def invalid(self, **properties):
        """Return why a template is refused."""
        return self.why_invalid(self.template(**properties), *self.ERRORS)

    def refused(self, **properties):
        """Let a stack fail to be created; return the reason."""
        self.stack = self.heat.stack(
            self.template(**properties), name=self.getUniqueString()
        )
        self.stack.validate()
        self.assertRaises(
            AssertionError, self.heat.run, self.stack, self.stack.CREATE
        )
        return self.it.status_reason

    def refused_update(self, **properties):
        """Let an update fail; return the reason."""
        self.assertRaises(AssertionError, self.update, **properties)
        assert self.it.status == 'FAILED'
        return self.it.status_reason

    def attribute(self, name):
        stack = self.heat.load(self.stack)
        return stack['it'].FnGetAtt(name)


def events(stack):
    """Return the events of a stack, oldest first."""
    return event.Event.get_all_by_stack(stack.context, stack.id)
