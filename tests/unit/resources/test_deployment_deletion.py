# SPDX-License-Identifier: Apache-2.0
"""How a deployment goes, and what it leaves: nothing."""

from unittest import mock

from heat.common import exception
from heat.db import api as db_api
from heat.engine import properties
from heat.engine import resource
from heat.engine.clients.os import nova

from heat_plugins.engine import hubs
from heat_plugins.engine import run_room
from heat_plugins.engine import sweeping
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from tests.unit.resources import deployments

ALL = deployments.ALL_ACTIONS
WHOLE = deployments.template(actions=ALL)
FAILED = {'deploy_status_code': 1}


class DeleteActionTest(deployments.DeploymentTestCase):
    def test_it_runs_unless_its_server_or_config_has_gone(self):
        self.heat.auth.endpoints['compute'] = 'http://nova.invalid/v2.1'
        gone = exception.EntityNotFound(entity='Server', name='of-nova')
        for lacking, nova_says, runs_delete in (
            ('server', None, False),
            ('config', None, False),
            # A row that is gone is made again for it.
            ('deployment', None, True),
            # Of this one Heat has no resource.
            (None, 'ACTIVE', True),
            (None, gone, False),
        ):
            self.handed.clear()
            more = {'server': 'of-nova'} if nova_says else {}
            whole = deployments.template(actions=ALL, **more)
            stack = self.created(whole, name=self.getUniqueString())
            if lacking == 'server':
                stack['server'].state_set('DELETE', 'FAILED')
                self.finish(self.heat.start(stack['deployment'].delete))
            elif lacking:
                delete = getattr(self.heat.rpc, f'delete_software_{lacking}')
                delete(self.heat.context, stack[lacking].resource_id)
            with mock.patch.object(
                nova.NovaClientPlugin, 'get_server', side_effect=[nova_says]
            ):
                self.delete(stack)
            assert self.actions() == ['CREATE', *['DELETE'] * runs_delete]
            self.assert_nothing_left()

    def replace_by(self, stack, **changed):
        """Give a stack another template, by which a check replaces it.

        :returns: the former deployment and its replacement.
        """
        whole = deployments.template(**{'actions': ALL, **changed})
        other = self.heat.stack(whole, self.getUniqueString())
        template = {'raw_template_id': other.t.id}
        db_api.stack_update(stack.context, stack.id, template)
        former = self.checked(stack, stack['deployment'].id)
        check = former.update_convergence, other.t.id, set(), None, 60, other
        self.assertRaises(resource.UpdateReplace, *check)
        number = former.make_replacement(other.t.id, set())
        return former, self.checked(stack, number)

    def withdrawn_by_former(self, stack, action):
        """Withdraw what the server has as release 0.1 did."""
        found = self.heat.load(stack)['deployment']
        (row,) = self.deployment_rows()
        found.data_set('heat_plugins_undo', action)
        found.data_set('heat_plugins_configs', row.config_id)
        found.data_set('heat_plugins_inputs', '{"who": "a"}', redact=True)
        self.heat.rpc.delete_software_deployment(self.heat.context, row.id)
        return row.id

    def test_what_failed_is_undone_unless_its_replacement_runs(self):
        # What was cancelled has no replacement.
        stack, task = self.waiting(WHOLE)
        task.cancel()
        self.answer = {}
        self.delete(stack)
        assert self.actions() == ['CREATE', 'DELETE']
        self.assert_nothing_left()
        undone, never = ['CREATE', 'DELETE'], {'actions': ['UPDATE', 'DELETE']}
        for changed, is_begun, expected in (
            ({}, True, ['CREATE', 'CREATE']),
            ({'server': 'another'}, True, ['CREATE', *undone]),
            ({}, False, undone),
            (never, True, undone),
        ):
            before = len(self.handed)
            stack, _ = self.fails(WHOLE, FAILED, self.getUniqueString())
            stack['deployment'].data_set('user_id', 'user')
            former, replacement = self.replace_by(stack, **changed)
            # It may find its user.
            assert resources.replaced_users(
                stack.context, stack.id, replacement.name, replacement.id
            ) == {former.resource_id: 'user'}
            former.data_delete('user_id')
            self.answer = {}
            if is_begun:
                self.finish(self.heat.start(replacement.create))
            self.finish(self.heat.start(former.delete))
            assert self.actions(before) == expected, changed
        # Its engine died in the deletion, before DELETE was delivered.
        before = len(self.handed)
        stack = self.created(WHOLE, name='dead')
        self.dies(stack, 'DELETE')
        former, replacement = self.replace_by(stack)
        self.finish(self.heat.start(replacement.create))
        (config,) = self.in_metadata(stack)
        assert config['id'] == self.handed[-1]['id']
        self.finish(self.heat.start(former.delete))
        assert self.actions(before) == ['CREATE', 'CREATE']

    def test_what_the_former_release_withdrew_goes_on(self):
        inputs = [{'name': 'who', 'replace_on_change': True}]
        given = {'config': {'inputs': inputs}, 'actions': ALL}
        whole = deployments.template(**given, input_values={'who': 'a'})
        stack = self.created(whole)
        # An update delivers it, and remembers what it must replace.
        self.dies(stack, 'UPDATE')
        number = self.withdrawn_by_former(stack, 'UPDATE')
        self.update(stack, whole)
        assert self.actions() == ['CREATE', 'UPDATE']
        (row,) = self.deployment_rows()
        assert row.id == number
        ids = {stack['config'].resource_id, row.config_id}
        assert self.config_ids() == ids
        kept = self.heat.load(stack)['deployment'].data()
        assert set(kept) == {rows.CONTAINER_KEY}
        self.dies(stack, 'UPDATE')
        self.withdrawn_by_former(stack, 'UPDATE')
        self.update(
            stack, deployments.template(**given, input_values={'who': 'b'})
        )
        assert self.heat.load(stack)['deployment'].resource_id != number
        self.delete(stack)
        # A deletion undoes it, but not what replaced it.
        for is_replaced in (False, True):
            self.handed.clear()
            stack, _ = self.waiting(WHOLE)
            self.dies(stack)
            self.withdrawn_by_former(stack, 'CREATE')
            self.answer = {}
            if is_replaced:
                former, replacement = self.replace_by(stack)
                self.finish(self.heat.start(replacement.create))
                self.finish(self.heat.start(former.delete))
            else:
                self.delete(stack)
                self.assert_nothing_left()
            last = 'CREATE' if is_replaced else 'DELETE'
            assert self.actions() == ['CREATE', last]
        # Nor what had replaced it in that release.
        before = len(self.handed)
        stack, _ = self.fails(WHOLE, FAILED, 'refused')
        former, replacement = self.replace_by(stack)
        self.answer = {}
        former.data_set('heat_plugins_given_way', 'CREATE')
        with mock.patch.object(resources, 'mark_replaced'):
            self.finish(self.heat.start(replacement.create))
        self.finish(self.heat.start(former.delete))
        assert self.actions(before) == ['CREATE', 'CREATE']

    def test_it_goes_where_nothing_can_answer(self):
        self.heat.auth.endpoints['cloudformation'] = deployments.CFN
        for transport, why in (
            ('TEMP_URL_POLL', 'answered 403'),
            ('CFN_SIGNAL', 'CFN_SIGNAL: Heat cannot create a key pair'),
        ):
            self.handed.clear()
            whole = deployments.template(
                actions=ALL, signal_transport=transport
            )
            stack, task = self.waiting(whole)
            stack['deployment'].signal({})
            self.finish(task)
            if transport == 'CFN_SIGNAL':
                kind = type(stack['deployment'])
                self.patch(kind, '_get_ec2_signed_url', lambda *_, **__: None)
            else:
                # What a dead engine has delivered fails, too.
                self.waiting(action='SUSPEND', stack=stack)
                self.swift.denied.add(deployments.PROJECT)
                # Another engine has none of its URLs.
                hubs.HUBS.kept.clear()
                stack = self.heat.load(stack)
                task = self.heat.begin(stack, 'SUSPEND')
                assert 'operator role' in self.failed(task, stack)
                self.assert_withdrawn(stack, 'operator role')
                hubs.HUBS.kept.clear()
            with self.assertLogs('heat_plugins', 'WARNING') as logs:
                self.finish(self.heat.start(stack['deployment'].delete))
            assert 'DELETE' not in self.actions()
            assert self.deployment_rows() == []
            assert self.config_ids() == {stack['config'].resource_id}
            self.assert_nothing_waits()
            (event,) = [e for e in deployments.events(stack) if 'not run' in e]
            assert 'DELETE was not run on server server: ' in event
            assert why in event
            place = f'(deployment of stack {stack.name}, {stack.id})'
            assert f'{place}: {event}' in '\n'.join(logs.output)
            self.swift.denied.clear()
            self.delete(stack)


