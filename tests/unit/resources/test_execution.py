# SPDX-License-Identifier: Apache-2.0
"""OS::Mistral::Execution."""

import itertools
import json
import time
import types

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

    def ran(self):
        """Return the action and the input of each execution."""
        return [
            (
                json.loads(row['params'])['env']['heat']['action'],
                json.loads(row['input'])['what'],
            )
            for row in self.executions.rows.values()
        ]

    def actions(self):
        return [action for action, _ in self.ran()]

    def gone(self):
        """Delete the stack; say whether no execution is left."""
        self.heat.delete(self.stack)
        return self.executions.rows == {}


class RunningTest(ExecutionTest):
    def test_it_is_complete_once_the_workflow_has_succeeded(self):
        run = self.make(params={'env': {'mine': 1}, 'task_name': 'last'})
        assert run.FnGetRefId() == self.executions.latest()['id']
        assert self.attribute('published') == {'a': 2, 'b': 1}
        assert self.attribute('state') == 'SUCCESS'
        # The workflow is told why it runs.
        params = json.loads(self.executions.latest()['params'])
        assert params['task_name'] == 'last'
        assert params['env']['mine'] == 1
        about = {'action': 'CREATE', 'stack_name': 'stack'}
        about['resource_name'] = 'it'
        assert about.items() <= params['env']['heat'].items()
        # The results outlive the execution.
        self.executions.rows.clear()
        assert self.attribute('output') == {'answer': 42}

    def test_results_too_large_to_store_are_read_from_mistral(self):
        self.ending['output'] = json.dumps({'answer': 'x' * 100000})
        run = self.make()
        assert 'result' not in run.data()
        assert len(self.attribute('output')['answer']) == 100000

    def test_what_cannot_be_is_refused(self):
        said = self.invalid(workflow='nowhere')
        assert 'there is no workflow "nowhere"' in said
        assert 'BACKUP' in self.invalid(actions=['BACKUP'])

    def test_the_reason_is_that_of_mistral_cut_to_a_line(self):
        self.ending = {
            'state': 'ERROR',
            'state_info': 'Failure caused by error in tasks: a\n\n  a -> '
            f'no disk {"long " * 99}\n',
        }
        reason = self.refused()
        assert 'in tasks: a a -> no disk long' in reason
        assert '… (execution ' in reason
        assert len(reason) < 255
        assert 'caused by' in self.attribute('state_info')
        # An update runs it again.
        self.ending = {'state': 'SUCCESS'}
        self.update()
        assert self.actions() == ['CREATE', 'CREATE']

    def test_what_mistral_refuses_leaves_nothing(self):
        refused = fake_mistral.refused(400, "Invalid input [missing=['who']]")
        self.mistral.fail('executions.create', refused)
        assert "Invalid input [missing=['who']]" in self.refused()
        assert self.executions.rows == {}
        assert self.gone()

    def test_one_that_may_have_begun_behind_an_outage_goes_with_it(self):
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail('executions.create', away, effect=True)
        self.refused()
        assert len(self.executions.rows) == 1
        assert self.gone()

    def test_the_workflow_may_be_an_id_or_in_a_namespace(self):
        number = self.mistral.workflows.find('build')['id']
        self.make(workflow=number)
        assert self.executions.latest()['workflow_id'] == number
        self.update(namespace='space')
        assert self.executions.latest()['workflow_namespace'] == 'space'

    def test_a_run_over_time_is_cancelled(self):
        self.heat.meanwhile = lambda: None
        times = itertools.count(0, 5)
        clock = types.SimpleNamespace(monotonic=lambda: next(times))
        # Not that of Heat, which older ones read more often.
        self.patch(execution, 'time', clock)
        reason = self.refused(timeout=35)
        assert 'was still RUNNING after 35 s' in reason
        assert self.executions.latest()['state'] == 'CANCELLED'

    def test_a_changed_input_runs_it_again(self):
        self.make()
        self.update(input={'what': 'little'})
        assert self.ran() == [('CREATE', 'all'), ('UPDATE', 'little')]

    def test_suspend_and_resume(self):
        given = {'actions': ['SUSPEND', 'RESUME']}
        self.make(**given)
        # Without UPDATE a change runs nothing.
        self.update(**given, input={'what': 'b'})
        assert self.executions.rows == {}
        self.heat.run(self.stack, self.stack.SUSPEND)
        self.heat.run(self.stack, self.stack.RESUME)
        assert self.actions() == ['SUSPEND', 'RESUME']

    def test_delete_runs_it_and_then_takes_all_executions_away(self):
        self.make(actions=['CREATE', 'DELETE'])
        seen = []
        self.heat.meanwhile = lambda: (seen.append(self.actions()), self.end())
        assert self.gone()
        assert seen[:1] == [['CREATE', 'DELETE']]

    def test_a_failed_run_at_deletion_fails_it_and_is_tried_again(self):
        self.make(actions=['DELETE'])
        self.ending['state'] = 'ERROR'
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        self.ending['state'] = 'SUCCESS'
        assert self.gone()


class EndingTest(ExecutionTest):
    def begun(self):
        self.heat.meanwhile = lambda: None
        self.stack = self.heat.stack(self.template())
        runner = self.heat.begin(self.stack, self.stack.CREATE)
        for _ in range(3):
            runner.step()
        assert self.state() == 'RUNNING'
        return runner

    def state(self):
        return self.executions.latest()['state']

    def test_one_that_is_gone_has_failed(self):
        runner = self.begun()
        self.executions.rows.clear()
        self.heat.waited += 60
        while not runner.step():
            pass
        assert 'no longer in Mistral' in self.it.status_reason

    def test_cancelling_the_stack_cancels_it(self):
        self.begun().cancel()
        assert self.state() == 'CANCELLED'

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
        assert self.state() == 'CANCELLED'

    def test_deleting_cancels_it_before_it_is_taken_away(self):
        runner = self.begun()
        self.mistral.calls.clear()
        self.heat.delete(self.heat.load(self.stack))
        assert self.mistral.changes() == [
            'executions.update',
            'executions.delete',
        ]
        assert self.executions.rows == {}
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
            assert self.actions() == ['CREATE']
            assert self.gone()
            self.mistral.faults.clear()

    def test_a_delete_gives_up_on_a_mistral_that_stays_away(self):
        self.make()
        self.mistral.fail('executions.delete', *[fake_mistral.DOWN] * 9999)
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        assert 'cannot delete the execution' in self.it.status_reason
        self.mistral.faults.clear()
        assert self.gone()
