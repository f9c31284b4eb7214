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
        self.heat.load(stack)[name].signal(details)
        self.go_on()

    def refused(self, stack, details):
        """Return the event of a signal that comes to nothing."""
        before = set(deployments.events(stack))
        # Heat logs an exception with a traceback.
        with self.assertNoLogs('heat.engine.resource'):
            self.signal(stack, details)
        (said,) = set(deployments.events(stack)) - before
        assert said.startswith('Not triggered: '), said
        return said

    def given(self, stack):
        return [
            one
            for one in self.in_metadata(stack)
            if one['name'].endswith('-BACKUP')
        ]

    def runs(self, stack, name='deployment'):
        return self.heat.load(stack)[name].FnGetAtt('runs')


class NowTest(TriggerTestCase):
    """A component without UPDATE: only runs show what an update changes."""

    def whole(self, value, text, **properties):
        config = {
            'type': 'OS::Heat::SoftwareComponent',
            'properties': {
                'inputs': [{'name': 'what'}],
                'configs': [
                    {'actions': [each], 'tool': 'script', 'config': text}
                    for each in ('CREATE', 'BACKUP')
                ],
            },
        }
        given = {'what': value}
        return self.template(config, input_values=given, **properties)

    def test_a_run_takes_script_and_inputs_of_what_the_stack_says_now(self):
        group = {'kind': 'OS::Heat::SoftwareDeploymentGroup', 'server': None}
        servers = {'a': {'get_resource': 'server'}}
        for more in ({}, {**group, 'servers': servers}):
            self.handed.clear()
            stack = self.created(
                self.whole('one', '#!/bin/old', **more),
                name=self.getUniqueString(),
            )
            (before,) = self.in_metadata(stack)
            self.update(stack, self.whole('two', '#!/bin/new', **more))
            assert len(self.handed) == 1
            with mock.patch.object(callers, 'of', return_value=OWNER):
                self.signal(stack, BACKUP)
            (config,) = self.given(stack)
            assert deployments.inputs(config)['what'] == 'two'
            assert config['config']['configs'][1]['config'] == '#!/bin/new'
            # An agent that has run it goes by its ID, and answers as before.
            found = {one['id']: one for one in self.in_metadata(stack)}
            kept = deployments.inputs(found[before['id']])
            assert kept == deployments.inputs(before) | {'what': 'two'}
            self.delete(stack)
            self.assert_nothing_left()


class SignalTest(TriggerTestCase):
    def test_a_trigger_starts_a_run_and_one_that_is_named_starts_once(self):
        stack = self.stack()
        (before,) = self.deployment_rows()
        self.signal(stack, {**BACKUP, 'input_values': {'level': 9}})
        # The stack's own deployment is left alone.
        after = {row.id: row for row in self.deployment_rows()}
        assert len(after) == 2
        assert after[before.id].config_id == before.config_id
        assert after[before.id].status == 'COMPLETE'
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        named = 'deploy_action', 'level', 'password'
        assert [given[name] for name in named] == ['BACKUP', '9', 'none']
        (run,) = self.runs(stack)
        assert (
            f'Signal: run {run["id"]} of BACKUP has started on 1 server'
            in deployments.events(stack)
        )
        assert run['started_by'] == 'a signal'
        # The attribute is one statement, and asks no store.
        self.swift.seen.clear()
        found = self.heat.load(stack)['deployment']
        with self.counting_queries() as statements:
            found.FnGetAtt('runs')
        ours = [each for each in statements if 'heat_plugins' in each]
        assert len(ours) == 1
        assert self.swift.seen == []
        # A database without the tables fails no stack.
        error = errors.ServiceError('no tables')
        with mock.patch.object(run_rows.RunRows, 'latest', side_effect=error):
            assert self.runs(stack) is None
        self.delete(stack)
        # So does one of which the server has nothing.
        whole = self.template(timeout=5, input_values={'level': 7})
        stack, _ = self.fails(whole, None)
        named = {**RUN, 'id': '6f5e4d3c-2b1a-4f0e-9d8c-7b6a5f4e3d2c'}
        for _again in range(2):
            self.signal(stack, {'run': named})
        (config,) = self.given(stack)
        assert deployments.inputs(config)['level'] == '7'
        (run,) = self.runs(stack)
        assert (run['id'], run['state']) == (named['id'], 'waiting')

    def test_what_is_refused_starts_nothing_and_quotes_no_value(self):
        stack, task = self.waiting(self.template())
        said = self.refused(stack, BACKUP)
        assert 'the deployment is CREATE_IN_PROGRESS' in said
        # A trigger is no result.
        assert not self.step(task, 3)
        (row,) = self.deployment_rows()
        assert row.status == 'IN_PROGRESS'
        self.send(self.handed[-1])
        self.completes(task, stack)
        inputs = {'level': 'hunter2'}
        for details, expected in (
            ({'trigger': 'CREATE'}, 'Only Heat runs'),
            ({**BACKUP, 'input_values': inputs}, '"level" must be a number'),
            ({**BACKUP, 'inputs': inputs}, 'must be exactly'),
            ({'run': {**RUN, 'id': 'mine'}}, 'must be a UUID'),
        ):
            said = self.refused(stack, details)
            assert expected in said
            assert 'hunter2' not in said
        leading.install(None)
        assert 'does not lead runs' in self.refused(stack, BACKUP)
        leading.install(self.leader)
        # Reading makes nothing.
        assert self.runs(stack) == []
        assert stack['deployment'].FnGetAtt('trigger_url') is None
        assert 'user_id' not in stack['deployment'].data()
        self.answer = {}
        entries = CONFIG['properties']['configs'][1:]
        config = {**CONFIG, 'properties': {'configs': entries}}
        for whole, why in (
            (self.template(server='of-nova'), 'server of-nova no longer'),
            (self.template(config), 'entry for CREATE'),
        ):
            stack = self.created(whole, name=self.getUniqueString())
            assert why in self.refused(stack, BACKUP)
        # What a server sends is never a trigger, also if the config calls an
        # output so.
        outputs = [{'name': 'trigger'}, {'name': 'runs'}]
        properties = {**CONFIG['properties'], 'outputs': outputs}
        config = {**CONFIG, 'properties': properties}
        whole = self.template(config, signal_transport='HEAT_SIGNAL')
        stack, task = self.waiting(stack=self.heat.stack(whole, 'output'))
        self.signal(stack, {'trigger': 'BACKUP', 'runs': 'mine'})
        self.finish(task)
        assert stack['deployment'].FnGetAtt('trigger') == 'BACKUP'
        assert self.given(stack) == []
        # An output goes before the attribute of that name.
        assert self.runs(stack) == 'mine'


