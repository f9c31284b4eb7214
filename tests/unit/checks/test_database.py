# SPDX-License-Identifier: Apache-2.0
"""What Heat's database tells: threads in use, and what others cannot serve."""

from unittest import mock
import uuid

from heat.common import context
from heat.db import api as db_api
from heat.objects import service as service_objects
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_upgradecheck import upgradecheck

from heat_plugins.checks import engine
from heat_plugins.engine.database import resources
from heat_plugins.engine.database import run_rows
from heat_plugins.engine.database import run_tables
from heat_plugins.signals import signal_names
from tests.unit import heat_fixture
from tests.unit.runs import store_contract

Code = upgradecheck.Code

TEMPLATE = {
    'heat_template_version': '2021-04-16',
    'resources': {
        name: {'type': 'OS::Heat::Value', 'properties': {'value': 1}}
        for name in ('one', 'two', 'three', 'four')
    },
}


class ThreadsTest(heat_fixture.HeatTestCase):
    def setUp(self):
        super().setUp()
        self.conf = self.useFixture(config_fixture.Config(cfg.CONF))
        self.conf.config(executor_thread_pool_size=2, num_engine_workers=3)
        self.context = context.get_admin_context()

    def assert_reported(self, code, *texts):
        result = engine.threads()
        for text in texts:
            assert text in result.details
        assert result.code == code

    def test_the_more_are_in_use_on_all_hosts_the_worse(self):
        # Two workers have reported.
        names = ('host', 'hostname', 'binary', 'topic')
        row = {**dict.fromkeys(names, 'engine'), 'report_interval': 60}
        for _ in range(2):
            row['engine_id'] = str(uuid.uuid4())
            service_objects.Service.create(self.context, row)
        none, one = 'Resources in progress: 0; ', 'in progress: 1; threads'
        for count, status, code, *texts in (
            (4, 'FAILED', Code.SUCCESS, none),
            (1, 'IN_PROGRESS', Code.SUCCESS, one, '6 threads', 'hosts: 4'),
            (3, 'IN_PROGRESS', Code.WARNING, 'raise executor_thread_pool'),
            (4, 'IN_PROGRESS', Code.FAILURE, 'Further resources must wait'),
        ):
            stack = self.heat.create(TEMPLATE, name=f's-{uuid.uuid4()}')
            for resource in list(stack.values())[:count]:
                self.heat.change(resource.id, status='IN_PROGRESS')
            db_api.stack_update(self.context, stack.id, {'status': status})
            self.assert_reported(code, *texts)
            db_api.stack_update(self.context, stack.id, {'status': 'FAILED'})

    def test_workers_that_nobody_configured_are_as_many_as_heat_forks(self):
        self.assert_reported(Code.WARNING, 'No heat-engine runs')
        self.conf.config(num_engine_workers=None)
        for count, said in ((7, 'has 14 threads'), (2, 'has 8 threads')):
            workers = mock.Mock(return_value=count)
            self.patch(engine.processutils, 'get_worker_count', workers)
            self.assert_reported(Code.WARNING, said)


class SingleGroupsTest(heat_fixture.HeatTestCase):
    def assert_said(self, *texts):
        result = engine.single_groups()
        assert result.code == Code.SUCCESS
        for text in texts:
            assert text in result.details

    def test_stacks_are_named_once_with_their_project_and_the_remedy(self):
        self.heat.create(TEMPLATE, name='other')
        self.assert_said('No stack has a group')
        for name in ('web', 'shop', 'gone'):
            stack = self.heat.create(TEMPLATE, name=name)
            for each in stack.values():
                group_id = signal_names.new_group_id()
                self.heat.change(each.id, physical_resource_id=group_id)
        self.heat.delete(stack)
        found = f'Project {heat_fixture.PROJECT}: shop, web.'
        remedy = 'software deployment group nest'
        self.assert_said('2 stacks have groups', found, remedy)
        with mock.patch.object(engine, 'READ', 1):
            self.assert_said('More than 1 stacks')
        # A database that fails is a warning.
        fail = mock.Mock(side_effect=ValueError)
        self.patch(resources, 'with_groups', fail)
        result = engine.single_groups()
        assert result.code == Code.WARNING
        assert 'ValueError' in result.details


