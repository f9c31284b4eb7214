# SPDX-License-Identifier: Apache-2.0
"""How a deployment goes, and what it leaves: nothing."""

import json
from unittest import mock
import uuid

from heat.common import exception
from heat.db import api as db_api
from heat.engine import properties
from heat.engine import resource
from heat.engine.clients.os import nova

from heat_plugins.engine import hubs
from heat_plugins.engine.database import resources
from tests.unit.resources import deployments

NESTED = """
heat_template_version: 2021-04-16
parameters:
  config: {type: string}
  server: {type: string}
resources:
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_param: config}
      server: {get_param: server}
      signal_transport: TEMP_URL_POLL
"""


class DeletionTestCase(deployments.DeploymentTestCase):
    WHOLE = deployments.template(actions=deployments.ALL_ACTIONS)

    def actions(self):
        return [
            deployments.inputs(config)['deploy_action']
            for config in self.handed
        ]


class DeleteActionTest(DeletionTestCase):
    def test_it_waits_for_its_signal(self):
        stack = self.created(self.WHOLE)
        self.answer = None
        task = self.heat.start(stack['deployment'].delete)
        assert not self.step(task, 100)
        self.send(self.handed[-1])
        self.finish(task)
        assert self.deployment_rows() == []
        assert self.config_ids() == {stack['config'].resource_id}
        assert self.containers() == []
        assert self.in_metadata(stack) == []
        # After the last one the engine keeps no connection.
        assert hubs.HUBS.values() == []

    def test_it_runs_unless_server_or_config_has_gone(self):
        for name, expected in (
            ('server', ['CREATE']),
            ('config', ['CREATE']),
            # A row that is gone is made again for it.
            ('deployment', ['CREATE', 'DELETE']),
        ):
            self.handed.clear()
            stack = self.created(self.WHOLE, name=name)
            number = stack[name].resource_id
            if name == 'server':
                stack[name].state_set('DELETE', 'FAILED')
                self.finish(self.heat.start(stack['deployment'].delete))
            elif name == 'config':
                self.heat.rpc.delete_software_config(self.heat.context, number)
            else:
                self.heat.rpc.delete_software_deployment(
                    self.heat.context, number
                )
            self.delete(stack)
            assert self.actions() == expected
            self.assert_nothing_left()

    def test_it_runs_also_after_a_create_that_was_taken_back(self):
        stack, task = self.waiting(self.WHOLE)
        task.cancel()
        self.assert_withdrawn(stack)
        self.answer = {}
        self.delete(stack)
        assert self.actions() == ['CREATE', 'DELETE']
        self.assert_nothing_left()

    def held(self):
        """Return a stack whose engine has died in CREATE."""
        stack, task = self.waiting(self.WHOLE)
        self.addCleanup(task.cancel)
        found = self.heat.load(stack)['deployment']
        found.state_set('CREATE', 'FAILED', 'Engine has died')
        return stack

    def refused(self):
        """Return a stack whose CREATE has failed on the server."""
        stack, _error = self.fails(self.WHOLE, {'deploy_status_code': 1})
        return stack

    def replaced(self, stack, begun=True, **changed):
        """Let an update replace a deployment, which goes after that.

        :param begun: whether the replacement has been created by then.
        """
        other = self.other_template(stack, **changed)
        former, replacement = self.replace_by(stack, other)
        self.answer = {}
        if begun:
            self.finish(self.heat.start(replacement.create))
        self.finish(self.heat.start(former.delete))

    def replace_by(self, stack, other, name='deployment'):
        """Let a check replace a resource; return it and its replacement."""
        former = self.checked(stack, stack[name].id)
        self.assertRaises(
            resource.UpdateReplace,
            former.update_convergence,
            other.t.id,
            set(),
            None,
            60,
            other,
        )
        number = former.make_replacement(other.t.id, set())
        return former, self.checked(stack, number)

    def other_template(self, stack, name='other', **changed):
        """Give a stack another template, and return one that has it."""
        changed.setdefault('actions', deployments.ALL_ACTIONS)
        other = self.heat.stack(deployments.template(**changed), name=name)
        db_api.stack_update(
            stack.context, stack.id, {'raw_template_id': other.t.id}
        )
        return other

    def withdrawn_by_former(self, stack, action):
        """Withdraw what the server has as release 0.1 did."""
        found = self.heat.load(stack)['deployment']
        (row,) = self.deployment_rows()
        found.data_set('heat_plugins_undo', action)
        found.data_set('heat_plugins_configs', row.config_id)
        found.data_set(
            'heat_plugins_inputs', json.dumps({'who': 'a'}), redact=True
        )
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        return row.id

    def test_what_the_former_release_withdrew_is_undone(self):
        stack = self.held()
        self.withdrawn_by_former(stack, 'CREATE')
        self.answer = {}
        self.delete(stack)
        assert self.actions() == ['CREATE', 'DELETE']
        self.assert_nothing_left()

    def test_but_not_what_replaced_it(self):
        stack = self.held()
        self.withdrawn_by_former(stack, 'CREATE')
        self.replaced(stack)
        assert self.actions() == ['CREATE', 'CREATE']

    def test_nor_what_had_replaced_it_in_the_former_release(self):
        stack = self.refused()
        former, replacement = self.replace_by(
            stack, self.other_template(stack)
        )
        self.answer = {}
        former.data_set('heat_plugins_given_way', 'CREATE')
        with mock.patch.object(resources, 'mark_replaced'):
            self.finish(self.heat.start(replacement.create))
        self.finish(self.heat.start(former.delete))
        assert self.actions() == ['CREATE', 'CREATE']

    def test_an_update_delivers_what_the_former_release_withdrew(self):
        inputs = [{'name': 'who', 'replace_on_change': True}]
        given = {
            'config': {'inputs': inputs},
            'actions': deployments.ALL_ACTIONS,
        }
        whole = deployments.template(**given, input_values={'who': 'a'})
        stack = self.created(whole)
        self.fail(stack, 'UPDATE')
        number = self.withdrawn_by_former(stack, 'UPDATE')
        self.update(stack, whole)
        assert self.actions() == ['CREATE', 'UPDATE']
        (row,) = self.deployment_rows()
        assert row.id == number
        assert self.config_ids() == {
            stack['config'].resource_id,
            row.config_id,
        }
        kept = self.heat.load(stack)['deployment'].data()
        assert set(kept) == {'heat_plugins_signal_container'}
        # It remembers what an update must replace.
        self.fail(stack, 'UPDATE')
        self.withdrawn_by_former(stack, 'UPDATE')
        self.update(
            stack, deployments.template(**given, input_values={'who': 'b'})
        )
        assert self.heat.load(stack)['deployment'].resource_id != number

    def fail(self, stack, action):
        """Let an action have failed."""
        found = self.heat.load(stack)
        found['deployment'].state_set(action, 'FAILED', 'for a reason')
        found.state_set(action, 'FAILED', 'for a reason')
        found.persist_state_and_release_lock(uuid.uuid4().hex)

    def test_what_failed_is_undone_where_its_replacement_does_not_run(self):
        for number, (changed, expected) in enumerate(
            (
                ({}, ['CREATE', 'CREATE']),
                ({'server': 'another'}, ['CREATE', 'CREATE', 'DELETE']),
                ({'begun': False}, ['CREATE', 'DELETE']),
                ({'actions': ['UPDATE', 'DELETE']}, ['CREATE', 'DELETE']),
            )
        ):
            before = len(self.handed)
            stack = self.heat.stack(self.WHOLE, f'stack{number}')
            self.answer = {'deploy_status_code': 1}
            self.failed(self.heat.begin(stack, 'CREATE'), stack)
            stack.persist_state_and_release_lock(uuid.uuid4().hex)
            self.replaced(stack, name=f'other{number}', **changed)
            assert self.actions()[before:] == expected, changed

    def test_a_server_has_only_what_replaced_a_failed_one(self):
        # Its engine died in the deletion, before DELETE was delivered.
        stack = self.created(self.WHOLE)
        self.fail(stack, 'DELETE')
        former, replacement = self.replace_by(
            stack, self.other_template(stack)
        )
        self.finish(self.heat.start(replacement.create))
        (config,) = self.in_metadata(stack)
        assert config['id'] == self.handed[-1]['id']
        self.finish(self.heat.start(former.delete))
        assert self.actions() == ['CREATE', 'CREATE']

    def test_so_can_its_user(self):
        stack = self.refused()
        stack['deployment'].data_set('user_id', 'user')
        former, replacement = self.replace_by(
            stack, self.other_template(stack, server='another')
        )
        assert resources.replaced_users(
            stack.context, stack.id, replacement.name, replacement.id
        ) == {former.resource_id: 'user'}


