# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution."""

import itertools
import json
import time
import types

from oslo_config import cfg

from heat_plugins.resources import execution
from tests.unit.resources import fake_mistral


class ExecutionTest(fake_mistral.MistralTestCase):
    TYPE = 'OS::Mistral::Execution'
    TYPES = {TYPE: execution.Execution}
    PROPERTIES = {'workflow': 'build', 'input': {'what': 'all'}}

    def setUp(self):
        super().setUp()
        self.mistral.workflows.add('build', {'what': 1})
        self.mistral.workflows.add('tidy')
        self.executions = self.mistral.executions
        self.ending = {
            'output': '{"answer": 42}',
            'tasks': [
                {'updated_at': '2', 'published': '{"a": 2}'},
                {'updated_at': '1', 'published': '{"a": 1, "b": 1}'},
            ],
        }
        self.heat.meanwhile = self.end
        # What waits for a time must not spin until that has come.
        began = time.monotonic()
        self.patch(time, 'monotonic', lambda: began + self.heat.waited)

    def end(self):
        """Let what runs end, as Heat waits for it."""
        for row in self.executions.rows.values():
            if row['state'] == 'RUNNING':
                row.update({'state': 'SUCCESS', **self.ending})

    def inputs(self):
        return [
            json.loads(row['input'])['what']
            for row in self.executions.rows.values()
        ]

    def actions(self):
        return [
            json.loads(row['params'])['env']['heat']['action']
            for row in self.executions.rows.values()
        ]


class RunningTest(ExecutionTest):
    def test_it_is_complete_once_the_workflow_has_succeeded(self):
        run = self.make(params={'env': {'mine': 1}, 'task_name': 'last'})
        self.assertEqual(self.executions.latest()['id'], run.FnGetRefId())
        self.assertEqual({'a': 2, 'b': 1}, self.attribute('published'))
        self.assertEqual('SUCCESS', self.attribute('state'))
        # The workflow is told why it runs.
        params = json.loads(self.executions.latest()['params'])
        self.assertEqual('last', params['task_name'])
        self.assertEqual(1, params['env']['mine'])
        self.assertEqual(
            ('CREATE', 'stack', 'it'),
            tuple(
                params['env']['heat'][key]
                for key in ('action', 'stack_name', 'resource_name')
            ),
        )
        # The results outlive the execution.
        self.executions.rows.clear()
        self.assertEqual({'answer': 42}, self.attribute('output'))

    def test_results_too_large_to_store_are_read_from_mistral(self):
        self.ending['output'] = json.dumps({'answer': 'x' * 100000})
        run = self.make()
        self.assertNotIn('result', run.data())
        self.assertEqual(100000, len(self.attribute('output')['answer']))

    def test_what_cannot_be_is_refused(self):
        self.assertIn(
            'there is no workflow "nowhere"', self.invalid(workflow='nowhere')
        )
        self.assertIn('BACKUP', self.invalid(actions=['BACKUP']))


class FailingTest(ExecutionTest):
    def test_the_reason_is_that_of_mistral_cut_to_a_line(self):
        self.ending = {
            'state': 'ERROR',
            'state_info': 'Failure caused by error in tasks: a\n\n  a -> '
            f'no disk {"long " * 99}\n',
        }
        reason = self.refused()
        self.assertIn('in tasks: a a -> no disk long', reason)
        self.assertIn('… (execution ', reason)
        self.assertLess(len(reason), 255)
        self.assertIn('caused by', self.attribute('state_info'))
        # An update runs it again.
        self.ending = {'state': 'SUCCESS'}
        self.update()
        self.assertEqual(['CREATE', 'CREATE'], self.actions())

    def test_what_mistral_refuses_leaves_nothing(self):
        self.mistral.fail(
            'executions.create',
            fake_mistral.refused(400, "Invalid input [missing=['who']]"),
        )
        reason = self.refused()
        self.assertIn("Invalid input [missing=['who']]", reason)
        self.assertEqual({}, self.executions.rows)
        self.heat.delete(self.stack)
        self.assertEqual({}, self.executions.rows)

    def test_one_that_may_have_begun_behind_an_outage_goes_with_it(self):
        cfg.CONF.set_override('mistral_error_budget', 0, 'heat_plugins')
        self.addCleanup(
            cfg.CONF.clear_override, 'mistral_error_budget', 'heat_plugins'
        )
        self.mistral.fail(
            'executions.create', fake_mistral.UNAVAILABLE, effect=True
        )
        self.refused()
        self.assertEqual(1, len(self.executions.rows))
        self.heat.delete(self.stack)
        self.assertEqual({}, self.executions.rows)

    def test_the_workflow_may_be_an_id_or_in_a_namespace(self):
        number = self.mistral.workflows.find('build')['id']
        self.make(workflow=number)
        begun = self.executions.latest()
        self.assertEqual(number, begun['workflow_id'])
        self.update(namespace='space')
        begun = self.executions.latest()
        self.assertEqual('space', begun['workflow_namespace'])

    def test_a_run_over_time_is_cancelled(self):
        self.heat.meanwhile = lambda: None
        times = itertools.count(0, 5)
        clock = types.SimpleNamespace(monotonic=lambda: next(times))
        # Not that of Heat, which older ones read more often.
        self.patch(execution, 'time', clock)
        reason = self.refused(timeout=35)
        self.assertIn('was still RUNNING after 35 s', reason)
        self.assertEqual('CANCELLED', self.executions.latest()['state'])


