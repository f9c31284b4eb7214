# SPDX-License-Identifier: Apache-2.0
"""On which targets an engine starts runs."""

import dataclasses

from heat.objects import resource as resource_objects
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins.engine.database import resources
from heat_plugins.engine.runs import run_fleet
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.signals import signal_names
from tests.unit.resources import deployments
from tests.unit.resources import test_deployment_policy as policies
from tests.unit.resources import test_deployment_triggers as triggers
from tests.unit.resources import test_group_as_one as groups


class RefusalsTest(groups.GroupTestCase):
    def member(self, stack, **values):
        deployment = stack['deployment']
        if 'server_id' not in values:
            values['server_id'] = deployment.properties['server']
            values['deployment_id'] = deployment.resource_id
        return run_records.RunTarget(
            stack_id=stack.id,
            stack_name=stack.name,
            resource='deployment',
            **values,
        )

    def refusals(self, *members, config=None):
        order = run_records.RunOrder(
            id='20270115T080000Z-00c0ffee',
            action='BACKUP',
            limits=run_records.RunLimits(),
            members=members,
            created_at=0,
            created_by='ann',
            config=config,
        )
        return run_fleet.refusals(
            self.heat.context, order, range(len(members))
        )

    def test_a_deployment_of_the_stack_runs_on_its_server(self):
        stack = self.created(deployments.template())
        assert self.refusals(self.member(stack)) == {}

    def test_a_member_of_a_group_runs_on_its_server(self):
        stack = self.created(groups.group('a', 'b'))
        rows = self.deployment_rows()
        assert all(not signal_names.is_group(one.id) for one in rows)
        members = [
            self.member(stack, deployment_id=one.id, server_id=one.server_id)
            for one in rows
        ]
        assert self.refusals(*members) == {}
        swapped = [
            dataclasses.replace(one, server_id=two.server_id)
            for one, two in zip(members, members[::-1], strict=True)
        ]
        assert set(self.refusals(*swapped)) == {0, 1}

    def test_the_server_is_that_of_the_deployment(self):
        stack = self.created(deployments.template())
        other = self.heat.create(policies.server(), name='servers')
        mine = self.member(stack)
        for server_id in (other['server'].resource_id, 'made-up'):
            wrong = dataclasses.replace(mine, server_id=server_id)
            (why,) = self.refusals(wrong).values()
            assert 'is no longer for server' in why
        # One that is gone is noticed when it is read.
        gone = dataclasses.replace(mine, deployment_id='0' * 36)
        assert self.refusals(gone) == {}

    def test_a_script_runs_on_a_server_of_the_stack_alone(self):
        stack = self.heat.create(policies.server(), name='servers')
        server_id = stack['server'].resource_id
        member = run_records.RunTarget(
            stack_id=stack.id,
            stack_name=stack.name,
            resource='server',
            deployment_id=server_id,
            server_id=server_id,
        )
        config = {'id': 'x'}
        assert self.refusals(member, config=config) == {}
        other = self.heat.create(policies.server(), name='other')
        for wrong in (
            dataclasses.replace(member, stack_id=other.id),
            dataclasses.replace(member, server_id='made-up'),
        ):
            (why,) = self.refusals(wrong, config=config).values()
            assert 'is not a server of stack' in why

    def test_a_closed_server_takes_none_of_another_stack(self):
        stack = self.heat.create(policies.server(), name='servers')
        whole = deployments.template(
            server=stack['server'].resource_id, resources={'server': None}
        )
        other = self.created(whole, name='stack')
        assert self.refusals(self.member(other)) == {}
        self.update(stack, policies.server('SAME_STACK'))
        (why,) = self.refusals(self.member(other)).values()
        assert 'accepts only deployments of its own stack' in why

    def test_while_the_database_is_out_of_order_nothing_is_said(self):
        def fails(context, server_ids):
            raise db_exception.DBConnectionError

        stack = self.created(deployments.template())
        member = self.member(stack)
        self.patch(resources, 'find_all', fails)
        with self.assertRaises(errors.Unavailable):
            self.refusals(member)


class ReadingTest(groups.GroupTestCase):
    def test_another_project_s_deployments_are_not_there(self):
        self.created(groups.group('a', 'b'))
        context = self.heat.context.to_dict()
        other = type(self.heat.context).from_dict(
            {**context, 'project_id': 'other', 'tenant_id': 'other'}
        )
        ids = [row.id for row in self.deployment_rows()]
        assert set(run_fleet.existing(other, ids)) == set()


class WithdrawnTest(triggers.TriggerTestCase):
    WANTED = ordering.Start(run='', action='BACKUP', inputs={'level': 9})

    def setUp(self):
        super().setUp()
        whole = self.template(timeout=5, input_values={'level': 7})
        self.stack, _ = self.fails(whole, None)
        self.assert_withdrawn(self.stack)
        self.member = run_records.RunTarget(
            stack_id=self.stack.id,
            stack_name=self.stack.name,
            resource='deployment',
            deployment_id=self.stack['deployment'].resource_id,
            server_id=self.stack['server'].resource_id,
        )

    def withdrawn(self, wanted=WANTED, **other):
        """Return what becomes of the member, or raise it."""
        member = dataclasses.replace(self.member, **other)
        derived = run_fleet.withdrawn(self.heat.context, [member], wanted)
        target = derived.get(member.deployment_id)
        if isinstance(target, errors.Error):
            raise target
        return target

    def exists(self):
        number = self.member.deployment_id
        return number in run_fleet.existing(
            self.heat.context, [number, 'gone']
        )

    def test_it_is_a_target_with_the_values_of_the_stack(self):
        assert self.exists()
        target = self.withdrawn()
        assert target.current['level'] == '7'
        assert target.stack_id == self.stack.id
        assert target.server_id == self.member.server_id

    def test_the_server_and_the_stack_are_those_of_the_resource(self):
        assert self.withdrawn(server_id='made-up') is None
        assert self.withdrawn(stack_id='made-up') is None
        assert self.withdrawn(deployment_id='made-up') is None
        # Its ID is that of another type.
        assert self.withdrawn(deployment_id=self.member.server_id) is None

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
        assert self.withdrawn() is None