class NoAnswerTest(DeletionTestCase):
    """DELETE has no way to be answered any more; a stack goes all the same."""

    def assert_goes(self, stack, why, seconds=600):
        """Delete a deployment; return the warnings in its events."""
        with self.assertLogs('heat_plugins', 'WARNING') as logs:
            task = self.heat.start(stack['deployment'].delete)
            self.finish(task, seconds)
        assert 'DELETE' not in self.actions()
        assert self.deployment_rows() == []
        assert self.config_ids() == {stack['config'].resource_id}
        self.assert_nothing_waits()
        (event,) = [e for e in deployments.events(stack) if 'not run' in e]
        assert 'DELETE was not run on server server: ' in event
        assert why in event
        place = f'(deployment of stack {stack.name}, {stack.id})'
        assert f'{place}: {event}' in '\n'.join(logs.output)

    def test_without_the_role(self):
        stack = self.created(self.WHOLE)
        # What a dead engine had handed over fails, too.
        _, dead = self.waiting(action='SUSPEND', stack=stack)
        self.addCleanup(dead.cancel)
        self.swift.denied.add(deployments.PROJECT)
        # The next engine to deal with it has its URLs no more.
        hubs.HUBS.clear()
        again = self.heat.load(stack)
        task = self.heat.begin(again, 'SUSPEND')
        assert 'operator role' in self.failed(task, again)
        self.assert_withdrawn(again, 'operator role')
        hubs.HUBS.clear()
        self.assert_goes(again, 'answered 403')

    def test_with_another_transport(self):
        self.heat.auth.endpoints['cloudformation'] = 'http://cfn.invalid/v1'
        whole = deployments.template(
            actions=deployments.ALL_ACTIONS, signal_transport='CFN_SIGNAL'
        )
        stack, task = self.waiting(whole)
        stack['deployment'].signal({})
        self.finish(task)
        self.patch(
            deployments.OURS['OS::Heat::SoftwareDeployment'],
            '_get_ec2_signed_url',
            lambda deployment, **_: None,
        )
        self.assert_goes(stack, 'CFN_SIGNAL: Heat cannot create a key pair')


