# SPDX-License-Identifier: Apache-2.0
"""A signal starts a run of a deployment's action."""

from unittest import mock

from heat_plugins import errors
from heat_plugins.deployments import deliveries
from heat_plugins.engine import callers
from heat_plugins.engine import hubs
from heat_plugins.engine import transports
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import leading
from heat_plugins.objectstore import keys
from tests.unit.engine import led
from tests.unit.resources import deployments

BACKUP, RUN = {'trigger': 'BACKUP'}, {'action': 'BACKUP'}

OWNER = callers.Signaller(user_id='owner', is_of_project=True, may_update=True)

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


class TriggerTestCase(led.LedCase):
    def template(self, config=CONFIG, **properties):
        return deployments.template(resources={'config': config}, **properties)

    def stack(self, **properties):
        return self.created(self.template(**properties))

    def signal(self, stack, details, name='deployment'):
        """Signal as the API does, in an engine that has loaded the stack."""
        again = self.heat.load(stack)
        again[name].signal(details)
        self.go_on()

    def refused(self, stack, details):
        """Return the event of a signal that comes to nothing."""
        before = set(deployments.events(stack))
        # Heat logs an exception with a traceback.
        with self.assertNoLogs('heat.engine.resource'):
            self.signal(stack, details)
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

    def pass_time(self, seconds):
        for _ in range(seconds):
            self._second()

    def runs(self, stack, name='deployment'):
        again = self.heat.load(stack)
        return again[name].FnGetAtt('runs')


class NowTest(TriggerTestCase):
    """A component without UPDATE: only runs show what an update changes."""

    def whole(self, value, text, **properties):
        config = {
            'type': 'OS::Heat::SoftwareComponent',
            'properties': {
                'inputs': [{'name': 'what'}],
                'configs': [
                    {'actions': ['CREATE'], 'tool': 'script', 'config': text},
                    {'actions': ['BACKUP'], 'tool': 'script', 'config': text},
                ],
            },
        }
        return self.template(
            config, input_values={'what': value}, **properties
        )

    def test_a_run_takes_script_and_inputs_of_what_the_stack_says_now(self):
        for more in (
            {},
            {
                'kind': 'OS::Heat::SoftwareDeploymentGroup',
                'server': None,
                'servers': {'a': {'get_resource': 'server'}},
            },
        ):
            self.handed.clear()
            stack = self.created(
                self.whole('one', '#!/bin/old', **more),
                name=self.getUniqueString(),
            )
            (before,) = self.in_metadata(stack)
            self.update(stack, self.whole('two', '#!/bin/new', **more))
            self.assertEqual(1, len(self.handed))
            with mock.patch.object(callers, 'of', return_value=OWNER):
                self.signal(stack, BACKUP)
            (config,) = self.given(stack)
            self.assertEqual('two', deployments.inputs(config)['what'])
            self.assertEqual(
                '#!/bin/new', config['config']['configs'][1]['config']
            )
            # An agent that has run it goes by its ID, and answers as before.
            (kept,) = (
                each
                for each in self.in_metadata(stack)
                if each['id'] == before['id']
            )
            self.assertEqual(
                deployments.inputs(before) | {'what': 'two'},
                deployments.inputs(kept),
            )
            self.delete(stack)
            self.assert_nothing_left()


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
            f'Signal: run {run["id"]} of BACKUP has started on 1 server',
            deployments.events(stack),
        )
        self.assertEqual('a signal', run['started_by'])

    def test_so_does_one_that_was_taken_back_from_its_server(self):
        whole = self.template(timeout=5, input_values={'level': 7})
        stack, _ = self.fails(whole, None)
        self.assert_withdrawn(stack)
        self.signal(stack, BACKUP)
        (config,) = self.given(stack)
        self.assertEqual('7', deployments.inputs(config)['level'])
        (run,) = self.runs(stack)
        self.assertEqual('waiting', run['state'])

    def test_a_run_that_is_named_starts_once(self):
        stack = self.stack()
        named = {**RUN, 'id': '6f5e4d3c-2b1a-4f0e-9d8c-7b6a5f4e3d2c'}
        for _again in range(2):
            self.signal(stack, {'run': named})
        (run,) = self.stored_runs()
        self.assertEqual(named['id'], run.id)
        self.assertEqual(1, len(self.given(stack)))
        said = self.refused(stack, {'run': {**named, 'canary': 1}})
        self.assertIn('another run', said)
        said = self.refused(stack, {'run': {**named, 'id': 'mine'}})
        self.assertIn('must be a UUID', said)
        its = '6f5e4d3c-2b1a-5f0e-9d8c-7b6a5f4e3d2c'
        said = self.refused(stack, {'run': {**named, 'id': its}})
        self.assertIn('of schedules', said)