class ActionsTest(ExecutionTest):
    def test_a_changed_input_runs_it_again(self):
        self.make()
        self.update(input={'what': 'little'})
        self.assertEqual(['all', 'little'], self.inputs())
        self.assertEqual(['CREATE', 'UPDATE'], self.actions())

    def test_suspend_and_resume(self):
        given = {'actions': ['SUSPEND', 'RESUME']}
        self.make(**given)
        # Without UPDATE a change runs nothing.
        self.update(**given, input={'what': 'b'})
        self.assertEqual({}, self.executions.rows)
        self.heat.run(self.stack, self.stack.SUSPEND)
        self.heat.run(self.stack, self.stack.RESUME)
        self.assertEqual(['SUSPEND', 'RESUME'], self.actions())

    def test_delete_runs_it_and_then_takes_all_executions_away(self):
        self.make(actions=['CREATE', 'DELETE'])
        seen = []
        self.heat.meanwhile = lambda: (
            seen.append(self.actions()),
            self.end(),
        )
        self.heat.delete(self.stack)
        self.assertEqual([['CREATE', 'DELETE']], seen[:1])
        self.assertEqual({}, self.executions.rows)

    def test_a_failed_run_at_deletion_fails_it_and_is_tried_again(self):
        self.make(actions=['DELETE'])
        self.ending['state'] = 'ERROR'
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        self.ending['state'] = 'SUCCESS'
        self.heat.delete(self.stack)
        self.assertEqual({}, self.executions.rows)


class EndingTest(ExecutionTest):
    def begun(self):
        self.heat.meanwhile = lambda: None
        self.stack = self.heat.stack(self.template())
        runner = self.heat.begin(self.stack, self.stack.CREATE)
        for _ in range(3):
            runner.step()
        self.assertEqual('RUNNING', self.executions.latest()['state'])
        return runner

    def test_one_that_is_gone_has_failed(self):
        runner = self.begun()
        self.executions.rows.clear()
        self.heat.waited += 60
        while not runner.step():
            pass
        self.assertIn('no longer in Mistral', self.it.status_reason)

    def test_cancelling_the_stack_cancels_it(self):
        self.begun().cancel()
        self.assertEqual('CANCELLED', self.executions.latest()['state'])

    def test_so_does_cancelling_that_heat_tells_nobody_of(self):
        runner = self.begun()
        other = self.heat.load(self.stack)
        other.current_traversal = 'another'
        other.status = other.FAILED
        other.store()
        self.heat.waited += 5
        for _ in range(20):
            if runner.step():
                break
        self.assertEqual('CANCELLED', self.executions.latest()['state'])

    def test_deleting_cancels_it_before_it_is_taken_away(self):
        runner = self.begun()
        self.mistral.calls.clear()
        self.heat.delete(self.heat.load(self.stack))
        self.assertEqual(
            ['executions.update', 'executions.delete'], self.mistral.changes()
        )
        self.assertEqual({}, self.executions.rows)
        # Letting go of it would have cancelled the run, too.
        del runner


class OutageTest(ExecutionTest):
    def test_passing_errors_are_ridden_out_and_nothing_runs_twice(self):
        for effect, error in (
            (False, fake_mistral.DOWN),
            (True, fake_mistral.UNAVAILABLE),
        ):
            self.mistral.fail('executions.get', error, error)
            self.mistral.fail('tasks.list', error)
            for call in ('create', 'update', 'delete'):
                name = f'executions.{call}'
                self.mistral.fail(name, error, error, effect=effect)
            self.make()
            self.assertEqual(['CREATE'], self.actions())
            self.heat.delete(self.stack)
            self.assertEqual({}, self.executions.rows)
            self.mistral.faults.clear()

    def test_a_delete_gives_up_on_a_mistral_that_stays_away(self):
        self.make()
        self.mistral.fail('executions.delete', *[fake_mistral.DOWN] * 9999)
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        self.assertIn('cannot delete the execution', self.it.status_reason)
        self.mistral.faults.clear()
        self.heat.delete(self.stack)
        self.assertEqual({}, self.executions.rows)
