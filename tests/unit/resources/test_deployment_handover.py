# SPDX-License-Identifier: Apache-2.0
"""What a deployment hands to its server, action by action."""

import fixtures
from heat.common import exception
from heat.db import api as db_api
from heat.engine import service_software_config
from heat.objects import resource as resource_objects

from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from tests.unit.resources import deployments

NEVER_NULL = (
    'id',
    'name',
    'group',
    'config',
    'inputs',
    'outputs',
    'options',
    'creation_time',
)


class DerivedConfigTest(deployments.DeploymentTestCase):
    """What the agents in the field need of a derived config."""

    def test_every_action_has_a_config_of_its_own(self):
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        stack = self.created(whole)
        self.update(
            stack,
            deployments.template(actions=deployments.ALL_ACTIONS, name='x'),
        )
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.delete(stack)
        given = [deployments.inputs(config) for config in self.handed]
        self.assertEqual(
            ['CREATE', 'UPDATE', 'SUSPEND', 'RESUME', 'DELETE'],
            [each['deploy_action'] for each in given],
        )
        for ids in (
            [config['id'] for config in self.handed],
            [each['deploy_signal_id'] for each in given],
        ):
            self.assertEqual(5, len(set(ids)))

    def test_nothing_in_it_is_null(self):
        self.created(
            deployments.template(
                config={
                    'options': None,
                    'outputs': None,
                    'config': None,
                    'inputs': [
                        {'name': 'a', 'description': None, 'default': None}
                    ],
                },
                input_values={'b': None},
            )
        )
        (config,) = self.handed
        for key in NEVER_NULL:
            self.assertIsNotNone(config[key], key)
        self.assertIsInstance(config['name'], str)
        for each in config['inputs']:
            self.assertNotIn(None, each.values(), each)
        given = deployments.inputs(config)
        self.assertEqual(('', ''), (given['a'], given['b']))

    def test_it_has_a_name_without_a_config(self):
        self.created(_without_config(), name='other')
        (config,) = self.handed
        self.assertRegex(config['name'], '^other-deployment-')
        self.assertEqual('', config['config'])
        self.assertEqual('Heat::Ungrouped', config['group'])
        self.assertEqual({}, config['options'])

    def test_a_script_is_given_texts_and_what_is_structured_as_it_is(self):
        self.created(
            deployments.template(
                config={
                    'inputs': [
                        {'name': 'n', 'type': 'Number'},
                        {'name': 'b', 'type': 'Boolean'},
                    ]
                },
                input_values={'n': 3, 'b': True, 'm': {'k': [1]}, 'x': 1.5},
            )
        )
        (config,) = self.handed
        given = deployments.inputs(config)
        self.assertEqual(
            ('3', 'True', {'k': [1]}, '1.5'),
            tuple(given[name] for name in ('n', 'b', 'm', 'x')),
        )
        types = {each['name']: each['type'] for each in config['inputs']}
        self.assertEqual(('String', 'String'), (types['n'], types['b']))

    def test_another_hook_is_given_numbers_as_numbers(self):
        self.created(
            deployments.template(
                config={'group': 'ansible'}, input_values={'n': 3}
            )
        )
        self.assertEqual(3, deployments.inputs(self.handed[0])['n'])

    def test_it_says_where_to_send_what_and_nothing_of_other_ways(self):
        stack = self.created()
        given = deployments.inputs(self.handed[0])
        self.assertEqual('PUT', given['deploy_signal_verb'])
        self.assertEqual(
            stack['server'].resource_id, given['deploy_server_id']
        )
        self.assertEqual('deployment', given['deploy_resource_name'])
        self.assertEqual(
            stack.identifier().stack_path(), given['deploy_stack_id']
        )
        self.assertIn(
            f'/AUTH_{deployments.PROJECT}/heat-plugins-{stack.id}/'
            f'signals/{stack["deployment"].resource_id}/'
            f'{self.handed[0]["id"]}?',
            given['deploy_signal_id'],
        )
        for name in ('deploy_auth_url', 'deploy_queue_id', 'deploy_password'):
            self.assertNotIn(name, given)

    def test_the_transport_is_recorded_as_one_that_heat_does_not_poll(self):
        for number, name in enumerate(
            ('TEMP_URL_SIGNAL', 'TEMP_URL_POLL', 'AUTO')
        ):
            stack = self.created(
                deployments.template(signal_transport=name), name=f's{number}'
            )
            self.assertEqual(
                'TEMP_URL_POLL',
                deployments.inputs(self.handed[-1])['deploy_signal_transport'],
            )
            self.assertEqual(
                'TEMP_URL_POLL',
                stack['deployment'].FnGetAtt('signal_transport'),
            )

    def test_neither_is_anything_in_one_that_came_by_the_api(self):
        config = self.heat.rpc.create_software_config(
            self.heat.context,
            'component',
            'by-hand',
            {
                'configs': [
                    {'actions': ['CREATE'], 'tool': 'script', 'config': None},
                    {'actions': ['UPDATE'], 'tool': 'script', 'config': 'u'},
                ]
            },
            inputs=[],
            outputs=[],
            options=None,
        )
        self.created(deployments.template(config=config['id']))
        entries = self.handed[0]['config']['configs']
        self.assertEqual(['', 'u'], [each['config'] for each in entries])
        self.assertEqual({}, self.handed[0]['options'])

    def test_a_structured_config_has_its_inputs_put_in(self):
        self.created(
            deployments.template(
                resources={
                    'config': {
                        'type': 'OS::Heat::StructuredConfig',
                        'properties': {
                            'group': 'ansible',
                            'config': {'a': [{'get_input': 'who'}]},
                            'inputs': [{'name': 'who'}],
                        },
                    }
                },
                kind='OS::Heat::StructuredDeployment',
                input_values={'who': 'me'},
            )
        )
        self.assertEqual({'a': ['me']}, self.handed[0]['config'])

    def test_a_strict_one_may_lose_an_input_where_an_update_runs_nothing(self):
        def whole(**properties):
            return deployments.template(
                resources={
                    'config': {
                        'type': 'OS::Heat::StructuredConfig',
                        'properties': {
                            'group': 'ansible',
                            'config': {'a': {'get_input': 'who'}},
                        },
                    }
                },
                kind='OS::Heat::StructuredDeployment',
                actions=['CREATE'],
                input_values_validate='STRICT',
                **properties,
            )

        stack = self.created(whole(input_values={'who': 'me'}))
        self.update(stack, whole())
        self.assertEqual(1, len(self.handed))

    def test_a_config_of_nobody_else_is_touched(self):
        stack = self.created()
        source = stack['config'].resource_id
        self.update(stack, deployments.template(input_values={'who': 'x'}))
        self.assertEqual({source, self.handed[-1]['id']}, self.config_ids())
        self.assertEqual(
            [self.handed[-1]['id']],
            [config['id'] for config in self.in_metadata(stack)],
        )

    def test_no_stack_user_may_read_the_row(self):
        self.created()
        (row,) = self.deployment_rows()
        self.assertIsNone(row.stack_user_project_id)

    def test_nor_after_an_update_one_that_heats_own_class_has_made(self):
        stack = self.created()
        deployment_id = stack['deployment'].resource_id
        rows.change(
            self.heat.context,
            deployment_id,
            stack_user_project_id='stack-users',
        )
        self.update(stack, deployments.template(input_values={'who': 'x'}))
        (row,) = self.deployment_rows()
        self.assertIsNone(row.stack_user_project_id)

    def test_inputs_that_are_taken_back_leave_the_row(self):
        stack = self.created(
            deployments.template(input_values={'who': 's3cret'})
        )
        (row,) = self.deployment_rows()
        self.assertEqual({'who': 's3cret'}, row.input_values)
        self.update(stack, deployments.template())
        (row,) = self.deployment_rows()
        self.assertFalse(row.input_values)

    def test_but_one_of_a_server_that_zaqar_polls_for(self):
        stack = self.heat.stack(deployments.template())
        task = self.heat.begin(stack, 'CREATE')
        stack['server'].data_set('metadata_queue_id', 'queue')
        self.patch(
            service_software_config.SoftwareConfigService,
            '_get_zaqar_queue',
            lambda *args: _Queue(),
        )
        self.finish(task)
        (row,) = self.deployment_rows()
        self.assertEqual(
            stack.stack_user_project_id, row.stack_user_project_id
        )


