# SPDX-License-Identifier: Apache-2.0
"""Reading and settling deployments in Heat's database."""

import contextlib
import threading
import time
import traceback
import unittest
from unittest import mock

import fixtures
from heat.common import exception
from heat.db import api as db_api
from oslo_config import cfg
from oslo_db import exception as db_exception
import sqlalchemy

from heat_plugins.engine.database import resources
from heat_plugins.engine.database import rows
from heat_plugins.signals import body
from heat_plugins.signals import watcher
from tests.unit.resources import deployments

# Not in the line that raises it, which is logged.
QUOTED = '[parameters: hunter2]'

DONE = body.SignalOutcome(status='COMPLETE', reason='yes', outputs={'a': 1})


class RowsTest(deployments.DeploymentTestCase):
    def setUp(self):
        super().setUp()
        self.stack, self.task = self.waiting()
        (self.row,) = self.deployment_rows()

    def ticket(self, **values):
        place = {
            'deployment_id': self.row.id,
            'config_id': self.row.config_id,
        }
        return watcher.Ticket(**{**place, 'object_name': None, **values})

    def settle(self, **values):
        ticket = self.ticket(**values)
        return ticket in rows.settle(self.heat.context, {ticket: DONE})

    def test_many_are_read_at_once_and_those_that_are_gone_left_out(self):
        ids = {f'{number}' for number in range(1200)} | {self.row.id}
        with self.counting_queries() as statements:
            found = rows.read(self.heat.context, ids)
        assert set(found) == {self.row.id}
        assert found[self.row.id].config_id == self.row.config_id
        assert found[self.row.id].in_progress
        assert len(statements) == 3, statements

    def test_a_row_may_say_in_the_words_of_before_that_it_has_begun(self):
        for reason in (
            'The server is at it',
            'The server has started the action',
            'It has started [hp:started]',
        ):
            rows.change(self.heat.context, self.row.id, status_reason=reason)
            found = rows.read(self.heat.context, [self.row.id])
            assert found[self.row.id].begun
            again = rows.begin(self.heat.context, [self.ticket()])
            assert again == set()

    def test_many_are_settled_in_one_transaction(self):
        ticket = self.ticket()
        others = [
            self.ticket(deployment_id='gone'),
            self.ticket(config_id='former'),
        ]
        outcomes = dict.fromkeys([*others, ticket], DONE)
        commits = mock.Mock()
        event = db_api.get_engine(), 'commit', lambda each: commits()
        sqlalchemy.event.listen(*event)
        self.addCleanup(sqlalchemy.event.remove, *event)
        found = rows.settle(self.heat.context, outcomes)
        assert found == {ticket}
        commits.assert_called_once_with()
        (row,) = self.deployment_rows()
        assert (row.status, row.status_reason) == ('COMPLETE', 'yes')
        assert row.output_values == {'a': 1}
        assert row.updated_at is not None
        assert not rows.read(self.heat.context, {row.id})[row.id].in_progress
        # Once.
        assert rows.settle(self.heat.context, outcomes) == set()

    def test_no_deployment_is_later_than_itself(self):
        place = self.heat.context, self.stack.id, 'deployment'
        number = self.stack['deployment'].id
        assert resources.servers_of_later(*place, number) == set()
        earlier = resources.servers_of_later(*place, number - 1)
        assert earlier == {self.row.server_id}

    def test_a_container_is_in_use_while_a_resource_says_so(self):
        resource = self.stack['deployment']
        container = resource.data()[rows.CONTAINER_KEY]

        def in_use(root=self.stack.id, name=container):
            return resources.container_in_use(self.heat.context, root, name)

        assert in_use()
        assert not in_use(root='another')
        assert not in_use(name='another')
        # Nor by what an abandoned stack has left.
        self.stack.state_set('DELETE', 'COMPLETE', 'abandoned')
        assert not in_use()
        self.stack.state_set('UPDATE', 'COMPLETE', 'again')
        assert in_use()
        resource.data_delete(rows.CONTAINER_KEY)
        assert not in_use()

    def fails(self, kind, times):
        writer = type(db_api.context_manager.writer)
        real = writer.using
        failures = [kind] * times

        @contextlib.contextmanager
        def using(manager, context):
            with real(manager, context) as session:
                yield session
                if failures:
                    raise failures.pop()(QUOTED)

        self.patch(writer, 'using', using)
        self.slept = []
        ours, pause = threading.current_thread(), time.sleep

        def sleep(seconds):
            if threading.current_thread() is not ours:
                # One that another test has left.
                pause(seconds)
            elif seconds:
                # The engine of the database gives others their turn by 0.
                self.slept.append(seconds)

        self.replace('time.sleep', sleep)

    def test_what_others_have_changed_is_settled_at_the_next_attempt(self):
        for kind in (db_exception.DBDeadlock, db_exception.DBConnectionError):
            rows.change(self.heat.context, self.row.id, status='IN_PROGRESS')
            self.fails(kind, 2)
            assert self.settle()
            assert len(self.slept) == 2
            (row,) = self.deployment_rows()
            assert row.status == 'COMPLETE'

    def test_not_for_ever_and_no_log_quotes_it(self):
        logged = self.useFixture(fixtures.FakeLogger())
        self.fails(db_exception.DBDeadlock, 100)
        self.assertRaises(db_exception.DBDeadlock, self.settle)
        assert sum(self.slept) < 10
        assert 'retry limit' in logged.output
        assert 'hunter2' not in logged.output
        # What will never be taken is tried once.
        self.fails(db_exception.DBDataError, 100)
        self.assertRaises(db_exception.DBDataError, self.settle)
        assert self.slept == []


