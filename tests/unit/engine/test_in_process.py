# SPDX-License-Identifier: Apache-2.0
"""What Heat's API does, done in this process."""

from concurrent import futures
import inspect
import threading
import types

from heat.common import exception
from heat.engine import service_software_config
from oslo_config import cfg
from oslo_db import exception as db_exception
import testtools

from heat_plugins import errors
from heat_plugins.engine.database import in_process
from heat_plugins.engine.database import own_heat
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import server_metadata
from heat_plugins.objectstore import sharing
from tests.unit import heat_fixture
from tests.unit.resources import deployments


class ClientTest(deployments.DeploymentTestCase):
    def test_it_takes_the_place_of_heats_client(self):
        for name, ours in vars(in_process.Client).items():
            heats = getattr(heat_fixture.Rpc, name, None)
            if heats is not None and not name.startswith('_'):
                self.assertEqual(
                    list(inspect.signature(heats).parameters),
                    list(inspect.signature(ours).parameters),
                    name,
                )

    def test_no_deployment_asks_by_rpc(self):
        stack = self.created(
            deployments.template(actions=deployments.ALL_ACTIONS)
        )
        self.update(
            stack,
            deployments.template(actions=deployments.ALL_ACTIONS, name='x'),
        )
        self.heat.rpc.calls.clear()
        self.finish(self.heat.start(stack['deployment'].delete))
        self.assertEqual([], self.heat.rpc.calls)


class LimitTest(deployments.DeploymentTestCase):
    def limit(self, option, limit):
        cfg.CONF.set_override(option, limit)
        self.addCleanup(cfg.CONF.clear_override, option)

    def test_no_project_has_more_deployments_than_it_may(self):
        self.limit('max_software_deployments_per_tenant', 1)
        stack = self.created(name='first')
        _, reason = self.fails(deployments.template(), {})
        self.assertIn('max_software_deployments_per_tenant', reason)
        # An action after the first makes none.
        self.update(stack, deployments.template(name='x'))
        self.delete(stack)

    def test_nor_more_configs(self):
        # One of the template, and one that is derived from it.
        self.limit('max_software_configs_per_tenant', 2)
        stack = self.created(name='first')
        self.limit('max_software_configs_per_tenant', 3)
        _, reason = self.fails(deployments.template(), {})
        self.assertIn('max_software_configs_per_tenant', reason)
        self.update(stack, deployments.template(name='x'))
        self.limit('max_software_configs_per_tenant', -1)
        self.created(name='unlimited')

    def test_many_that_are_made_together_are_counted_once(self):
        self.limit('max_software_configs_per_tenant', 100)
        service = in_process.Service()
        counted = []

        def count(context):
            counted.append(self.now)
            return 98

        self.patch(service, 'count_software_config', count)
        service.check_room(self.heat.context, 1)
        service.check_room(self.heat.context, 1)
        self.assertEqual(1, len(counted))
        # Who seems to be one too many is counted anew, and may be let in.
        service.check_room(self.heat.context, 1)
        self.assertEqual(2, len(counted))
        self.now += 2
        service.check_room(self.heat.context, 1)
        self.assertEqual(3, len(counted))

    def test_what_makes_a_deployment_reads_nothing_back(self):
        self.created()
        ours = in_process.Service()
        (row,) = self.deployment_rows()
        ours.count_software_deployment(self.heat.context)
        values = {
            'server_id': 'nobody',
            'config_id': row.config_id,
            'input_values': {},
            'action': 'CREATE',
            'status': 'COMPLETE',
            'status_reason': '',
            'stack_user_project_id': None,
        }
        with self.counting_queries() as statements:
            ours.create_software_deployment(self.heat.context, **values)
        # What is told of a server that no stack has is one more question.
        self.assertEqual(
            ['SELECT', 'INSERT', 'SELECT'],
            [each.split()[0] for each in statements],
        )


