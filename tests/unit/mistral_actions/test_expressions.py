# SPDX-License-Identifier: Apache-2.0
"""What the expressions of the installed workflows evaluate to."""

import pathlib
import re
import time

import pytest
import yaml
import yaql
from yaql.language import factory

from heat_plugins import jobs
from heat_plugins import stored
from heat_plugins.mistral_actions import preinstalled

# As Mistral makes it.
ENGINE = factory.YaqlFactory(allow_delegates=True).create()
FUNCTIONS = yaql.create_context()

REFUSED = {'code': 'refused', 'message': 'no'}
BUSY = {'code': 'busy', 'message': 'locked since noon'}
UNAVAILABLE = {'code': 'unavailable', 'message': 'down'}
DIED = "Heartbeat wasn't received."
RAISED = "The action raised an exception [params='{'key': 'x'}']"
CALL = {'kind': 'action', 'name': 'std.noop', 'input': {}}

#: What is no map is Mistral's: of an executor that died, and of a time limit.
MISTRALS_OWN = (DIED, None)


def definition(workflow):
    folder = pathlib.Path(preinstalled.__file__).parent / 'workflows'
    text = (folder / f'{workflow}.yaml').read_text()
    return yaml.safe_load(text)[workflow]


class Task:
    """A task of a workflow, and the context that it has ended in.

    :ivar result: what it has ended with.
    :ivar cancelled: the tasks of its execution that were cancelled.
    """

    def __init__(self, workflow, name, **context):
        self.workflow = definition(workflow)
        self.spec = self.workflow['tasks'][name]
        self.context = context
        self.result = None
        self.cancelled = []

    def value(self, expression):
        context = FUNCTIONS.create_child_context()
        context['$'] = self.context
        context.register_function(
            lambda: {'result': self.result, 'state_info': 'Task timed out'},
            name='task',
        )
        context.register_function(lambda: {'id': 'e'}, name='execution')
        context.register_function(
            lambda execution, recursive, state: {
                ('e', False, 'CANCELLED'): self.cancelled
            }[execution, recursive, state],
            name='tasks',
        )
        text = re.fullmatch('<%(.*)%>', str(expression))
        if text is None:
            return expression
        return ENGINE(text[1]).evaluate(context=context)

    def end(self, clause, result):
        """End the task; return the commands that follow."""
        self.result = result
        publish = 'publish' if clause == 'on-success' else 'publish-on-error'
        commands = self.spec.get(clause, self.spec.get('on-complete', []))
        published = dict(self.spec.get(publish, {}))
        if isinstance(commands, dict):
            published |= commands['publish']['global']
            commands = commands.get('next', [])
        self.context |= {
            name: self.value(expression)
            for name, expression in published.items()
        }
        found = []
        for command in [commands] if isinstance(commands, str) else commands:
            if isinstance(command, str):
                command = {command: True}
            ((name, condition),) = command.items()
            if self.value(condition):
                found.append(name)
        return [self._command(name) for name in found]

    def _command(self, name):
        message = re.fullmatch(r'fail\(msg=(<%.*%>)\)', name)
        return f'fail: {self.value(message[1])}' if message else name


def job(**context):
    context = {'input': {}, 'until': None, **context}
    return Task('heat_plugins.job', 'step', **context)


def step(**more):
    found = {'state': {}, 'next_look': 50, 'call': None, 'success': None}
    return {**found, 'reason': '', **more}


class TestJob:
    def test_a_temporary_failure_is_repeated_a_thousand_times(self):
        # Its error is always a map.
        timed_out = {'code': 'error', 'message': 'Task timed out'}
        for error, told in (
            (UNAVAILABLE, UNAVAILABLE),
            (DIED, {'code': 'error', 'message': DIED}),
            (None, timed_out),
        ):
            task = job()
            assert task.end('on-error', error) == ['step']
            assert task.context['error'] == told
            task.context['failures'] = 99800
            assert task.end('on-error', error) == ['step']
            assert task.end('on-error', error) == []
        for failures in (0, 100, 200000):
            task = job(failures=failures)
            assert task.end('on-error', REFUSED) == []
            assert task.context['error'] == REFUSED

    def test_a_lock_is_waited_for_until_that_of_a_dead_holder_expires(self):
        task = job()
        seconds = 30
        while task.end('on-error', BUSY):
            seconds += task.context['pause'] + 30
        assert 900 < seconds <= 1200
        assert task.context['error'] == BUSY
        # Another holder is waited for anew.
        task = job(failures=19)
        for clause, result in (('on-error', DIED), ('on-success', step())):
            task.end(clause, result)
            assert task.end('on-error', BUSY) == ['step']
            task.context['failures'] = 19

    def test_it_goes_on_until_the_job_has_ended(self):
        task = job()
        assert task.end('on-success', step()) == ['step']
        assert task.context['pause'] == 50
        assert task.end('on-success', step(call=CALL)) == ['call']
        assert task.end('on-success', step(success=True)) == []
        assert task.context['error'] is None
        failed = step(success=False, reason='boom')
        assert task.end('on-success', failed) == ['fail: boom']
        assert task.context['error'] == {'code': 'failed', 'message': 'boom'}


