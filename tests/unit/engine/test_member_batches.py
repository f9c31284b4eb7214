# SPDX-License-Identifier: Apache-2.0
"""On which targets an engine starts runs, and how it delivers them."""

import dataclasses
import types
from unittest import mock

from heat.objects import resource as resource_objects
from oslo_config import cfg
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins import heat_values
from heat_plugins.deployments import deliveries
from heat_plugins.engine.database import deployment_rows
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.engine.runs import member_batches
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from heat_plugins.signals import signal_names
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_policy as policies
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups


class ApartTest(groups.GroupTestCase):
    def test_operations_share_no_transaction_with_stacks(self):
        shared = []
        self.patch(
            deployment_rows._deliveries, 'share', lambda made: shared.append(1)
        )
        own = []
        self.patch(
            member_batches._deliveries, 'share', lambda made: own.append(1)
        )
        self.patch(in_process, 'check_room', lambda context, new: None)
        deployment_rows.Rows(None, self.heat.context).write([])
        chosen = member_batches.MemberBatches(self.heat.context)
        chosen._rows.write([])
        self.assertEqual(([1], [1]), (shared, own))


class RefusalsTest(groups.GroupTestCase):
    def member(self, stack, **values):
        deployment = stack['deployment']
        if 'server_id' not in values:
            values['server_id'] = deployment.properties['server']
            values['deployment_id'] = deployment.resource_id
        return runs.RunTarget(
            stack_id=stack.id,
            stack_name=stack.name,
            resource='deployment',
            **values,
        )

    def refusals(self, *members, config=None):
        order = operations.OperationOrder(
            id='20270115T080000Z-00c0ffee',
            action='BACKUP',
            limits=operations.OperationLimits(),
            members=members,
            created_at=0,
            created_by='ann',
            config=config,
        )
        chosen = member_batches.MemberBatches(self.heat.context)
        return chosen.refusals(order, range(len(members)))

    def test_a_deployment_of_the_stack_runs_on_its_server(self):
        stack = self.created(deployments.template())
        self.assertEqual({}, self.refusals(self.member(stack)))

    def test_a_member_of_a_group_runs_on_its_server(self):
        stack = self.created(groups.group('a', 'b'))
        rows = self.deployment_rows()
        self.assertTrue(all(not signal_names.is_group(one.id) for one in rows))
        members = [
            self.member(stack, deployment_id=one.id, server_id=one.server_id)
            for one in rows
        ]
        self.assertEqual({}, self.refusals(*members))
        swapped = [
            dataclasses.replace(one, server_id=two.server_id)
            for one, two in zip(members, members[::-1], strict=True)
        ]
        self.assertEqual({0, 1}, set(self.refusals(*swapped)))

    def test_the_server_and_the_stack_are_those_of_the_deployment(self):
        stack = self.created(deployments.template())
        other = self.heat.create(policies.server(), name='servers')
        server_id = other['server'].resource_id
        mine = self.member(stack)
        for wrong in (
            dataclasses.replace(mine, server_id=server_id),
            dataclasses.replace(mine, stack_id=other.id),
            dataclasses.replace(mine, server_id='made-up'),
        ):
            (why,) = self.refusals(wrong).values()
            self.assertIn('is not a deployment of stack', why)
        # What is gone is told by who reads it.
        gone = dataclasses.replace(mine, deployment_id='0' * 36)
        self.assertEqual({}, self.refusals(gone))

    def test_a_script_runs_on_a_server_of_the_stack_alone(self):
        stack = self.heat.create(policies.server(), name='servers')
        server_id = stack['server'].resource_id
        member = runs.RunTarget(
            stack_id=stack.id,
            stack_name=stack.name,
            resource='server',
            deployment_id=server_id,
            server_id=server_id,
        )
        config = {'id': 'x'}
        self.assertEqual({}, self.refusals(member, config=config))
        other = self.heat.create(policies.server(), name='other')
        for wrong in (
            dataclasses.replace(member, stack_id=other.id),
            dataclasses.replace(member, server_id='made-up'),
        ):
            (why,) = self.refusals(wrong, config=config).values()
            self.assertIn('is not a server of stack', why)

    def test_a_closed_server_takes_none_of_another_stack(self):
        stack = self.heat.create(policies.server(), name='servers')
        whole = deployments.template(
            server=stack['server'].resource_id, resources={'server': None}
        )
        other = self.created(whole, name='stack')
        self.assertEqual({}, self.refusals(self.member(other)))
        self.update(stack, policies.server('SAME_STACK'))
        (why,) = self.refusals(self.member(other)).values()
        self.assertIn('accepts only deployments of its own stack', why)

    def test_while_the_database_is_out_of_order_nothing_is_said(self):
        def fails(context, server_ids):
            raise db_exception.DBConnectionError

        stack = self.created(deployments.template())
        member = self.member(stack)
        self.patch(resources, 'find_all', fails)
        with self.assertRaises(errors.Unavailable):
            self.refusals(member)


