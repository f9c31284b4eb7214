# SPDX-License-Identifier: Apache-2.0
"""Work on plans by Mistral, whatever is unavailable meanwhile."""

import json

import testtools

from heat_plugins import errors
from heat_plugins import pools
from heat_plugins.clients import mistral_plans
from heat_plugins.osc import drivers
from heat_plugins.plans import plan_operations
from tests.unit.osc import base
from tests.unit.plans import fakes

UPLOADS = 'heat-plugins-uploads-project-1'

AWAY = errors.Unavailable('Mistral cannot be reached')


class Shown:
    def __init__(self):
        self.statuses = []
        self.warnings = []

    def note(self, sentence):
        pass

    def executes(self, execution_id):
        pass

    def warn(self, warnings):
        self.warnings += warnings

    def changed(self, stack):
        self.statuses.append(stack.status)


class ThroughMistralTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.slept = []
        self.driver = base.driver(
            local=False,
            store=self.cloud.swift.store(),
            plans=plan_operations.PlanOperations(self.cloud.plans),
            executions=base.Executions(),
            sleep=self.slept.append,
        )
        self.looks = self.driver.executions.looks
        self.patch(pools.time, 'sleep', lambda seconds: None)
        pool_class = pools.Pool
        self.patch(pools, 'Pool', lambda: pool_class(wait=0))

    def create(self):
        return self.change('plan.create', {'a': b'b'})

    def change(self, operation, content, **options):
        return self.driver.change(
            operation, 'plan', content, lambda done, every: None, **options
        )

    def uploads(self):
        return self.cloud.swift.container(UPLOADS)

    def test_a_mistral_that_is_away_for_a_while_is_waited_for(self):
        self.looks += ['RUNNING', AWAY, AWAY, ('SUCCESS', {'plan': 'it'})]
        self.assertEqual('it', self.create())
        self.assertEqual(3, len(self.slept))

    def test_what_is_sent_arrives_at_the_same_paths(self):
        self.cloud.plans.create('plan', fakes.content())
        content = {'plan/a.yaml': b'{}'}

        def start(name, arguments, description):
            self.driver.plans.update(**arguments)
            return 'e-1'

        self.driver.executions.start_workflow = start
        for _ in range(2):
            # The second time the plan has such a folder.
            self.looks += [('SUCCESS', {'plan': 'it'})]
            self.change('plan.update', content)
            self.assertIn('plan/a.yaml', self.cloud.objects())
            self.assertNotIn('a.yaml', self.cloud.objects())

    def test_what_is_there_already_is_not_sent(self):
        self.looks += [('SUCCESS', {'plan': 'it'})] * 2
        self.change('plan.create', None, container='files')
        self.change('plan.update', {}, prune=True)
        created, updated = self.driver.executions.started
        self.assertEqual('files', created[1]['container'])
        self.assertEqual({'plan': 'plan', 'prune': True}, updated[1])
        self.assertIsNone(self.uploads())

    def test_a_deployment_need_not_be_waited_for(self):
        self.looks += ['RUNNING']
        self.driver.deploy('plan', Shown(), wait=False)
        self.assertEqual(1, len(self.driver.executions.started))

    def test_what_an_execution_found_out_of_order_ends_the_waiting(self):
        said = {'code': 'unavailable', 'message': 'Swift is away'}
        self.looks += [AWAY, ('ERROR', {'error': said})]
        error = self.assertRaises(errors.Unavailable, self.create)
        self.assertEqual('Swift is away', str(error))

    def test_what_was_uploaded_goes_by_itself_if_nobody_deletes_it(self):
        seen = []

        def look(execution_id):
            seen.append((dict(self.uploads().lifetimes), execution_id))
            return mistral_plans.WorkflowExecution(id='e-1', state='ERROR')

        self.driver.executions.execution = look
        self.assertRaises(errors.ServiceError, self.create)
        [(lifetimes, _)] = seen
        self.assertEqual(['86400'], list(lifetimes.values()))
        self.assertEqual({}, self.uploads().objects)

    def test_what_goes_on_keeps_what_was_uploaded_for_a_repetition(self):
        def interrupt(execution_id):
            raise KeyboardInterrupt

        self.driver.executions.execution = interrupt
        self.assertRaises(KeyboardInterrupt, self.create)
        [name] = self.uploads().objects
        self.assertEqual({name: '86400'}, dict(self.uploads().lifetimes))

    def test_what_cannot_be_begun_keeps_nothing(self):
        def refuse(*given):
            raise errors.Denied('no')

        self.driver.executions.start_workflow = refuse
        self.assertRaises(errors.Denied, self.create)
        self.assertEqual({}, self.uploads().objects)

    def test_an_upload_rides_out_a_store_that_is_out_of_order(self):
        self.cloud.swift.fail(times=3, status=503, method='PUT')
        self.looks += [('SUCCESS', {'plan': 'it'})]
        self.assertEqual('it', self.create())

    def test_an_upload_that_cannot_be_deleted_fails_nothing(self):
        self.cloud.swift.fail(times=99, status=503, method='DELETE')
        self.looks += [('SUCCESS', {'plan': 'it'})]
        with self.assertLogs(drivers.LOG, 'WARNING') as logs:
            self.assertEqual('it', self.create())
        self.assertIn('Cannot delete object', logs.output[0])

    def test_an_upload_that_fails_is_told_and_begins_nothing(self):
        self.cloud.swift.fail(times=99, status=403, method='PUT')
        self.assertRaises(errors.Denied, self.create)
        self.assertEqual([], self.driver.executions.started)

    def test_values_do_not_go_through_mistral(self):
        self.driver.call(
            'plan.update_parameters',
            plan='plan',
            values={'who': 'geheim'},
            unset=[],
            role=None,
        )
        self.assertNotIn('geheim', json.dumps(self.driver.executions.started))

    def test_nothing_is_uploaded_where_others_may_read_it(self):
        self.driver.store.put_container(UPLOADS, {})
        self.uploads().meta['x-container-read'] = '.r:*'
        self.assertRaises(errors.Refused, self.create)
        self.assertEqual({}, self.uploads().objects)

    def test_a_refused_deployment_names_its_execution(self):
        said = {'code': 'refused', 'message': 'Stack plan is in the way'}
        self.looks += [('ERROR', {'error': said})]
        error = self.assertRaises(
            errors.Refused, self.driver.deploy, 'plan', Shown(), wait=True
        )
        self.assertEqual(
            'Stack plan is in the way (execution e-1 of Mistral)', str(error)
        )

    def test_so_does_one_whose_executor_has_died(self):
        self.looks += ['ERROR']
        error = self.assertRaises(
            errors.ServiceError, self.driver.deploy, 'plan', Shown(), wait=True
        )
        self.assertEqual(1, str(error).count('e-1'))

    def test_a_deployment_is_shown_to_its_end(self):
        self.cloud.plans.create('plan', fakes.content())

        def look(execution_id):
            if not self.looks:
                self.cloud.heat.become('plan', 'CREATE_COMPLETE')
                return mistral_plans.WorkflowExecution(
                    id='e', state='SUCCESS', output={'warnings': ['beware']}
                )
            raise self.looks.pop(0)

        def start(name, arguments, description):
            self.cloud.heat.become('plan', 'CREATE_IN_PROGRESS')
            return 'e-1'

        self.looks += [AWAY, AWAY]
        self.driver.executions.start_workflow = start
        self.driver.executions.execution = look
        shown = Shown()
        self.driver.deploy('plan', shown, wait=True)
        self.assertEqual(['CREATE_COMPLETE'], shown.statuses)
        self.assertEqual(['beware'], shown.warnings)
