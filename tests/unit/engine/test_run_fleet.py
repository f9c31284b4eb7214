# SPDX-License-Identifier: Apache-2.0
"""Runs that heat-engine leads in Heat's database, with its object store."""

import dataclasses
import json
import time
import types
from unittest import mock
from urllib import parse
import uuid

from heat.engine import stack as parser
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.engine import heat_types
from heat_plugins.engine import rescue
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.runs import door
from heat_plugins.engine.runs import run_fleet
from heat_plugins.engine.runs import run_scans
from heat_plugins.engine.runs import triggering
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs import stepping
from heat_plugins.signals import body
from tests.unit import counted
from tests.unit import fake_swift
from tests.unit import heat_fixture
from tests.unit.engine import heat_door
from tests.unit.engine import led
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_policy as policies
from tests.unit.resources import test_deployment_triggers as triggers
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


class LeadingCase(led.LedCase, heat_door.DoorCase):
    ENGINE = heat_door.ENGINE

    def setUp(self):
        super().setUp()
        wake = self.leader.wake
        door.install(door.Door(self.store, wake, progress=run_fleet.progress))

    def go_on(self, seconds=1):
        for _ in range(seconds):
            self.leader.turn()
            self.heat.meanwhile()

    def waiting(self, *names, **order):
        stack = self.created(template(*names))
        self.answer = None
        run = self.runs.start('BACKUP', stacks=[stack.name], **order)
        self.go_on(3)
        return stack, run

    def rows_of_runs(self):
        return [
            each for each in self.deployment_rows() if each.action == 'BACKUP'
        ]

    def backups(self):
        return [each for each in self.handed if 'BACKUP' in each['name']]

    def put_signals(self, details):
        for config in self.backups():
            self.send(config, details)

    def targets(self, run_id):
        return self.runs.targets(run_id, outputs=True)

    def states(self, run_id):
        return [each.state for each in self.targets(run_id)]


class LoadTest(heat_fixture.HeatTestCase):
    def test_stored_credentials_are_those_of_a_stack_of_the_project(self):
        stack = self.heat.create({'heat_template_version': '2021-04-16'})
        project = stack.tenant_id

        def denied(*wanted):
            self.assertRaises(errors.Denied, run_fleet.load_stack, *wanted)

        # Heat's fake of Keystone makes trusts for no project.
        denied(stack.id, project)
        new = heat_fixture.new_context
        self.patch(parser.Stack, 'stored_context', lambda stack: new())
        loaded = run_fleet.load_stack(stack.id, project)
        assert loaded.tenant_id == project
        denied(stack.id, 'of-somebody-else')
        denied('no-such-stack', project)
        # A database that is away says nothing of them.
        away = mock.Mock(side_effect=db_exception.DBConnectionError)
        self.patch(parser.Stack, 'load', away)
        call = run_fleet.load_stack, stack.id, project
        self.assertRaises(errors.Unavailable, *call)


