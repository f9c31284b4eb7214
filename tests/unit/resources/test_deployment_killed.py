# SPDX-License-Identifier: Apache-2.0
"""An engine dies, checks a deployment twice, or has no database.

Its servers run each action once. What an engine wrote in one transaction is
there or is not. `make kills` shows the same of a real engine, at fewer steps.
"""

import contextlib
import itertools
import sys
from unittest import mock

import fixtures
from heat.common import exception
from heat.db import api as db_api
from oslo_db import exception as db_exception
from oslo_db.sqlalchemy import enginefacade

from heat_plugins import errors
from heat_plugins.engine import hubs
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import triggering
from tests.unit import examples
from tests.unit.resources import deployments

WHOLE = deployments.template(actions=deployments.ALL_ACTIONS, name='mine')


class Died(BaseException):
    """The engine dies just here."""


def _is_ours():
    """Say whether what is being executed is on behalf of our classes."""
    frame = sys._getframe(1)
    while frame is not None:
        if '/heat_plugins/' in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


class KilledTest(deployments.DeploymentTestCase):
    """A deployment; `test_rollout` has each step of a group."""

    def dies_at(self, number, stack, action, begin, *args):
        """Let an engine die before a write; say whether it came to that."""
        numbers = itertools.count(1)
        manager = enginefacade._TransactionContextManager
        real = manager._transaction_scope
        is_dead = False

        def scope(manager, context):
            nonlocal is_dead
            if manager._mode is enginefacade._WRITER and _is_ours():
                # One that is dead writes nothing as it tidies up.
                is_dead = is_dead or next(numbers) == number
                if is_dead:
                    raise Died
            return real(manager, context)

        with mock.patch.object(manager, '_transaction_scope', scope):
            try:
                self.finish(begin(*args))
            except Died:
                hubs.HUBS.kept.clear()
        if is_dead:
            self.dies(stack, action)
        return is_dead

    def update_at(self, number, stack, action, whole):
        """Let an engine die in an update, and repeat that."""
        again = self.heat.load(stack)
        is_dead = self.dies_at(
            number, stack, action, self.heat.begin, again, 'UPDATE', whole
        )
        self.update(stack, whole)
        assert self.heat.load(stack).status == 'COMPLETE'
        return is_dead

    def test_servers_run_each_action_once_wherever_it_dies(self):
        whole = deployments.template(actions=['CREATE'])
        without = deployments.template(resources={'deployment': None})
        changed = deployments.template(
            actions=['CREATE', 'UPDATE', 'DELETE'],
            input_values={'who': 'moon'},
        )
        for number in itertools.count(1, 2 * examples.STEP):
            self.handed.clear()
            stack = self.created(without, name=f'stack{number}')
            is_dead = self.update_at(number, stack, 'CREATE', whole)
            is_dead |= self.update_at(number, stack, 'UPDATE', changed)
            dying = self.heat.load(stack)
            delete = self.heat.start, dying['deployment'].delete
            is_dead |= self.dies_at(number, stack, 'DELETE', *delete)
            self.delete(stack)
            assert self.actions() == ['CREATE', 'UPDATE', 'DELETE']
            self.assert_nothing_left()
            if not is_dead:
                break
        assert number > 6

    def test_what_a_dead_engine_has_delivered_is_waited_for(self):
        stack, _ = self.waiting(WHOLE)
        (before,) = self.deployment_rows()
        self.send(self.handed[-1], {'answer': 'once'})
        self.answer = {}
        self.dies(stack)
        self.update(stack, WHOLE)
        assert self.actions() == ['CREATE']
        assert self.heat.load(stack)['deployment'].FnGetAtt('answer') == 'once'
        (row,) = self.deployment_rows()
        assert (row.id, row.config_id) == (before.id, before.config_id)
        self.delete(stack)
        assert self.actions() == ['CREATE', 'DELETE']
        self.assert_nothing_left()
        # What has failed on its server is replaced.
        self.handed.clear()
        stack, _ = self.waiting(WHOLE)
        self.answer = {}
        self.dies(stack)
        (row,) = self.deployment_rows()
        rows.change(self.heat.context, row.id, status='FAILED')
        self.update(stack, WHOLE)
        assert self.actions() == ['CREATE', 'CREATE', 'DELETE']