class _Queue:
    def post(self, message):
        """Take a message."""


def _without_config():
    whole = deployments.template(config={})
    del whole['resources']['config']
    del whole['resources']['deployment']['properties']['config']
    return whole


class ActionsTest(deployments.DeploymentTestCase):
    def test_an_action_that_is_not_asked_for_is_complete_at_once(self):
        stack = self.created(deployments.template(actions=['UPDATE']))
        self.assertEqual([], self.handed)
        self.assertIsNone(stack['deployment'].resource_id)
        self.update(stack, deployments.template(actions=['UPDATE'], name='x'))
        self.assertEqual(1, len(self.handed))
        self.act(stack, 'SUSPEND')
        self.delete(stack)
        self.assertEqual(1, len(self.handed))
        self.assert_nothing_left()

    def test_one_for_which_a_component_has_no_config_is_too(self):
        part = deployments.component((['UPDATE', 'BACKUP'], 'x'))
        stack = self.created(deployments.template(resources={'config': part}))
        self.act(stack, 'SUSPEND')
        self.act(stack, 'RESUME')
        self.assertEqual([], self.handed)
        self.update(
            stack, deployments.template(resources={'config': part}, name='x')
        )
        self.assertEqual(1, len(self.handed))
        self.delete(stack)
        self.assertEqual(1, len(self.handed))

    def test_a_component_decides_and_not_the_deployments_actions(self):
        part = deployments.component((['SUSPEND'], 'x'))
        stack = self.created(deployments.template(resources={'config': part}))
        self.act(stack, 'SUSPEND')
        self.assertEqual(
            ['SUSPEND'],
            [deployments.inputs(c)['deploy_action'] for c in self.handed],
        )

    def test_delete_alone_runs_once_and_leaves_nothing(self):
        stack = self.created(deployments.template(actions=['DELETE']))
        self.assertEqual([], self.handed)
        self.delete(stack)
        self.assertEqual(
            ['DELETE'],
            [deployments.inputs(c)['deploy_action'] for c in self.handed],
        )
        self.assert_nothing_left()

    def test_delete_runs_though_create_was_asked_for_only_later(self):
        stack = self.created(deployments.template(actions=['DELETE']))
        self.update(stack, deployments.template(actions=['CREATE', 'DELETE']))
        self.assertEqual([], self.handed)
        self.delete(stack)
        self.assertEqual(1, len(self.handed))
        self.assert_nothing_left()

    def test_without_a_signal_it_is_complete_when_handed_over(self):
        self.answer = None
        stack = self.created(
            deployments.template(signal_transport='NO_SIGNAL')
        )
        (row,) = self.deployment_rows()
        self.assertEqual('COMPLETE', row.status)
        (config,) = self.in_metadata(stack)
        given = deployments.inputs(config)
        self.assertEqual('NO_SIGNAL', given['deploy_signal_transport'])
        self.assertNotIn('deploy_signal_id', given)
        self.assertEqual([], self.swift.seen)


