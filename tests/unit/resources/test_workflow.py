# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow in Heat's engine, with a Mistral in memory."""

import json
from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.mistral import workflow as heats

from heat_plugins.engine import callers
from heat_plugins.resources import workflow
from tests.unit.resources import fake_mistral

NOOP = 'tasks: {t: {action: std.noop}}'
ONE = f'main:\n  input: [x, y: 1]\n  {NOOP}\n'
PLAIN = f'main:\n  {NOOP}\n'
TWO = f'{ONE}sub:\n  {NOOP}\n'

CALLS = (
    'tasks: {a: {workflow: main x=5}, b: {workflow: main}, '
    'c: {workflow: other}}'
)

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
            'flow': {'type': 'OS::Mistral::Workflow', 'properties': properties}
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

    def add_execution(self, name='stack.it.main', **more):
        """Start an execution as a user of Mistral does."""
        row = {'id': f'{len(self.rows()):032}', 'workflow_name': name, **more}
        is_gone = self.workflows.find(name) is None
        if is_gone:
            self.workflows.add(name)
        if 'x' in self.workflows.find(name)['interface']['input']:
            row['input'] = '{"x": 1}'
        row = self.executions.add(row)
        if is_gone:
            self.workflows.remove(name)
        return row

    def rows(self):
        return list(self.executions.rows.values())

    def signal(self, body=None):
        # A resource knows its stack no longer than that lives.
        loaded = self.heat.load(self.stack)
        return loaded['it'].signal(body)

    def fail(self, body=None):
        """Return the error of a signal, which Heat does not hear of."""
        # Heat need not read what others of the stack have.
        assert self.signal(body) is False
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
        assert self.workflows.names() == set(names.values())
        assert self.attribute('available_workflows') == names
        assert it.resource_id == 'stack.it'
        # No live state is asked for.
        assert it.get_live_state(it.properties) == {}
        assert len(self.attribute('show')['workflows']) == 2
        # An explicit name begins the names of several.
        self.heat.delete(self.stack)
        self.make(definition=TWO, name='mine')
        assert self.workflows.names() == {'mine.main', 'mine.sub'}

    def test_calls_and_inputs_are_those_of_the_stack(self):
        self.make(definition=f'{ONE}sub: {{{CALLS}}}\n', input={'x': 7})
        texts = self.workflows.texts()
        tasks = texts['stack.it.sub']['tasks'].values()
        assert [task['workflow'] for task in tasks] == [
            'stack.it.main x=5',
            'stack.it.main',
            'other',
        ]
        # A cron trigger, or anybody, runs it with these.
        assert texts['stack.it.main']['input'] == [{'x': 7}, {'y': 1}]

    def test_templates_for_heats_class_do_the_same(self):
        it = self.make(**HEATS)
        name = it.physical_resource_name()
        assert it.FnGetRefId() == name
        assert self.attribute('data') == {'name': name, 'input': {'x': 1}}
        spec = self.workflows.texts()[name]
        assert spec['tasks']['b']['join'] == 1
        assert spec['tasks']['b']['timeout'] == 5
        assert spec['tasks']['a']['retry']['count'] == 3
        self.signal({'input': {'x': 2}, 'params': {'read_only': True}})
        (row,) = self.rows()
        assert json.loads(row['input']) == {'x': 2}
        assert json.loads(row['params']) == {
            'env': {'e': 1},
            'read_only': True,
        }

    def test_properties_know_what_mistral_knows(self):
        task = {
            'action': 'std.noop',
            'with_items': ['i in <% $.x %>', 'j in <% $.y %>'],
            'concurrency': '<% $.n %>',
            'safe_rerun': '<% $.s %>',
            'fail_on': '<% false %>',
            'publish_on_error': {'e': 1},
            'on_success': [{'u': '<% $.ok %>'}],
        }
        expected = {
            key.replace('_', '-'): value for key, value in task.items()
        }
        retry = {'count': '3', 'delay': 1, 'break_on': '<% $.z %>'}
        texts = {'name': 't', 'pause_before': 'True', 'retry': retry}
        retry = {'count': 3, 'delay': 1, 'break-on': '<% $.z %>'}
        expected |= {'pause-before': True, 'retry': retry}
        last = {'name': 'u', 'action': 'std.noop', 'join': 'all'}
        it = self.make(
            type='direct',
            vars={'v': 1},
            output_on_error={'o': 2},
            task_defaults={'wait_before': '2', 'on_skip': 'u'},
            tasks=[{**task, **texts}, last],
        )
        spec = self.workflows.texts()[it.resource_id]
        assert spec['tasks']['t'] == expected
        assert spec['task-defaults'] == {'wait-before': 2, 'on-skip': 'u'}
        assert (spec['vars'], spec['output-on-error']) == ({'v': 1}, {'o': 2})

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
        assert spec['tasks']['t']['action'] == 'night'
        assert list(self.attribute('show')) == ['workflows']