class RefusalTest(TriggerTestCase):
    def test_while_the_deployment_is_busy(self):
        stack, task = self.waiting(self.template())
        said = self.refused(stack, BACKUP)
        self.assertIn('the deployment is CREATE_IN_PROGRESS', said)
        # A trigger is no result.
        self.assertFalse(self.step(task, 3))
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
        leading.install(None)
        self.assertIn('does not lead runs', self.refused(stack, BACKUP))
        self.assertEqual([], self.runs(stack))

    def test_a_server_that_is_gone_or_was_given_nothing(self):
        stack = self.stack(server='of-nova')
        said = self.refused(stack, BACKUP)
        self.assertIn('server of-nova no longer exists', said)
        entries = CONFIG['properties']['configs'][1:]
        config = {**CONFIG, 'properties': {'configs': entries}}
        stack = self.created(self.template(config), name='other')
        self.assertIn('entry for CREATE', self.refused(stack, BACKUP))


class ResultTest(TriggerTestCase):
    def test_what_a_server_sends_is_never_a_trigger(self):
        # Also if the config calls an output trigger.
        outputs = [{'name': 'trigger'}, {'name': 'runs'}]
        properties = {**CONFIG['properties'], 'outputs': outputs}
        config = {**CONFIG, 'properties': properties}
        stack, task = self.waiting(
            self.template(config, signal_transport='HEAT_SIGNAL')
        )
        self.signal(stack, {'trigger': 'BACKUP', 'runs': 'mine'})
        self.finish(task)
        self.assertEqual('BACKUP', stack['deployment'].FnGetAtt('trigger'))
        self.assertEqual([], self.given(stack))
        # An output goes before the attribute of that name.
        self.assertEqual('mine', self.runs(stack))


