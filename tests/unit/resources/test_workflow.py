# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow in Heat's engine, with a Mistral in memory."""

import json
from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.mistral import workflow as heats
from oslo_config import cfg

from heat_plugins.engine import callers
from heat_plugins.resources import workflow
from tests.unit.resources import fake_mistral

NOOP = 'tasks: {t: {action: std.noop}}'
ONE = f'main:\n  input: [x, y: 1]\n  {NOOP}\n'
PLAIN = f'main:\n  {NOOP}\n'
TWO = f'{ONE}sub:\n  {NOOP}\n'

#: A template as those for Heat's own class are.
HEATS = {
    'type': 'direct',
    'description': 'as ever',
    'input': {'x': 1},
    'output': {'o': '<% $.o %>'},
    'params': {'env': {'e': 1}},
    'tasks': [
        {
            'name': 'a',
            'action': 'std.echo output=1',
            'policies': {'retry': {'count': 3, 'delay': 1}},
            'publish': {'o': '<% task().result %>'},
            'on_success': ['b'],
        },
        {'name': 'b', 'action': 'std.noop', 'join': '1', 'timeout': '5'},
    ],
}


def template(outputs=None, **properties):
    return {
        'heat_template_version': '2021-04-16',
        'resources': {
            'flow': {
                'type': 'OS::Mistral::Workflow',
                'properties': properties,
            }
        },
        'outputs': outputs or {},
    }


class WorkflowTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::Workflow'
    TYPES = {TYPE: workflow.Workflow}

    def setUp(self):
        super().setUp()
        self.patch(workflow.Workflow, 'RETRY_SECONDS', 0)
        self.workflows = self.mistral.workflows
        self.executions = self.mistral.executions

    def add_execution(self, name, **more):
        """Start an execution as a user of Mistral does."""
        number = f'{len(self.executions.rows):032}'
        row = {'id': number, 'workflow_name': name, 'input': '{}', **more}
        if not self.workflows.find(name):
            self.workflows.add(name)
            row = self.executions.add(row)
            self.workflows.remove(name)
            return row
        given = self.workflows.find(name)['interface']['input']
        if 'x' in given:
            row['input'] = '{"x": 1}'
        return self.executions.add(row)

    def rows(self):
        return list(self.executions.rows.values())

    def signal(self, body=None):
        # A resource knows its stack no longer than that lives.
        loaded = self.heat.load(self.stack)
        return loaded['it'].signal(body)

    def fail(self, body=None):
        """Return the error of a signal, which Heat does not hear of."""
        # Heat need not read what others of the stack have.
        self.assertIs(False, self.signal(body))
        return self.attribute('signals')[0]['error']

    def reasons(self, action=None):
        return [
            (event.resource_status, event.resource_status_reason)
            for event in fake_mistral.events(self.stack)
            if action in (None, event.resource_action)
        ]


