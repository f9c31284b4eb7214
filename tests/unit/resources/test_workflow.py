# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Workflow in Heat's engine, with a Mistral in memory."""

import json
from unittest import mock

from heat.common import exception
from heat.objects import event as event_objects
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins.deployments import signallers
from heat_plugins.engine import callers
from heat_plugins.resources import workflow
from tests.unit import heat_fixture
from tests.unit.mistral import fake_service

NOOP = 'tasks: {t: {action: std.noop}}'
ONE = f'main:\n  input: [x, y: 1]\n  {NOOP}\n'
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


class WorkflowTest(heat_fixture.HeatTestCase):
    TYPES = {'OS::Mistral::Workflow': workflow.Workflow}

    def setUp(self):
        super().setUp()
        self.mistral = fake_service.FakeService()
        for name, value in {
            '_service': lambda _: self.mistral,
            'RETRY_SECONDS': 0,
            'is_service_available': classmethod(lambda *_: (True, None)),
        }.items():
            patch = mock.patch.object(workflow.Workflow, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def create(self, **properties):
        return self.heat.create(template(**properties))

    def fault(self, method, done=False):
        error = fake_service.unavailable()
        self.mistral.faults.append((method, error, done))

    def signal(self, stack, body=None):
        resource = self.heat.load(stack)
        resource['flow'].signal(body)

    def fail(self, stack, body=None):
        error = self.assertRaises(
            exception.ResourceFailure, self.signal, stack, body
        )
        return str(error)

    def attribute(self, stack, name):
        loaded = self.heat.load(stack)
        return loaded['flow'].FnGetAtt(name)

    def events(self, stack):
        found = event_objects.Event.get_all_by_stack(
            self.heat.context, stack.id
        )
        return [
            (one.resource_status, one.resource_status_reason)
            for one in found
            if one.resource_action == 'SIGNAL'
        ]


class DefinitionTest(WorkflowTest):
    def test_workflows_are_made_under_names_of_the_stack(self):
        stack = self.create(definition=TWO)
        names = {'main': 'stack.flow.main', 'sub': 'stack.flow.sub'}
        self.assertEqual(set(names.values()), set(self.mistral.workflows))
        self.assertEqual(names, self.attribute(stack, 'available_workflows'))
        self.assertEqual('stack.flow', stack['flow'].resource_id)

    def test_only_workflow_is_what_get_resource_gives(self):
        outputs = {'name': {'value': {'get_resource': 'flow'}}}
        stack = self.heat.create(template(outputs, definition=ONE))
        self.assertEqual({'name': 'stack.flow.main'}, self.heat.outputs(stack))

    def test_explicit_name_is_kept(self):
        stack = self.create(definition=ONE, name='mine')
        self.assertEqual('mine', stack['flow'].FnGetRefId())
        self.assertEqual({'mine'}, set(self.mistral.workflows))

    def test_templates_for_heats_class_do_the_same(self):
        stack = self.create(**HEATS)
        name = stack['flow'].physical_resource_name()
        self.assertEqual(name, stack['flow'].FnGetRefId())
        self.assertEqual(
            {'name': name, 'input': {'x': 1}}, self.attribute(stack, 'data')
        )
        (text,) = self.mistral.workflows.values()
        self.assertIn('join: 1\n', text)
        self.assertIn('timeout: 5\n', text)
        self.assertIn('retry:\n        count: 3\n', text)
        self.signal(stack, {'input': {'x': 2}, 'params': {'read_only': True}})
        (row,) = self.mistral.rows
        self.assertEqual({'x': 2}, row['input'])
        self.assertEqual({'env': {'e': 1}, 'read_only': True}, row['params'])

    def test_resource_of_heats_class_carries_on(self):
        stack = self.create(**HEATS)
        resource = stack['flow']
        # What Heat's class leaves in the database.
        resource.data_delete('workflows')
        self.mistral.add(resource.resource_id, id='d' * 32)
        resource.data_set('executions', 'd' * 32)
        name = resource.resource_id
        self.assertEqual(
            {name: name}, self.attribute(stack, 'available_workflows')
        )
        self.signal(stack)
        self.assertEqual(2, len(self.attribute(stack, 'executions')))
        for row in self.mistral.rows:
            row['state'] = 'SUCCESS'
        self.heat.update(stack, template(definition=ONE))
        self.assertEqual({'stack.flow.main'}, set(self.mistral.workflows))
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.rows)

    def test_name_may_still_be_unknown(self):
        content = template(
            definition={
                'str_replace': {
                    'template': ONE,
                    'params': {'std.noop': {'get_attr': ['text', 'value']}},
                }
            }
        )
        content['resources']['text'] = {
            'type': 'OS::Heat::RandomString',
            'properties': {
                'length': 5,
                'character_classes': [{'class': 'lowercase'}],
            },
        }
        stack = self.heat.create(content)
        (text,) = self.mistral.workflows.values()
        self.assertIn(stack['text'].FnGetAtt('value'), text)

    def test_live_state_is_not_asked_for(self):
        stack = self.create(definition=TWO)
        self.assertEqual(
            {}, stack['flow'].get_live_state(stack['flow'].properties)
        )
        shown = stack['flow'].FnGetAtt('show')
        self.assertEqual(2, len(shown['workflows']))