class FailuresTest(deployments.DeploymentTestCase):
    """A hand-over that fails leaves nothing half done."""

    def break_(self, function, *, before=True):
        """Let the next delivery fail before or after a step is done."""
        owner, _, name = function.rpartition('.')
        owner = {'rows': rows, 'metadata': server_metadata}[owner]
        real = getattr(owner, name)

        def fail(*args):
            setattr(owner, name, real)
            if not before:
                real(*args)
            raise exception.Error(f'{name} has failed')

        self.patch(owner, name, fail)

    def test_before_anything_was_written(self):
        self.break_('rows.deliver')
        stack, reason = self.fails(deployments.template(), {})
        self.assertIn('deliver has failed', reason)
        self.assertEqual([], self.deployment_rows())
        self.assertEqual({stack['config'].resource_id}, self.config_ids())
        self.assertEqual([], self.tickets())

    def test_after_the_row_was_made(self):
        self.break_('rows.deliver', before=False)
        stack, reason = self.fails(deployments.template(), {})
        self.assertIn('deliver has failed', reason)
        self.assert_withdrawn(stack, 'CREATE was cancelled')

    def test_of_an_update_and_the_next_one_works(self):
        stack = self.created()
        self.break_('rows.deliver')
        changed = deployments.template(input_values={'who': 'x'})
        task = self.heat.begin(stack, 'UPDATE', changed)
        self.assertIn('deliver has failed', self.failed(task, stack))
        self.update(stack, changed)
        self.assertEqual(
            {stack['config'].resource_id, self.handed[-1]['id']},
            self.config_ids(),
        )
        self.delete(stack)
        self.assert_nothing_left()

    def test_of_an_update_that_got_half_way(self):
        stack = self.created()
        self.break_('metadata.tell')
        changed = deployments.template(input_values={'who': 'x'})
        task = self.heat.begin(stack, 'UPDATE', changed)
        self.failed(task, stack)
        self.assertEqual([], self.in_metadata(stack))
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_create_that_was_undone_has_no_delete(self):
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        self.break_('rows.deliver')
        stack, _ = self.fails(whole, {})
        self.delete(stack)
        self.assertEqual([], self.handed)
        self.assert_nothing_left()

    def test_nor_has_one_that_never_reached_its_server(self):
        self.swift.denied.add(deployments.PROJECT)
        whole = deployments.template(actions=deployments.ALL_ACTIONS)
        stack, _ = self.fails(whole, {})
        self.delete(stack)
        self.assertEqual([], self.handed)
        self.assert_nothing_left()