class CleanUpTest(deployments.DeploymentTestCase):
    def test_a_container_goes_with_the_last_that_has_a_url(self):
        more = {'other': deployments.deployment(actions=['SUSPEND'])}
        parent = self.created(deployments.template(resources=more))
        nested = deployments.template(
            parent['config'].resource_id,
            {'config': None, 'server': None},
            server=parent['server'].resource_id,
        )
        child = self.created(
            nested, name='nested', owner_id=parent.id, nested_depth=1
        )
        # All below a root stack share one.
        url = deployments.inputs(self.handed[-1])['deploy_signal_id']
        assert f'/heat-plugins-{parent.id}/signals/' in url
        assert len(hubs.HUBS.kept) == 1
        self.finish(self.heat.start(parent['deployment'].delete))
        assert self.objects(parent) == []
        hub = next(iter(hubs.HUBS.values()))
        drop = hub.drop_container
        tasks = []

        def be_slow(container):
            # Another deployment is given a URL after the question whether
            # there is one, and before the container goes.
            self.answer = None
            tasks.append(self.heat.start(parent['other'].suspend))
            self.step(tasks[0], 2)
            drop(container)

        with mock.patch.object(hub, 'drop_container', be_slow):
            self.delete(child)
        assert self.objects(parent) == []
        assert self.send(self.handed[-1]) == 201
        self.finish(tasks[0])
        # What cannot be resolved any more keeps nothing from going.
        real = properties.Properties.__getitem__

        def get(found, name):
            if name in ('input_values', 'signal_transport', 'timeout'):
                raise ValueError(f'{name} refers to what is gone')
            return real(found, name)

        self.patch(properties.Properties, '__getitem__', get)
        self.delete(parent)
        self.assert_nothing_left()

    def remains(self, stack):
        return [e for e in deployments.events(stack) if 'remain' in e]

    def test_passing_errors_are_ridden_out_and_others_leave_a_warning(self):
        self.configure(swift_error_budget=60)
        stack = self.created()
        arrived = []

        def put_one(request):
            # By whom has the account's key, or a token.
            if request.method == 'DELETE' and 'signals' not in request.url:
                arrived.append(1)
                if len(arrived) < 6:
                    name = f'heat-plugins-{stack.id}'
                    there = self.swift.container(name, deployments.PROJECT)
                    there.objects['signals/late'] = b'{}'

        self.swift.before = put_one
        self.swift.fail(8, 503)
        self.delete(stack)
        self.assert_nothing_left()
        assert len(arrived) == 6
        assert self.remains(stack) == []
        self.swift.before = lambda request: None
        for status in (403, 503, 401):
            stack = self.created(name=f's{status}')
            self.swift.fail(10000, status)
            with self.assertLogs('heat_plugins', 'WARNING') as logs:
                task = self.heat.start(stack['deployment'].delete)
                # A refusal is not retried.
                assert self.step(task, 50) == (status == 403)
                if status != 403:
                    self.finish(task, 40)
            self.swift.heal()
            assert 'may remain' in logs.output[-1]
            (event,) = self.remains(stack)
            assert f'answered {status}' in event
            told = str(deployments.events(stack))
            assert told.count('retrying for 60 s') == (status != 403)

    def test_what_heats_own_class_has_left_goes(self):
        whole = deployments.template(signal_transport='NO_SIGNAL')
        store = self.swift.store(deployments.PROJECT)
        for is_there in (True, False):
            stack = self.created(whole)
            found = stack['deployment']
            name = found.physical_resource_name()
            found.data_set('swift_signal_url', 'http://old')
            found.data_set('swift_signal_object_name', name)
            # Heat took each name that contained its own for its own.
            for each in (name, f'{name}-more') if is_there else ():
                store.put_container(stack.id, {})
                store.put_object(stack.id, each, b'')
            self.delete(stack)
            if is_there:
                box = self.swift.container(stack.id, deployments.PROJECT)
                assert [*box.objects] == [f'{name}-more']
                assert self.swift.asked().count(f'DELETE /{stack.id}') == 1
                box.objects.clear()
                store.delete_container(stack.id)
        self.assert_nothing_left()


class SweepingTest(deployments.DeploymentTestCase):
    def test_runs_have_a_minute_to_end(self):
        stack = self.created()
        room = mock.Mock()
        room.has_left.return_value = False
        self.patch(run_room, 'room', lambda: room)
        sweep = sweeping.Sweep(stack['deployment'])
        for seconds, is_done in ((0, False), (59, False), (1, True)):
            self.now += seconds
            assert sweep.run() is is_done