class RunTest(LeadingCase):
    def test_the_server_is_given_a_config_of_its_own_once(self):
        stack = self.created(template('a', 'b'))
        self.answer = {'answer': 'saved', 'deploy_stdout': 'out'}
        began, counts = time.time(), self.useFixture(counted.Counted())
        more = {'inputs': {'token': SECRET}, 'limits': {'timeout': 60}}
        run = self.runs.start('BACKUP', stacks=[stack.name], **more)
        self.go_on(10)
        assert self.runs.show(run.id).state == 'complete'
        for target in self.targets(run.id):
            assert target.state == 'complete'
            assert target.outputs['answer'] == 'saved'
        assert counts.of(metrics.RESULTS) == {'complete': 2}
        assert self.rows_of_runs() == []
        for key in 'ab':
            given = self.heat.load(stack)[f'server_{key}'].metadata_get()
            names = [each['name'] for each in given['deployments']]
            assert [n for n in names if 'BACKUP' in n] == []
        config, _ = self.backups()
        given = deployments.inputs(config)
        assert config['group'] == 'component'
        assert [
            given[name]
            for name in (
                *('token', 'deploy_action', 'deploy_signal_transport'),
                *('deploy_signal_verb', 'deploy_log_limit'),
                body.TIMEOUT_INPUT,
            )
        ] == [SECRET, 'BACKUP', 'TEMP_URL_POLL', 'PUT', '10000000', '60']
        assert 'deploy_password' not in given
        query = parse.parse_qs(parse.urlsplit(given['deploy_signal_id']).query)
        lifetime = int(query['temp_url_expires'][0]) - began
        self.assertAlmostEqual(60 + 3600, lifetime, delta=5)

    def test_what_many_print_is_kept_in_part(self):
        order = store_contract.order(targets=1)
        for number, limit in ((1, 10), (200, 5), (9000, 1)):
            many = dataclasses.replace(order, members=order.members * number)
            assert stepping.log_limit(many) == limit * 1_000_000
        many = dataclasses.replace(many, log_limit=200_000)
        assert stepping.log_limit(many) == 200_000

    def test_a_stack_may_be_updated_while_targets_wait(self):
        stack, run = self.waiting('a', 'b', 'c', limits={'max_concurrent': 1})
        newer = template('a', 'b')
        configs = newer['resources']['config']['properties']['configs']
        configs[1]['config'] = 'newer'
        self.answer = {}
        self.update(stack, newer)
        self.put_signals({})
        self.go_on(20)
        # The deployment of one has left the stack.
        assert self.states(run.id) == ['complete', 'complete', 'cancelled']
        assert 'was deleted or withdrawn' in [*self.targets(run.id)][2].reason
        first, second = self.backups()
        assert 'newer' not in repr(first)
        assert 'newer' in repr(second)

    def test_a_deployment_that_goes_waits_for_its_own_targets_alone(self):
        config = template('a')['resources']['config']
        whole = deployments.template(resources={'config': config})
        more = {'config': config, 'more': deployments.deployment()}
        stack = self.created(deployments.template(resources=more))
        self.answer = None
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(3)
        assert self.states(run.id) == ['waiting'] * 2
        began = self.now
        self.update(stack, whole)
        assert self.now - began < 30
        assert sorted(self.states(run.id)) == ['cancelled', 'waiting']

    def test_another_engine_goes_on_and_nothing_runs_twice(self):
        _, run = self.waiting('a', 'b')
        self.leader = self.lead('engine-2')
        taken = self.store.take_over(self.ENGINE, 'engine-2', 100)
        self.leader.wake(*taken)
        self.go_on(3)
        assert self.states(run.id) == ['waiting'] * 2
        assert len(self.backups()) == 2
        self.put_signals({'deploy_status_code': 0})
        self.go_on(5)
        assert self.runs.show(run.id).state == 'complete'

    def test_a_cancelled_run_is_stopped_and_what_comes_late_is_noted(self):
        _, run = self.waiting('a')
        self.runs.cancel(run.id)
        self.go_on(3)
        assert self.runs.show(run.id).state == 'cancelled'
        (config,) = self.backups()
        control = deployments.inputs(config)['deploy_control_url']
        assert self.swift.get_signed(control)[0] == 200
        late = {'deploy_stdout': 'late', 'deploy_stopped': 'when told'}
        self.put_signals({'deploy_status_code': 1, **late})
        self.go_on(20)
        (attempt,) = self.store.load(run.id).run.attempts
        assert attempt.reason == 'Cancelled by user; stopped'
        assert attempt.late.status == 'failed'
        assert attempt.late.outputs['deploy_stdout'] == 'late'

    def test_a_server_reports_its_start(self):
        _, run = self.waiting('a')
        self.report_start()
        assert self.states(run.id) == ['running']
        row = self.rows_of_runs()[0]
        assert 'has started the action' in row.status_reason
        self.report_start({'progress': 40, 'message': 'table 4 of 10'})
        (target,) = self.targets(run.id)
        assert (target.progress, target.message) == (40.0, 'table 4 of 10')
        self.swift.fail(times=99)
        (target,) = self.targets(run.id)
        assert target.state == 'running'
        assert target.progress is None

    def report_start(self, report=None):
        url = deployments.inputs(self.backups()[0])['deploy_progress_url']
        content = json.dumps(report or {}).encode()
        assert self.swift.put_signed(url, content) == 201
        self.go_on(5)

    def test_a_script_runs_beside_another_run_which_its_server_does_first(
        self,
    ):
        stack, first = self.waiting('a')
        self.ahead = 5
        script = {'config': {'group': 'script', 'config': 'date'}}
        second = self.runs.start(
            'BACKUP', stacks=[stack.name], resources=['server_a'], **script
        )

        def reason():
            self.go_on(3)
            (target,) = self.targets(second.id)
            return target.reason

        said = f'runs run {first.id} (BACKUP on deployment.a) first'
        assert said in reason()
        assert [each['config'] for each in self.backups()][1] == 'date'
        self.report_start()
        assert f'is busy with run {first.id}' in reason()
        self.runs.cancel(first.id)
        assert 'cancelled and has not stopped' in reason()
        self.put_signals({})
        self.go_on(30)
        assert 'busy' not in reason()
        assert self.states(second.id) == ['complete']

    def test_a_deleted_stack_ends_its_runs(self):
        stack, run = self.waiting('a')
        self.answer = {}
        self.delete(stack)
        self.go_on(20)
        assert self.states(run.id) == ['cancelled']
        assert self.rows_of_runs() == []

    def test_a_deployment_goes_before_runs_of_others_unless_the_stack_goes(
        self,
    ):
        stack, run = self.waiting('a')
        resource = self.heat.load(stack)['deployment']
        other = {run.id: {str(uuid.uuid4())}}
        self.patch(run_rows.RunRows, 'held_in', lambda *_: other)
        for is_gone in (False, True):
            self.patch(run_fleet, 'is_gone', lambda *_, it=is_gone: it)
            assert triggering.has_left(resource, stack.id) is not is_gone

    def test_a_deployment_that_a_user_deletes_ends_its_target(self):
        _, run = self.waiting('a')
        (row,) = self.rows_of_runs()
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        self.break_database(run_rows, '_answer', 1)
        self.go_on(12)
        assert self.states(run.id) == ['cancelled']
        (target,) = self.targets(run.id)
        assert 'Another client of Heat has deleted' in target.reason

    def test_a_project_at_its_limit_starts_when_there_is_room(self):
        stack = self.created(template('a', 'b'))
        self.answer = None
        limit = len(self.deployment_rows()) + 1
        cfg.CONF.set_override('max_software_deployments_per_tenant', limit)
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(8)
        assert self.states(run.id) == ['waiting', 'pending']
        assert 'Waits for room' in self.runs.show(run.id).reason
        self.put_signals({})
        self.go_on(8)
        assert self.states(run.id) == ['complete', 'waiting']

    def test_inputs_and_hidden_values_are_masked_in_what_is_stored(self):
        whole = template('a', input_values={'token': {'get_param': 'secret'}})
        whole['parameters'] = {'secret': {'type': 'string', 'hidden': True}}
        stack = self.created(whole, parameters={'secret': SECRET})
        self.answer = None
        for secret, inputs in (
            (SECRET, {}),
            ('of-a-user', {'token': 'of-a-user'}),
        ):
            run = self.runs.start('BACKUP', stacks=[stack.name], inputs=inputs)
            self.go_on(3)
            printed = {'deploy_stdout': f'{secret} is wrong'}
            printed['deploy_stderr'] = f'no such token: {secret}'
            self.put_signals({'deploy_status_code': 1, **printed})
            self.go_on(5)
            (target,) = self.targets(run.id)
            assert target.state == 'failed'
            assert 'no such token' in target.reason
            assert 'is wrong' in repr(target)
            assert secret not in target.reason
            assert SECRET not in repr(target)

    def test_long_outputs_are_whole_in_the_object_store(self):
        stack = self.created(template('a'))
        text = 'a' * 200_000 + 'the end'
        self.answer = {'deploy_stdout': text}
        run = self.runs.start('BACKUP', stacks=[stack.name])
        self.go_on(6)
        (target,) = self.targets(run.id)
        assert target.outputs['deploy_stdout'].endswith('the end')
        assert dict(target.cut) == {'deploy_stdout': len(text)}
        key = run_store.TargetKey(run_id=run.id, number=0, attempt=1)
        servers = run_fleet.RunServers(lambda answers: ())
        objects = servers.of_stack(stack.tenant_id, stack.id).objects(key)
        whole = objects.outputs(target.outputs, target.cut)
        assert whole['deploy_stdout'] == text

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
            assert target.state == 'failed'
            assert said in target.reason

    def test_with_a_run_that_is_deleted_go_its_objects(self):
        stacks = [self.created(template(key), name=key) for key in 'ab']
        self.answer = {'deploy_stdout': 'a' * 10_000}
        store = self.swift.store(deployments.PROJECT)
        ids = kept, gone = [str(uuid.uuid4()) for _ in range(2)]
        for run_id in ids:
            names = [each.name for each in stacks]
            self.runs.start('BACKUP', run_id=run_id, stacks=names)
            self.go_on(6)
            for each in stacks:
                log = f'heat-plugins-{each.id}', f'runs/logs/{run_id}/x'
                store.put_object(*log, b'')
        # It comes again, late.
        self.put_signals({})
        self.runs.delete(gone)
        self.swift.fail(times=99)
        run_scans.remove_surplus(self.leader, self.store)
        assert len(self.store.surplus()) == 1
        self.swift.heal()
        run_scans.remove_surplus(self.leader, self.store)
        assert self.store.surplus() == []
        for each in stacks:
            names = self.objects(each)
            assert [n for n in names if gone in n] == []
            assert len([n for n in names if kept in n]) == 3, names
        # What lies in a container that is gone is gone.
        self.runs.delete(kept)
        self.delete(stacks[0])
        run_scans.remove_surplus(self.leader, self.store)
        assert self.store.surplus() == []

    def test_engines_that_live_delete_runs_by_turns(self):
        self.patch(rescue, 'reporting', lambda context: {'another'})
        turns = []
        store = types.SimpleNamespace(surplus=lambda: turns.append(1) or [])
        for number in range(4):
            now = number * run_scans.RETENTION_INTERVAL
            run_scans.remove_surplus(self.leader, store, lambda now=now: now)
        assert len(turns) == 2

    def test_a_changed_key_of_the_account_ends_what_waits(self):
        self.swift = fake_swift.ceph(fake_swift.CEPH_ACCOUNT)
        _, run = self.waiting('a', 'b')
        first, second = self.backups()
        account = self.swift.account(deployments.PROJECT)
        self.send(first, {})
        account['x-account-meta-temp-url-key'] = 'of somebody else'
        assert self.send(second, {}) == 403
        self.go_on(100)
        states = sorted(self.states(run.id))
        assert states == ['complete', 'failed']
        (target,) = (e for e in self.targets(run.id) if e.state == 'failed')
        assert 'TempURL key' in target.reason
        self.answer = {}
        self.runs.retry(run.id)
        self.go_on(10)
        assert self.states(run.id) == ['complete'] * 2


