# SPDX-License-Identifier: Apache-2.0
"""Executions of Mistral, with answers as Mistral gives them."""

import json

import testtools

from heat_plugins import errors
from heat_plugins import jobs
from heat_plugins.clients import mistral_plans
from tests.unit import web_service

URL = 'http://mistral.example.com/v2'


class Mistral(web_service.Service):
    """Has one execution; an AssertionError for what it has not."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.shown = {'id': 'a-1', 'state': 'RUNNING', 'state_info': 'boom'}

    def answer(self, request):
        path = request.url.removeprefix(URL)
        if request.method == 'POST':
            assert path == self.path
            self.body = json.loads(request.body)
            return 201, self.shown
        assert path == f'{self.path}/a-1'
        return 200, self.shown


class ExecutionsTest(testtools.TestCase):
    def test_a_step_of_a_plan_is_begun_and_polled_by_its_kind(self):
        for kind, path in (
            (jobs.CallKind.WORKFLOW, '/executions'),
            (jobs.CallKind.ACTION, '/action_executions'),
        ):
            mistral = Mistral(path)
            step = jobs.Call(kind=kind, name='x', input={'a': 1})
            executions = mistral_plans.WorkflowExecutions(
                web_service.cloud(mistral, URL)
            )
            begun = executions.start(step, 'plan p')
            assert begun == mistral.body.get('id', 'a-1')
            assert json.loads(mistral.body['input']) == {'a': 1}
            for state, result, success, reason in (
                ('RUNNING', None, None, ''),
                ('SUCCESS', 7, True, ''),
                ('ERROR', 'boom', False, 'ERROR: boom'),
            ):
                output = json.dumps({'result': result})
                mistral.shown.update(state=state, output=output)
                assert executions.look(step, 'a-1') == jobs.CallOutcome(
                    success=success, reason=reason
                )

    def test_an_error_is_the_workflow_s_or_else_the_reason_of_mistral(self):
        theirs = 'Execution e-1 of Mistral: because'
        said = {'code': 'not-found', 'message': 'No plan'}
        for output, kind, text in (
            ({'error': said}, errors.NotFound, 'No plan'),
            ({}, errors.ServiceError, theirs),
            ({'error': "Heartbeat wasn't"}, errors.ServiceError, theirs),
        ):
            error = mistral_plans.WorkflowExecution(
                id='e-1', state='ERROR', reason='because', output=output
            ).error()
            assert (type(error), str(error)) == (kind, text)