class DefinitionTest(WorkflowTest):
    def test_workflows_are_made_under_names_of_the_stack(self):
        it = self.make(definition=TWO)
        names = {'main': 'stack.it.main', 'sub': 'stack.it.sub'}
        self.assertEqual(set(names.values()), self.workflows.names())
        self.assertEqual(names, self.attribute('available_workflows'))
        self.assertEqual('stack.it', it.resource_id)
        # No live state is asked for.
        self.assertEqual({}, it.get_live_state(it.properties))
        self.assertEqual(2, len(self.attribute('show')['workflows']))
        # An explicit name begins the names of several.
        self.heat.delete(self.stack)
        self.make(definition=TWO, name='mine')
        self.assertEqual({'mine.main', 'mine.sub'}, self.workflows.names())

    def test_names_fit_mistral_and_stay_different(self):
        odd = 'a (b) = c, d' * 25
        content = self.template(definition=ONE)
        for name in (odd, f'{odd}!'):
            content['resources'][name] = content['resources']['it']
        self.heat.create(content)
        names = self.workflows.names()
        self.assertEqual(3, len(names))
        for name in names:
            self.assertRegex(name, r'^[\w.-]{1,255}$')

    def test_calls_and_inputs_are_those_of_the_stack(self):
        self.make(
            definition=(
                f'sub: {{input: [x, y: 1], {NOOP}}}\n'
                'main:\n  tasks:\n    a: {workflow: sub x=5}\n'
                '    b: {workflow: sub}\n    c: {workflow: other}\n'
            ),
            input={'x': 7},
        )
        texts = self.workflows.texts()
        self.assertEqual(
            ['stack.it.sub x=5', 'stack.it.sub', 'other'],
            [t['workflow'] for t in texts['stack.it.main']['tasks'].values()],
        )
        # A cron trigger, or anybody, runs it with these.
        self.assertEqual([{'x': 7}, {'y': 1}], texts['stack.it.sub']['input'])

    def test_templates_for_heats_class_do_the_same(self):
        it = self.make(**HEATS)
        name = it.physical_resource_name()
        self.assertEqual(name, it.FnGetRefId())
        self.assertEqual(
            {'name': name, 'input': {'x': 1}}, self.attribute('data')
        )
        spec = self.workflows.texts()[name]
        self.assertEqual(1, spec['tasks']['b']['join'])
        self.assertEqual(5, spec['tasks']['b']['timeout'])
        self.assertEqual(3, spec['tasks']['a']['retry']['count'])
        self.signal({'input': {'x': 2}, 'params': {'read_only': True}})
        (row,) = self.rows()
        self.assertEqual({'x': 2}, json.loads(row['input']))
        self.assertEqual(
            {'env': {'e': 1}, 'read_only': True}, json.loads(row['params'])
        )

    def test_properties_know_what_mistral_knows(self):
        task = {
            'name': 't',
            'action': 'std.noop',
            'with_items': ['i in <% $.x %>', 'j in <% $.y %>'],
            'concurrency': '<% $.n %>',
            'pause_before': 'True',
            'safe_rerun': '<% $.s %>',
            'fail_on': '<% false %>',
            'publish_on_error': {'e': 1},
            'on_success': [{'u': '<% $.ok %>'}],
            'retry': {'count': '3', 'delay': 1, 'break_on': '<% $.z %>'},
        }
        it = self.make(
            type='direct',
            vars={'v': 1},
            output_on_error={'o': 2},
            task_defaults={'wait_before': '2', 'on_skip': 'u'},
            tasks=[task, {'name': 'u', 'action': 'std.noop', 'join': 'all'}],
        )
        spec = self.workflows.texts()[it.resource_id]
        self.assertEqual(
            {
                'action': 'std.noop',
                'with-items': ['i in <% $.x %>', 'j in <% $.y %>'],
                'concurrency': '<% $.n %>',
                'pause-before': True,
                'safe-rerun': '<% $.s %>',
                'fail-on': '<% false %>',
                'publish-on-error': {'e': 1},
                'on-success': [{'u': '<% $.ok %>'}],
                'retry': {'count': 3, 'delay': 1, 'break-on': '<% $.z %>'},
            },
            spec['tasks']['t'],
        )
        self.assertEqual(
            {'wait-before': 2, 'on-skip': 'u'}, spec['task-defaults']
        )
        self.assertEqual({'v': 1}, spec['vars'])
        self.assertEqual({'o': 2}, spec['output-on-error'])

    def test_what_another_resource_names_is_known_later(self):
        content = self.template(
            definition={
                'str_replace': {
                    'template': ONE,
                    'params': {'std.noop': {'get_attr': ['text', 'value']}},
                }
            },
            namespace={'get_attr': ['text', 'value']},
        )
        content['resources']['text'] = {
            'type': 'OS::Heat::Value',
            'properties': {'value': 'night'},
        }
        self.stack = self.heat.create(content)
        spec = self.workflows.texts()['stack.it.main']
        self.assertEqual('night', spec['tasks']['t']['action'])
        self.assertEqual(['workflows'], list(self.attribute('show')))