class UntoldTest(deployments.DeploymentTestCase):
    """Nothing waits for NO_SIGNAL, so its row is complete at once."""

    def test_the_next_update_tells_a_server_that_could_not_be_told(self):
        whole = deployments.template(signal_transport='NO_SIGNAL')
        self.configure(swift_error_budget=20)
        attempts = self.break_database(server_metadata, 'tell', 10**6)
        stack = self.heat.stack(whole)
        task = self.heat.begin(stack, 'CREATE')
        self.failed(task, stack)
        self.assertEqual([], self.in_metadata(stack))
        attempts.clear()
        stack.persist_state_and_release_lock('engine')
        self.update(stack, whole)
        self.assertEqual(1, len(self.in_metadata(stack)))
        self.delete(stack)
        self.assert_nothing_left()

    def test_it_is_told_once_the_database_answers(self):
        whole = deployments.template(signal_transport='NO_SIGNAL')
        self.break_database(server_metadata, 'tell', 1)
        stack = self.created(whole)
        self.work()
        self.assertEqual(1, len(self.handed))
        self.assertEqual(
            {stack['config'].resource_id, self.handed[0]['id']},
            self.config_ids(),
        )


class DatabaseTest(deployments.DeploymentTestCase):
    """Heat's database is out of order while something is handed over."""

    def completes(self):
        """Create a stack; its deployment is handed over once, in the end."""
        logged = self.useFixture(fixtures.FakeLogger())
        stack = self.heat.stack(deployments.template())
        self.finish(self.heat.begin(stack, 'CREATE'))
        self.assertEqual('COMPLETE', stack.status, stack.status_reason)
        (row,) = self.deployment_rows()
        self.assertEqual(row.config_id, self.handed[-1]['id'])
        # With the one that it is derived from.
        self.assertEqual(
            {row.config_id, stack['config'].resource_id}, self.config_ids()
        )
        self.assertNotIn('parameters', logged.output)

    def test_what_cannot_be_written_now_is_written_later(self):
        self.break_database(rows, 'deliver', 2)
        self.completes()

    def test_what_was_written_all_the_same_is_handed_over_once_more(self):
        self.break_database(rows, 'deliver', 2, after=True)
        self.completes()

    def test_what_cannot_be_taken_back_now_is_later(self):
        self.break_database(rows, 'deliver', 1, after=True)
        self.break_database(rows, 'withdraw', 1)
        self.completes()

    def test_whose_row_it_is_is_known_after_the_engine_has_died(self):
        self.break_database(
            resource_objects.Resource,
            'update_by_id',
            1,
            only=lambda context, number, values: (
                [*values] == ['physical_resource_id']
                and db_api.resource_get(context, number).name == 'deployment'
            ),
        )
        stack, task = self.waiting()
        self.addCleanup(task.cancel)
        (row,) = self.deployment_rows()
        found = resource_objects.Resource.get_obj(
            stack.context, stack['deployment'].id, refresh=True
        )
        self.assertEqual(row.id, found.physical_resource_id)

    def test_what_may_have_been_written_goes_if_it_is_cancelled(self):
        away = [True]
        self.break_database(rows, 'deliver', 1000, after=True)
        self.break_database(rows, 'withdraw', 1000, only=lambda *args: away)
        stack, task = self.waiting()
        self.assertEqual(1, len(self.deployment_rows()))
        away.clear()
        task.cancel()
        self.assert_withdrawn(stack)
