# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow in Heat's engine, with a Mistral in memory.

What a signal asks for, and how definitions are written, is tested in
``tests/unit/mistral``.
"""

import json
from unittest import mock

from heat.common import exception
from heat.engine.resources.openstack.mistral import workflow as heats
from heat.objects import event

from heat_plugins.engine import callers
from heat_plugins.resources import workflow
from tests.unit.resources import fake_mistral

NOOP = 'tasks: {t: {action: std.noop}}'
ONE = f'main:\n  input: [x, y: 1]\n  {NOOP}\n'
PLAIN = f'main:\n  {NOOP}\n'
TWO = f'{ONE}sub:\n  {NOOP}\n'
CALLER = 'sub: {tasks: {a: {workflow: main x=5}}}\n'
YEARLY = {'pattern': '1 1 * * *'}

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


class WorkflowTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::Workflow'
    TYPES = {TYPE: workflow.Workflow, 'Heats::Own': heats.Workflow}

    def setUp(self):
        super().setUp()
        self.patch(workflow.Workflow, 'RETRY_SECONDS', 0)
        self.workflows = self.mistral.workflows
        self.executions = self.mistral.executions

    def add_execution(self, name='stack.it.main', **more):
        """Start an execution as a user of Mistral does; return its row."""
        row = {'id': f'{len(self.executions.rows):032}', 'workflow_name': name}
        self.executions.begin({**row, **more})
        return self.executions.latest()

    def rows(self):
        return list(self.executions.rows.values())

    def signal(self, body=None):
        # A resource knows its stack no longer than that lives.
        loaded = self.heat.load(self.stack)
        return loaded['it'].signal(body)

    def fail(self, body=None):
        # Heat need not read what others of the stack have.
        assert self.signal(body) is False
        return self.attribute('signals')[0]['error']

    def reasons(self, action):
        found = event.Event.get_all_by_stack(self.stack.context, self.stack.id)
        return [
            (each.resource_status, each.resource_status_reason)
            for each in found
            if each.resource_action == action
        ]

    def test_workflows_are_made_under_names_of_the_stack(self):
        it = self.make(definition=ONE + CALLER, input={'x': 7})
        names = {'main': 'stack.it.main', 'sub': 'stack.it.sub'}
        assert self.attribute('available_workflows') == names
        assert it.resource_id == 'stack.it'
        # No live state is asked for.
        assert it.get_live_state(it.properties) == {}
        assert len(self.attribute('show')['workflows']) == 2
        # A cron trigger, or anybody, runs it with these.
        texts = self.workflows.texts()
        assert texts['stack.it.main']['input'] == [{'x': 7}, {'y': 1}]
        task = texts['stack.it.sub']['tasks']['a']
        assert task['workflow'] == 'stack.it.main x=5'
        self.delete()
        self.make(definition=TWO, name='mine')
        assert self.workflows.names() == {'mine.main', 'mine.sub'}
        self.delete()
        # What another resource supplies is known later.
        value = {'get_attr': ['text', 'value']}
        params = {'template': ONE, 'params': {'std.noop': value}}
        content = self.template(
            definition={'str_replace': params}, namespace=value
        )
        content['resources']['text'] = {
            'type': 'OS::Heat::Value',
            'properties': {'value': 'night'},
        }
        self.stack = self.heat.create(content)
        spec = self.workflows.texts()['stack.it.main']
        assert spec['tasks']['t']['action'] == 'night'
        assert self.workflows.only()['namespace'] == 'night'
        assert list(self.attribute('show')) == ['workflows']

    def test_templates_for_heats_class_do_the_same(self):
        it = self.make(**HEATS)
        name = it.physical_resource_name()
        assert it.FnGetRefId() == name
        assert self.attribute('data') == {'name': name, 'input': {'x': 1}}
        tasks = self.workflows.texts()[name]['tasks']
        assert (tasks['b']['join'], tasks['b']['timeout']) == (1, 5)
        assert tasks['a']['retry']['count'] == 3
        self.signal({'input': {'x': 2}, 'params': {'read_only': True}})
        (row,) = self.rows()
        assert json.loads(row['input']) == {'x': 2}
        params = {'env': {'e': 1}, 'read_only': True}
        assert json.loads(row['params']) == params

        # What Heat's class leaves in the database carries on.
        it.data_delete('workflows')
        it.data_set('executions', row['id'])
        assert self.attribute('available_workflows') == {name: name}
        self.signal()
        assert len(self.attribute('executions')) == 2
        for row in self.rows():
            row['state'] = 'SUCCESS'
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}
        self.delete()
        assert self.rows() == []

    def test_properties_know_what_mistral_knows(self):
        task = {'action': 'std.noop', 'safe_rerun': '<% $.s %>'}
        retry = {'count': '3', 'delay': 1, 'break_on': '<% $.z %>'}
        it = self.make(
            type='direct',
            vars={'v': 1},
            output_on_error={'o': 2},
            task_defaults={'wait_before': '2', 'on_skip': 't'},
            tasks=[{'name': 't', **task, 'retry': retry}],
        )
        spec = self.workflows.texts()[it.resource_id]
        retry = {'count': 3, 'delay': 1, 'break-on': '<% $.z %>'}
        task = {'action': 'std.noop', 'safe-rerun': '<% $.s %>'}
        assert spec['tasks']['t'] == {**task, 'retry': retry}
        assert spec['task-defaults'] == {'wait-before': 2, 'on-skip': 't'}
        assert (spec['vars'], spec['output-on-error']) == ({'v': 1}, {'o': 2})

    def test_workflows_of_the_former_release_go_on(self):
        it = self.make(definition=PLAIN)
        mark = it.uuid.replace('-', '')[:12]
        names = {'main': 'stack.it.main'}
        more = {'left': ['stack.it.gone'], 'former': ['stack.it.old']}
        it.data_set('workflows', json.dumps({'names': names, **more}))
        self.workflows.add('stack.it.gone')
        former = self.workflows.add('stack.it.old')
        row = self.add_execution('stack.it.old', id=f'{mark}{"0" * 20}')
        del self.workflows.rows[former]
        (shown,) = self.attribute('executions')
        assert shown['id'] == row['id']
        row['state'] = 'SUCCESS'
        self.heat.run(self.stack, 'CHECK')
        assert self.workflows.names() == {'stack.it.main'}
        self.update(definition=TWO)
        assert self.delete() == []
        assert self.rows() == []
        # Workflows take the place of a workbook.
        books, actions = self.mistral.workbooks, self.mistral.actions
        for is_updated in (False, True):
            it = self.make(definition=PLAIN)
            self.workflows.find('stack.it.main')['name'] = 'stack.it.book'
            books.keep(name='stack.it')
            actions.keep(name='stack.it.say')
            names = {'book': 'stack.it.book'}
            more = {'book': 'stack.it', 'actions': ['stack.it.say']}
            it.data_set('workflows', json.dumps({'names': names, **more}))
            self.heat.run(self.stack, 'CHECK')
            assert books.rows and actions.rows
            if is_updated:
                self.update(definition=ONE)
                assert self.workflows.names() == {'stack.it.main'}
            else:
                assert self.delete() == []
            assert (books.rows, actions.rows) == ({}, {})

    def test_what_cannot_be_is_refused(self):
        # So is what Heat's class refuses.
        unnamed = [{'action': 'std.noop'}]
        for changed in ({'type': 'reverse'}, {'tasks': unnamed}):
            content = self.template(**{**HEATS, **changed})
            own = {**content['resources']['it'], 'type': 'Heats::Own'}
            content['resources']['own'] = own
            stack = self.heat.stack(content, name=self.getUniqueString())
            for each in stack.values():
                self.assertRaises(exception.HeatException, each.validate)
        tasks = {'tasks': HEATS['tasks'], 'type': 'direct'}
        two = {'definition': TWO}
        for properties, said in (
            ({}, '"definition"'),
            ({'type': 'direct'}, '"definition"'),
            ({'definition': ONE, **tasks}, '"definition"'),
            ({'definition': ONE, 'description': 'x'}, '"definition"'),
            ({'definition': '- a'}, 'resources.it.properties: '),
            ({**tasks, 'name': []}, 'name: Value must be a string'),
            # Use must fit the definition.
            ({**two, 'default_workflow': 'gone'}, 'has only main, sub'),
            ({**two, 'input': {'z': 1}}, '"input" has z, which no workflow'),
        ):
            assert said in self.invalid(**properties)
        # Mistral is asked once, and has its words.
        self.mistral.calls.clear()
        self.workflows.refusal = 'Invalid DSL:\n unknown key'
        said = self.invalid(definition=TWO)
        assert 'workflow main, sub: Mistral says: Invalid DSL:' in said
        assert 'unknown key' in said
        assert self.mistral.calls == ['workflows.validate']
        self.workflows.refusal = 'x' * 9999
        assert len(self.invalid(definition=ONE)) < 700
        # One that is away is asked later, and then changes nothing.
        self.workflows.refusal = None
        self.make(definition=ONE)
        self.workflows.refusal = 'not so'
        self.mistral.fail('workflows.validate', fake_mistral.DOWN)
        assert 'not so' in self.refused_update(definition=TWO)
        assert self.mistral.changes() == []

    def test_a_signal_leaves_an_event_with_the_execution_or_the_reason(self):
        self.make(definition=TWO, input={'x': 1}, default_workflow='sub')
        self.signal({'workflow': 'main', 'description': 'why', 'odd': 1})
        (row,) = self.rows()
        assert json.loads(row['input']) == {'x': 1}
        assert row['description'] == 'why'
        (told,) = self.reasons('SIGNAL')
        said = f'execution {row["id"]} of stack.it.main has started'
        assert told == ('COMPLETE', f'Signal: {said}; ignored: odd')
        (entry,) = self.attribute('signals')
        assert entry['execution_id'] == row['id']
        assert entry['ignored'] == ['odd']
        long = 'z' * 1000
        assert long in self.fail({'input': {long: 1}})
        ends = dict(self.reasons('SIGNAL'))
        assert len(ends['FAILED']) == 255
        assert self.attribute('signals')[0]['execution_id'] is None
        # The last ones are remembered, the newest first.
        for _ in range(12):
            self.signal()
        assert self.executions.latest()['workflow_name'] == 'stack.it.sub'
        shown = [entry['execution_id'] for entry in self.attribute('signals')]
        assert shown == [row['id'] for row in self.rows()][:2:-1]
        loaded = self.heat.load(self.stack)
        assert len(loaded['it'].data()) < 13
        # One to a resource that has just gone is no trouble.
        gone = mock.Mock(side_effect=exception.NotFound('x'))
        with mock.patch.object(workflow.Workflow, 'data_set', gone):
            self.signal()
        # The body of an alarm may be the input.
        self.delete()
        self.make(definition=ONE, use_request_body_as_input=True)
        self.signal({'x': 5})
        assert json.loads(self.executions.latest()['input']) == {'x': 5}

    def test_a_signal_runs_once_for_whom_it_may(self):
        self.make(definition=PLAIN)
        # A server's URL, such as an alarm's, does; a reader does not.
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
            assert runs or 'may not update the stack (policy stacks' in said
        # Nor is a reader shown the URL.
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        for is_reader in (True, False, True):
            may_not = mock.Mock(return_value=is_reader)
            with mock.patch.object(callers, 'may_not_update', may_not):
                url = self.attribute('alarm_url')
            assert (url is None) == is_reader, url
        # What passes is retried.
        down = fake_mistral.DOWN
        for seconds, send in ((5, self.signal), (0, self.fail)):
            self.patch(workflow.Workflow, 'RETRY_SECONDS', seconds)
            self.mistral.fail('executions.begin', down, effect=True)
            send()
        assert len(self.rows()) == 3
        # The run that began unnoticed ends with the resource.
        self.delete()
        assert self.rows() == []

    def test_a_dropped_workflow_that_may_be_called_stays_for_a_while(self):
        self.make(definition=TWO)
        running = self.add_execution(input='{"x": 1}')
        self.add_execution('stack.it.sub', state='SUCCESS')
        self.update(definition=ONE)
        assert 'stack.it.sub' in self.workflows.names()
        said = [told for _, told in self.reasons('UPDATE')]
        (told,) = (each for each in said if 'Mistral keeps' in each)
        assert 'stack.it.sub' in told
        # A trigger that runs it keeps it as well.
        running['state'] = 'SUCCESS'
        triggers = self.mistral.cron_triggers
        triggers.create('weekly', 'stack.it.sub', **YEARLY)
        self.heat.run(self.stack, 'CHECK')
        assert 'stack.it.sub' in self.workflows.names()
        triggers.delete('weekly')
        self.heat.run(self.stack, 'CHECK')
        assert self.workflows.names() == {'stack.it.main'}
        # Its executions stay; the list of all is bounded.
        assert len(self.attribute('executions')) == 2
        for _ in range(23):
            self.add_execution(input='{"x": 1}')
        assert len(self.attribute('executions')) == 20
        self.rows()[-2]['output'] = 'x' * 1000000
        assert len(self.attribute('executions')) == 1

    def test_failures_leave_nothing_and_are_made_up_for(self):
        # A name that is taken is left alone to the end.
        for more in ({}, {'project_id': 'f' * 32}):
            self.workflows.add('mine', **more)
            theirs = self.workflows.only()
            reason = self.refused(definition=ONE, name='mine')
            assert 'another workflow mine already' in reason
            assert self.delete() == [theirs]
            self.workflows.rows.clear()
        # Each passing error is ridden out.
        for effect in (False, True):
            for change, text in ((self.make, ONE), (self.update, TWO)):
                for call in ('list', 'create', 'update'):
                    self.mistral.fail(
                        f'workflows.{call}', fake_mistral.DOWN, effect=effect
                    )
                change(definition=text)
                self.mistral.faults.clear()
            assert len(self.workflows.names()) == 2
            self.delete()
        # A rollback removes what the failed update made.
        self.make(definition=ONE)
        refused = fake_mistral.refused(400, 'not so')
        self.mistral.fail('workflows.update', refused)
        self.refused_update(definition=TWO)
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}
        # A check finds what is missing, and an update mends it.
        self.heat.run(self.stack, 'CHECK')
        self.workflows.rows.clear()
        assert 'stack.it.main' in self.check_fails()
        self.update(definition=ONE)
        assert self.workflows.names() == {'stack.it.main'}
        self.delete()
        # What a failed create left is found.
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail('workflows.create', away, effect=True)
        assert 'Mistral answers 503' in self.refused(definition=TWO)
        assert len(self.workflows.names()) == 2
        self.update(definition=TWO)
        assert self.delete() == []

    def test_delete_ends_what_the_resource_and_triggers_have_started(self):
        by_trigger = json.dumps({'triggered_by': {'type': 'cron_trigger'}})
        for choice, kept in (('cancel', 1), ('cancel_all', 0), ('leave', 3)):
            self.make(definition=PLAIN, executions_on_delete=choice)
            self.signal()
            self.add_execution(description=by_trigger)
            self.add_execution()
            self.delete()
            assert len(self.rows()) == kept
            self.executions.rows.clear()
        # A trigger of others is named before any execution ends.
        self.make(definition=PLAIN)
        self.signal()
        triggers = self.mistral.cron_triggers
        triggers.create('weekly', 'stack.it.main', **YEARLY)
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        assert 'cannot delete the workflow' in self.it.status_reason
        assert triggers.only()['id'] in self.it.status_reason
        assert self.rows()[0]['state'] == 'RUNNING'
        triggers.rows.clear()
        # The next one rides out a Mistral that is away.
        down = fake_mistral.DOWN
        for call in ('list', 'delete'):
            for kind in ('workflows', 'executions'):
                effect = call == 'delete'
                self.mistral.fail(f'{kind}.{call}', down, effect=effect)
        self.mistral.fail('executions.update', down)
        assert self.delete() == []
        assert (self.mistral.faults, self.rows()) == ([], [])
        # One that was never made needs no Mistral.
        self.mistral.calls.clear()
        self.heat.delete(self.heat.stack(self.template(definition=ONE)))
        assert self.mistral.changes() == []
