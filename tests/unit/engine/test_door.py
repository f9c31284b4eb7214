# SPDX-License-Identifier: Apache-2.0
"""Runs are ordered of heat-engine, and shown by it, through Heat's API."""

from unittest import mock
import uuid

from heat.db import api as db_api
from oslo_config import cfg

from heat_plugins import errors
from heat_plugins.clients import runs as client
from heat_plugins.engine.database import run_tables
from heat_plugins.engine.runs import door
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs import run_store
from heat_plugins.runs.schedules import schedules
from tests.unit.engine import heat_door
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups

SECRET = 'of-a-user-42'
FIRST, SECOND = (str(uuid.UUID(int=n)) for n in (1, 2))

NOTIFY = {
    'url': 'https://hooks.example.com/secret-path',
    'secret': 'a-secret-of-32-characters-or-more',
}


class OrderTest(heat_door.DoorCase):
    def setUp(self):
        super().setUp()
        self.stack = self.created(
            deployments.template(resources={'config': triggers.CONFIG})
        )

    def start(self, **order):
        return self.runs.start(
            'BACKUP', **{'stacks': [self.stack.name], **order}
        )

    def end(self, run_id):
        ended = {'ended_at': int(heat_door.NOW)}
        self.change(run_id, phase=run_records.Phase.FAILED, **ended)

    def door(self):
        return door.Door(self.store, wake=self.woken.append)

    def control(self, run_id):
        return self.store.load(run_id).run.control

    def refusal(self, call, *args, error=errors.Refused, **kwargs):
        """Return why a call is refused, which has stored nothing."""
        before = self.stored()
        failure = self.assertRaises(error, call, *args, **kwargs)
        assert self.stored() == before
        return str(failure)

    def test_a_run_starts_once(self):
        run = self.start(run_id=FIRST, inputs={'level': 9})
        assert (run.id, run.state, run.targets) == (FIRST, 'running', 1)
        assert (run.created_by, run.inputs) == ('user', ['level'])
        stored = self.store.load(FIRST)
        assert stored.engine_id == heat_door.ENGINE
        (member,) = stored.run.order.members
        row = self.deployment_rows()[0]
        assert member.stack_id == self.stack.id
        assert member.stack_name == self.stack.name
        assert member.resource == 'deployment'
        assert member.deployment_id == row.id
        assert member.server_id == row.server_id
        assert member.server_name == 'server'
        assert member.source_id == self.stack['config'].resource_id
        # It is sent again.
        assert self.start(run_id=FIRST, inputs={'level': 9}) == run
        assert self.woken == [FIRST]
        self.refusal(self.start, run_id=FIRST, error=errors.Exists)
        other = self.client(project_id='f' * 32)
        self.refusal(other.start, 'BACKUP', run_id=FIRST, stacks=['x'])

    def test_a_script_of_ones_own_runs_on_servers(self):
        run = self.runs.start(
            stacks=[self.stack.id],
            config={'config': 'uptime', 'inputs': [{'name': 'who'}]},
            inputs={'who': SECRET},
        )
        (member,) = self.store.load(run.id).run.order.members
        server_id = self.stack['server'].resource_id
        assert (run.action, member.resource) == ('APPLY', 'server')
        assert member.server_id == member.deployment_id == server_id
        assert run.script == 'uptime'

    def test_a_config_of_heat_may_be_named(self):
        config = self.heat.rpc.create_software_config(
            self.heat.context, group='script', name='own', config='uptime'
        )
        named = {'config_id': config['id']}
        run = self.runs.start(stacks=[self.stack.name], **named)
        assert run.script == 'uptime'
        for order, said in (
            ({'config_id': 'nothing'}, 'nothing'),
            ({**named, 'config': {}}, 'both "config" and'),
        ):
            assert said in self.refusal(self.start, **order)
        other = self.client(project_id='f' * 32)
        self.refusal(other.start, stacks=['x'], **named)

    def test_secrets_are_in_no_answer(self):
        cfg.CONF.set_override(
            'notify_hosts', ['hooks.example.com'], 'heat_plugins'
        )
        script = {
            'config': f'login {SECRET}',
            'inputs': [{'name': 'password'}],
        }
        run = self.runs.start(
            run_id=FIRST,
            stacks=[self.stack.name],
            config=script,
            inputs={'password': SECRET},
            notify=NOTIFY,
        )
        assert run.notify == 'https://hooks.example.com'
        order = self.store.load(FIRST).run.order
        assert order.webhook['secret'] == NOTIFY['secret']
        queries = ordering.Query(), ordering.Query(run=FIRST, outputs=True)
        shown = [self.listed(each.server_id) for each in queries]
        for secret in (SECRET, 'secret-path', NOTIFY['secret']):
            assert secret not in repr([run, shown, order])

    def test_what_is_selected_is_shown_and_may_need_to_be_confirmed(self):
        found = self.runs.select('BACKUP', tags=[], stacks=[self.stack.name])
        assert (found.targets, found.left_out, found.more) == (1, 0, 0)
        (row,) = found.rows
        assert (row['resource'], row['server']) == ('deployment', 'server')
        assert row['is_target']
        said = self.refusal(self.start, expected=2)
        assert '2 targets were confirmed, and 1 are selected now' in said
        failure = self.assertRaises(
            client.Unconfirmed, self.start, confirm_above=0
        )
        assert 'Nothing was started' in str(failure)
        assert failure.selection.targets == 1
        assert (self.stored(), self.woken) == ({}, [])
        assert self.start(expected=1).targets == 1
        assert self.start(confirm_above=1).targets == 1

    def test_what_is_selected_is_refused_as_by_the_command(self):
        for said, order in (
            ('Heat has no stack nowhere', {'stacks': ['nowhere']}),
            ('no input "colour"', {'inputs': {'colour': 1}}),
            ('No targets', {'stacks': []}),
            ('like a regular expression', {'resources': ['^dep(loy)?.*$']}),
        ):
            assert said in self.refusal(self.start, **order)
        assert 'there are: BACKUP' in self.refusal(
            self.runs.start, 'BACKUPS', stacks=[self.stack.id]
        )

    def test_bad_orders_are_refused_and_stored_nowhere(self):
        good = {'do': 'start', 'run': FIRST, 'action': 'BACKUP'}
        selected = {**good, 'stacks': [self.stack.name]}
        deep = []
        for _level in range(100):
            deep = [deep]
        for order, said in (
            (None, 'map'),
            ([], 'map'),
            ({'do': 'stop'}, '"do"'),
            (good | {'action': ''}, 'neither an action'),
            ({**good, 'run': 'shop'}, 'UUID'),
            ({**good, 'run': schedules.run_id(FIRST, 60)}, 'of schedules'),
            ({**selected, 'run': FIRST.upper().replace('1', 'A')}, 'UUID'),
            ({**selected, 'resource': []}, 'did you mean "resources"'),
            ({**selected, 'resources': 'db'}, 'resources is of another type'),
            ({**selected, 'resources': [1]}, 'resources is of another type'),
            ({**selected, 'inputs': [1]}, 'inputs is of another type'),
            ({**selected, 'expected': -1}, 'expected is out of range'),
            ({**selected, 'expected': True}, 'expected is of another type'),
            ({**selected, 'limits': {'canary': 'x'}}, 'canary must be'),
            ({**selected, 'limits': {'canaries': 1}}, 'no key canaries'),
            ({**selected, 'limits': {'max_errors': 'x' * 9999}}, 'must be a'),
            ({**selected, 'log_limit': 1}, '"log_limit" must be from'),
            ({**selected, 'config': {'inputs': [{}]}}, 'has no name'),
            ({**selected, 'config': {'group': 3}}, 'group is of another type'),
            ({**selected, 'notify': {'url': 'ftp://x'}}, 'URL of a webhook'),
            ({**selected, 'notify': NOTIFY}, 'notify_hosts'),
            ({**selected, 'resources': ['db'] * 1_000_001}, 'bytes'),
            ({**selected, 'resources': [''] * 1_001}, '1001 entries'),
            ({**selected, 'inputs': {'level': 'x' * 2**20}}, 'bytes'),
            ({**selected, 'inputs': {'level': deep}}, 'nested'),
            ({**selected, 'inputs': {'level': 'a\0b'}}, 'NUL'),
            ({**selected, 'inputs': {'a\0b': 1}}, 'NUL'),
            ({**selected, 'stacks': ['\ud800']}, 'surrogate'),
            ({**selected, 'inputs': {'level': float('nan')}}, 'JSON'),
            ({'do': 'pause', 'run': FIRST}, '"request" must be a UUID'),
        ):
            # The client would not make it.
            assert said in self.refusal(
                self.door().take, self.heat.context, order, 'e'
            )
        # A backslash in front of that is no NUL.
        said = self.refusal(self.start, inputs={'level': '\\u0000'})
        assert 'input "level" must be a number' in said

    def test_bad_queries_are_refused(self):
        for query, said in (
            ('limit=x', 'must be a number'),
            ('limit=9999999999999', 'must be a number'),
            ('colour=red', 'no key colour'),
            ('state=red', '"state" must be one of'),
            ('run=x', 'UUID'),
            ('%00', 'not urlencoded'),
            ('stack=%00', 'NUL'),
        ):
            assert said in self.refusal(
                self.door().show, self.heat.context, query
            )

    # Requests

    def test_a_run_is_paused_resumed_and_cancelled(self):
        run = self.start(run_id=FIRST)
        paused = self.runs.pause(run.id, request=SECOND)
        assert paused.state == 'paused'
        assert 'Paused by user' in paused.reason
        self.runs.resume(run.id)
        assert self.control(FIRST).paused_by is None
        # It is sent again.
        assert self.runs.pause(run.id, request=SECOND).state == 'running'
        ended = self.runs.cancel(run.id)
        assert ended.state == 'cancelled'
        requests = [each['do'] for each in ended.requests]
        assert requests == ['pause', 'resume', 'cancel']
        assert self.woken == [FIRST] * 4
        said = self.refusal(self.runs.cancel, run.id)
        assert said == f'Cannot cancel run {FIRST}: it has ended: cancelled'

    def test_a_request_that_changed_nothing_does_nothing_later(self):
        self.start(run_id=FIRST)
        self.runs.pause(FIRST)
        self.runs.pause(FIRST, request=SECOND)
        self.runs.resume(FIRST)
        self.runs.pause(FIRST, request=SECOND)
        assert self.control(FIRST).paused_by is None

    def test_a_retry_that_is_sent_again_retries_once(self):
        self.start(run_id=FIRST)
        for _ in range(2):
            self.end(FIRST)
            assert self.runs.retry(FIRST, request=SECOND).round == 2
        said = self.refusal(self.runs.retry, FIRST, only='db')
        assert 'no target without success is, or is named, db' in said

    def test_what_has_begun_is_ended_by_its_leader(self):
        self.start(run_id=FIRST)
        begun = {'state': run_records.State.RUNNING, 'number': 1}
        self.change(FIRST, {0: begun | {'started_at': int(heat_door.NOW)}})
        self.runs.cancel(FIRST, target=0)
        attempt = self.store.load(FIRST).run.attempts[0]
        assert attempt.cancelled_by == 'user'
        self.refusal(self.runs.cancel, FIRST, target=1)
        self.change(FIRST, {0: {'state': run_records.State.CANCELLED}})
        said = self.refusal(self.runs.cancel, FIRST, target=0)
        assert 'Cannot cancel target 0' in said
        assert 'it is cancelled' in said
        assert not self.runs.cancel(FIRST).ended
        assert self.control(FIRST).stopped == run_records.Stop.CANCELLED

    def test_a_request_is_decided_again_when_the_run_has_changed(self):
        self.start(run_id=FIRST)
        changes = iter([True, True, False])
        step = self.store.step

        def step_after_another(before, *args, **more):
            if next(changes):
                step(before, before.run, str(uuid.uuid4()))
            return step(before, *args, **more)

        self.patch(self.store, 'step', step_after_another)
        assert self.runs.pause(FIRST).state == 'paused'

    def test_a_run_that_has_ended_is_deleted(self):
        self.start(run_id=FIRST)
        self.refusal(self.runs.delete, FIRST)
        self.end(FIRST)
        self.runs.delete(FIRST)
        assert self.stored() == {}
        for name in ('show', 'pause', 'retry', 'delete'):
            call = getattr(self.runs, name)
            said = self.refusal(call, FIRST, error=errors.NotFound)
            assert said == f'Heat has no run {FIRST} in this project'

    def test_a_run_that_cannot_be_decrypted_can_be_ended(self):
        self.start(run_id=FIRST, inputs={'level': 9})
        cfg.CONF.set_override('auth_encryption_key', 'another' * 5)
        assert 'auth_encryption_key' in self.runs.show(FIRST).reason
        assert [each.id for each in self.runs.list()] == [FIRST]
        said = self.refusal(self.runs.pause, FIRST)
        assert 'it can only be cancelled' in said
        self.runs.cancel(FIRST)
        self.runs.delete(FIRST)
        assert list(self.runs.list()) == []

    # Lists

    def test_runs_are_listed_in_pages(self):
        ids = [str(uuid.UUID(int=n)) for n in range(5)]
        for each in ids:
            self.start(run_id=each)
        found = list(self.runs.list(limit=2))
        assert [each.id for each in found] == ids[::-1]
        assert len(list(self.runs.list(limit=1000))) == 5
        with mock.patch.object(run_store, 'PAGE', 2):
            assert len(list(self.runs.list(limit=1000))) == 5
        unknown = SECOND[:-1] + 'f'
        said = self.refusal(lambda: list(self.runs.list(after=unknown)))
        assert 'was deleted; list again' in said
        assert self.runs.door().revision == run_tables.revision()

    def test_a_list_of_a_stack_may_carry_its_targets(self):
        more = self.more('a', 'b')
        self.start(run_id=FIRST, stacks=[self.stack.name, more.name])
        for wanted, expected in (
            ({}, [['deployment', 'deployment.a', 'deployment.b']]),
            ({'stack': more.id}, [['deployment.a', 'deployment.b']]),
            ({'stack': self.stack.name}, [['deployment']]),
            ({'stack': 'elsewhere'}, []),
        ):
            found = self.runs.list(targets=True, **wanted)
            assert [
                [e.resource for e in run.target_list] for run in found
            ] == expected
        (run,) = self.runs.list()
        assert run.target_list == ()
        # One that is deleted meanwhile.
        self.end(FIRST)
        load = self.store.load

        def deleted(*args):
            self.store.delete(self.heat.context.project_id, FIRST)
            return load(*args)

        self.patch(self.store, 'load', deleted)
        (run,) = self.runs.list(targets=True)
        assert run.target_list == []

    def more(self, *keys):
        resources = {'config': triggers.CONFIG}
        whole = groups.group(*keys, resources=resources)
        return self.created(whole, name='more')

    def test_an_answer_is_no_longer_than_a_page(self):
        stack = self.more('a', 'b', 'c')
        run = self.runs.start('BACKUP', stacks=[stack.name])
        long = {'outputs': {'size': 'x' * 3_000_000}}
        self.change(run.id, dict.fromkeys(range(3), long))
        query = ordering.Query(run=run.id, outputs=True, limit=9)
        assert len(self.listed(query.server_id)) == 3
        found = list(self.runs.targets(run.id, outputs=True))
        assert [(each.number, each.server_name) for each in found] == [
            (number, f'server_{key}') for number, key in enumerate('abc')
        ]
        assert len(found[2].outputs['size']) == 3_000_000
        found = list(self.runs.targets(run.id, state=['pending']))
        assert [each.outputs for each in found] == [None] * 3
        assert list(self.runs.targets(run.id, state=['failed'])) == []

    def listed(self, server_id):
        return self.heat.rpc.list_software_deployments(
            self.heat.context, server_id
        )

    def test_heats_own_lists_show_nothing_of_runs(self):
        self.start(run_id=FIRST)
        rows = [each.id for each in self.deployment_rows()]
        for server_id in (None, self.stack['server'].resource_id):
            assert [each['id'] for each in self.listed(server_id)] == rows
        door.install(None)
        assert self.listed(ordering.SERVER) == []

    def test_a_wait_ends_with_the_run(self):
        self.start(run_id=FIRST)
        asked = []

        def sleep(seconds):
            asked.append(self.now)
            self.now += seconds
            if len(asked) == 3:
                self.end(FIRST)

        waiting = self.client()
        self.sleep = sleep
        assert waiting.wait(FIRST).state == 'failed'
        assert waiting.wait(FIRST, seconds=0).state == 'failed'
        # Engines without the door may answer for a while.
        self.api.old = 20
        assert waiting.wait(FIRST).state == 'failed'
        assert self.api.old == 0
        # Its row may show later.
        begun = self.now
        self.refusal(waiting.wait, SECOND, error=errors.NotFound)
        assert self.now - begun == client.GRACE

    # Who may

    def test_a_reader_reads(self):
        self.start(run_id=FIRST)
        reader = self.client(roles=['reader'])
        assert reader.show(FIRST).id == FIRST
        assert [e.number for e in reader.targets(FIRST)] == [0]
        for name in ('pause', 'resume', 'cancel', 'retry', 'delete'):
            call = getattr(reader, name)
            said = self.refusal(call, FIRST, error=errors.Denied)
            assert 'not authorized to use stacks:update' in said
        self.refusal(reader.start, 'BACKUP', stacks=['x'], error=errors.Denied)
        self.client().pause(FIRST)

    def test_another_project_sees_and_touches_nothing(self):
        self.start(run_id=FIRST)
        for more in ({}, {'is_admin': True, 'roles': ['admin', 'member']}):
            other = self.client(project_id='f' * 32, **more)
            assert list(other.list()) == []
            for name in ('show', 'pause', 'cancel', 'retry', 'delete'):
                call = getattr(other, name)
                self.refusal(call, FIRST, error=errors.NotFound)
            assert FIRST in self.stored()
            for name, value in ('stacks', self.stack.id), ('resources', '*'):
                self.refusal(other.start, 'BACKUP', **{name: [value]})

    def test_a_project_at_its_limit_starts_and_cancels(self):
        cfg.CONF.set_override('max_software_deployments_per_tenant', 0)
        assert self.runs.cancel(self.start().id).state == 'cancelled'

    # Mixed clouds

    def test_an_engine_without_the_door_is_asked_again(self):
        self.api.old = 2
        assert self.start(run_id=FIRST).id == FIRST
        self.api.old = 2
        assert [each.id for each in self.runs.list()] == [FIRST]
        for call in (self.runs.door, self.start):
            self.api.old = 99
            failure = self.assertRaises(client.NoDoor, call)
            assert 'heat-plugins is missing, or older' in str(failure)


