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
    """Gives the answers that it was given, in order, to what was expected."""

    def __init__(self, *answers):
        super().__init__()
        self.answers = list(answers)
        self.bodies = []

    def answer(self, request):
        wanted, status, body = self.answers.pop(0)
        said = f'{request.method} {request.url.removeprefix(URL)}'
        assert said == wanted, said
        self.bodies.append(json.loads(request.body or 'null'))
        return status, json.dumps(body).encode()


def action(state, **output):
    return {'id': 'a-1', 'state': state, 'output': json.dumps(output)}


class ActionTest(testtools.TestCase):
    def executions(self, *answers):
        self.mistral = Mistral(*answers)
        return mistral_plans.WorkflowExecutions(
            web_service.cloud(self.mistral, URL)
        )

    def test_a_step_of_a_plan_is_begun_and_polled_by_its_kind(self):
        said = {'state_info': 'boom'}
        for kind, path in (
            (jobs.CallKind.WORKFLOW, '/executions'),
            (jobs.CallKind.ACTION, '/action_executions'),
        ):
            step = jobs.Call(kind=kind, name='x', input={'a': 1})
            executions = self.executions(
                (f'POST {path}', 201, action('RUNNING')),
                *(
                    (f'GET {path}/a-1', 200, action(*given, **more) | said)
                    for given, more in (
                        (['RUNNING'], {}),
                        (['SUCCESS'], {'result': 7}),
                        (['ERROR'], {'result': 'boom'}),
                    )
                ),
            )
            begun = executions.start(step, 'plan p')
            (sent,) = self.mistral.bodies
            self.assertEqual(sent.get('id', 'a-1'), begun)
            self.assertEqual({'a': 1}, json.loads(sent['input']))
            self.assertEqual(
                [
                    jobs.CallOutcome(success=None),
                    jobs.CallOutcome(success=True),
                    jobs.CallOutcome(success=False, reason='ERROR: boom'),
                ],
                [executions.look(step, 'a-1') for _ in range(3)],
            )


class ErrorTest(testtools.TestCase):
    def error(self, output):
        return mistral_plans.WorkflowExecution(
            id='e-1', state='ERROR', reason='because', output=output
        ).error()

    def test_it_is_the_one_that_the_workflow_says(self):
        said = {'code': 'not-found', 'message': 'No plan'}
        found = self.error({'error': said})
        self.assertIsInstance(found, errors.NotFound)
        self.assertEqual('No plan', str(found))

    def test_or_else_the_reason_that_mistral_has(self):
        for output in ({}, {'error': "Heartbeat wasn't received"}):
            self.assertEqual(
                'Execution e-1 of Mistral: because', str(self.error(output))
            )