class DeletionTest(deployments.DeploymentTestCase):
    """What threads delete at the same time is deleted together."""

    def setUp(self):
        super().setUp()
        for name in ('first', 'second', 'third'):
            self.created(name=name)
        self.service = in_process.Service()
        self.there = {row.id: row for row in self.deployment_rows()}
        self.told = []
        self.patch(
            server_metadata,
            'tell',
            lambda context, ids, project=None: self.told.append(set(ids)),
        )

    def together(self, name, calls):
        """Delete the first thing, and the others meanwhile; return errors."""
        first, *others = calls
        delete, batches = getattr(rows, name), []
        errors = {}

        def call(method, thing_id):
            try:
                method(self.heat.context, thing_id)
            except exception.HeatException as exc:
                errors[thing_id] = type(exc)

        with futures.ThreadPoolExecutor(len(others)) as pool:

            def spy(context, ids):
                if not batches:
                    # They share the batch after this one.
                    for each in others:
                        pool.submit(call, *each)
                    self.wait_for_all(shared[0], len(others))
                batches.append(set(ids))
                return delete(context, ids)

            shared = []
            self.patch(sharing, 'Batches', self.noted(shared))
            self.patch(rows, name, spy)
            self.patch(
                in_process,
                '_delete_deployment',
                in_process._deleting(in_process.delete_deployments),
            )
            self.patch(
                in_process,
                '_delete_config',
                in_process._deleting(
                    lambda context, ids: rows.delete_configs(context, ids)
                ),
            )
            call(*first)
        self.assertEqual(1 + 1, len(batches))
        return errors

    def noted(self, shared):
        """Return what makes batches, and appends them to a list."""
        real = sharing.Batches

        def make(*args):
            shared.append(real(*args))
            return shared[-1]

        return make

    def wait_for_all(self, batch, number):
        """Wait, by no clock that the test turns."""
        for _ in range(10_000):
            if len(batch) == number:
                return
            threading.Event().wait(0.001)
        self.fail('they do not wait for a batch')

    def test_deployments_go_and_each_server_is_told_once(self):
        ids = list(self.there)
        delete = self.service.delete_software_deployment
        errors = self.together(
            'delete', [(delete, each) for each in [*ids, 'of nobody']]
        )
        self.assertEqual({'of nobody': exception.NotFound}, errors)
        self.assertEqual([], self.deployment_rows())
        servers = {row.server_id for row in self.there.values()}
        self.assertEqual(servers, set().union(*self.told))
        self.assertLessEqual(len(self.told), 2)

    def test_a_project_whose_servers_cannot_be_told_keeps_no_other(self):
        tried = []

        def tell(context, ids, project=None):
            tried.append(project)
            raise db_exception.DBConnectionError(project)

        self.patch(server_metadata, 'tell', tell)
        gone = [
            types.SimpleNamespace(id=n, server_id=n, reading_project=n)
            for n in ('1', '2')
        ]
        self.patch(rows, 'delete', lambda context, ids: gone)
        error = self.assertRaises(
            db_exception.DBConnectionError,
            in_process.delete_deployments,
            self.heat.context,
            ['1', '2'],
        )
        self.assertEqual(['1', '2'], tried)
        self.assertEqual(('1',), error.args)

    def test_who_repeats_a_deletion_tells_the_server(self):
        number, row = next(iter(self.there.items()))
        heat = own_heat.OwnHeat(
            in_process.Client(lambda: None), self.heat.context
        )
        tell = server_metadata.tell

        def fail(*args):
            raise db_exception.DBConnectionError('gone')

        self.patch(server_metadata, 'tell', fail)
        self.assertRaises(
            errors.Unavailable, heat.delete_deployment, number, row.server_id
        )
        self.patch(server_metadata, 'tell', tell)
        heat.delete_deployment(number, row.server_id)
        self.assertEqual([{row.server_id}], self.told)

    def test_new_configs_are_found_by_the_end_of_their_names(self):
        heat = own_heat.OwnHeat(None, self.heat.context)
        row = next(iter(self.there.values()))
        name = rows.configs_of(self.heat.context, [row.server_id])[
            row.server_id
        ][0].name
        self.assertIn(row.config_id, heat.recent_configs(name[3:], 0))
        self.assertEqual([], heat.recent_configs(name[3:], 2**33))
        self.assertEqual([], heat.recent_configs('-BACKUP', 0))

    def test_no_project_deletes_what_is_anothers(self):
        other = heat_fixture.new_context(project_id='other')
        first, second, third = self.there
        delete = self.service.delete_software_deployment
        with testtools.ExpectedException(exception.NotFound):
            delete(other, first)
        config_id = self.there[first].config_id
        delete(self.heat.context, first)
        with testtools.ExpectedException(exception.NotFound):
            self.service.delete_software_config(other, config_id)
        self.assertEqual(
            {second, third}, {row.id for row in self.deployment_rows()}
        )

    def test_a_server_that_is_told_slowly_delays_no_other_project(self):
        other = heat_fixture.new_context(project_id='other')
        delete, refused = self.service.delete_software_deployment, []

        def delete_theirs():
            try:
                delete(other, 'none')
            except exception.NotFound:
                refused.append('none')

        def tell(context, ids, project=None):
            thread = threading.Thread(target=delete_theirs, daemon=True)
            thread.start()
            thread.join(10)

        self.patch(server_metadata, 'tell', tell)
        delete(self.heat.context, next(iter(self.there)))
        self.assertEqual(['none'], refused)

    def one_at_a_time(self, name):
        """Let Heat's own service be asked by one thread at a time.

        SQLite in memory has one connection, which not every release of Heat
        lets threads share.
        """
        lock, own = threading.Lock(), service_software_config
        real = getattr(own.SoftwareConfigService, name)

        def alone(*args):
            with lock:
                return real(*args)

        self.patch(own.SoftwareConfigService, name, alone)

    def test_configs_go_unless_a_deployment_has_them(self):
        first, second, third = (row.config_id for row in self.there.values())
        for each in list(self.there)[:2]:
            self.service.delete_software_deployment(self.heat.context, each)
        self.one_at_a_time('delete_software_config')
        delete = self.service.delete_software_config
        errors = self.together(
            'delete_configs',
            [(delete, each) for each in (first, second, third, 'none')],
        )
        self.assertEqual(
            {
                third: exception.InvalidRestrictedAction,
                'none': exception.NotFound,
            },
            errors,
        )
        left = rows.configs(self.heat.context, [first, second, third])
        self.assertEqual({third}, left)