class FormerReleaseTest(WorkflowTest):
    """Resources of Heat's own class, and of the release before this one."""

    def test_resource_of_heats_class_carries_on(self):
        it = self.make(**HEATS)
        # What Heat's class leaves in the database.
        it.data_delete('workflows')
        name = it.resource_id
        begun = self.add_execution(name)
        it.data_set('executions', begun['id'])
        assert self.attribute('available_workflows') == {name: name}
        self.signal()
        assert len(self.attribute('executions')) == 2
        for row in self.rows():
            row['state'] = 'SUCCESS'
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}
        self.heat.delete(self.stack)
        assert self.rows() == []

    def test_workflows_of_the_former_release_go_on(self):
        it = self.make(definition=PLAIN)
        mark = it.uuid.replace('-', '')[:12]
        self.workflows.add('stack.it.gone')
        record = {
            'names': {'main': 'stack.it.main'},
            'left': ['stack.it.gone'],
            'former': ['stack.it.old'],
            'mark': mark,
        }
        record |= {'actions': [], 'left_actions': [], 'left_books': []}
        it.data_set('workflows', json.dumps(record | {'book': None}))
        begun = self.add_execution('stack.it.old', id=f'{mark}{"0" * 20}')
        (shown,) = self.attribute('executions')
        assert shown['id'] == begun['id']
        begun['state'] = 'SUCCESS'
        self.heat.run(self.stack, 'CHECK')
        assert self.workflows.names() == {'stack.it.main'}
        self.update(definition=TWO)
        assert len(self.workflows.names()) == 2
        self.heat.delete(self.stack)
        assert (self.workflows.names(), self.rows()) == (set(), [])

    def book_parts(self):
        return (
            self.mistral.workbooks.find('stack.it'),
            self.mistral.actions.find('stack.it.say'),
        )

    def test_a_workbook_of_the_former_release_goes(self):
        for is_updated in (False, True):
            it = self.make(definition=PLAIN)
            self.workflows.find('stack.it.main')['name'] = 'stack.it.book'
            self.mistral.workbooks.rows['b'] = {'id': 'b', 'name': 'stack.it'}
            action = "version: '2.0'\nstack.it.say: {base: std.echo}"
            self.mistral.actions.add(action)
            record = {
                'names': {'book': 'stack.it.book'},
                'book': 'stack.it',
                'actions': ['stack.it.say'],
            }
            it.data_set('workflows', json.dumps(record))
            self.heat.run(self.stack, 'CHECK')
            assert None not in self.book_parts()
            if is_updated:
                # Workflows take its place.
                self.update(definition=ONE)
                assert self.workflows.names() == {'stack.it.main'}
            else:
                self.heat.delete(self.stack)
                assert self.workflows.names() == set()
            assert self.book_parts() == (None, None)