class ServerOfNovaTest(deployments.DeploymentTestCase):
    """A server of which Heat has no resource, or Nova the last word."""

    def setUp(self):
        super().setUp()
        self.heat.auth.endpoints['compute'] = 'http://nova.invalid/v2.1'
        self.get_server = mock.Mock()
        self.patch(
            nova.NovaClientPlugin,
            'get_server',
            lambda plugin, server: self.get_server(server),
        )
        self.whole = deployments.template(
            server='of-nova', actions=deployments.ALL_ACTIONS
        )

    def test_its_delete_is_delivered_unless_it_is_gone(self):
        gone = exception.EntityNotFound(entity='Server', name='of-nova')
        for error, number in ((None, 2), (gone, 1)):
            self.handed.clear()
            self.get_server.side_effect = error
            stack = self.created(self.whole)
            self.delete(stack)
            assert len(self.handed) == number
            self.assert_nothing_left()
        self.get_server.assert_called_with('of-nova')


class CleanUpTest(deployments.DeploymentTestCase):
    def remains(self, stack):
        """Return the events that say what may remain."""
        return [e for e in deployments.events(stack) if 'remain' in e]

    def test_one_of_a_nested_stack_shares_the_roots_container(self):
        parent = self.created()
        child = self.created(
            NESTED,
            name='nested',
            parameters={
                'config': parent['config'].resource_id,
                'server': parent['server'].resource_id,
            },
            owner_id=parent.id,
            nested_depth=1,
        )
        assert (
            f'/heat-plugins-{parent.id}/signals/'
            in deployments.inputs(self.handed[-1])['deploy_signal_id']
        )
        assert len(hubs.HUBS) == 1
        self.finish(self.heat.start(parent['deployment'].delete))
        assert self.objects(parent) == []
        self.delete(child)
        assert self.containers() == []
        self.delete(parent)
        self.assert_nothing_left()

    def test_a_container_of_others_that_is_needed_again_is_made_again(self):
        stack = self.created(
            deployments.template(
                resources={
                    'other': deployments.deployment(actions=['SUSPEND']),
                }
            )
        )
        hub = next(iter(hubs.HUBS.values()))
        drop = hub.drop_container
        tasks = []

        def be_slow(container):
            # Another deployment is given a URL after the question whether
            # there is one, and before the container goes.
            self.answer = None
            tasks.append(self.heat.start(stack['other'].suspend))
            self.step(tasks[0], 2)
            drop(container)

        self.patch(hub, 'drop_container', be_slow)
        self.finish(self.heat.start(stack['deployment'].delete))
        assert self.objects(stack) == []
        assert self.send(self.handed[-1]) == 201
        self.finish(tasks[0])

    def test_what_cannot_be_resolved_any_more_keeps_nothing_from_going(self):
        stack = self.created()
        real = properties.Properties.__getitem__

        def get(found, name):
            if name in ('input_values', 'signal_transport', 'timeout'):
                raise ValueError(f'{name} refers to what is gone')
            return real(found, name)

        self.patch(properties.Properties, '__getitem__', get)
        self.delete(stack)
        self.assert_nothing_left()

    def test_passing_errors_are_ridden_out(self):
        stack = self.created()
        deleted = []
        cls = deployments.OURS['OS::Heat::SoftwareDeployment']
        real = cls._delete_user
        self.patch(
            cls,
            '_delete_user',
            lambda resource: deleted.append(1) or real(resource),
        )
        self.swift.fail(8, 503)
        self.delete(stack)
        self.assert_nothing_left()
        assert deleted == [1]
        assert self.remains(stack) == []

    def test_a_store_that_refuses_or_stays_away_leaves_a_warning(self):
        self.configure(swift_error_budget=60)
        for status in (403, 503, 401):
            stack = self.created(name=f's{status}')
            self.swift.fail(10000, status)
            with self.assertLogs('heat_plugins', 'WARNING') as logs:
                task = self.heat.start(stack['deployment'].delete)
                # A refusal is not retried.
                assert self.step(task, 50) == (status == 403)
                if status != 403:
                    self.finish(task, 40)
            assert 'may remain' in logs.output[-1]
            (event,) = self.remains(stack)
            assert f'answered {status}' in event
            if status == 403:
                self.swift.heal()
                continue
            (waits,) = (
                each
                for each in deployments.events(stack)
                if 'retrying for 60 s' in each
            )
            assert f'answered {status}' in waits
            self.swift.heal()

    def test_what_arrives_meanwhile_is_no_reason_to_fail(self):
        stack = self.created()
        times = []

        def put_one(request):
            # By whom has the account's key, or a token.
            if request.method == 'DELETE' and 'signals' not in request.url:
                times.append(1)
                if len(times) < 6:
                    name = f'heat-plugins-{stack.id}'
                    there = self.swift.container(name, deployments.PROJECT)
                    there.objects['signals/late'] = b'{}'

        self.swift.before = put_one
        self.delete(stack)
        assert len(times) == 6
        self.assert_nothing_left()