def member(stack, name='deployment', **values):
    found = stack[name]
    given = {
        'stack_id': stack.id,
        'stack_name': stack.name,
        'resource': name,
        'deployment_id': found.resource_id,
        **values,
    }
    if 'server_id' not in values:
        given['server_id'] = found.properties['server']
    return run_records.RunTarget(**given)


class RefusalsTest(groups.GroupTestCase):
    def refusals(self, *members, config=None):
        order = store_contract.order(members=members, config=config)
        return run_fleet.refusals(
            self.heat.context, order, range(len(members))
        )

    def test_a_member_of_a_group_runs_on_its_server(self):
        stack = self.created(groups.group('a', 'b'))
        members = [
            member(stack, deployment_id=one.id, server_id=one.server_id)
            for one in self.deployment_rows()
        ]
        assert self.refusals(*members) == {}
        swapped = [
            dataclasses.replace(one, server_id=two.server_id)
            for one, two in zip(members, members[::-1], strict=True)
        ]
        assert set(self.refusals(*swapped)) == {0, 1}
        # Another project's deployments are not there.
        other = heat_types.in_project(self.heat.context, 'other')
        ids = [each.deployment_id for each in members]
        assert {*run_fleet.existing(self.heat.context, ids)} == {*ids}
        assert not run_fleet.existing(other, ids)

    def test_the_server_is_that_of_the_deployment(self):
        stack = self.created(deployments.template())
        other = self.heat.create(policies.server(), name='servers')
        mine = member(stack)
        assert self.refusals(mine) == {}
        for server_id in (other['server'].resource_id, 'made-up'):
            wrong = dataclasses.replace(mine, server_id=server_id)
            (why,) = self.refusals(wrong).values()
            assert 'is no longer for server' in why
        # One that is gone is noticed when it is read.
        gone = dataclasses.replace(mine, deployment_id='0' * 36)
        assert self.refusals(gone) == {}
        away = mock.Mock(side_effect=db_exception.DBConnectionError)
        self.patch(resources, 'find_all', away)
        self.assertRaises(errors.Unavailable, self.refusals, mine)

    def test_a_script_runs_on_a_server_of_the_stack_alone(self):
        stack = self.heat.create(policies.server(), name='servers')
        server_id = stack['server'].resource_id
        script = member(stack, 'server', server_id=server_id)
        config = {'id': 'x'}
        assert self.refusals(script, config=config) == {}
        other = self.heat.create(policies.server(), name='other')
        for wrong in (
            dataclasses.replace(script, stack_id=other.id),
            dataclasses.replace(script, server_id='made-up'),
        ):
            (why,) = self.refusals(wrong, config=config).values()
            assert 'is not a server of stack' in why

    def test_a_closed_server_takes_none_of_another_stack(self):
        stack = self.heat.create(policies.server(), name='servers')
        whole = deployments.template(
            server=stack['server'].resource_id, resources={'server': None}
        )
        other = self.created(whole, name='stack')
        assert self.refusals(member(other)) == {}
        self.update(stack, policies.server('SAME_STACK'))
        (why,) = self.refusals(member(other)).values()
        assert 'accepts only deployments of its own stack' in why


