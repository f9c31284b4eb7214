# SPDX-License-Identifier: Apache-2.0
"""What a dead engine has delivered is waited for, and runs once.

The engine that resumes looks for the result first.
"""

from unittest import mock
import uuid

from heat.db import api as db_api
from heat.db import models
from heat.objects import software_config as config_objects

from heat_plugins.engine.database import rows
from tests.unit.resources import deployments

WHOLE = deployments.template(actions=deployments.ALL_ACTIONS)


class Died(BaseException):
    """An engine dies just here."""


class ResumeTest(deployments.DeploymentTestCase):
    def dead(self, action, whole=WHOLE, stack=None, answered=True):
        """Return a stack whose engine has died as its server worked.

        :param answered: whether the server has answered since.
        """
        stack, task = self.waiting(whole, action, stack)
        self.addCleanup(task.cancel)
        if answered:
            self.send(self.handed[-1], {'answer': 'once'})
        self.answer = {}
        self.fail(stack, action)
        return stack

    def fail(self, stack, action):
        """Be the rescue, or Heat's own code for a stack without it."""
        again = self.heat.load(stack)
        again['deployment'].state_set(action, 'FAILED', 'Engine has died')
        again.state_set(action, 'FAILED', 'Engine has died')
        again.persist_state_and_release_lock(uuid.uuid4().hex)

    def ran(self):
        return [
            deployments.inputs(config)['deploy_action']
            for config in self.handed
        ]

    def output(self, stack):
        return self.heat.load(stack)['deployment'].FnGetAtt('answer')

    def test_create_is_not_run_again(self):
        stack = self.dead('CREATE')
        (before,) = self.deployment_rows()
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE'], self.ran())
        self.assertEqual('once', self.output(stack))
        (row,) = self.deployment_rows()
        self.assertEqual(
            (before.id, before.config_id), (row.id, row.config_id)
        )
        self.delete(stack)
        self.assertEqual(['CREATE', 'DELETE'], self.ran())
        self.assert_nothing_left()

    def test_nor_if_its_server_answers_later(self):
        stack = self.dead('CREATE', answered=False)
        later = [5]

        def answer():
            later[0] -= 1
            if later[0] == 0:
                self.send(self.handed[-1], {'answer': 'late'})

        self.meanwhile = answer
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE'], self.ran())
        self.assertEqual('late', self.output(stack))

    def test_nor_if_its_result_was_taken_already(self):
        stack = self.dead('CREATE', answered=False)
        (row,) = self.deployment_rows()
        rows.change(
            self.heat.context,
            row.id,
            status='COMPLETE',
            output_values={'answer': 'taken'},
        )
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE'], self.ran())
        self.assertEqual('taken', self.output(stack))

    def test_what_waits_for_heats_own_url_is_delivered_again(self):
        # Its result lies in another container, where we look for nothing.
        stack = self.dead('CREATE', answered=False)
        (row,) = self.deployment_rows()
        config = config_objects.SoftwareConfig.get_by_id(
            self.heat.context, row.config_id
        )
        inputs = [
            {**each, 'value': 'TEMP_URL_SIGNAL'}
            if each['name'] == 'deploy_signal_transport'
            else each
            for each in config.config['inputs']
        ]
        with db_api.context_manager.writer.using(self.heat.context) as session:
            session.query(models.SoftwareConfig).filter_by(
                id=row.config_id
            ).update({'config': {**config.config, 'inputs': inputs}})
        self.answer = {'answer': 'again'}
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE', 'CREATE'], self.ran()[:2])
        self.assertEqual('again', self.output(stack))

    def test_without_a_signal_its_server_is_told_for_certain(self):
        # The row is complete as it is written, before the server knows.
        whole = deployments.template(
            actions=deployments.ALL_ACTIONS, signal_transport='NO_SIGNAL'
        )
        stack = self.created(whole)
        for action in ('CREATE', 'SUSPEND'):
            with self.subTest(action=action):
                if action != 'CREATE':
                    self.act(stack, action)
                (row,) = self.deployment_rows()
                server = self.heat.load(stack)['server']
                server.metadata_set(
                    {**server.metadata_get(), 'deployments': []}
                )
                self.fail(stack, action)
                if action == 'CREATE':
                    self.update(stack, whole)
                else:
                    self.act(stack, action)
                self.assertEqual(
                    [row.config_id],
                    [config['id'] for config in self.in_metadata(stack)],
                )

    def test_create_with_another_config_is_run_in_place(self):
        stack = self.dead('CREATE', answered=False)
        (before,) = self.deployment_rows()
        changed = deployments.template(
            actions=deployments.ALL_ACTIONS, input_values={'who': 'moon'}
        )
        self.update(stack, changed)
        self.assertEqual(['CREATE', 'CREATE'], self.ran())
        (row,) = self.deployment_rows()
        self.assertEqual(before.id, row.id)

    def test_what_has_failed_on_its_server_is_replaced(self):
        stack = self.dead('CREATE', answered=False)
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='FAILED')
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE', 'CREATE', 'DELETE'], self.ran())

    def test_update_is_not_run_again(self):
        changed = deployments.template(
            actions=deployments.ALL_ACTIONS, input_values={'who': 'moon'}
        )
        stack = self.created(WHOLE)
        self.update(stack, changed)
        # As it was before the engine took the result.
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='IN_PROGRESS')
        self.send(self.handed[-1], {'answer': 'once'})
        self.fail(stack, 'UPDATE')
        self.update(stack, changed)
        self.assertEqual(['CREATE', 'UPDATE'], self.ran())
        self.assertEqual('once', self.output(stack))

    def test_suspend_and_resume_are_not_run_again(self):
        stack = self.created(WHOLE)
        for action in ('SUSPEND', 'RESUME'):
            stack = self.dead(action, WHOLE, self.heat.load(stack))
            self.act(stack, action)
            self.assertEqual('once', self.output(stack))
        self.assertEqual(['CREATE', 'SUSPEND', 'RESUME'], self.ran())

    def test_nor_is_what_a_dead_engine_has_taken_the_result_of(self):
        stack = self.dead(
            'SUSPEND', WHOLE, self.created(WHOLE), answered=False
        )
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='COMPLETE')
        self.act(stack, 'SUSPEND')
        self.assertEqual(['CREATE', 'SUSPEND'], self.ran())

    def test_an_action_that_is_complete_runs_again_if_it_is_asked_for(self):
        stack = self.created(WHOLE)
        for _ in range(2):
            self.act(stack, 'SUSPEND')
            self.act(stack, 'RESUME')
        self.assertEqual(
            ['CREATE', 'SUSPEND', 'RESUME', 'SUSPEND', 'RESUME'], self.ran()
        )

    def test_delete_is_not_run_again(self):
        stack = self.created(WHOLE)
        self.answer = None
        dead = self.heat.load(stack)
        self.step(self.heat.start(dead['deployment'].delete), 9)
        self.send(self.handed[-1])
        self.answer = {}
        self.fail(stack, 'DELETE')
        self.delete(stack)
        self.assertEqual(['CREATE', 'DELETE'], self.ran())
        self.assert_nothing_left()

    def test_nor_if_only_its_row_is_still_to_be_deleted(self):
        stack = self.created(WHOLE)
        dying = self.heat.load(stack)
        with mock.patch.object(rows, 'erase', side_effect=Died):
            task = self.heat.start(dying['deployment'].delete)
            self.assertRaises(Died, self.finish, task)
        self.assertEqual([], self.in_metadata(stack))
        self.fail(stack, 'DELETE')
        self.delete(stack)
        self.assertEqual(['CREATE', 'DELETE'], self.ran())
        self.assert_nothing_left()

    def test_nor_if_its_row_is_gone(self):
        stack = self.created(WHOLE)
        dying = self.heat.load(stack)
        real = rows.erase

        def die(*args):
            real(*args)
            raise Died

        with mock.patch.object(rows, 'erase', die):
            task = self.heat.start(dying['deployment'].delete)
            self.assertRaises(Died, self.finish, task)
        self.fail(stack, 'DELETE')
        self.delete(stack)
        self.assertEqual(['CREATE', 'DELETE'], self.ran())
        self.assert_nothing_left()

    def test_a_server_is_told_of_what_a_dead_engine_told_nobody(self):
        stack = self.dead('CREATE', answered=False)
        server = stack['server']
        server.metadata_set({**server.metadata_get(), 'deployments': []})
        self.handed.clear()
        self._looked_at = None
        self.update(stack, WHOLE)
        self.assertEqual(['CREATE'], self.ran())

    def test_a_result_that_comes_as_a_signal_is_waited_for(self):
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        whole = deployments.template(signal_transport='HEAT_SIGNAL')
        stack, task = self.waiting(whole)
        self.addCleanup(task.cancel)
        (before,) = self.deployment_rows()
        self.fail(stack, 'CREATE')
        later = [5]

        def answer():
            later[0] -= 1
            if later[0] == 0:
                self.heat.load(stack)['deployment'].signal({'answer': 'late'})

        self.meanwhile = answer
        self.update(stack, whole)
        (row,) = self.deployment_rows()
        self.assertEqual(before.config_id, row.config_id)
        self.assertEqual('late', self.output(stack))