class TestCalls:
    """The workflow or action that a job asks for, and what came of it."""

    def test_the_next_step_is_given_the_outcome_and_a_reason(self):
        refused = {'reason': 'no', 'code': 'refused'}
        for result, reason in (
            (DIED, {}),
            (None, {}),
            ({'error': 'x', 'reason': None}, {'reason': '', 'code': ''}),
            ({'error': 'x', **refused}, refused),
            ({'reason': [1], 'code': 404}, {'reason': '[1]', 'code': '404'}),
        ):
            task = Task('heat_plugins.job', 'call', input={'plan': 'shop'})
            task.end('on-success', {})
            given = {'plan': 'shop', 'outcome': {'success': True}}
            assert task.context['input'] == given
            task.end('on-error', result)
            found = task.context['input']['outcome']
            assert found == {'success': False, **reason}
            assert stored.read(jobs.CallOutcome, found).success is False

    @pytest.mark.parametrize(
        ('kind', 'result', 'reason', 'code'),
        [
            ('workflow', DIED, None, None),
            ('workflow', {'error': 'boom'}, None, None),
            ('workflow', {'error': REFUSED}, 'no', None),
            ('workflow', {'error': {'message': None}}, '', None),
            ('action', DIED, DIED, None),
            ('action', REFUSED, 'no', 'refused'),
            ('action', None, None, None),
            # With this text come the action's input, and its secrets.
            ('action', RAISED, None, None),
            # Actions of others have maps of their own.
            ('action', {'code': 404, 'message': ['no']}, "['no']", '404'),
            ('action', {'a': 1}, '', ''),
        ],
    )
    def test_what_fails_says_why_and_a_workflow_if_it_is_one_of_ours(
        self, kind, result, reason, code
    ):
        steps = [{'kind': kind, 'name': 'a', 'input': {}}]
        task = Task('plan.configure', f'run_{kind}', steps=steps)
        assert task.end('on-error', result) == ['noop']
        output = task.workflow['output-on-error']
        found = {name: task.value(value) for name, value in output.items()}
        expected = {'error': 'a has failed', 'reason': reason, 'code': code}
        assert found == expected

    def test_only_a_timer_continues_after_one(self):
        """So what comes next has the user's token."""
        steps = [{'kind': 'action', 'name': 'a', 'input': {}}] * 2
        for name in ('run_action', 'run_workflow'):
            task = Task('plan.configure', name, steps=steps)
            assert task.end('on-success', None) == []
        timer = Task('plan.configure', 'await', steps=steps, polls=1)
        assert timer.spec['wait-before']
        assert timer.end('on-success', None) == ['await']
        assert timer.end('on-error', DIED) == ['await']
        assert (timer.context['polls'], timer.context['steps']) == (2, steps)
        timer.context |= {'answer': task.context['answer']}
        assert timer.end('on-success', None) == ['next']
        assert timer.context['steps'] == steps[1:]
        # The answer of the one before is none of this.
        timer.context['polls'] = 1
        assert timer.end('on-success', None) == ['await']
        task.context['steps'] = steps[1:]
        task.end('on-error', DIED)
        timer.context |= {'answer': task.context['answer']}
        assert timer.end('on-success', None) == ['fail: a has failed']
        # Nothing follows a cancelled one, so Mistral cancels the execution.
        timer = Task('plan.configure', 'await', steps=steps, polls=1)
        timer.cancelled = [{'name': 'run_action'}]
        assert timer.end('on-success', None) == []

    def test_those_of_a_plan_run_in_their_order(self):
        steps = [
            {'kind': kind, 'name': kind, 'input': {}}
            for kind in ('workflow', 'action')
        ]
        task = Task('plan.configure', 'next', steps=steps)
        assert task.end('on-success', None) == ['run_workflow', 'await']
        task.context['steps'] = steps[1:]
        assert task.end('on-success', None) == ['run_action', 'await']
        task.context['steps'] = []
        assert task.end('on-success', None) == []