class FormerReleaseTest(WorkflowTest):
    """Resources of Heat's own class, and of the release before this one."""

    def test_resource_of_heats_class_carries_on(self):
        it = self.make(**HEATS)
        # What Heat's class leaves in the database.
        it.data_delete('workflows')
        name = it.resource_id
        begun = self.add_execution(name)
        it.data_set('executions', begun['id'])
        self.assertEqual({name: name}, self.attribute('available_workflows'))
        self.signal()
        self.assertEqual(2, len(self.attribute('executions')))
        for row in self.rows():
            row['state'] = 'SUCCESS'
        self.update(definition=ONE)
        self.assertEqual({'stack.it.main'}, self.workflows.names())
        self.heat.delete(self.stack)
        self.assertEqual([], self.rows())

    def test_workflows_of_the_former_release_go_on(self):
        it = self.make(definition=PLAIN)
        mark = it.uuid.replace('-', '')[:12]
        self.workflows.add('stack.it.gone')
        record = {
            'names': {'main': 'stack.it.main'},
            'book': None,
            'actions': [],
            'left': ['stack.it.gone'],
            'left_actions': [],
            'left_books': [],
            'former': ['stack.it.old'],
            'mark': mark,
        }
        it.data_set('workflows', json.dumps(record))
        begun = self.add_execution('stack.it.old', id=f'{mark}{"0" * 20}')
        self.assertEqual([begun['id']], self.ids())
        begun['state'] = 'SUCCESS'
        self.heat.run(self.stack, 'CHECK')
        self.assertEqual({'stack.it.main'}, self.workflows.names())
        self.update(definition=TWO)
        self.assertEqual(2, len(self.workflows.names()))
        self.heat.delete(self.stack)
        self.assertEqual((set(), []), (self.workflows.names(), self.rows()))

    def ids(self):
        return [row['id'] for row in self.attribute('executions')]

    def with_book(self):
        """Make a stack as the former release has left one of a workbook."""
        it = self.make(definition=PLAIN)
        (self.workflows.find('stack.it.main'))['name'] = 'stack.it.book'
        self.mistral.workbooks.rows['b'] = {'id': 'b', 'name': 'stack.it'}
        self.mistral.actions.add(
            "version: '2.0'\nstack.it.say: {base: std.echo}"
        )
        record = {
            'names': {'book': 'stack.it.book'},
            'book': 'stack.it',
            'actions': ['stack.it.say'],
        }
        it.data_set('workflows', json.dumps(record))

    def book_parts(self):
        return (
            self.mistral.workbooks.find('stack.it'),
            self.mistral.actions.find('stack.it.say'),
        )

    def test_a_workbook_of_the_former_release_is_deleted(self):
        self.with_book()
        self.heat.run(self.stack, 'CHECK')
        self.assertNotIn(None, self.book_parts())
        self.heat.delete(self.stack)
        self.assertEqual((None, None), self.book_parts())
        self.assertEqual(set(), self.workflows.names())

    def test_workflows_take_the_place_of_a_workbook(self):
        self.with_book()
        self.update(definition=ONE)
        self.assertEqual((None, None), self.book_parts())
        self.assertEqual({'stack.it.main'}, self.workflows.names())


class HeatsTemplatesTest(WorkflowTest):
    """Templates for Heat's own class mean the same to ours."""

    TYPES = {
        'OS::Mistral::Workflow': workflow.Workflow,
        'Heats::Own': heats.Workflow,
    }

    def resources(self, **changed):
        """Return a resource of each class, ours first."""
        given = {'name': 'w', **HEATS, **changed}
        content = {
            'heat_template_version': '2021-04-16',
            'resources': {
                kind: {'type': kind, 'properties': given}
                for kind in self.TYPES
            },
        }
        stack = self.heat.stack(content, name=self.getUniqueString())
        # It knows its resources no longer than it lives itself.
        self.addCleanup(lambda: stack)
        return [stack[kind] for kind in self.TYPES]

    def task(self, **changed):
        first = {**HEATS['tasks'][0], **changed}
        first = {key: value for key, value in first.items() if value != '-'}
        return {'tasks': [first, HEATS['tasks'][1]]}

    def test_what_heats_class_refuses_is_refused(self):
        for changed in (
            {'type': 'sideways'},
            {'tasks': []},
            {'type': 'reverse'},
            self.task(action='-'),
            self.task(workflow='other'),
            self.task(requires=['last']),
            self.task(timeout=3, policies={'timeout': 3}),
            self.task(concurrency=2),
            self.task(name='-'),
            self.task(unknown=1),
            self.task(publish='text'),
        ):
            for one in self.resources(**changed):
                self.assertRaises(exception.HeatException, one.validate)