class SelectionTest(heat_door.DoorCase):
    def start(self, **order):
        run = self.runs.start('BACKUP', **order)
        self.members = self.store.load(run.id).run.order.members
        return [(each.stack_name, each.resource) for each in self.members]

    def stack(self, name, whole=None, **options):
        whole = whole or deployments.template()
        whole['resources']['config'] = triggers.CONFIG
        return self.created(whole, name=name, **options)

    def test_stacks_tags_and_patterns_select(self):
        self.stack('shop', tags=['production'])
        tags = ['production', 'edge']
        self.stack('web', groups.group('a', 'b'), tags=tags)
        members = [('web', 'deployment.a'), ('web', 'deployment.b')]
        shop = [('shop', 'deployment')]
        assert self.start(tags=['edge']) == members
        assert {*self.start(tags=['production'])} == {*shop, *members}
        assert self.start(resources=['deployment.*']) == members
        assert self.start(stacks=['web'], resources=['*.b']) == members[1:]

    def test_metadata_and_time_limits_are_those_of_the_template(self):
        whole = deployments.template(timeout={'get_param': 'limit'})
        whole['parameters'] = {
            'zone': {'type': 'string', 'default': 'north'},
            'limit': {'type': 'number', 'default': 60},
        }
        server = whole['resources']['server']
        server['properties']['metadata'] = {
            'zone': {'get_param': 'zone'},
            'role': 'db',
        }
        self.stack('shop', whole, parameters={'limit': 90})
        selected = {'stacks': ['shop'], 'metadata': {'role': 'db'}}
        assert self.start(**selected) == [('shop', 'deployment')]
        assert self.members[0].timeout == 90
        selected['metadata'] = {'role': 'web'}
        failure = self.assertRaises(errors.Refused, self.start, **selected)
        assert 'its server has other metadata' in str(failure)

    def test_resources_of_nested_stacks_are_named_by_their_path(self):
        inner = self.stack('shop-part')
        outer = self.created(name='shop')
        # As if the inner one were a resource of it.
        db_api.stack_update(
            self.heat.context, inner.id, {'owner_id': outer.id}
        )
        for each in inner.values():
            self.heat.change(each.id, root_stack_id=outer.id)
        number = outer['config'].id
        self.heat.change(number, physical_resource_id=inner.id)
        expected = [('shop', 'config.deployment')]
        assert self.start(stacks=['shop']) == expected
        assert self.start(stacks=['shop-part']) == expected
        assert self.start(resources=['config']) == expected
        assert self.start(resources=['c*.deployment']) == expected
