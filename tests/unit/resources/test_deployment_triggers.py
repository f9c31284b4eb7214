# SPDX-License-Identifier: Apache-2.0
"""A signal starts a run of a deployment's action."""

import copy
import json
import threading
import time

from heat.common import exception
from heat.engine.clients.os.keystone import fake_keystoneclient

from heat_plugins import errors
from heat_plugins.deployments import failures
from heat_plugins.engine import process
from heat_plugins.engine import transports
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.runs import run_ledgers
from heat_plugins.objectstore import keys
from tests.unit.resources import deployments

BACKUP = {'trigger': 'BACKUP'}

CONFIG = {
    'type': 'OS::Heat::SoftwareComponent',
    'properties': {
        'inputs': [
            {'name': 'level', 'type': 'Number', 'default': 3},
            {'name': 'password', 'type': 'String', 'default': 'none'},
        ],
        'outputs': [{'name': 'size'}],
        'configs': [
            {'actions': ['CREATE', 'UPDATE'], 'tool': 'script', 'config': ''},
            {'actions': ['BACKUP'], 'tool': 'script', 'config': '#!/bin/sh'},
        ],
    },
}


class TriggerTestCase(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        #: The root stacks whose runs the engine has begun to follow.
        self.followed = []
        self.patch(
            run_ledgers,
            'follow_runs',
            lambda ledger, root_stack_id: self.followed.append(root_stack_id),
        )

    def template(self, config=CONFIG, **properties):
        return deployments.template(resources={'config': config}, **properties)

    def stack(self, **properties):
        return self.created(self.template(**properties))

    def signal(self, stack, details, name='deployment'):
        """Signal as the API does, in an engine that has loaded the stack."""
        again = self.heat.load(stack)
        again[name].signal(details)

    def refused(self, stack, details):
        """Return the event of a signal that comes to nothing."""
        before = set(deployments.events(stack))
        self.assertRaises(
            exception.ResourceFailure, self.signal, stack, details
        )
        (said,) = set(deployments.events(stack)) - before
        self.assertTrue(said.startswith('Not triggered: '), said)
        return said

    def given(self, stack):
        """Return the configs that the server has for runs."""
        return [
            one
            for one in self.in_metadata(stack)
            if one['name'].endswith('-BACKUP')
        ]

    def holds_container(self, stack):
        return resources.container_in_use(
            stack.context, stack.id, f'heat-plugins-{stack.id}'
        )

    def runs(self, stack, name='deployment'):
        again = self.heat.load(stack)
        return again[name].FnGetAtt('runs')


class SignalTest(TriggerTestCase):
    def test_a_trigger_hands_the_server_the_action(self):
        stack = self.stack()
        (before,) = self.deployment_rows()
        self.signal(stack, {**BACKUP, 'input_values': {'level': 9}})
        # The stack's own deployment is left alone.
        after = {row.id: row for row in self.deployment_rows()}
        self.assertEqual(2, len(after))
        self.assertEqual(before.config_id, after[before.id].config_id)
        self.assertEqual('COMPLETE', after[before.id].status)
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual('BACKUP', given['deploy_action'])
        self.assertEqual('9', given['level'])
        self.assertEqual('none', given['password'])
        (run,) = self.runs(stack)
        self.assertIn(
            f'Signal: run {run["id"]} of BACKUP has started',
            deployments.events(stack),
        )
        self.assertEqual([stack.id], self.followed)

    def test_no_name_of_an_action_forges_a_log_line_or_a_terminal(self):
        name = 'X\n2026-01-01 INFO forged\x1b[2J\u202e'
        entry = {'actions': [name], 'tool': 'script', 'config': '#!/bin/sh'}
        config = copy.deepcopy(CONFIG)
        config['properties']['configs'].append(entry)
        stack = self.created(self.template(config))
        with self.assertLogs('heat_plugins', 'INFO') as logs:
            self.signal(stack, {'trigger': name})
        self.refused(stack, {'trigger': f'not {name}'})
        shown = r'X\n2026-01-01 INFO forged\x1b[2J\u202e'
        self.assertTrue(any(shown in line for line in logs.output))
        self.assertTrue(any(shown in one for one in deployments.events(stack)))
        for line in [*logs.output, *deployments.events(stack)]:
            self.assertTrue(line.isprintable(), line)

    def test_it_may_take_as_long_as_an_action_of_the_deployment(self):
        stack = self.stack(timeout=77, delivery_timeout=7)
        self.signal(stack, BACKUP)
        (run,) = self.runs(stack)
        self.assertEqual(77, run['timeout'])
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual('77', given['deploy_signal_timeout'])
        container = self.swift.container(
            f'heat-plugins-{stack.id}', deployments.PROJECT
        )
        (record,) = [
            json.loads(content)
            for name, content in container.objects.items()
            if name.startswith('runs/records/')
        ]
        self.assertEqual(7, record['delivery_timeout'])

    def test_inputs_that_the_config_does_not_declare_stay_as_they_are(self):
        stack = self.stack(input_values={'extra': 'x', 'level': 5})
        self.signal(stack, BACKUP)
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual(('x', '5'), (given['extra'], given['level']))

    def test_a_structured_deployment_takes_one(self):
        config = {
            'type': 'OS::Heat::StructuredConfig',
            'properties': {
                'group': 'component',
                'config': {
                    'configs': [
                        {'actions': ['CREATE'], 'tool': 'script'},
                        {
                            'actions': ['BACKUP'],
                            'tool': 'script',
                            'config': {'get_input': 'what'},
                        },
                    ]
                },
                'inputs': [{'name': 'what', 'default': 'all'}],
            },
        }
        stack = self.created(
            self.template(config, kind='OS::Heat::StructuredDeployment')
        )
        self.signal(stack, BACKUP)
        (given,) = self.given(stack)
        self.assertEqual('all', given['config']['configs'][1]['config'])

    def test_a_deployment_that_has_failed_takes_one(self):
        stack, _ = self.fails(self.template(), {'deploy_status_code': 3})
        self.signal(stack, BACKUP)
        self.assertEqual(1, len(self.given(stack)))

    def test_so_does_one_that_was_taken_back_from_its_server(self):
        whole = self.template(timeout=5, input_values={'level': 7})
        stack, _ = self.fails(whole, None)
        self.assertEqual([], self.deployment_rows())
        self.signal(stack, BACKUP)
        (config,) = self.given(stack)
        self.assertEqual('7', deployments.inputs(config)['level'])
        (run,) = self.runs(stack)
        self.assertEqual('waiting', run['state'])

    def test_whatever_the_transport(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.signal(stack, BACKUP)
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual('TEMP_URL_POLL', given['deploy_signal_transport'])

    def test_the_container_is_held_before_the_run_is_in_it(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        seen = []

        def fail(context, **arguments):
            seen.append(self.holds_container(stack))
            raise ValueError

        self.heat.rpc.stubs['create_software_config'] = fail
        self.refused(stack, BACKUP)
        self.assertEqual([True], seen)
        self.assertFalse(self.holds_container(stack))
        del self.heat.rpc.stubs['create_software_config']
        self.signal(stack, BACKUP)
        self.assertTrue(self.holds_container(stack))

    def test_a_run_that_does_not_start_leaves_who_holds_it_already(self):
        stack = self.stack()
        self.swift.fail(100)
        self.refused(stack, BACKUP)
        self.assertTrue(self.holds_container(stack))

    def test_nor_does_one_that_comes_at_the_same_time_as_another(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        late = self.heat.load(stack)['deployment']
        self.assertNotIn(rows.CONTAINER_KEY, late.data())
        self.signal(stack, BACKUP)
        self.assertRaises(exception.ResourceFailure, late.signal, BACKUP)
        self.assertTrue(self.holds_container(stack))


class RefusalTest(TriggerTestCase):
    def test_while_the_deployment_is_busy(self):
        stack, _ = self.waiting(self.template())
        said = self.refused(stack, BACKUP)
        self.assertIn('the deployment is CREATE_IN_PROGRESS', said)
        (row,) = self.deployment_rows()
        self.assertEqual('IN_PROGRESS', row.status)

    def test_what_is_wrong_is_named_and_no_value_is(self):
        stack = self.stack()
        inputs = {'level': 'hunter2'}
        for details, expected in (
            ({'trigger': 'BAKCUP'}, 'no action BAKCUP; it offers BACKUP'),
            ({'trigger': 'CREATE'}, 'Only Heat runs'),
            ({**BACKUP, 'input_values': inputs}, '"level" must be a number'),
            ({**BACKUP, 'inputs': inputs}, 'must be exactly'),
        ):
            said = self.refused(stack, details)
            self.assertIn(expected, said)
            self.assertNotIn('hunter2', said)

    def test_a_second_run_of_the_action(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        (run,) = self.runs(stack)
        said = self.refused(stack, BACKUP)
        self.assertIn(run['id'], said)
        self.assertEqual(1, len(self.given(stack)))

    def test_a_server_that_is_gone(self):
        stack = self.stack(server='of-nova')
        said = self.refused(stack, BACKUP)
        self.assertIn('server of-nova no longer exists', said)

    def test_nobody_was_given_anything_so_far(self):
        config = {
            **CONFIG,
            'properties': {'configs': CONFIG['properties']['configs'][1:]},
        }
        stack = self.created(self.template(config))
        self.assertIn('entry for CREATE', self.refused(stack, BACKUP))

    def test_the_object_store_is_away(self):
        stack = self.stack()
        self.swift.fail(100)
        said = self.refused(stack, BACKUP)
        self.assertIn('503', said)
        self.assertEqual([], self.given(stack))

    def test_what_heat_says_is_not_told(self):
        stack = self.stack()

        def fail(context, **arguments):
            raise ValueError('hunter2')

        self.heat.rpc.stubs['create_software_config'] = fail
        said = self.refused(stack, BACKUP)
        self.assertNotIn('hunter2', said)
        self.assertEqual([], self.runs(stack))


class ResultTest(TriggerTestCase):
    """What a server sends is never a trigger."""

    def waiting_for(self, outputs):
        properties = {**CONFIG['properties'], 'outputs': outputs}
        config = {**CONFIG, 'properties': properties}
        return self.waiting(
            self.template(config, signal_transport='HEAT_SIGNAL')
        )

    def test_a_result_ends_the_action(self):
        stack, task = self.waiting_for([{'name': 'size'}])
        self.signal(stack, {'size': '1', 'deploy_status_code': 0})
        self.finish(task)
        self.assertEqual('COMPLETE', stack['deployment'].status)

    def test_also_if_the_config_calls_an_output_trigger(self):
        stack, task = self.waiting_for([{'name': 'trigger'}])
        self.signal(stack, {'trigger': 'BACKUP'})
        self.finish(task)
        self.assertEqual('BACKUP', stack['deployment'].FnGetAtt('trigger'))
        self.assertEqual([], self.given(stack))

    def test_a_trigger_is_no_result(self):
        stack, task = self.waiting_for([{'name': 'size'}])
        self.refused(stack, BACKUP)
        self.assertFalse(self.step(task, 3))

    def test_nor_is_what_is_nearly_a_trigger(self):
        stack, task = self.waiting_for([{'name': 'size'}])
        said = self.refused(stack, {**BACKUP, 'inputs': {'level': 1}})
        self.assertIn('must be exactly', said)
        self.assertFalse(self.step(task, 3))

    def test_with_an_exit_status_it_is_a_result_all_the_same(self):
        stack, task = self.waiting_for([{'name': 'size'}])
        self.signal(stack, {**BACKUP, 'deploy_status_code': 0})
        self.finish(task)
        self.assertEqual('COMPLETE', stack['deployment'].status)


class AttributeTest(TriggerTestCase):
    def test_runs_are_settled_by_who_looks_at_them(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        (config,) = self.given(stack)
        url = deployments.inputs(config)['deploy_progress_url']
        self.swift.put_signed(url, json.dumps({'progress': 40}).encode())
        (run,) = self.runs(stack)
        self.assertEqual(('running', 40), (run['state'], run['progress']))
        self.send(config, {'size': '12 MB', 'deploy_status_code': 0})
        (run,) = self.runs(stack)
        self.assertEqual('complete', run['state'])
        self.assertEqual('12 MB', run['outputs']['size'])
        self.assertEqual([], self.given(stack))

    def test_the_server_is_named_by_its_resource(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        (run,) = self.runs(stack)
        server = stack['server']
        self.assertEqual(
            (server.resource_id, server.name),
            (run['server'], run['server_name']),
        )

    def test_the_newest_come_first_and_not_too_many(self):
        stack = self.stack()
        for number in range(12):
            details = {**BACKUP, 'input_values': {'level': number}}
            self.signal(stack, details)
            (config,) = self.given(stack)
            self.send(config, {'size': str(number)})
        sizes = [run['outputs']['size'] for run in self.runs(stack)]
        self.assertEqual([str(n) for n in range(11, 1, -1)], sizes)

    def test_inputs_are_named_and_not_shown(self):
        stack = self.stack()
        values = {'password': 'hunter2'}
        self.signal(stack, {**BACKUP, 'input_values': values})
        (run,) = self.runs(stack)
        self.assertEqual(['password'], run['inputs'])
        self.assertNotIn('hunter2', json.dumps(run))

    def test_reading_makes_nothing(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.assertEqual([], self.runs(stack))
        self.assertIsNone(stack['deployment'].FnGetAtt('trigger_url'))
        self.assertEqual([], self.containers())
        self.assertNotIn('user_id', stack['deployment'].data())

    def test_an_object_store_that_is_away_fails_no_stack(self):
        stack = self.stack()
        self.swift.fail(100)
        self.assertIsNone(self.runs(stack))

    def test_one_that_does_not_answer_holds_up_no_request(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        self.patch(run_ledgers, '_shown', process.BoundedReads(0.2))
        answers, ended = threading.Event(), threading.Event()

        def hang(request):
            answers.wait(30)
            ended.set()
            raise errors.Unavailable('no answer')

        # Its thread leaves nothing to the next test.
        self.addCleanup(ended.wait, 30)
        self.addCleanup(answers.set)
        self.swift.before = hang
        self.assertIsNone(self.runs(stack))
        self.assertFalse(ended.is_set())

    def test_what_it_tells_late_is_shown_to_who_asks_next(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        reads = process.BoundedReads(0.2)
        self.patch(run_ledgers, '_shown', reads)
        answers = threading.Event()

        def let_end():
            answers.set()
            while reads._reads:
                time.sleep(0.01)

        # Its threads leave nothing to the next test.
        self.addCleanup(let_end)
        self.swift.before = lambda request: answers.wait(30)
        self.assertIsNone(self.runs(stack))
        let_end()
        answers.clear()
        (run,) = self.runs(stack)
        self.assertEqual('BACKUP', run['action'])

    def test_an_output_of_that_name_goes_before(self):
        properties = {**CONFIG['properties'], 'outputs': [{'name': 'runs'}]}
        self.answer = {'runs': 'mine'}
        stack = self.created(
            self.template({**CONFIG, 'properties': properties})
        )
        self.assertEqual('mine', self.runs(stack))

    def test_so_many_are_kept_as_the_operator_says(self):
        self.configure(runs_kept=2)
        stack = self.stack()
        for _ in range(4):
            self.signal(stack, BACKUP)
            (config,) = self.given(stack)
            self.send(config)
            self.runs(stack)
        self.assertEqual(3, len(self.runs(stack)))


class UrlTest(TriggerTestCase):
    def url(self, stack):
        return self.heat.load(stack)['deployment'].FnGetAtt('trigger_url')

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'

    def actions(self):
        """Return what servers have been handed."""
        given = [deployments.inputs(one) for one in self.handed]
        return [one['deploy_action'] for one in given]

    def test_it_is_made_where_the_template_asks_for_it(self):
        stack = self.stack(trigger_url=True)
        url = self.url(stack)
        self.assertIn('/signal/', url)
        self.assertNotIn('Timestamp', url)
        self.assertEqual(url, self.url(stack))

    def test_it_goes_when_the_template_asks_no_more(self):
        stack = self.stack(trigger_url=True)
        self.update(stack, self.template())
        self.assertIsNone(self.url(stack))
        left = self.heat.load(stack)['deployment'].data()
        self.assertFalse({'user_id', 'access_key', 'secret_key'} & set(left))

    def test_asking_for_it_is_nothing_to_the_server(self):
        stack = self.stack()
        self.update(stack, self.template(trigger_url=True))
        self.assertIsNotNone(self.url(stack))
        self.assertEqual(['CREATE'], self.actions())

    def test_an_action_that_has_failed_is_repeated_all_the_same(self):
        stack = self.stack()
        self.answer = {'deploy_status_code': 1}
        values = {'who': 'moon'}
        whole = self.template(input_values=values)
        self.assertRaises(AssertionError, self.update, stack, whole)
        self.answer = {}
        self.update(
            stack, self.template(input_values=values, trigger_url=True)
        )
        self.assertEqual(['CREATE', 'UPDATE', 'UPDATE'], self.actions())

    def test_it_goes_with_the_stack(self):
        stack = self.stack(trigger_url=True)
        data = self.heat.load(stack)['deployment'].data()
        self.assertIn('user_id', data)
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_server_with_the_same_key_gets_another(self):
        whole = self.template(trigger_url=True, signal_transport='CFN_SIGNAL')
        stack, task = self.waiting(whole)
        self.signal(stack, {'deploy_status_code': 0})
        self.finish(task)
        stack.persist_state_and_release_lock('engine')
        deleted = []
        self.patch(
            fake_keystoneclient.FakeKeystoneClient,
            'delete_stack_domain_user_keypair',
            lambda client, credential_id, **more: deleted.append(
                credential_id
            ),
        )
        self.waiting(
            self.template(
                signal_transport='CFN_SIGNAL', input_values={'who': 'moon'}
            ),
            'UPDATE',
            self.heat.load(stack),
        )
        self.assertIsNone(self.url(stack))
        self.assertEqual(1, len(deleted))
        url = deployments.inputs(self.handed[-1])['deploy_signal_id']
        self.assertIn('AWSAccessKeyId', url)


class EndTest(TriggerTestCase):
    def test_runs_go_with_a_stack_that_has_no_url_of_its_own(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.signal(stack, BACKUP)
        self.delete(stack)
        self.assert_nothing_left()

    def test_so_do_those_that_heat_has_no_more(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        self.assertEqual(2, len(self.deployment_rows()))
        for row in self.deployment_rows():
            if row.id != stack['deployment'].resource_id:
                self.heat.rpc.delete_software_deployment(
                    self.heat.context, row.id
                )
        self.delete(stack)
        self.assert_nothing_left()

    def test_they_are_taken_back_when_their_deployment_goes(self):
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        stack = self.created(deployments.template(resources=more))
        self.signal(stack, BACKUP, 'other')
        self.assertEqual(1, len(self.given(stack)))
        self.update(stack, self.template())
        self.assertEqual([], self.given(stack))
        self.assertIsNotNone(self.objects(stack))

    def garble(self, stack):
        """Let somebody write over all records of runs."""
        container = self.swift.container(
            f'heat-plugins-{stack.id}', deployments.PROJECT
        )
        for name in container.objects:
            if name.startswith('runs/records/'):
                container.objects[name] = b'garbage'

    def test_so_are_they_when_their_records_cannot_be_read(self):
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        stack = self.created(deployments.template(resources=more))
        self.signal(stack, BACKUP, 'other')
        self.signal(stack, BACKUP)
        self.garble(stack)
        self.assertEqual([], self.runs(stack))
        self.update(stack, self.template())
        self.assertEqual(1, len(self.given(stack)))
        self.delete(stack)
        self.assert_nothing_left()

    def test_an_event_says_of_which_one_its_action_is_refused(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        (run,) = self.runs(stack)
        self.garble(stack)
        said = self.refused(stack, BACKUP)
        self.assertIn(f'Run {run["id"]} of BACKUP has an unreadable', said)
        self.assertIn('run delete" withdraws it from its server', said)
        self.assertEqual(1, len(self.given(stack)))

    def many(self, number):
        """Create a stack of so many deployments without a URL."""
        more = {
            f'd{index}': deployments.deployment(
                name=f'd{index}', signal_transport='NO_SIGNAL'
            )
            for index in range(number)
        }
        return self.created(
            deployments.template(
                resources={'config': CONFIG, **more},
                signal_transport='NO_SIGNAL',
            ),
            name=f'of-{number}',
        )

    def asked_for(self, stack):
        """Return how often the object store is asked as a stack goes."""
        self.swift.seen.clear()
        self.delete(stack)
        self.assert_nothing_left()
        return len(self.swift.seen)

    def test_those_that_go_together_ask_together(self):
        few = self.asked_for(self.many(2))
        self.assertLess(self.asked_for(self.many(12)), few + 5)

    def test_where_nobody_is_let_in_one_asks_for_all(self):
        stack = self.many(6)
        self.swift.denied.add(deployments.PROJECT)
        self.assertLess(self.asked_for(stack), 3)

    def test_one_that_is_shut_is_tried_again_after_a_while(self):
        stack = self.many(1)
        self.swift.denied.add(deployments.PROJECT)
        self.update(stack, self.template(signal_transport='NO_SIGNAL'))
        self.swift.denied.clear()
        self.now += 600
        self.signal(stack, BACKUP)
        self.delete(stack)
        self.assert_nothing_left()

    def test_runs_go_also_where_the_engine_finds_no_temp_urls(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.signal(stack, BACKUP)
        self.heat.load(stack)['deployment'].data_delete(rows.CONTAINER_KEY)
        hub = transports.hub_for(stack['deployment'])
        hub.signing._refusal = errors.TempURLsUnusable('no digest')
        hub.signing._refused_at = self.now
        self.assertIsNotNone(hub.signing.refusal)
        self.delete(stack)
        self.assert_nothing_left()

    def test_they_stay_where_another_deployment_gets_no_url(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.signal(stack, BACKUP)
        deployment = self.heat.load(stack)['deployment']
        # As if a command had started it.
        deployment.data_delete(rows.CONTAINER_KEY)
        self.now += 600
        keys.KeyKeeper.forget_abilities()
        self.swift.tempurl = False
        poll = transports._TempURLPoll(deployment, True)
        self.assertRaises(failures.Unusable, poll.prepare, 'config')
        self.assertFalse(self.holds_container(stack))
        self.assertEqual(1, len(self.given(stack)))
        self.assertEqual('waiting', self.runs(stack)[0]['state'])


class GroupTest(TriggerTestCase):
    """A group hands a signal on to its members."""

    def setUp(self):
        super().setUp()
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        self.members = self.created(deployments.template(resources=more))

    def signal_group(self, details):
        stack = self.heat.stack(
            deployments.template(
                kind='OS::Heat::SoftwareDeploymentGroup',
                server=None,
                servers={},
            ),
            name='of-the-group',
        )
        nested = self.heat.load(self.members)
        members = {n: nested[n] for n in ('deployment', 'other')}
        stack._store_resources()
        group = stack['deployment']
        self.patch(group, 'nested', lambda: members)
        try:
            group.signal(details)
        finally:
            self.said = deployments.events(stack)[-1]

    def test_a_trigger_starts_a_run_on_each(self):
        self.signal_group(BACKUP)
        self.assertEqual(
            'Signal: BACKUP has started on 2 of 2 members', self.said
        )
        self.assertEqual(2, len(self.given(self.members)))

    def test_one_that_refuses_does_not_stop_the_others(self):
        self.signal(self.members, BACKUP, 'other')
        self.assertRaises(exception.ResourceFailure, self.signal_group, BACKUP)
        self.assertIn('started on 1 of 2 members; see the events', self.said)
        self.assertIn('of other', self.said)
        self.assertEqual(2, len(self.given(self.members)))

    def test_nor_does_one_that_heat_does_not_let_take_signals(self):
        deployment = type(self.members['deployment'])
        real = deployment._signal_check_action

        def check(member):
            if member.name == 'deployment':
                raise exception.NotSupported(feature='Signal in DELETE')
            real(member)

        self.patch(deployment, '_signal_check_action', check)
        self.assertRaises(exception.ResourceFailure, self.signal_group, BACKUP)
        self.assertIn('started on 1 of 2 members; see the events', self.said)
        self.assertEqual(1, len(self.given(self.members)))
        (said,) = [
            one for one in deployments.events(self.members) if 'Not' in one
        ]
        self.assertIn('Not triggered: Signal in DELETE', said)

    def test_anything_else_is_refused(self):
        self.assertRaises(
            exception.ResourceFailure,
            self.signal_group,
            {'deploy_status_code': 0},
        )
        self.assertIn('accepts only signals that start an action', self.said)
        self.assertEqual([], self.given(self.members))
