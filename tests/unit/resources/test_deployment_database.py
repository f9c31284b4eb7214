# SPDX-License-Identifier: Apache-2.0
"""What a failing database was to be given is nobody's business.

Its errors quote the statement with all values: signed URLs, inputs, what
servers have sent.
"""

from unittest import mock

import fixtures
from heat.common import exception
from oslo_db import exception as db_exception

from heat_plugins import errors
from heat_plugins.engine.database import rows
from heat_plugins.engine.database import servers
from heat_plugins.engine.runs import triggering
from tests.unit.resources import deployments

SECRET = 'hunter2'

# Such as is ridden out where a signal is looked for, and such as is not
# where a config is handed over.
KINDS = (db_exception.DBDeadlock, db_exception.DBDataError)


class QuoteTest(deployments.DeploymentTestCase):
    """No method that Heat calls lets out what the database quotes."""

    def setUp(self):
        super().setUp()
        self.logged = self.useFixture(fixtures.FakeLogger())

    def breaks(self, owner, function, kind=db_exception.DBDeadlock):
        """Let a function fail from now on; return what counts its calls."""
        failing = mock.Mock(
            side_effect=lambda *args, **kwargs: self.fails_with(kind)
        )
        self.patch(owner, function, failing)
        return failing

    @staticmethod
    def fails_with(kind):
        raise kind(f'[SQL: UPDATE x] [parameters: ({SECRET!r},)]')

    def assert_quotes_nothing(self, stack, *said):
        shown = [
            stack['deployment'].status_reason,
            stack.status_reason,
            *deployments.events(stack),
            self.logged.output,
            *said,
        ]
        for text in shown:
            assert SECRET not in text

    def fails_by(self, task, stack, failing, kind=db_exception.DBDeadlock):
        """Let an action fail of the database alone."""
        reason = self.failed(task, stack)
        failing.assert_called()
        assert f"Heat's database does not answer: {kind.__name__}" in reason
        self.assert_quotes_nothing(stack, reason)

    def test_as_a_config_is_handed_over(self):
        stack = self.heat.stack(deployments.template())
        kind = db_exception.DBDataError
        failing = self.breaks(rows, 'deliver', kind)
        task = self.heat.begin(stack, 'CREATE')
        self.fails_by(task, stack, failing, kind)

    def test_as_a_signal_comes(self):
        stack, task = self.waiting()
        for kind in KINDS:
            failing = self.breaks(rows, 'settle', kind)
            error = self.assertRaises(
                exception.ResourceFailure,
                stack['deployment'].signal,
                {'answer': SECRET},
            )
            failing.assert_called()
            assert kind.__name__ in str(error)
            self.assert_quotes_nothing(stack, str(error))
        # So it is as a report comes.
        failing = self.breaks(rows, 'begin')
        given = deployments.inputs(self.handed[0])
        self.swift.put_signed(given['deploy_progress_url'])
        self.fails_by(task, stack, failing)

    def test_also_before_anybody_has_looked(self):
        stack, task = self.begun()
        failing = self.breaks(rows, 'withdraw')
        task.cancel()
        failing.assert_called()
        assert 'Cannot withdraw' in self.logged.output
        self.assert_quotes_nothing(stack)

    def test_as_it_is_signalled_or_checked_or_its_server_looked_for(self):
        stack = self.created(
            deployments.template(actions=deployments.ALL_ACTIONS)
        )
        failing = self.breaks(triggering, 'start')
        stack['deployment'].signal({'trigger': 'BACKUP'})
        failing.assert_called()
        assert 'DBDeadlock' in str(deployments.events(stack))
        cls = deployments.OURS['OS::Heat::SoftwareDeployment']
        with mock.patch.object(
            cls,
            '_needs_update',
            side_effect=lambda *args: self.fails_with(db_exception.DBDeadlock),
        ) as failing:
            error = self.assertRaises(
                exception.Error,
                stack['deployment'].update_convergence,
                stack.t.id,
                set(),
                None,
                60,
                stack,
            )
        failing.assert_called()
        failing = self.breaks(servers.Servers, 'is_reachable')
        self.finish(self.heat.start(stack['deployment'].delete))
        failing.assert_called()
        assert 'cannot ask Nova whether' in self.logged.output
        self.assert_quotes_nothing(stack, str(error))

    def test_as_it_is_replaced(self):
        stack, _task = self.waiting()
        resource = self.heat.load(stack)['deployment']
        resource.state_set('CREATE', 'FAILED', 'for a reason')
        failing = self.breaks(rows, 'withdraw')
        error = self.assertRaises(
            errors.Unavailable, resource.make_replacement, None, set()
        )
        failing.assert_called()
        self.assert_quotes_nothing(stack, str(error))
