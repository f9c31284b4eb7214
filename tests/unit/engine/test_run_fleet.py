# SPDX-License-Identifier: Apache-2.0
"""Runs that heat-engine leads in Heat's database, with its object store."""

import dataclasses
import json
import time
import types
from urllib import parse

from heat.engine import stack as parser
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins.engine import rescue
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import leading
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.signals import body
from tests.unit import fake_swift
from tests.unit import heat_fixture
from tests.unit.engine import heat_door
from tests.unit.engine import run_world
from tests.unit.resources import deployments
from tests.unit.resources import test_group_as_one as groups
from tests.unit.runs import store_contract

SECRET = 'hunter2-secret'


def template(*keys, **properties):
    whole = groups.group(*keys, **properties)
    whole['resources']['config'] = deployments.component(
        (['CREATE'], '#!/bin/sh'), (['BACKUP'], '#!/bin/sh\necho backup')
    )
    whole['resources']['config']['properties']['inputs'] = [
        {'name': 'token', 'default': ''}
    ]
    return whole


class LeadingCase(heat_door.DoorCase):
    """A test with a leader, whose threads are the caller's."""

    def setUp(self):
        super().setUp()
        self.patch(
            parser.Stack,
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        self.store = run_rows.RunRows()
        #: The seconds by which the clocks of leaders are ahead.
        self.ahead = 0
        self.leader = self.lead(heat_door.ENGINE)
        door.install(
            door.Door(self.store, self.wake, progress=run_fleet.progress)
        )

    def wake(self, run_id):
        self.leader.wake(run_id)

    def lead(self, engine_id):
        def servers(settle):
            self.run_servers = run_fleet.RunServers(settle)
            return self.run_servers

        return leading.Leader(
            engine_id,
            self.store,
            servers,
            places=run_world.Places(100, 100),
            clock=lambda: time.time() + self.ahead,
            monotonic=lambda: self.now,
        )

    def go_on(self, seconds=1):
        for _ in range(seconds):
            self.leader.turn()
            self.heat.meanwhile()
            self.leader.turn()

    def waiting(self, *names, **order):
        """Return a stack, and a run on its servers, which do not answer."""
        stack = self.created(template(*names))
        self.answer = None
        run = self.runs.start('BACKUP', stacks=[stack.name], **order)
        self.go_on(3)
        return stack, run

    def targets(self, run_id):
        return self.runs.targets(run_id, outputs=True)

    def states(self, run_id):
        return [each.state for each in self.targets(run_id)]


class LoadTest(heat_fixture.HeatTestCase):
    """A stack and its stored credentials."""

    def test_they_are_those_of_a_stack_of_the_project(self):
        stack = self.heat.create({'heat_template_version': '2021-04-16'})
        project = stack.tenant_id
        # Heat's fake of Keystone makes trusts for no project.
        self.assertIsNone(run_fleet.load_stack(stack.id, project))
        self.patch(
            type(stack),
            'stored_context',
            lambda stack: heat_fixture.new_context(),
        )
        loaded = run_fleet.load_stack(stack.id, project)
        self.assertEqual(project, loaded.tenant_id)
        self.assertIsNone(run_fleet.load_stack(stack.id, 'of-somebody-else'))
        self.assertIsNone(run_fleet.load_stack('no-such-stack', project))

    def test_a_database_that_is_away_says_nothing_of_them(self):
        def load(*args, **more):
            raise db_exception.DBConnectionError

        self.patch(parser.Stack, 'load', load)
        self.assertRaises(
            errors.Unavailable, run_fleet.load_stack, 'stack', 'project'
        )


class RunTest(LeadingCase):
    def test_two_servers_run_the_action_once_and_outputs_are_read(self):
        stack = self.created(template('a', 'b'))
        before = len(self.handed)
        self.answer = {'answer': 'saved', 'deploy_stdout': 'out'}
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(10)
        self.assertEqual('complete', self.runs.show(run.id).state)
        for target in self.targets(run.id):
            self.assertEqual('complete', target.state)
            self.assertEqual('saved', target.outputs['answer'])
        self.assertEqual(2, len(self.handed) - before)
        self.assertEqual(2, len(self.deployment_rows()))
        for key in 'ab':
            given = self.heat.load(stack)[f'server_{key}'].metadata_get()
            names = [each['name'] for each in given['deployments']]
            self.assertEqual([], [n for n in names if 'BACKUP' in n])

    def test_the_server_is_given_a_config_of_its_own(self):
        stack = self.created(template('a'))
        self.answer = None
        began = time.time()
        self.runs.start(
            'BACKUP',
            stacks=[stack.name],
            inputs={'token': SECRET},
            limits={'timeout': 60},
        )
        self.go_on(3)
        (config,) = self.backups()
        given = deployments.inputs(config)
        self.assertEqual('component', config['group'])
        self.assertEqual(
            [SECRET, 'BACKUP', 'TEMP_URL_POLL', 'PUT', '10000000', '60'],
            [
                given[name]
                for name in (
                    'token',
                    'deploy_action',
                    'deploy_signal_transport',
                    'deploy_signal_verb',
                    'deploy_log_limit',
                    body.TIMEOUT_INPUT,
                )
            ],
        )
        self.assertNotIn('deploy_password', given)
        query = parse.parse_qs(parse.urlsplit(given['deploy_signal_id']).query)
        lifetime = int(query['temp_url_expires'][0]) - began
        self.assertAlmostEqual(60 + 3600, lifetime, delta=5)

    def test_what_many_print_is_kept_in_part(self):
        order = store_contract.order(targets=1)
        for number, limit in ((1, 10), (200, 5), (9000, 1)):
            many = dataclasses.replace(order, members=order.members * number)
            self.assertEqual(limit * 1_000_000, stepping.log_limit(many))
        many = dataclasses.replace(many, log_limit=200_000)
        self.assertEqual(200_000, stepping.log_limit(many))

    def test_a_stack_may_be_updated_while_targets_wait(self):
        stack, run = self.waiting('a', 'b', limits={'max_concurrent': 1})
        newer = template('a', 'b')
        newer['resources']['config']['properties']['configs'][1]['config'] = (
            'newer'
        )
        self.answer = {}
        self.update(stack, newer)
        self.put_signals({})
        self.go_on(8)
        self.assertEqual(['complete'] * 2, self.states(run.id))
        first, second = self.backups()
        self.assertNotIn('newer', repr(first))
        self.assertIn('newer', repr(second))

    def test_a_deployment_that_leaves_the_stack_takes_its_target_along(self):
        stack, run = self.waiting('a', 'b', 'c', limits={'max_concurrent': 2})
        self.answer = {}
        self.update(stack, template('a'))
        self.go_on(30)
        self.assertEqual(
            ['waiting', 'cancelled', 'cancelled'], self.states(run.id)
        )
        reasons = [each.reason for each in self.targets(run.id)][1:]
        for each in reasons:
            self.assertIn('was deleted or withdrawn', each)

    def test_a_run_asks_the_store_for_little(self):
        stack = self.created(template('a', 'b'))
        self.answer = {}
        for _ in range(2):
            self.go_on(20)
            before = len(self.swift.asked(deployments.PROJECT))
            self.runs.start('BACKUP', stacks=[stack.name])
            self.go_on(8)
        asked = self.swift.asked(deployments.PROJECT)[before:]
        # Two listings, a look at the container, two results, one deletion.
        self.assertLessEqual(len(asked), 6, asked)

    def test_another_engine_goes_on_and_nothing_runs_twice(self):
        stack = self.created(template('a', 'b'))
        before = len(self.handed)
        self.answer = None
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(3)
        self.leader = self.lead('engine-2')
        self.leader.wake(
            *self.store.take_over(heat_door.ENGINE, 'engine-2', 100)
        )
        self.go_on(3)
        self.assertEqual(['waiting'] * 2, self.states(run.id))
        self.assertEqual(2, len(self.handed) - before)
        self.put_signals({'deploy_status_code': 0})
        self.go_on(5)
        self.assertEqual('complete', self.runs.show(run.id).state)

    def test_a_cancelled_run_is_stopped_and_what_comes_late_is_noted(self):
        _, run = self.waiting('a')
        self.runs.cancel(run.id)
        self.go_on(3)
        self.assertEqual('cancelled', self.runs.show(run.id).state)
        (config,) = self.backups()
        control = deployments.inputs(config)['deploy_control_url']
        self.assertEqual(200, self.swift.get_signed(control)[0])
        self.put_signals(
            {
                'deploy_status_code': 1,
                'deploy_stdout': 'late',
                'deploy_stopped': 'when told',
            }
        )
        self.go_on(20)
        (attempt,) = self.store.load(run.id).run.attempts
        self.assertTrue(attempt.reason.endswith('; stopped'), attempt.reason)
        self.assertEqual('failed', attempt.late.status)
        self.assertEqual('late', attempt.late.outputs['deploy_stdout'])

    def test_a_script_of_the_users_own_runs_beside_another_run_of_it(self):
        stack = self.created(template('a'))
        self.answer = None
        script = {'group': 'script', 'config': '#!/bin/sh\ndate'}
        ids = [
            self.runs.start(
                'BACKUP',
                stacks=[stack.name],
                resources=['server_a'],
                config=script,
            ).id
            for _ in range(2)
        ]
        self.go_on(3)
        self.assertEqual([['waiting']] * 2, [self.states(n) for n in ids])
        for config in self.backups():
            self.assertEqual('#!/bin/sh\ndate', config['config'])
        self.put_signals({})
        self.go_on(5)
        self.assertEqual([['complete']] * 2, [self.states(n) for n in ids])

    def test_a_server_reports_its_start(self):
        _, run = self.waiting('a')
        (config,) = self.backups()
        url = deployments.inputs(config)['deploy_progress_url']
        self.assertEqual(201, self.swift.put_signed(url, b'{}'))
        self.go_on(5)
        self.assertEqual(['running'], self.states(run.id))
        row = self.rows_of_runs()[0]
        self.assertIn('has started the action', row.status_reason)
        report = {'progress': 40, 'message': 'table 4 of 10'}
        self.swift.put_signed(url, json.dumps(report).encode())
        (target,) = self.targets(run.id)
        self.assertEqual(
            (40.0, 'table 4 of 10'), (target.progress, target.message)
        )
        self.swift.fail(times=99)
        (target,) = self.targets(run.id)
        self.assertEqual('running', target.state)
        self.assertIsNone(target.progress)

    def test_a_target_that_waits_says_what_its_server_is_busy_with(self):
        stack = self.created(template('a'))
        self.answer = None
        script = {'group': 'script', 'config': 'date'}
        first = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(3)
        self.ahead = 5
        second = self.runs.start(
            'DATE',
            stacks=[stack.name],
            resources=['server_a'],
            config=script,
        )
        self.go_on(3)
        (target,) = self.targets(second.id)
        self.assertIn(
            f'runs run {first.id} (BACKUP on deployment.a) first',
            target.reason,
        )
        (config,) = self.backups()
        url = deployments.inputs(config)['deploy_progress_url']
        self.swift.put_signed(url, b'{}')
        self.go_on(5)
        (target,) = self.targets(second.id)
        self.assertIn(f'is busy with run {first.id}', target.reason)
        self.runs.cancel(first.id)
        self.go_on(3)
        (target,) = self.targets(second.id)
        self.assertIn('cancelled and has not stopped', target.reason)
        self.put_signals({})
        self.go_on(30)
        (target,) = self.targets(second.id)
        self.assertNotIn('busy', target.reason)

    def test_a_deleted_stack_ends_its_runs(self):
        stack, run = self.waiting('a')
        self.answer = {}
        self.delete(stack)
        self.go_on(20)
        self.assertEqual(['cancelled'], self.states(run.id))
        self.assertEqual([], self.rows_of_runs())

    def test_a_deployment_that_a_user_deletes_ends_its_target(self):
        _, run = self.waiting('a')
        (row,) = self.rows_of_runs()
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        self.break_database(run_rows, '_answer', 1)
        self.go_on(12)
        self.assertEqual(['cancelled'], self.states(run.id))
        (target,) = self.targets(run.id)
        self.assertIn('Another client of Heat has deleted', target.reason)

    def test_a_project_at_its_limit_starts_when_there_is_room(self):
        stack = self.created(template('a', 'b'))
        self.answer = None
        limit = len(self.deployment_rows()) + 1
        option = 'max_software_deployments_per_tenant'
        cfg.CONF.set_override(option, limit)
        self.addCleanup(cfg.CONF.clear_override, option)
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(8)
        self.assertEqual(['waiting', 'pending'], self.states(run.id))
        self.assertIn('Waits for room', self.runs.show(run.id).reason)
        self.put_signals({})
        self.go_on(8)
        self.assertEqual(['complete', 'waiting'], self.states(run.id))

    def test_inputs_are_masked_in_why_it_failed(self):
        _, run = self.waiting('a', inputs={'token': 'hunter2-secret'})
        self.put_signals(
            {
                'deploy_status_code': 1,
                'deploy_stderr': 'no such token: hunter2-secret',
            }
        )
        self.go_on(5)
        self.assertEqual(['failed'], self.states(run.id))
        (target,) = self.targets(run.id)
        self.assertIn('no such token', target.reason)
        self.assertNotIn('hunter2', target.reason)

    def test_hidden_inputs_are_masked_in_what_is_stored(self):
        stack = self.created(
            template('a', input_values={'token': {'get_param': 'secret'}})
            | {'parameters': {'secret': {'type': 'string', 'hidden': True}}},
            parameters={'secret': SECRET},
        )
        self.answer = None
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(3)
        self.put_signals(
            {
                'deploy_status_code': 1,
                'deploy_stderr': f'refused: {SECRET}',
                'deploy_stdout': f'{SECRET} is wrong',
            }
        )
        self.go_on(5)
        stored = repr([*self.targets(run.id)])
        self.assertIn('is wrong', stored)
        self.assertNotIn(SECRET, stored)

    def test_long_outputs_are_whole_in_the_object_store(self):
        stack = self.created(template('a'))
        text = 'a' * 200_000 + 'the end'
        self.answer = {'deploy_stdout': text}
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(6)
        (target,) = self.targets(run.id)
        self.assertTrue(target.outputs['deploy_stdout'].endswith('the end'))
        self.assertEqual({'deploy_stdout': len(text)}, dict(target.cut))
        key = run_store.TargetKey(run_id=run.id, number=0, attempt=1)
        project_id = self.heat.context.project_id
        objects = self.run_servers.of_stack(project_id, stack.id).objects(key)
        stored = self.store.load(run.id).run
        attempt = stored.attempts[0]
        whole = objects.outputs(attempt.outputs, attempt.cut)
        self.assertEqual(text, whole['deploy_stdout'])

    def test_what_is_no_result_is_a_failure(self):
        stack = self.created(template('a'))
        for sent, said in (
            (b'[]', 'must be a map'),
            (b'x' * 1_000_001, 'bytes'),
        ):
            self.answer = sent
            run = self.runs.start('BACKUP', stacks=[stack.name])
            self.go_on(6)
            (target,) = self.targets(run.id)
            self.assertEqual('failed', target.state)
            self.assertIn(said, target.reason)

    def test_with_a_run_that_is_deleted_go_its_objects(self):
        stacks = (
            self.created(template('a')),
            self.created(template('b'), name='other'),
        )
        self.answer = {'deploy_stdout': 'a' * 10_000}
        ids = []
        for _ in range(2):
            run = self.runs.start('BACKUP', stacks=[s.name for s in stacks])
            self.go_on(6)
            ids.append(run.id)
            for each in stacks:
                self.swift.store(deployments.PROJECT).put_object(
                    f'heat-plugins-{each.id}', f'runs/logs/{run.id}/x', b''
                )
        self.put_signals({'answer': 'once more'})
        kept, gone = ids
        self.runs.delete(gone)
        self.swift.fail(times=99)
        run_scans.remove_surplus(self.leader, self.store)
        self.assertEqual(1, len(self.store.surplus()))
        self.swift.heal()
        run_scans.remove_surplus(self.leader, self.store)
        self.assertEqual([], self.store.surplus())
        for each in stacks:
            names = self.objects(each)
            self.assertEqual([], [n for n in names if gone in n])
            self.assertEqual(3, len([n for n in names if kept in n]), names)
        # What lies in a container that is gone is gone.
        self.runs.delete(kept)
        self.delete(stacks[0])
        run_scans.remove_surplus(self.leader, self.store)
        self.assertEqual([], self.store.surplus())

    def test_engines_that_live_delete_runs_by_turns(self):
        self.patch(rescue, 'reporting', lambda context: {'another'})
        turns = []
        store = types.SimpleNamespace(surplus=lambda: turns.append(1) or [])
        for number in range(4):
            now = number * run_scans.RETENTION_INTERVAL
            run_scans.remove_surplus(self.leader, store, lambda now=now: now)
        self.assertEqual(2, len(turns))

    def test_a_changed_key_of_the_account_ends_what_waits(self):
        self.swift = fake_swift.ceph(fake_swift.CEPH_ACCOUNT)
        _, run = self.waiting('a', 'b')
        first, second = self.backups()
        account = self.swift.account(deployments.PROJECT)
        self.send(first, {})
        account['x-account-meta-temp-url-key'] = 'of somebody else'
        self.assertEqual(403, self.send(second, {}))
        self.go_on(100)
        states = sorted(self.states(run.id))
        self.assertEqual(['complete', 'failed'], states)
        (target,) = (e for e in self.targets(run.id) if e.state == 'failed')
        self.assertIn('TempURL key', target.reason)
        self.answer = {}
        self.runs.retry(run.id)
        self.go_on(10)
        self.assertEqual(['complete'] * 2, self.states(run.id))

    def test_what_the_database_does_not_answer_is_done_again(self):
        stack = self.created(template('a', 'b'))
        before = len(self.handed)
        for number in range(1, 6):
            self.break_database(
                run_rows.rows, 'write_deliveries', 1, after=number % 2 == 0
            )
            run = self.runs.start('BACKUP', stacks=[stack.name])
            self.go_on(10)
            self.assertEqual(['complete'] * 2, self.states(run.id))
            self.assertEqual(2 * number, len(self.handed) - before)

    def rows_of_runs(self):
        return [
            each for each in self.deployment_rows() if each.action == 'BACKUP'
        ]

    def backups(self):
        return [each for each in self.handed if 'BACKUP' in each['name']]

    def put_signals(self, details):
        """Let the servers of runs answer now."""
        for config in self.backups():
            self.send(config, details)