class ValidationTest(WorkflowTest):
    def test_one_of_the_two_forms_is_needed(self):
        for properties in (
            {},
            {'type': 'direct'},
            {'definition': ONE, 'tasks': HEATS['tasks'], 'type': 'direct'},
            {'definition': ONE, 'description': 'x'},
        ):
            self.assertIn(
                '"definition"', self.why_invalid(template(**properties))
            )

    def test_mistake_is_told_with_its_place(self):
        said = self.why_invalid(template(definition='a:\n  tasks: {b: 5}'))
        self.assertIn('resources.flow.properties: ', said)
        self.assertIn('workflow "a", task "b", line 2: ', said)

    def test_mistral_is_asked_what_it_thinks(self):
        self.mistral.refuse = lambda text, _: 'no' if 'noop' in text else None
        said = self.why_invalid(template(definition=ONE))
        self.assertIn('workflow "main", task "t", line 3: Mistral says', said)

    def test_mistral_that_is_away_is_asked_later(self):
        self.fault('refusal')
        self.heat.stack(template(definition=ONE)).validate()

    def test_lines_of_the_structured_form_are_not_told(self):
        tasks = [{'name': 'a', 'action': 'x', 'on_success': ['gone']}]
        said = self.why_invalid(template(type='direct', tasks=tasks))
        self.assertIn('task "a": on-success names the task "gone"', said)
        self.assertNotIn('line', said)

    def test_two_tasks_of_one_name_are_refused(self):
        tasks = [{'name': 'a', 'action': 'std.noop'}] * 2
        said = self.why_invalid(template(type='direct', tasks=tasks))
        self.assertIn('several tasks are named a', said)

    def test_called_workflow_must_be_there(self):
        tasks = [{'name': 'a', 'workflow': 'other x=1'}]
        content = template(type='direct', tasks=tasks)
        self.assertIn(
            'there is no workflow "other"', self.why_invalid(content)
        )
        self.mistral.workflows['other'] = ''
        self.heat.stack(content).validate()

    def test_reference_to_several_workflows_is_refused(self):
        outputs = {
            'x': {'value': {'list_join': ['', [{'get_resource': 'flow'}]]}}
        }
        content = template(outputs, definition=TWO)
        self.assertIn(
            '{get_attr: [flow, available_workflows, main]}',
            self.why_invalid(content),
        )

    def test_use_must_fit_the_definition(self):
        for properties, said in (
            ({'default_workflow': 'gone'}, 'has only main, sub'),
            ({'use_request_body_as_input': True}, '"default_workflow"'),
            ({'input': {'z': 1}}, '"input" has z, which no workflow'),
        ):
            content = template(definition=TWO, **properties)
            self.assertIn(said, self.why_invalid(content))

    def test_definition_that_is_no_text_is_refused(self):
        said = self.why_invalid(template(definition={'main': {}}))
        self.assertIn('Value must be a string', said)

    def test_name_that_mistral_could_not_take_is_refused(self):
        said = self.why_invalid(template(definition=ONE, name='x' * 256))
        self.assertIn(
            'would have 256 characters in Mistral, which allows 255', said
        )

    def test_empty_definition_is_refused(self):
        self.assertIn('is empty', self.why_invalid(template(definition=' ')))


