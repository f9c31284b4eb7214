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
        self.build = self.mistral.workflows.add('build', {'what': 1})
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
        return [
            (
                json.loads(row['params'])['env']['heat']['action'],
                json.loads(row['input'])['what'],
            )
            for row in self.executions.rows.values()
        ]

    def actions(self):
        return [action for action, _ in self.ran()]

    def state(self):
        return self.executions.latest()['state']

    def test_it_is_complete_once_the_workflow_has_succeeded(self):
        said = self.invalid(workflow='nowhere')
        assert 'there is no workflow "nowhere"' in said
        assert 'BACKUP' in self.invalid(actions=['BACKUP'])
        run = self.make(params={'env': {'mine': 1}, 'task_name': 'last'})
        assert run.FnGetRefId() == self.executions.latest()['id']
        assert self.attribute('published') == {'a': 2, 'b': 1}
        assert self.attribute('state') == 'SUCCESS'
        # The workflow is told why it runs.
        why = {'action': 'CREATE', 'resource_name': 'it'}
        why |= {'stack_name': 'stack', 'stack_id': self.stack.id}
        params = {'env': {'mine': 1, 'heat': why}, 'task_name': 'last'}
        assert json.loads(self.executions.latest()['params']) == params
        # Results too large to store are read from Mistral.
        self.ending['output'] = json.dumps({'answer': 'x' * 100000})
        self.update(workflow=self.build, namespace='space')
        row = self.executions.latest()
        assert row['workflow_id'] == self.build
        assert row['workflow_namespace'] == 'space'
        assert 'result' not in self.it.data()
        assert len(self.attribute('output')['answer']) == 100000
        # The name of an environment in Mistral stays as it is.
        self.ending['output'] = '{"answer": 42}'
        self.update(params={'env': 'named'})
        assert self.executions.latest()['params'] == '{"env": "named"}'
        # Other results outlive the execution.
        self.executions.rows.clear()
        names = 'output', 'state', 'state_info'
        shown = [self.attribute(name) for name in names]
        assert shown == [{'answer': 42}, 'SUCCESS', None]

    def test_each_failure_has_a_reason_and_is_made_up_for(self):
        # That of Mistral is cut to a line.
        said = f'Failure caused by error in tasks: a\n\n  a -> {"no " * 99}\n'
        self.ending = {'state': 'ERROR', 'state_info': said}
        reason = self.refused()
        assert 'in tasks: a a -> no no' in reason
        assert '… (execution ' in reason
        assert 'caused by' in self.attribute('state_info')
        # An update runs it again.
        self.ending = {'state': 'SUCCESS'}
        self.update()
        assert self.actions() == ['CREATE', 'CREATE']
        assert self.delete() == []
        # What Mistral refuses leaves nothing.
        refused = fake_mistral.refused(400, "Invalid input [missing=['who']]")
        self.mistral.fail('executions.begin', refused)
        assert "Invalid input [missing=['who']]" in self.refused()
        assert self.delete() == []
        # Over time it is cancelled.
        self.heat.meanwhile = lambda: None
        times = itertools.count(0, 5)
        clock = types.SimpleNamespace(monotonic=lambda: next(times))
        # Not that of Heat, which older ones read more often.
        self.patch(execution, 'time', clock)
        reason = self.refused(timeout=35)
        assert 'was still RUNNING after 35 s' in reason
        assert self.state() == 'CANCELLED'
        # One that may have begun behind an outage goes with the stack.
        self.delete()
        self.no_patience()
        away = fake_mistral.UNAVAILABLE
        self.mistral.fail('executions.begin', away, effect=True)
        self.refused()
        assert len(self.executions.rows) == 1
        assert self.delete() == []

    def test_it_runs_on_the_actions_that_are_named(self):
        self.make()
        self.update(input={'what': 'little'})
        assert self.ran() == [('CREATE', 'all'), ('UPDATE', 'little')]
        # Another description is no reason.
        self.update(input={'what': 'little'}, description='x')
        assert len(self.executions.rows) == 2
        assert self.delete() == []
        given = {'actions': ['SUSPEND', 'RESUME', 'DELETE']}
        self.make(**given)
        # Without UPDATE a change runs nothing.
        self.update(**given, input={'what': 'b'})
        assert self.executions.rows == {}
        self.heat.run(self.stack, self.stack.SUSPEND)
        self.heat.run(self.stack, self.stack.RESUME)
        assert self.actions() == ['SUSPEND', 'RESUME']
        # A failed run at a deletion fails that, and is repeated.
        self.ending['state'] = 'ERROR'
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        assert self.actions() == ['SUSPEND', 'RESUME', 'DELETE']
        self.ending['state'] = 'SUCCESS'
        assert self.delete() == []

    def begun(self):
        self.heat.meanwhile = lambda: None
        self.stack = self.heat.stack(self.template())
        runner = self.heat.begin(self.stack, self.stack.CREATE)
        for _ in range(3):
            runner.step()
        assert self.state() == 'RUNNING'
        return runner

    def test_it_ends_with_the_action_of_its_stack(self):
        # That was cancelled, or cancelled by another engine, or is deleted.
        self.begun().cancel()
        assert self.state() == 'CANCELLED'
        self.delete()
        runner = self.begun()
        self.heat.stop(self.stack)
        self.heat.waited += 5
        for _ in range(20):
            if runner.step():
                break
        assert self.state() == 'CANCELLED'
        self.delete()
        runner = self.begun()
        self.mistral.calls.clear()
        self.heat.delete(self.heat.load(self.stack))
        assert self.mistral.changes() == [
            'executions.update',
            'executions.delete',
        ]
        # One that is gone has failed.
        self.heat.waited += 60
        while not runner.step():
            pass
        assert 'no longer in Mistral' in self.it.status_reason

    def test_passing_errors_are_ridden_out_and_nothing_runs_twice(self):
        away = fake_mistral.UNAVAILABLE
        for effect, error in ((False, fake_mistral.DOWN), (True, away)):
            self.mistral.fail('tasks.list', error)
            for call in ('get', 'begin', 'update', 'delete'):
                name = f'executions.{call}'
                self.mistral.fail(name, error, error, effect=effect)
            self.make()
            assert self.actions() == ['CREATE']
            assert self.delete() == []
            self.mistral.faults.clear()
        # A delete gives up on a Mistral that stays away.
        self.make()
        self.mistral.fail('executions.delete', *[fake_mistral.DOWN] * 9999)
        self.assertRaises(AssertionError, self.heat.delete, self.stack)
        assert 'cannot delete the execution' in self.it.status_reason
        self.mistral.faults.clear()
        assert self.delete() == []