class TestTimeLimit:
    """The hour before and after now stand for the time limit."""

    PASSED = 'fail: The time limit has passed'
    passed, ahead = time.time() - 3600, time.time() + 3600

    def test_a_job_ends_with_it_and_keeps_the_last_result(self):
        task = job(until=self.passed)
        last = step()
        assert task.end('on-success', last) == [self.PASSED]
        assert task.context['error']['code'] == 'time-limit'
        assert task.context['result'] == last
        assert task.end('on-error', UNAVAILABLE) == []
        # One that ended before it was polled has its result.
        for found, commands in (
            (step(success=True), []),
            (step(success=False, reason='boom'), ['fail: boom']),
            (step(call=CALL), [self.PASSED]),
        ):
            task = job(until=self.passed)
            assert task.end('on-success', found) == commands

    def test_before_it_a_job_goes_on_until_a_last_poll(self):
        task = job(until=self.ahead)
        assert task.end('on-success', step()) == ['step']
        assert task.context['pause'] == 50
        assert task.end('on-error', UNAVAILABLE) == ['step']
        task.end('on-success', step(next_look=10**6))
        assert isinstance(task.context['pause'], int)
        assert task.context['pause'] <= 3601

    def test_a_wait_has_one_unless_its_timeout_is_0(self):
        task = Task('software_deployment.wait', 'look', timeout=600)
        until = task.spec['input']['until']
        before = time.time()
        assert before + 600 <= task.value(until) <= time.time() + 600
        task.context['timeout'] = 0
        assert task.value(until) is None
        # Mistral's own would leave the job polling.
        assert 'timeout' not in task.spec


class TestFollowers:
    """Tasks that wait for a job, and what its execution may end with."""

    @pytest.mark.parametrize(
        ('result', 'message'),
        [
            (DIED, DIED),
            (None, 'Task timed out'),
            ({'result': None, 'error': None}, 'Task timed out'),
            # An operator has stopped it.
            ({'result': 'stopped'}, 'Task timed out'),
            ({'result': None, 'error': 'boom'}, 'boom'),
            ({'result': None, 'error': REFUSED}, 'no'),
            ({'result': {'success': None}, 'error': REFUSED}, 'no'),
            ({'result': {'success': False, 'reason': 'bad'}}, 'bad'),
        ],
    )
    def test_the_reason_is_that_of_the_job(self, result, message):
        run = {'id': 'r', 'success': None}
        for task in (
            Task('software_deployment.wait', 'look'),
            Task('software_deployment.run', 'follow', run=run),
        ):
            expected = task.context.get('run')
            assert task.end('on-error', result) == [f'fail: {message}']
            if isinstance(result, dict) and isinstance(result['result'], dict):
                expected = result['result']
            assert task.context['run'] == expected

    @pytest.mark.parametrize('result', [*MISTRALS_OWN, {'result': 'stopped'}])
    def test_without_a_state_the_output_is_there(self, result):
        for workflow, name in (
            ('nodes.introspect', 'inspect'),
            ('nodes.move', 'move'),
            ('nodes.register', 'register'),
            ('plan.deploy', 'deploy'),
            ('validations.run', 'run'),
        ):
            task = Task(workflow, name)
            task.end('on-error', result)
            output = dict(task.workflow['output-on-error'])
            output.pop('error', None)
            assert output
            assert not any(task.value(value) for value in output.values())

    @pytest.mark.parametrize(
        ('result', 'message'),
        [
            (DIED, 'Task timed out'),
            ({'result': 'stopped'}, 'stopped'),
            ({'run': {'id': 'r'}, 'error': REFUSED, 'result': 'no'}, 'no'),
        ],
    )
    def test_a_former_name_ends_as_the_run_does(self, result, message):
        found = result if isinstance(result, dict) else {'error': result}
        for name, key in (('trigger', 'run'), ('operate', 'operation')):
            task = Task(f'software_deployment.{name}', 'run')
            assert task.end('on-error', result) == [f'fail: {message}']
            assert task.context[key] == found.get('run')
            assert task.context['error'] == found.get('error')


def test_a_start_is_repeated_with_the_same_id():
    task = Task('software_deployment.run', 'start', run_id='r')
    for error in (UNAVAILABLE, *MISTRALS_OWN, UNAVAILABLE):
        assert task.end('on-error', error) == ['start']
    assert task.value(task.spec['wait-before']) == 120
    assert task.end('on-error', UNAVAILABLE) == ['fail: down']
    # A refusal is the end.
    task = Task('software_deployment.run', 'start', run_id='r')
    assert task.end('on-error', REFUSED) == ['fail: no']
    assert task.context['error'] == REFUSED
    # It is waited for unless the user does not want that.
    for wait in (True, False):
        task = Task('software_deployment.run', 'start', wait=wait)
        task.end('on-error', UNAVAILABLE)
        run = {'id': 'r', 'next_look': 5}
        assert task.end('on-success', run) == ['follow'] * wait
        assert (task.context['run'], task.context['error']) == (run, None)