class AttributeTest(TriggerTestCase):
    def test_one_statement_reads_it_and_nothing_asks_the_store(self):
        stack = self.stack()
        self.signal(stack, BACKUP)
        self.swift.seen.clear()
        found = self.heat.load(stack)['deployment']
        with self.counting_queries() as statements:
            found.FnGetAtt('runs')
        ours = [each for each in statements if 'heat_plugins' in each]
        self.assertEqual(1, len(ours))
        self.assertEqual([], self.swift.seen)

        def latest(*args):
            raise errors.ServiceError('no tables')

        # A database without the tables fails no stack.
        self.patch(run_rows.RunRows, 'latest', latest)
        self.assertIsNone(self.runs(stack))

    def test_reading_makes_nothing(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.assertEqual([], self.runs(stack))
        self.assertIsNone(stack['deployment'].FnGetAtt('trigger_url'))
        self.assertEqual([], self.containers())
        self.assertNotIn('user_id', stack['deployment'].data())


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

    def test_it_is_there_while_the_template_asks_for_it(self):
        stack = self.stack()
        self.update(stack, self.template(trigger_url=True))
        url = self.url(stack)
        self.assertIn('/signal/', url)
        self.assertNotIn('Timestamp', url)
        self.assertEqual(url, self.url(stack))
        # Asking for it is nothing to the server.
        self.assertEqual(['CREATE'], self.actions())
        self.update(stack, self.template())
        self.assertIsNone(self.url(stack))
        left = self.heat.load(stack)['deployment'].data()
        self.assertFalse({'user_id', 'access_key', 'secret_key'} & set(left))


class EndTest(TriggerTestCase):
    """Runs end with their deployment, and nothing of them is left."""

    def two(self, **properties):
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        return deployments.template(resources=more, **properties)

    def ended(self):
        """Return how the targets of the runs have ended."""
        return [
            (attempt.state.value, attempt.reason)
            for run in self.stored_runs()
            for attempt in run.attempts
        ]

    def controls(self, stack):
        return [n for n in self.objects(stack) if n.endswith('.control')]

    def test_they_end_when_their_deployment_goes(self):
        stack = self.created(self.two())
        self.answer = None
        self.signal(stack, BACKUP, 'other')
        self.signal(stack, BACKUP)
        self.assertEqual(2, len(self.given(stack)))
        self.update(stack, self.template())
        self.assertEqual(1, len(self.given(stack)))
        states = sorted(state for state, _reason in self.ended())
        self.assertEqual(['cancelled', 'waiting'], states)
        # The server was told to stop it.
        self.assertEqual(1, len(self.controls(stack)))
        self.delete(stack)
        self.assert_nothing_left()

    def test_a_dead_leader_does_not_keep_a_stack(self):
        stack = self.stack()
        self.answer = None
        self.signal(stack, BACKUP)
        self.meanwhile = lambda: None
        before = self.now
        self.delete(stack)
        self.assertLess(self.now - before, 120)
        self.assertEqual([], self.containers())
        # With its process.
        hubs.HUBS.clear()
        self.leader = self.lead('engine-2')
        self.leader.wake(
            *run_rows.RunRows().take_over('engine-1', 'engine-2', 10)
        )
        self.go_on()
        self.assertEqual(['cancelled'], [state for state, _ in self.ended()])
        self.assert_nothing_left()

    def test_runs_go_with_a_stack_that_has_no_url_of_its_own(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.answer = None
        self.signal(stack, BACKUP)
        # Its run has one, whatever the transport.
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        self.assertEqual('TEMP_URL_POLL', given['deploy_signal_transport'])
        self.now += 600
        keys.KeyKeeper.forget_abilities()
        self.swift.tempurl = False
        # They stay where another deployment gets none.
        poll = transports.TempURLPoll(self.heat.load(stack)['deployment'])
        self.assertRaises(deliveries.Unusable, poll.prepare, by_auto=True)
        self.assertEqual([f'heat-plugins-{stack.id}'], self.containers())
        self.assertEqual('waiting', self.runs(stack)[0]['state'])
        self.delete(stack)
        self.assert_nothing_left()
        ((state, reason),) = self.ended()
        self.assertEqual('cancelled', state)
        self.assertIn('was deleted', reason)

    def test_a_server_outside_the_stack_has_nothing_left(self):
        servers = self.created(
            deployments.template(
                resources={'config': CONFIG, 'deployment': None}
            ),
            name='servers',
        )
        config, server = (
            servers[name].resource_id for name in ('config', 'server')
        )
        stack = self.created(
            deployments.template(
                config, {'config': None, 'server': None}, server=server
            )
        )
        self.answer = None
        self.signal(stack, BACKUP)
        self.assertEqual(1, len(self.given(servers)))
        self.delete(stack)
        self.assertEqual([], self.in_metadata(servers))
        self.assertEqual(['cancelled'], [state for state, _ in self.ended()])


class GroupTest(TriggerTestCase):
    """A group's signal starts one run with a target for each member."""

    def setUp(self):
        super().setUp()
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        self.members = self.created(deployments.template(resources=more))

    def signal_group(self, details, name='of-the-group'):
        stack = self.heat.stack(
            deployments.template(
                kind='OS::Heat::SoftwareDeploymentGroup',
                server=None,
                servers={},
            ),
            name=name,
        )
        nested = self.heat.load(self.members)
        members = {n: nested[n] for n in ('deployment', 'other')}
        stack._store_resources()
        group = stack['deployment']
        self.patch(group, 'nested', lambda: members)
        group.signal(details)
        self.go_on()
        self.said = deployments.events(stack)[-1]

    def test_a_trigger_starts_a_run_on_all_that_do_not_refuse(self):
        self.signal_group({'deploy_status_code': 0})
        self.assertIn('accepts only signals that start an action', self.said)
        self.assertEqual([], self.given(self.members))
        deployment = type(self.members['deployment'])
        real = deployment.run_target

        def run_target(member, wanted):
            if member.name == 'other':
                raise errors.Refused('busy')
            return real(member, wanted)

        with mock.patch.object(deployment, 'run_target', run_target):
            self.signal_group(BACKUP, 'first')
        self.assertIn('on 1 server; left out: other: busy', self.said)
        self.assertEqual(1, len(self.given(self.members)))
        self.signal_group(BACKUP, 'second')
        self.assertIn('of BACKUP has started on 2 servers', self.said)
        self.assertEqual(2, len(self.stored_runs()))
