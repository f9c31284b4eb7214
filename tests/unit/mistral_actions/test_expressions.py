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
        """Evaluate an expression as Mistral does."""
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
    @pytest.mark.parametrize('error', [UNAVAILABLE, *MISTRALS_OWN])
    def test_a_temporary_failure_is_repeated_a_thousand_times(self, error):
        task = job()
        assert task.end('on-error', error) == ['step']
        task.context['failures'] = 99800
        assert task.end('on-error', error) == ['step']
        assert task.end('on-error', error) == []

    @pytest.mark.parametrize('failures', [0, 100, 200000])
    def test_a_refusal_is_the_end(self, failures):
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

    def test_another_holder_is_waited_for_anew(self):
        task = job(failures=19)
        for clause, result in (('on-error', DIED), ('on-success', step())):
            task.end(clause, result)
            assert task.end('on-error', BUSY) == ['step']
            task.context['failures'] = 19

    @pytest.mark.parametrize(
        ('error', 'message'), [(DIED, DIED), (None, 'Task timed out')]
    )
    def test_its_error_is_always_a_map(self, error, message):
        task = job()
        task.end('on-error', error)
        assert task.context['error'] == {'code': 'error', 'message': message}

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

    @pytest.mark.parametrize(
        ('result', 'reason'),
        [
            (DIED, {}),
            (None, {}),
            ({'result': 'stopped'}, {'reason': '', 'code': ''}),
            ({'error': 'x', 'reason': None}, {'reason': '', 'code': ''}),
            ({'error': 'x', 'reason': 'no', 'code': 'refused'},) * 2,
            (
                {'reason': {'a': 1}, 'code': 404},
                {'reason': "{'a': 1}", 'code': '404'},
            ),
        ],
    )
    def test_the_next_step_is_given_the_outcome_and_a_reason(
        self, result, reason
    ):
        task = Task('heat_plugins.job', 'call', input={'plan': 'shop'})
        task.end('on-success', {})
        outcome = {'success': True}
        assert task.context['input'] == {'plan': 'shop', 'outcome': outcome}
        task.end('on-error', result)
        found = task.context['input']['outcome']
        expected = {'success': False, **reason}
        expected.pop('error', None)
        assert found == expected
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
            (
                'action',
                "The action raised an exception [params='{'key': 'x'}']",
                *(None, None),
            ),
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

    def test_a_cancelled_one_is_not_waited_for(self):
        """Nothing follows, so Mistral cancels the execution."""
        steps = [{'kind': 'action', 'name': 'a', 'input': {}}]
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

    @pytest.mark.parametrize(
        ('found', 'commands'),
        [
            (step(success=True), []),
            (step(success=False, reason='boom'), ['fail: boom']),
            (step(call=CALL), [PASSED]),
        ],
    )
    def test_a_job_that_ended_before_it_was_polled_has_its_result(
        self, found, commands
    ):
        assert job(until=self.passed).end('on-success', found) == commands

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
        ('workflow', 'name', 'context'),
        [
            ('software_deployment.wait', 'look', {}),
            (
                'software_deployment.run',
                'follow',
                {'run': {'id': 'r', 'success': None}},
            ),
        ],
    )
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
    def test_the_reason_is_that_of_the_job(
        self, workflow, name, context, result, message
    ):
        task = Task(workflow, name, **context)
        assert task.end('on-error', result) == [f'fail: {message}']
        expected = context.get('run')
        if isinstance(result, dict) and isinstance(result['result'], dict):
            expected = result['result']
        assert task.context['run'] == expected

    @pytest.mark.parametrize('result', [*MISTRALS_OWN, {'result': 'stopped'}])
    @pytest.mark.parametrize(
        ('workflow', 'name'),
        [
            ('nodes.introspect', 'inspect'),
            ('nodes.move', 'move'),
            ('nodes.register', 'register'),
            ('plan.deploy', 'deploy'),
            ('validations.run', 'run'),
        ],
    )
    def test_without_a_state_the_output_is_there(self, workflow, name, result):
        task = Task(workflow, name)
        task.end('on-error', result)
        output = dict(task.workflow['output-on-error'])
        output.pop('error', None)
        assert output
        assert not any(task.value(value) for value in output.values())

    @pytest.mark.parametrize(
        ('workflow', 'key'),
        [
            ('software_deployment.trigger', 'run'),
            ('software_deployment.operate', 'operation'),
        ],
    )
    @pytest.mark.parametrize(
        ('result', 'run', 'error', 'message'),
        [
            (DIED, None, DIED, 'Task timed out'),
            ({'result': 'stopped'}, None, None, 'stopped'),
            ({'run': None, 'error': REFUSED, 'result': 'no'},) * 2
            + (REFUSED, 'no'),
            ({'run': {'id': 'r'}, 'error': None, 'result': 'bad'},) * 2
            + (None, 'bad'),
        ],
    )
    def test_a_former_name_ends_as_the_run_does(
        self, workflow, key, result, run, error, message
    ):
        task = Task(workflow, 'run')
        assert task.end('on-error', result) == [f'fail: {message}']
        expected = run and run['run']
        assert (task.context[key], task.context['error']) == (expected, error)


class TestStart:
    """A start that is repeated has the same ID."""

    def test_what_passes_is_repeated_and_a_refusal_is_the_end(self):
        task = Task('software_deployment.run', 'start', run_id='r')
        for error in (UNAVAILABLE, *MISTRALS_OWN, UNAVAILABLE):
            assert task.end('on-error', error) == ['start']
        assert task.value(task.spec['wait-before']) == 120
        assert task.end('on-error', UNAVAILABLE) == ['fail: down']
        task = Task('software_deployment.run', 'start', run_id='r')
        assert task.end('on-error', REFUSED) == ['fail: no']
        assert task.context['error'] == REFUSED

    @pytest.mark.parametrize('wait', [True, False])
    def test_it_is_waited_for_unless_the_user_does_not_want_that(self, wait):
        task = Task('software_deployment.run', 'start', wait=wait)
        task.end('on-error', UNAVAILABLE)
        run = {'id': 'r', 'next_look': 5}
        assert task.end('on-success', run) == ['follow'] * wait
        assert (task.context['run'], task.context['error']) == (run, None)
