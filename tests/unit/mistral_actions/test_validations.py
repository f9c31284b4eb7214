# SPDX-License-Identifier: Apache-2.0
"""The actions on validations, as Mistral makes and runs them."""

from oslo_config import cfg
import testtools

from heat_plugins import config
from heat_plugins import errors
from heat_plugins.clients import mistral_plans
from heat_plugins.mistral_actions import sessions
from heat_plugins.mistral_actions import validations
from tests.unit.mistral_actions import base
from tests.unit.validations import fakes


class Executions:
    """Mistral, asked how an execution stands.

    :ivar root: the state of the one around it, if there is one.
    """

    def __init__(self, answer, root):
        self.answer = answer
        self.root = root

    def execution(self, execution_id):
        if isinstance(self.answer, Exception):
            raise self.answer
        return mistral_plans.WorkflowExecution(
            id=execution_id,
            state=self.root if execution_id == 'root' else self.answer,
            root_id='root' if self.root and execution_id != 'root' else '',
        )


class ActionsTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.cloud.make()
        self.patch(validations, 'core', lambda context: self.cloud.validations)
        config.register_opts(cfg.CONF)
        self.allow(True)
        self.addCleanup(
            cfg.CONF.clear_override, 'run_validations', 'heat_plugins'
        )

    def allow(self, wanted):
        cfg.CONF.set_override('run_validations', wanted, 'heat_plugins')

    def answer(self, answer, root=''):
        """Let Mistral say how the execution around an action stands."""
        self.patch(sessions, 'cloud', lambda security: None)
        self.patch(
            mistral_plans,
            'WorkflowExecutions',
            lambda cloud: Executions(answer, root),
        )

    def test_a_run_is_its_result(self):
        run = base.run(validations.Run(plan='plan', groups=['prep']))
        self.assertEqual({'PASSED': 2}, run['summary'])
        found = base.run(validations.Result(run_id=run['id']))
        self.assertEqual(run, found)
        [listed] = base.run(validations.Results())
        self.assertEqual(run, listed)

    def test_nothing_runs_where_the_operator_does_not_allow_it(self):
        self.allow(False)
        found = base.run(validations.Run(plan='plan'))
        self.assertEqual('refused', found.error['code'])
        self.assertIn('run_validations', found.error['message'])
        self.assertIn('--local', found.error['message'])
        self.assertEqual([], self.cloud.machine.begun)

    def test_not_allowed_is_the_default(self):
        conf = cfg.ConfigOpts()
        config.register_opts(conf)
        conf([], default_config_files=[])
        self.assertFalse(conf.heat_plugins.run_validations)

    def test_it_ends_when_its_execution_does(self):
        endless = [fakes.began('wait')]
        self.cloud.machine.reports['validations/dns.yaml'] = endless
        for answer, root in (
            ('CANCELLED', ''),
            ('ERROR', ''),
            ('RUNNING', 'CANCELLED'),
            (errors.NotFound('gone', 404), ''),
        ):
            self.answer(answer, root)
            run = base.run(validations.Run(plan='plan'), 'execution-1')
            self.assertEqual('STOPPED', run['state'], answer)
            self.assertEqual([], self.cloud.machine.running)

    def test_while_its_execution_goes_on_it_does(self):
        machine = self.cloud.machine
        machine.reports['validations/dns.yaml'] = [fakes.result()]

        def end_after_looks():
            if machine.now - begun > 10:
                for process in machine.running:
                    process.end = fakes.end()

        machine.while_waiting = end_after_looks
        for answer, root in (
            ('RUNNING', 'RUNNING'),
            ('PAUSED', 'PAUSED'),
            # Another branch has failed.
            ('RUNNING', 'ERROR'),
        ):
            self.answer(answer, root)
            begun = machine.now
            run = base.run(validations.Run(plan='plan'), 'execution-1')
            self.assertEqual('PASSED', run['state'])

    def test_it_ends_when_nobody_may_ask_about_its_execution_any_more(self):
        endless = [fakes.began('wait')]
        self.cloud.machine.reports['validations/dns.yaml'] = endless
        self.answer(errors.Denied('expired', 401))
        found = base.run(validations.Run(plan='plan'), 'execution-1')
        self.assertEqual('denied', found.error['code'])
        self.assertEqual([], self.cloud.machine.running)