class ValidationTest(WorkflowTest):
    def test_what_cannot_be_is_refused(self):
        for properties, said in (
            ({}, '"definition"'),
            ({'type': 'direct'}, '"definition"'),
            (
                {'definition': ONE, 'tasks': HEATS['tasks'], 'type': 'direct'},
                '"definition"',
            ),
            ({'definition': ONE, 'description': 'x'}, '"definition"'),
            ({'definition': 'a: ['}, 'the definition is not YAML at line 2'),
            ({'definition': 'a: {tasks: {}}\n\tb'}, 'line 2'),
            ({'definition': '- a'}, 'must be a map'),
            ({'definition': 'a: 5'}, '"a" of the definition must be a map'),
            ({'definition': "version: '2.0'"}, 'is empty'),
            ({'definition': ' '}, 'must be a map'),
            (
                # A workbook.
                {'definition': f'name: b\nworkflows: {{main: {{{NOOP}}}}}'},
                'define each workflow by its name',
            ),
            # Use must fit the definition.
            (
                {'definition': TWO, 'default_workflow': 'gone'},
                'has only main, sub',
            ),
            (
                {'definition': TWO, 'input': {'z': 1}},
                '"input" has z, which no workflow',
            ),
        ):
            self.assertIn(said, self.invalid(**properties))
        reason = self.invalid(definition='- a')
        self.assertIn('resources.it.properties: ', reason)

    def test_mistral_is_asked_once_and_has_its_words(self):
        self.workflows.refusal = 'Invalid DSL:\n unknown key'
        said = self.invalid(definition=TWO)
        self.assertIn('workflow main, sub: Mistral says: Invalid DSL:', said)
        self.assertIn('unknown key', said)
        self.assertEqual(1, self.mistral.calls.count('workflows.validate'))
        self.workflows.refusal = 'x' * 9999
        self.assertLess(len(self.invalid(definition=ONE)), 700)
        # One that is away is asked later.
        self.mistral.fail('workflows.validate', fake_mistral.DOWN)
        self.heat.stack(self.template(definition=ONE), 'later').validate()

    def test_what_mistral_refuses_later_changes_nothing(self):
        self.make(definition=ONE)
        self.workflows.refusal = 'not so'
        self.mistral.fail('workflows.validate', fake_mistral.DOWN)
        self.assertIn('not so', self.refused_update(definition=TWO))
        self.assertEqual([], self.mistral.changes())