class WithdrawnTest(triggers.TriggerTestCase):
    WANTED = ordering.Start(run='', action='BACKUP', inputs={'level': 9})

    def withdrawn(self, wanted=WANTED, **other):
        member = dataclasses.replace(self.member, **other)
        derived = run_fleet.withdrawn(self.heat.context, [member], wanted)
        target = derived.get(member.deployment_id)
        if isinstance(target, errors.Error):
            raise target
        return target

    def test_it_is_a_target_until_its_resource_goes(self):
        whole = self.template(timeout=5, input_values={'level': 7})
        stack, _ = self.fails(whole, None)
        self.assert_withdrawn(stack)
        number = stack['deployment'].resource_id
        self.member = member(stack, server_id=stack['server'].resource_id)
        ids = [number, 'gone']
        assert {*run_fleet.existing(self.heat.context, ids)} == {number}
        target = self.withdrawn()
        assert target.current['level'] == '7'
        assert target.stack_id == stack.id
        assert target.server_id == self.member.server_id
        # The server and the stack are those of the resource.
        assert self.withdrawn(server_id='made-up') is None
        assert self.withdrawn(stack_id='made-up') is None
        assert self.withdrawn(deployment_id='made-up') is None
        # Its ID is that of another type.
        assert self.withdrawn(deployment_id=self.member.server_id) is None
        wanted = dataclasses.replace(self.WANTED, action='DUMP')
        self.assertRaises(errors.Refused, self.withdrawn, wanted)
        self.heat.change(stack['deployment'].id, status='IN_PROGRESS')
        self.assertRaises(errors.Unavailable, self.withdrawn)
        self.heat.change(stack['deployment'].id, action='DELETE')
        assert self.withdrawn() is None