class UnquotedTest(unittest.TestCase):
    """What leaves with an error is what may be read by anybody."""

    def raised(self, function):
        try:
            with rows.unquoted():
                function()
        except Exception as exc:
            return exc, ''.join(traceback.format_exception(exc))
        self.fail('nothing was raised')

    @staticmethod
    def broken():
        raise db_exception.DBDataError(QUOTED)

    def fail_otherwise(self):
        try:
            self.broken()
        except db_exception.DBError as exc:
            raise KeyError('named') from exc

    def fail_at_last(self):
        try:
            self.fail_otherwise()
        except KeyError:
            int('x')

    def test_an_error_of_the_database_is_named(self):
        error, logged = self.raised(self.broken)
        assert isinstance(error, exception.Error)
        assert 'DBDataError' in str(error)
        assert 'hunter2' not in logged
        assert 'in broken\n' in logged

    def test_another_error_loses_what_led_to_it_however_far_back(self):
        error, logged = self.raised(self.fail_otherwise)
        assert str(error) == "'named'"
        assert 'hunter2' not in logged
        error, logged = self.raised(self.fail_at_last)
        assert isinstance(error, ValueError)
        # All else stays.
        assert 'named' in logged
        assert 'hunter2' not in logged


class InProcessTest(deployments.DeploymentTestCase):
    def test_no_deployment_asks_by_rpc(self):
        given = {'actions': deployments.ALL_ACTIONS}
        stack = self.created(deployments.template(**given))
        self.update(stack, deployments.template(**given, name='x'))
        self.heat.rpc.calls.clear()
        self.finish(self.heat.start(stack['deployment'].delete))
        assert self.heat.rpc.calls == []

    def test_no_project_has_more_of_them_than_it_may(self):
        # A deployment has one config of the template, and a derived one.
        for what, first, second in (('deployments', 1, 1), ('configs', 2, 3)):
            self.heat.database.empty()
            option = f'max_software_{what}_per_tenant'
            cfg.CONF.set_override(option, first)
            stack = self.created(name=what)
            cfg.CONF.set_override(option, second)
            _, reason = self.fails(deployments.template(), {})
            assert option in reason
            # An action after the first makes none.
            self.update(stack, deployments.template(name='x'))
            cfg.CONF.set_override(option, -1)
            self.created(name=f'unlimited-{what}')