class SignalTest(WorkflowTest):
    def test_signal_leaves_an_event_with_the_execution(self):
        self.make(definition=TWO, input={'x': 1})
        self.signal({'workflow': 'main', 'description': 'why', 'odd': 1})
        (row,) = self.rows()
        self.assertEqual({'x': 1}, json.loads(row['input']))
        self.assertEqual('why', row['description'])
        ((status, reason),) = self.reasons('SIGNAL')
        self.assertEqual('COMPLETE', status)
        self.assertEqual(
            f'Signal: execution {row["id"]} of stack.it.main has started; '
            'ignored: odd',
            reason,
        )
        (entry,) = self.attribute('signals')
        self.assertEqual(row['id'], entry['execution_id'])
        self.assertEqual(['odd'], entry['ignored'])

    def test_failure_leaves_an_event_that_fits_and_the_full_text(self):
        self.make(definition=ONE)
        long = 'z' * 1000
        self.assertIn(long, self.fail({'input': {long: 1}}))
        ((status, reason),) = self.reasons('SIGNAL')
        self.assertEqual('FAILED', status)
        self.assertEqual(255, len(reason))
        (entry,) = self.attribute('signals')
        self.assertIn(long, entry['error'])
        self.assertIsNone(entry['execution_id'])
        # Mistral refuses an input that the workflow lacks.
        self.assertIn("missing=['x']", self.fail())
        self.assertIn("unexpected=['z']", self.fail({'input': {'z': 1}}))

    def test_body_that_asks_for_nothing_is_refused(self):
        self.make(definition=TWO, input={'x': 1})
        for body, said in (
            ([1], 'the body must be a map'),
            ('text', 'the body must be a map'),
            ({'input': [1]}, '"input" must be a map'),
            ({'params': 'x'}, '"params" must be a map'),
            ({'workflow': 'gone'}, 'one of main, sub, not "gone"'),
            ({'workflow': {}}, 'one of main, sub'),
            ({}, 'one of main, sub'),
        ):
            self.assertIn(said, self.fail(body))
        self.assertEqual([], self.rows())
        # What is remembered fits a column of the database.
        bombs = '\U0001f4a3' * 99
        odd = {f'{bombs}{number}': 1 for number in range(99)}
        self.fail({'workflow': 'e' * 9999, **odd})
        loaded = self.heat.load(self.stack)
        kept = loaded['it'].data()
        # Heat's is a TEXT, which MariaDB ends at 64 KB.
        self.assertLess(max(map(len, kept.values())), 2**16)

    def test_body_of_an_alarm_may_be_the_input(self):
        self.make(definition=ONE, use_request_body_as_input=True)
        self.signal({'x': 5})
        self.assertEqual({'x': 5}, json.loads(self.rows()[0]['input']))

    def test_a_signal_is_retried_and_runs_once(self):
        self.patch(workflow.Workflow, 'RETRY_SECONDS', 5)
        self.make(definition=PLAIN)
        self.mistral.fail('executions.create', fake_mistral.DOWN, effect=True)
        self.signal()
        self.assertEqual(1, len(self.rows()))
        # A run that began unnoticed ends with the resource.
        self.patch(workflow.Workflow, 'RETRY_SECONDS', 0)
        self.mistral.fail('executions.create', fake_mistral.DOWN, effect=True)
        self.fail()
        self.assertEqual(2, len(self.rows()))
        self.heat.delete(self.stack)
        self.assertEqual([], self.rows())

    def test_last_signals_are_remembered(self):
        self.make(definition=TWO, default_workflow='sub')
        for _ in range(12):
            self.signal()
        self.assertEqual('stack.it.sub', self.rows()[0]['workflow_name'])
        ids = [row['id'] for row in self.rows()]
        shown = self.attribute('signals')
        self.assertEqual(ids[:1:-1], [one['execution_id'] for one in shown])

    def test_a_reader_of_the_project_runs_nothing(self):
        self.make(definition=PLAIN)
        reader = callers.Signaller(user_id='reader', is_of_project=True)
        with mock.patch.object(callers, 'of', return_value=reader):
            said = self.fail()
        self.assertIn('may not update the stack (policy stacks:update', said)
        self.assertEqual([], self.rows())
        # A server's URL, such as an alarm's, does.
        server = callers.Signaller(user_id='server', is_of_project=False)
        with mock.patch.object(callers, 'of', return_value=server):
            self.signal()
        self.assertEqual(1, len(self.rows()))

        # Nor is it shown the URL.
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        for is_reader in (True, False, True):
            with mock.patch.object(
                callers, 'may_not_update', return_value=is_reader
            ):
                url = self.attribute('alarm_url')
            self.assertEqual(is_reader, url is None, url)
        # A signal to what has just gone is no trouble.
        loaded = self.heat.load(self.stack)
        with mock.patch.object(
            workflow.Workflow,
            'data_set',
            side_effect=exception.NotFound('x'),
        ):
            loaded['it'].signal()


class ExecutionsTest(WorkflowTest):
    def test_list_is_bounded(self):
        self.make(definition=PLAIN)
        for _ in range(25):
            self.add_execution('stack.it.main')
        self.assertEqual(20, len(self.attribute('executions')))
        self.rows()[-2]['output'] = 'x' * 1000000
        self.assertEqual(1, len(self.attribute('executions')))

    def test_a_dropped_workflow_that_may_be_called_stays_for_a_while(self):
        self.make(definition=TWO)
        running = self.add_execution('stack.it.main')
        self.add_execution('stack.it.sub', state='SUCCESS')
        self.update(definition=ONE)
        self.assertIn('stack.it.sub', self.workflows.names())
        told = [
            reason for _, reason in self.reasons() if 'Mistral keeps' in reason
        ]
        self.assertEqual(1, len(told))
        self.assertIn('stack.it.sub', told[0])
        # A trigger that runs it keeps it as well.
        running['state'] = 'SUCCESS'
        self.mistral.cron_triggers.add(
            'weekly', 'stack.it.sub', {'pattern': '1 1 * * *'}
        )
        self.heat.run(self.stack, 'CHECK')
        self.assertIn('stack.it.sub', self.workflows.names())
        self.mistral.cron_triggers.remove('weekly')
        self.heat.run(self.stack, 'CHECK')
        self.assertEqual({'stack.it.main'}, self.workflows.names())
        # Its executions stay.
        self.assertEqual(2, len(self.attribute('executions')))