class RecheckTest(deployments.DeploymentTestCase):
    """A check finds another one at work, and retries a moment later."""

    def test_what_another_check_has_done_is_not_done_twice(self):
        # Heat repeats a check itself, and sleeps before that.
        self.replace('time.sleep', lambda seconds: None)
        stack = self.created()
        other = self.moon(stack)
        number = stack['deployment'].id
        # As it was when all checks began.
        checks = [self.checked(stack, number) for _ in range(4)]

        def refused(do, *args):
            error = self.assertRaises(exception.UpdateInProgress, do, *args)
            assert 'deployment' in str(error)

        def check():
            checks.pop().update_convergence(
                other.t.id, set(), 'engine', 60, other
            )

        def row():
            return db_api.resource_get(stack.context, number)

        # What failed to be created is not updated, either.
        done = {'action': 'UPDATE', 'current_template_id': other.t.id}
        for values in ({'status': 'FAILED'}, {'status': 'COMPLETE', **done}):
            self.heat.change(number, **values)
            refused(check)
        assert len(self.handed) == 1
        assert (row().action, row().status) == ('UPDATE', 'COMPLETE')
        assert row().engine_id is None
        # What failed to be updated is, and what has changed otherwise.
        self.heat.change(number, status='FAILED', **done)
        check()
        assert len(self.handed) == 2
        self.heat.change(
            number, status='COMPLETE', current_template_id=stack.t.id
        )
        check()
        assert len(self.handed) == 3
        assert row().current_template_id == other.t.id
        # So it is with a replacement.
        found = self.checked(stack, number)
        former = found.make_replacement(other.t.id, set())
        # Heat forgets that as it begins.
        self.heat.change(number, replaced_by=None)
        refused(found.make_replacement, other.t.id, set())
        self.heat.change(former, status='FAILED')
        assert former < found.make_replacement(other.t.id, set())
        # What is worked on is not withdrawn, either.
        found = self.checked(stack, number)
        found.state_set('CREATE', 'FAILED')
        self.heat.change(
            number, action='DELETE', status='IN_PROGRESS', engine_id='other'
        )
        refused(found.make_replacement, other.t.id, set())
        assert len(self.deployment_rows()) == 1


SECRET = 'hunter2'


class DatabaseTest(deployments.DeploymentTestCase):
    """What a failing database was to be given is nobody's business.

    Its errors quote the statement with all values: signed URLs, inputs, what
    servers have sent.
    """

    def test_no_method_that_heat_calls_quotes_it(self):
        logged = self.useFixture(fixtures.FakeLogger())
        said = []

        @contextlib.contextmanager
        def breaks(owner, function, kind=db_exception.DBDeadlock):
            error = kind(f'[SQL: UPDATE x] [parameters: ({SECRET!r},)]')
            with mock.patch.object(
                owner, function, side_effect=error
            ) as failing:
                yield
            failing.assert_called()

        def note(kind, error):
            assert kind.__name__ in str(error)
            said.append(str(error))

        # Such as is not ridden out, as a config is delivered.
        stack = self.heat.stack(deployments.template())
        kind = db_exception.DBDataError
        with breaks(rows, 'deliver', kind):
            task = self.heat.begin(stack, 'CREATE')
            note(kind, self.failed(task, stack))
        assert self.deployment_rows() == []
        assert self.config_ids() == {stack['config'].resource_id}
        self.assert_nothing_waits()
        # As it is cancelled, before Heat asks whether it has ended.
        self.answer = None
        begun = self.heat.stack(deployments.template(), 'begun')
        task = self.heat.begin(begun, 'CREATE')
        while not self.deployment_rows():
            self.step(task)
        with breaks(rows, 'withdraw'):
            task.cancel()
        assert 'Cannot withdraw' in logged.output
        # As a signal comes, and a report.
        stack, task = self.waiting(stack=self.heat.stack(WHOLE, 'signalled'))
        resource = stack['deployment']
        for kind in (db_exception.DBDeadlock, db_exception.DBDataError):
            with breaks(rows, 'settle', kind):
                call = resource.signal, {'answer': SECRET}
                note(kind, self.assertRaises(exception.ResourceFailure, *call))
        given = deployments.inputs(self.handed[-1])
        self.swift.put_signed(given['deploy_progress_url'])
        with breaks(rows, 'begin'):
            note(db_exception.DBDeadlock, self.failed(task, stack))
        # As it is replaced.
        resource.state_set('CREATE', 'FAILED', 'for a reason')
        with breaks(rows, 'withdraw'):
            call = resource.make_replacement, None, set()
            error = self.assertRaises(errors.Unavailable, *call)
            said.append(str(error))
        # As a run starts, as it is checked, and as Nova is asked.
        with breaks(triggering, 'start'):
            resource.signal({'trigger': 'BACKUP'})
        with breaks(type(resource), '_needs_update'):
            check = resource.update_convergence, stack.t.id, set(), None, 60
            error = self.assertRaises(exception.Error, *check, stack)
            said.append(str(error))
        self.answer = {}
        with breaks(servers.Servers, 'is_reachable'):
            self.finish(self.heat.start(resource.delete))
        assert 'cannot ask Nova whether' in logged.output
        for each in (stack, begun):
            said += deployments.events(each)
            said += [each['deployment'].status_reason, each.status_reason]
        assert 'DBDeadlock' in str(deployments.events(stack))
        for text in (logged.output, *said):
            assert SECRET not in text