class SignalTest(WorkflowTest):
    def test_signal_leaves_an_event_with_the_execution(self):
        stack = self.create(definition=TWO, input={'x': 1})
        self.signal(
            stack, {'workflow': 'main', 'description': 'why', 'odd': 1}
        )
        (row,) = self.mistral.rows
        self.assertEqual({'x': 1}, row['input'])
        self.assertEqual('why', row['description'])
        ((status, reason),) = self.events(stack)
        self.assertEqual('COMPLETE', status)
        self.assertEqual(
            f'Signal: execution {row["id"]} of stack.flow.main has started; '
            'ignored: odd',
            reason,
        )
        (entry,) = self.attribute(stack, 'signals')
        self.assertEqual(row['id'], entry['execution_id'])
        self.assertEqual(['odd'], entry['ignored'])

    def test_failure_leaves_an_event_that_fits_and_the_full_text(self):
        stack = self.create(definition=ONE)
        long = 'z' * 1000
        self.assertIn(long, self.fail(stack, {'input': {long: 1}}))
        ((status, reason),) = self.events(stack)
        self.assertEqual('FAILED', status)
        self.assertEqual(255, len(reason))
        (entry,) = self.attribute(stack, 'signals')
        self.assertIn(long, entry['error'])
        self.assertIsNone(entry['execution_id'])

    def test_body_that_is_no_map_is_refused(self):
        stack = self.create(definition=ONE, input={'x': 1})
        for body in ([1], 'text'):
            self.assertIn('the body must be a map', self.fail(stack, body))

    def test_mistral_that_is_away_is_told(self):
        stack = self.create(definition=ONE, input={'x': 1})
        self.fault('start')
        self.assertIn('Mistral answers 503: busy', self.fail(stack))
        self.assertEqual([], self.mistral.rows)

    def test_run_that_began_unnoticed_ends_with_the_resource(self):
        stack = self.create(definition=ONE, input={'x': 1})
        self.fault('start', done=True)
        self.fail(stack)
        self.assertEqual(1, len(self.mistral.rows))
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.rows)

    def test_default_workflow_is_run(self):
        stack = self.create(definition=TWO, default_workflow='sub')
        self.signal(stack)
        self.assertEqual(
            'stack.flow.sub', self.mistral.rows[0]['workflow_name']
        )

    def test_last_signals_are_remembered(self):
        stack = self.create(definition=f'main:\n  {NOOP}')
        for _ in range(12):
            self.signal(stack)
        ids = [row['id'] for row in self.mistral.rows]
        shown = self.attribute(stack, 'signals')
        self.assertEqual(ids[:1:-1], [one['execution_id'] for one in shown])

    def test_signal_to_what_is_not_made_yet_is_refused(self):
        self.fault('create')
        stack = self.heat.stack(template(definition=f'main:\n  {NOOP}'))
        self.assertRaises(AssertionError, self.heat.run, stack, 'CREATE')
        self.assertIn('does not have the workflow', self.fail(stack))

    def test_a_reader_of_the_project_runs_nothing(self):
        stack = self.create(definition=f'main:\n  {NOOP}')
        reader = signallers.Signaller(user_id='reader', is_of_project=True)
        with mock.patch.object(callers, 'of', return_value=reader):
            said = self.fail(stack)
        self.assertIn('may not update the stack (policy stacks:update', said)
        self.assertEqual([], self.mistral.rows)
        (entry,) = self.attribute(stack, 'signals')
        self.assertIn('may not update the stack', entry['error'])
        # A server's URL, such as an alarm's, does.
        server = signallers.Signaller(user_id='server', is_of_project=False)
        with mock.patch.object(callers, 'of', return_value=server):
            self.signal(stack)
        self.assertEqual(1, len(self.mistral.rows))

    def test_signal_to_what_has_just_gone_is_no_trouble(self):
        stack = self.create(definition=f'main:\n  {NOOP}')
        loaded = self.heat.load(stack)
        with mock.patch.object(
            workflow.Workflow,
            'data_set',
            side_effect=exception.NotFound('x'),
        ):
            loaded['flow'].signal()


class ExecutionsTest(WorkflowTest):
    def test_newest_comes_first_with_its_values(self):
        stack = self.create(definition=f'main:\n  {NOOP}')
        self.assertEqual([], self.attribute(stack, 'executions'))
        for number in range(2):
            self.mistral.add(
                'stack.flow.main',
                input=json.dumps({'n': number}),
                output='not JSON',
            )
        shown = self.attribute(stack, 'executions')
        self.assertEqual([{'n': 1}, {'n': 0}], [o['input'] for o in shown])
        self.assertEqual('not JSON', shown[0]['output'])
        self.assertEqual(
            {
                'id',
                'workflow_name',
                'state',
                'state_info',
                'input',
                'output',
                'created_at',
                'updated_at',
            },
            shown[0].keys(),
        )

    def test_list_is_bounded(self):
        stack = self.create(definition=f'main:\n  {NOOP}')
        for _ in range(25):
            self.mistral.add('stack.flow.main')
        self.assertEqual(20, len(self.attribute(stack, 'executions')))
        self.mistral.rows[-2]['output'] = 'x' * 1000000
        self.assertEqual(1, len(self.attribute(stack, 'executions')))

    def test_those_of_a_dropped_workflow_stay(self):
        stack = self.create(definition=TWO)
        self.mistral.add('stack.flow.sub', state='SUCCESS')
        self.heat.update(stack, template(definition=ONE))
        self.assertEqual({'stack.flow.main'}, set(self.mistral.workflows))
        self.assertEqual(1, len(self.attribute(stack, 'executions')))

    def test_a_dropped_workflow_that_still_runs_is_told_in_an_event(self):
        stack = self.create(definition=TWO)
        self.mistral.add('stack.flow.sub', state='RUNNING')
        self.heat.update(stack, template(definition=ONE))
        reasons = [
            event.resource_status_reason
            for event in event_objects.Event.get_all_by_stack(
                stack.context, stack.id
            )
        ]
        told = [one for one in reasons if 'still use former' in one]
        self.assertEqual(1, len(told), reasons)
        self.assertIn('stack.flow.sub', told[0])