class LifeTest(WorkflowTest):
    def test_failed_create_leaves_nothing_and_is_made_up_for(self):
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.mistral.fail(
            'workflows.create', fake_mistral.UNAVAILABLE, effect=True
        )
        reason = self.refused(definition=TWO)
        self.assertIn('Mistral answers 503', reason)
        self.assertEqual(2, len(self.workflows.names()))
        self.update(definition=TWO)
        self.assertEqual(2, len(self.workflows.names()))
        self.heat.delete(self.stack)
        self.assertEqual(set(), self.workflows.names())

    def test_a_rollback_removes_what_the_failed_update_made(self):
        self.make(definition=ONE)
        self.mistral.fail(
            'workflows.update', fake_mistral.refused(400, 'not so')
        )
        self.refused_update(definition=TWO)
        self.update(definition=ONE)
        self.assertEqual({'stack.it.main'}, self.workflows.names())
        # A check finds what is missing, and an update mends it.
        self.heat.run(self.stack, 'CHECK')
        self.workflows.remove('stack.it.main')
        self.assertRaises(AssertionError, self.heat.run, self.stack, 'CHECK')
        self.assertIn('stack.it.main', self.it.status_reason)
        self.update(definition=ONE)
        self.assertEqual({'stack.it.main'}, self.workflows.names())

    def test_taken_name_is_left_alone_to_the_end(self):
        for more in ({}, {'project_id': 'f' * 32}):
            theirs = self.workflows.add('mine', **more)
            reason = self.refused(definition=ONE, name='mine')
            self.assertIn('another workflow mine already', reason)
            self.heat.delete(self.stack)
            self.assertEqual([theirs], list(self.workflows.rows))
            self.workflows.rows.clear()

    def test_passing_errors_are_ridden_out(self):
        calls = ('workflows.list', 'workflows.create', 'workflows.update')
        for effect in (False, True):
            for change in (self.make, self.update):
                for call in calls:
                    self.mistral.fail(call, fake_mistral.DOWN, effect=effect)
                change(definition=ONE if change == self.make else TWO)
                self.mistral.faults.clear()
            self.assertEqual(2, len(self.workflows.names()))
            self.heat.delete(self.stack)

    def test_delete_ends_what_the_resource_and_triggers_have_started(self):
        by_trigger = json.dumps({'triggered_by': {'type': 'cron_trigger'}})
        for choice, kept in (('cancel', 1), ('cancel_all', 0), ('leave', 3)):
            self.make(definition=PLAIN, executions_on_delete=choice)
            self.signal()
            self.add_execution('stack.it.main', description=by_trigger)
            self.add_execution('stack.it.main')
            self.heat.delete(self.stack)
            self.assertEqual(kept, len(self.rows()))
            self.executions.rows.clear()

    def test_trigger_of_others_is_named_before_any_execution_ends(self):
        self.make(definition=PLAIN)
        self.signal()
        trigger = self.mistral.cron_triggers.add(
            'weekly', 'stack.it.main', {'pattern': '1 1 * * *'}
        )
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        self.assertIn('cannot delete the workflow', self.it.status_reason)
        self.assertIn(trigger['id'], self.it.status_reason)
        self.assertEqual('RUNNING', self.rows()[0]['state'])
        self.mistral.cron_triggers.remove('weekly')
        # The next one rides out a Mistral that is away.
        for call in (
            'workflows.list',
            'workflows.delete',
            'executions.list',
            'executions.update',
            'executions.delete',
        ):
            self.mistral.fail(
                call, fake_mistral.DOWN, effect=call.endswith('delete')
            )
        self.heat.delete(self.stack)
        self.assertEqual([], self.mistral.faults)
        self.assertEqual((set(), []), (self.workflows.names(), self.rows()))

    def test_stack_that_was_never_made_is_deleted_without_mistral(self):
        stack = self.heat.stack(self.template(definition=ONE))
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.changes())