class HeatsTemplatesTest(WorkflowTest):
    """Templates for Heat's own class mean the same to ours."""

    TYPES = {
        'OS::Mistral::Workflow': workflow.Workflow,
        'Heats::Own': heats.Workflow,
    }

    def resources(self, **changed):
        """Return a resource of each class."""
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
        return stack.values()

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
        tasks = {'tasks': HEATS['tasks'], 'type': 'direct'}
        for properties, said in (
            ({}, '"definition"'),
            ({'type': 'direct'}, '"definition"'),
            ({'definition': ONE, **tasks}, '"definition"'),
            ({'definition': ONE, 'description': 'x'}, '"definition"'),
            ({'definition': '- a'}, 'resources.it.properties: '),
            ({**tasks, 'name': []}, 'name: Value must be a string'),
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
            assert said in self.invalid(**properties)

    def test_mistral_is_asked_once_and_has_its_words(self):
        self.workflows.refusal = 'Invalid DSL:\n unknown key'
        said = self.invalid(definition=TWO)
        assert 'workflow main, sub: Mistral says: Invalid DSL:' in said
        assert 'unknown key' in said
        assert self.mistral.calls.count('workflows.validate') == 1
        self.workflows.refusal = 'x' * 9999
        assert len(self.invalid(definition=ONE)) < 700
        # One that is away is asked later.
        self.mistral.fail('workflows.validate', fake_mistral.DOWN)
        self.heat.stack(self.template(definition=ONE), 'later').validate()

    def test_what_mistral_refuses_later_changes_nothing(self):
        self.make(definition=ONE)
        self.workflows.refusal = 'not so'
        self.mistral.fail('workflows.validate', fake_mistral.DOWN)
        assert 'not so' in self.refused_update(definition=TWO)
        assert self.mistral.changes() == []


class SignalTest(WorkflowTest):
    def test_signal_leaves_an_event_with_the_execution(self):
        self.make(definition=TWO, input={'x': 1})
        self.signal({'workflow': 'main', 'description': 'why', 'odd': 1})
        (row,) = self.rows()
        assert json.loads(row['input']) == {'x': 1}
        assert row['description'] == 'why'
        ((status, reason),) = self.reasons('SIGNAL')
        assert status == 'COMPLETE'
        assert reason == (
            f'Signal: execution {row["id"]} of stack.it.main has started; '
            'ignored: odd'
        )
        (entry,) = self.attribute('signals')
        assert entry['execution_id'] == row['id']
        assert entry['ignored'] == ['odd']

    def test_failure_leaves_an_event_that_fits_and_the_full_text(self):
        self.make(definition=ONE)
        long = 'z' * 1000
        assert long in self.fail({'input': {long: 1}})
        ((status, reason),) = self.reasons('SIGNAL')
        assert status == 'FAILED'
        assert len(reason) == 255
        (entry,) = self.attribute('signals')
        assert long in entry['error']
        assert entry['execution_id'] is None
        # Mistral refuses an input that the workflow lacks.
        assert "missing=['x']" in self.fail()
        assert "unexpected=['z']" in self.fail({'input': {'z': 1}})

    def test_body_that_asks_for_nothing_is_refused(self):
        self.make(definition=TWO, input={'x': 1})
        assert 'one of main, sub, not "gone"' in self.fail(
            {'workflow': 'gone'}
        )
        # What is remembered fits a column of the database.
        bombs = '\U0001f4a3' * 99
        odd = {f'{bombs}{number}': 1 for number in range(99)}
        self.fail({'workflow': 'e' * 9999, **odd})
        assert self.rows() == []
        loaded = self.heat.load(self.stack)
        kept = loaded['it'].data()
        # Heat's is a TEXT, which MariaDB ends at 64 KB.
        assert max(map(len, kept.values())) < 2**16

    def test_body_of_an_alarm_may_be_the_input(self):
        self.make(definition=ONE, use_request_body_as_input=True)
        self.signal({'x': 5})
        assert json.loads(self.rows()[0]['input']) == {'x': 5}

    def test_a_signal_is_retried_and_runs_once(self):
        self.make(definition=PLAIN)
        for seconds, send in ((5, self.signal), (0, self.fail)):
            self.patch(workflow.Workflow, 'RETRY_SECONDS', seconds)
            self.mistral.fail(
                'executions.create', fake_mistral.DOWN, effect=True
            )
            send()
        assert len(self.rows()) == 2
        # The run that began unnoticed ends with the resource.
        self.heat.delete(self.stack)
        assert self.rows() == []

    def test_last_signals_are_remembered(self):
        self.make(definition=TWO, default_workflow='sub')
        for _ in range(12):
            self.signal()
        assert self.rows()[0]['workflow_name'] == 'stack.it.sub'
        shown = [entry['execution_id'] for entry in self.attribute('signals')]
        assert shown == [row['id'] for row in self.rows()][:1:-1]

    def test_a_reader_of_the_project_runs_nothing(self):
        self.make(definition=PLAIN)
        # A server's URL, such as an alarm's, does.
        for user_id, send, runs in (
            ('reader', self.fail, 0),
            ('server', self.signal, 1),
        ):
            caller = callers.Signaller(
                user_id=user_id, is_of_project=user_id == 'reader'
            )
            with mock.patch.object(callers, 'of', return_value=caller):
                said = send()
            assert len(self.rows()) == runs
            if not runs:
                assert 'may not update the stack (policy stacks' in said
        # Nor is a reader shown the URL.
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        for is_reader in (True, False, True):
            with mock.patch.object(
                callers, 'may_not_update', return_value=is_reader
            ):
                url = self.attribute('alarm_url')
            assert (url is None) == is_reader, url

    def test_a_signal_to_what_has_just_gone_is_no_trouble(self):
        self.make(definition=PLAIN)
        gone = exception.NotFound('x')
        with mock.patch.object(
            workflow.Workflow, 'data_set', side_effect=gone
        ):
            self.signal()


class LifeTest(WorkflowTest):
    def test_list_is_bounded(self):
        self.make(definition=PLAIN)
        for _ in range(25):
            self.add_execution()
        assert len(self.attribute('executions')) == 20
        self.rows()[-2]['output'] = 'x' * 1000000
        assert len(self.attribute('executions')) == 1

    def test_a_dropped_workflow_that_may_be_called_stays_for_a_while(self):
        self.make(definition=TWO)
        running = self.add_execution()
        self.add_execution('stack.it.sub', state='SUCCESS')
        self.update(definition=ONE)
        assert 'stack.it.sub' in self.workflows.names()
        told = [said for _, said in self.reasons() if 'Mistral keeps' in said]
        assert len(told) == 1
        assert 'stack.it.sub' in told[0]
        # A trigger that runs it keeps it as well.
        running['state'] = 'SUCCESS'
        triggers = self.mistral.cron_triggers
        triggers.add('weekly', 'stack.it.sub', {'pattern': '1 1 * * *'})
        self.heat.run(self.stack, 'CHECK')
        assert 'stack.it.sub' in self.workflows.names()
        triggers.remove('weekly')
        self.heat.run(self.stack, 'CHECK')
        assert self.workflows.names() == {'stack.it.main'}
        # Its executions stay.
        assert len(self.attribute('executions')) == 2

    def test_failed_create_leaves_nothing_and_is_made_up_for(self):
        self.no_patience()
        self.mistral.fail(
            'workflows.create', fake_mistral.UNAVAILABLE, effect=True
        )
        assert 'Mistral answers 503' in self.refused(definition=TWO)
        assert len(self.workflows.names()) == 2
        self.update(definition=TWO)
        assert len(self.workflows.names()) == 2
        self.heat.delete(self.stack)
        assert self.workflows.names() == set()

    def test_a_rollback_removes_what_the_failed_update_made(self):
        self.make(definition=ONE)
        refused = fake_mistral.refused(400, 'not so')
        self.mistral.fail('workflows.update', refused)
        self.refused_update(definition=TWO)
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}
        # A check finds what is missing, and an update mends it.
        self.heat.run(self.stack, 'CHECK')
        self.workflows.remove('stack.it.main')
        assert 'stack.it.main' in self.check_fails()
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}

    def test_taken_name_is_left_alone_to_the_end(self):
        for more in ({}, {'project_id': 'f' * 32}):
            theirs = self.workflows.add('mine', **more)
            reason = self.refused(definition=ONE, name='mine')
            assert 'another workflow mine already' in reason
            self.heat.delete(self.stack)
            assert list(self.workflows.rows) == [theirs]
            self.workflows.rows.clear()

    def test_passing_errors_are_ridden_out(self):
        for effect in (False, True):
            for change, text in ((self.make, ONE), (self.update, TWO)):
                for call in ('list', 'create', 'update'):
                    self.mistral.fail(
                        f'workflows.{call}', fake_mistral.DOWN, effect=effect
                    )
                change(definition=text)
                self.mistral.faults.clear()
            assert len(self.workflows.names()) == 2
            self.heat.delete(self.stack)

    def test_delete_ends_what_the_resource_and_triggers_have_started(self):
        by_trigger = json.dumps({'triggered_by': {'type': 'cron_trigger'}})
        for choice, kept in (('cancel', 1), ('cancel_all', 0), ('leave', 3)):
            self.make(definition=PLAIN, executions_on_delete=choice)
            self.signal()
            self.add_execution(description=by_trigger)
            self.add_execution()
            self.heat.delete(self.stack)
            assert len(self.rows()) == kept
            self.executions.rows.clear()

    def test_trigger_of_others_is_named_before_any_execution_ends(self):
        self.make(definition=PLAIN)
        self.signal()
        pattern = {'pattern': '1 1 * * *'}
        triggers = self.mistral.cron_triggers
        trigger = triggers.add('weekly', 'stack.it.main', pattern)
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        assert 'cannot delete the workflow' in self.it.status_reason
        assert trigger['id'] in self.it.status_reason
        assert self.rows()[0]['state'] == 'RUNNING'
        triggers.remove('weekly')
        # The next one rides out a Mistral that is away.
        down = fake_mistral.DOWN
        for call in ('list', 'delete'):
            for kind in ('workflows', 'executions'):
                effect = call == 'delete'
                self.mistral.fail(f'{kind}.{call}', down, effect=effect)
        self.mistral.fail('executions.update', down)
        self.heat.delete(self.stack)
        assert self.mistral.faults == []
        assert (self.workflows.names(), self.rows()) == (set(), [])

    def test_stack_that_was_never_made_is_deleted_without_mistral(self):
        stack = self.heat.stack(self.template(definition=ONE))
        self.heat.delete(stack)
        assert self.mistral.changes() == []