class DeliveryTest(groups.GroupTestCase):
    def setUp(self):
        super().setUp()
        self.stack = self.created(groups.group('a', 'b'))
        self.before = self.deployment_rows()
        self.batches = member_batches.MemberBatches(self.heat.context)

    def made(self, row, number):
        draft = heat_values.DerivedConfig(
            name='db-BACKUP',
            group='script',
            config='true',
            inputs=[],
            outputs=[],
            options={},
        )
        return deliveries.Delivery(
            deployment_id=f'{number:036}',
            server_id=row.server_id,
            config_id=f'{number:035}c',
            action='BACKUP',
            draft=draft,
            input_values=None,
            signalling=deliveries.Signalling(transport='TEMP_URL_POLL'),
            reading_project=None,
            before=None,
            reason=f'heat-plugins run {number}',
        )

    def deliver(self, *numbers):
        self.batches.deliver(
            [
                self.made(row, n)
                for n, row in zip(numbers, self.before, strict=False)
            ]
        )

    def runs(self):
        """Return the rows of runs, as a withdrawal finds them."""
        heat = own_heat.OwnHeat(None, self.heat.context)
        return {
            row.id: row.reason
            for before in self.before
            for row in heat.deployments(before.server_id)
            if row.action == 'BACKUP'
        }

    def known(self):
        """Return the runs that servers were told of."""
        servers = resources.find_all(
            self.heat.context, {row.server_id for row in self.before}
        )
        return {
            config['id']
            for server in servers.values()
            for config in server.resources[0].metadata['deployments']
            if config['name'] == 'db-BACKUP'
        }

    def test_servers_have_their_runs_with_one_transaction(self):
        statements = []
        write = rows.deliver

        def deliver(made):
            statements.append(len(made))
            return write(made)

        self.patch(rows, 'deliver', deliver)
        self.deliver(1, 2)
        self.assertEqual([2], statements)
        self.assertEqual(
            {f'{n:036}': f'heat-plugins run {n}' for n in (1, 2)}, self.runs()
        )
        self.assertEqual({f'{n:035}c' for n in (1, 2)}, self.known())
        ids = {row.id for row in self.before}
        self.assertEqual(ids, set(self.batches.existing([*ids, 'gone'])))

    def test_no_run_is_delivered_twice(self):
        self.deliver(1)
        with self.assertRaises(errors.Unavailable):
            self.deliver(1, 2)
        # Who meets that looks each up; a server has no more than its own.
        self.assertLessEqual({f'{1:036}'}, self.runs().keys())
        self.assertLessEqual(self.known(), {f'{n:035}c' for n in (1, 2)})

    def withdraw(self, *numbers):
        self.batches.withdraw_runs(
            [
                types.SimpleNamespace(
                    row_id=f'{n:036}',
                    config_id=f'{n:035}c',
                    server_id=row.server_id,
                )
                for n, row in zip(numbers, self.before, strict=False)
            ]
        )

    def configs(self):
        ids = [f'{n:035}c' for n in (1, 2)]
        return rows.configs(self.heat.context, ids)

    def test_runs_are_withdrawn_together(self):
        self.deliver(1, 2)
        self.withdraw(1, 2)
        self.assertEqual({}, self.runs())
        self.assertEqual(set(), self.known())
        self.assertEqual(set(), self.configs())

    def test_who_withdraws_again_tells_the_servers(self):
        self.deliver(1, 2)
        fails = mock.Mock(side_effect=db_exception.DBConnectionError)
        with (
            mock.patch.object(server_metadata, 'tell', fails),
            self.assertRaises(errors.Unavailable),
        ):
            self.withdraw(1, 2)
        self.assertEqual(2, len(self.known()))
        self.withdraw(1, 2)
        self.assertEqual((set(), set()), (self.known(), self.configs()))

    def test_who_resumes_tells_the_servers(self):
        self.patch(deployment_rows.Rows, 'tell', lambda rows, made: None)
        self.deliver(1)
        self.assertEqual(set(), self.known())
        heat = own_heat.OwnHeat(
            in_process.Client(lambda: None), self.heat.context
        )
        heat.tell(heat.deployment(f'{1:036}'))
        self.assertEqual({f'{1:035}c'}, self.known())

    def test_a_limit_of_the_project_leaves_nothing(self):
        cfg.CONF.set_override(
            'max_software_deployments_per_tenant', len(self.before) + 1
        )
        self.addCleanup(
            cfg.CONF.clear_override, 'max_software_deployments_per_tenant'
        )
        with self.assertRaises(errors.ServiceError) as caught:
            self.deliver(1, 2)
        self.assertNotIsInstance(caught.exception, errors.Unavailable)
        self.assertEqual({}, self.runs())

    def test_another_project_s_deployments_are_not_there(self):
        context = self.heat.context.to_dict()
        other = type(self.heat.context).from_dict(
            {**context, 'project_id': 'other', 'tenant_id': 'other'}
        )
        batches = member_batches.MemberBatches(other)
        ids = [row.id for row in self.before]
        self.assertEqual({}, batches.read(ids))
        self.assertEqual(set(), set(batches.existing(ids)))