class LegacyTest(deployments.DeploymentTestCase):
    """What Heat's own class has left behind it."""

    def legacy(self, **options):
        """Return a stack as if Heat's own class had made its deployment."""
        stack = self.created(
            deployments.template(signal_transport='NO_SIGNAL')
        )
        deployment = stack['deployment']
        store = self.swift.store(deployments.PROJECT)
        store.put_container(stack.id, {})
        self.box = self.swift.container(stack.id, deployments.PROJECT)
        self.name = deployment.physical_resource_name()
        self.box.objects[self.name] = b''
        deployment.data_set('swift_signal_url', 'http://old')
        deployment.data_set('swift_signal_object_name', self.name)
        return stack

    def test_the_objects_of_others_stay_and_with_them_the_container(self):
        stack = self.legacy()
        # Heat took each name that contained its own for its own.
        self.box.objects[f'{self.name}-more'] = b''
        self.delete(stack)
        assert sorted(self.box.objects) == [f'{self.name}-more']
        assert [self.swift.asked().count(f'DELETE /{stack.id}')] == [1]
        assert self.containers() == [stack.id]
        self.box.objects.clear()
        self.swift.store(deployments.PROJECT).delete_container(stack.id)
        # It is no matter if they are gone.
        stack = self.legacy()
        self.box.objects.clear()
        self.swift.store(deployments.PROJECT).delete_container(stack.id)
        self.delete(stack)
        self.assert_nothing_left()