class EndTest(TriggerTestCase):
    def ended(self):
        return [
            (attempt.state.value, attempt.reason)
            for run in self.stored_runs()
            for attempt in run.attempts
        ]

    def test_they_end_when_their_deployment_goes(self):
        # The server is outside the stack of one of the deployments.
        more = {'config': CONFIG, 'other': deployments.deployment(name='o')}
        stack = self.created(deployments.template(resources=more))
        whole = deployments.template(
            stack['config'].resource_id,
            {'config': None, 'server': None},
            server=stack['server'].resource_id,
        )
        outside = self.created(whole, name='outside')
        self.answer = None
        self.signal(stack, BACKUP, 'other')
        self.signal(stack, BACKUP)
        self.signal(outside, BACKUP)
        assert len(self.given(stack)) == 3
        self.delete(outside)
        assert len(self.given(stack)) == 2
        self.update(stack, self.template())
        assert len(self.given(stack)) == 1
        states = sorted(state for state, _reason in self.ended())
        assert states == ['cancelled', 'cancelled', 'waiting']
        # The server was told to stop it.
        controls = [n for n in self.objects(stack) if n.endswith('.control')]
        assert len(controls) == 1
        # A dead leader does not keep the stack.
        self.meanwhile = lambda: None
        before = self.now
        self.delete(stack)
        assert self.now - before < 120
        assert self.containers() == []
        # With its process.
        hubs.HUBS.kept.clear()
        self.leader = self.lead('engine-2')
        self.leader.wake(
            *run_rows.RunRows().take_over('engine-1', 'engine-2', 10)
        )
        self.go_on()
        assert {state for state, _ in self.ended()} == {'cancelled'}
        self.assert_nothing_left()

    def test_runs_go_with_a_stack_that_has_no_url_of_its_own(self):
        stack = self.stack(signal_transport='NO_SIGNAL')
        self.answer = None
        self.signal(stack, BACKUP)
        # Its run has one, whatever the transport.
        (config,) = self.given(stack)
        given = deployments.inputs(config)
        assert given['deploy_signal_transport'] == 'TEMP_URL_POLL'
        self.now += 600
        keys.KeyKeeper.abilities.clear()
        self.swift.tempurl = False
        # They stay where another deployment gets none.
        poll = transports.TempURLPoll(self.heat.load(stack)['deployment'])
        self.assertRaises(deliveries.Unusable, poll.prepare, by_auto=True)
        assert self.containers() == [f'heat-plugins-{stack.id}']
        assert self.runs(stack)[0]['state'] == 'waiting'
        self.delete(stack)
        self.assert_nothing_left()
        ((state, reason),) = self.ended()
        assert state == 'cancelled'
        assert 'was deleted' in reason