class WithdrawnTest(triggers.TriggerTestCase):
    WANTED = orders.RunOrder(action='BACKUP', inputs={'level': 9})

    def setUp(self):
        super().setUp()
        whole = self.template(timeout=5, input_values={'level': 7})
        self.stack, _ = self.fails(whole, None)
        self.assertEqual([], self.deployment_rows())
        self.member = runs.RunTarget(
            stack_id=self.stack.id,
            stack_name=self.stack.name,
            resource='deployment',
            deployment_id=self.stack['deployment'].resource_id,
            server_id=self.stack['server'].resource_id,
        )
        self.batches = member_batches.MemberBatches(self.heat.context)

    def withdrawn(self, wanted=WANTED, **other):
        """Return what becomes of the member, or raise it."""
        member = dataclasses.replace(self.member, **other)
        derived = self.batches.withdrawn([member], wanted)
        target = derived.get(member.deployment_id)
        if isinstance(target, errors.Error):
            raise target
        return target

    def exists(self):
        number = self.member.deployment_id
        return number in self.batches.existing([number, 'gone'])

    def test_it_is_a_target_with_the_values_of_the_stack(self):
        self.assertTrue(self.exists())
        target = self.withdrawn()
        self.assertEqual('7', target.current['level'])
        self.assertEqual(self.stack.id, target.stack_id)
        self.assertEqual(self.member.server_id, target.server_id)

    def test_the_server_and_the_stack_are_those_of_the_resource(self):
        self.assertIsNone(self.withdrawn(server_id='made-up'))
        self.assertIsNone(self.withdrawn(stack_id='made-up'))
        self.assertIsNone(self.withdrawn(deployment_id='made-up'))
        # Its ID is that of another type.
        self.assertIsNone(self.withdrawn(deployment_id=self.member.server_id))

    def test_what_the_config_does_not_have_is_refused(self):
        wanted = dataclasses.replace(self.WANTED, action='DUMP')
        with self.assertRaises(errors.Refused):
            self.withdrawn(wanted)

    def test_while_heat_changes_it_it_is_tried_again(self):
        resource_objects.Resource.get_obj(
            self.heat.context, self.stack['deployment'].id
        ).update_and_save({'status': 'IN_PROGRESS'})
        with self.assertRaises(errors.Unavailable):
            self.withdrawn()

    def test_one_that_goes_is_gone(self):
        resource_objects.Resource.get_obj(
            self.heat.context, self.stack['deployment'].id
        ).update_and_save({'action': 'DELETE'})
        self.assertFalse(self.exists())
        self.assertIsNone(self.withdrawn())