class LifeTest(WorkflowTest):
    def fails(self, stack, content):
        self.assertRaises(AssertionError, self.heat.update, stack, content)

    def test_failed_create_leaves_nothing_and_is_made_up_for(self):
        self.fault('create', done=True)
        stack = self.heat.stack(template(definition=TWO))
        self.assertRaises(AssertionError, self.heat.run, stack, 'CREATE')
        self.assertIn('Mistral answers 503', stack['flow'].status_reason)
        self.assertEqual({}, self.mistral.workflows)
        self.heat.update(stack, template(definition=TWO))
        self.assertEqual(2, len(self.mistral.workflows))
        self.heat.delete(stack)
        self.assertEqual({}, self.mistral.workflows)

    def test_same_template_makes_up_for_a_failed_update(self):
        stack = self.create(definition=ONE)
        self.fault('update')
        self.fails(stack, template(definition=TWO))
        self.assertEqual({'stack.flow.main'}, set(self.mistral.workflows))
        self.heat.update(stack, template(definition=TWO))
        self.assertEqual(2, len(self.mistral.workflows))

    def test_taken_name_is_left_alone_to_the_end(self):
        self.mistral.workflows['mine'] = 'theirs'
        stack = self.heat.stack(template(definition=ONE, name='mine'))
        self.assertRaises(AssertionError, self.heat.run, stack, 'CREATE')
        self.assertIn('does not belong to this', stack['flow'].status_reason)
        self.heat.delete(stack)
        self.assertEqual({'mine': 'theirs'}, self.mistral.workflows)

    def test_check_finds_what_is_missing(self):
        stack = self.create(definition=TWO)
        self.heat.run(stack, 'CHECK')
        del self.mistral.workflows['stack.flow.sub']
        self.assertRaises(AssertionError, self.heat.run, stack, 'CHECK')
        self.assertIn('stack.flow.sub', stack['flow'].status_reason)
        self.heat.update(stack, template(definition=TWO))
        self.assertEqual(2, len(self.mistral.workflows))

    def test_delete_rides_out_a_mistral_that_is_away(self):
        stack = self.create(definition=TWO, input={'x': 1})
        self.signal(stack, {'workflow': 'main'})
        for method in ('begun', 'cancel', 'delete', 'find'):
            self.fault(method, done=method == 'delete')
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.faults)
        self.assertEqual({}, self.mistral.workflows)
        self.assertEqual([], self.mistral.rows)

    def test_delete_that_fails_says_why_and_can_be_repeated(self):
        stack = self.create(definition=TWO)
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.fault('delete')
        self.assertRaises(AssertionError, self.heat.delete, stack)
        self.assertIn('Mistral answers 503', stack['flow'].status_reason)
        self.heat.delete(stack)
        self.assertEqual({}, self.mistral.workflows)

    def test_trigger_of_others_is_named_before_anything_goes(self):
        stack = self.create(definition=ONE, input={'x': 1})
        self.signal(stack)
        self.mistral.clock = {'weekly': 'stack.flow.main'}
        self.assertRaises(AssertionError, self.heat.delete, stack)
        self.assertIn(
            '"weekly" (stack.flow.main)', stack['flow'].status_reason
        )
        self.assertEqual('RUNNING', self.mistral.rows[0]['state'])
        self.mistral.clock = {}
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.rows)

    def test_trigger_of_the_same_stack_is_waited_for(self):
        content = template(definition=ONE)
        content['resources']['by'] = {'type': 'OS::Heat::Value'}
        content['resources']['by']['properties'] = {'value': 'x'}
        stack = self.heat.create(content)
        stack['by'].resource_id_set('nightly')
        self.mistral.clock = {'nightly': 'stack.flow.main'}
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        again = self.heat.load(stack)
        loaded = again['flow']
        budget = loaded.handle_delete()
        self.assertRaises(
            errors.Unavailable, loaded.check_delete_complete, budget
        )
        self.mistral.clock = {}
        self.assertTrue(loaded.check_delete_complete(budget))

    def test_run_that_begins_while_its_workflow_goes_goes_too(self):
        stack = self.create(definition=ONE, input={'x': 1})
        delete = self.mistral.delete

        def late(identifier):
            self.mistral.add('stack.flow.main', by_trigger=True)
            delete(identifier)

        self.mistral.delete = late
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.rows)

    def test_stack_that_was_never_made_is_deleted_without_mistral(self):
        stack = self.heat.stack(template(definition=ONE))
        self.heat.delete(stack)
        self.assertEqual([], self.mistral.calls)