def deploy(project, group='script', **values):
    """Store a deployment of a config of that group; return its ID."""
    admin = context.get_admin_context()
    config = {'tenant': project, 'name': 'x', 'group': group, 'config': {}}
    config_id = db_api.software_config_create(admin, config).id
    deployment = {
        'id': str(uuid.uuid4()),
        'config_id': config_id,
        'server_id': 'server',
        'tenant': project,
        'stack_user_project_id': project,
        'action': 'BACKUP',
        'status': 'IN_PROGRESS',
        **values,
    }
    return db_api.software_deployment_create(admin, deployment).id


class WaitingTest(heat_fixture.HeatTestCase):
    def stack(self, name, *, row='IN_PROGRESS', resource='IN_PROGRESS'):
        stack = self.heat.create(TEMPLATE, name=name)
        status = {'status': 'IN_PROGRESS'}
        db_api.stack_update(self.heat.context, stack.id, status)
        made = deploy(heat_fixture.PROJECT, status=row)
        self.change(stack, made, status=resource)
        return stack

    def change(self, stack, physical_id, **more):
        one = stack['one'].id
        self.heat.change(one, physical_resource_id=physical_id, **more)

    def test_stacks_are_named_with_their_project_and_what_comes_of_it(self):
        # What is complete or no deployment does not wait.
        self.stack('answered', row='COMPLETE')
        self.stack('complete', resource='COMPLETE')
        self.change(self.stack('other'), 'another')
        assert 'No deployment waits' in engine.waiting().details
        self.stack('shop')
        self.change(self.stack('web'), signal_names.new_group_id())
        found = engine.waiting()
        assert found.code == Code.SUCCESS
        assert '2 stacks have deployments that wait' in found.details
        assert f'Project {heat_fixture.PROJECT}: shop, web.' in found.details
        assert 'until the next update' in found.details


class FormerRunsTest(heat_fixture.HeatTestCase):
    """What a former release has left is named before an upgrade."""

    def test_runs_in_progress_are_waited_for_and_records_named(self):
        deploy('p1', action='UPDATE')
        deploy('p1', status='COMPLETE')
        found = engine.runs_of_former_release()
        assert found.code == Code.SUCCESS
        assert found.details == 'A former release has left no run.'
        deploy('p1')
        deploy('p2', 'ansible')
        for group in (*run_tables.REGISTERED, 'heat-plugins-notices'):
            deploy('p1', group)
        found = engine.runs_of_former_release()
        assert found.code == Code.WARNING
        for said in (
            'on 2 servers of projects p1, p2. Let them end',
            'containers heat-plugins-operations',
            'delete them: p1.',
        ):
            assert said in found.details
        # A database that is away quotes nothing.
        fail = mock.Mock(side_effect=ValueError('hunter2'))
        self.patch(run_tables, 'is_ready', fail)
        found = engine.runs_of_former_release()
        assert found.code == Code.WARNING
        assert 'ValueError' in found.details
        assert 'hunter2' not in found.details

    def test_a_run_of_this_release_is_none(self):
        project, rows = store_contract.PROJECT, run_rows.RunRows()
        kept = rows.create(project, store_contract.run(), 'engine')
        after, made = store_contract.begun(kept, 0)
        rows.step(kept, after, 'begin', given=made)
        found = run_tables.read(self.heat.context, has_tables=True)
        assert (found.running, found.registered) == ({}, {})
        found = run_tables.read(self.heat.context, has_tables=False)
        assert found.running == {project: 1}
        kept = f'Project {project} keeps 2 targets of runs; '
        assert kept in engine.tables().details
