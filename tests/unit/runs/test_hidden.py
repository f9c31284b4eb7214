# SPDX-License-Identifier: Apache-2.0
"""What a server sends of hidden inputs, in the records of runs."""

import dataclasses

from heat_plugins import masking
from heat_plugins.configs import hidden_inputs
from heat_plugins.runs import runs
from tests.unit.runs import base


class HiddenTest(base.RunsTestCase):
    def hide(self):
        """Let the stack's password be hidden, as heat-engine marks it."""
        config = self.heat.configs[self.row.config_id]
        options = hidden_inputs.marked({}, config.inputs, ['hunter2'])
        self.heat.configs[config.id] = dataclasses.replace(
            config, options=options
        )

    def hidden_run(self, **order):
        self.hide()
        return self.start(timeout=600, **order)

    def asked_for_configs(self):
        return [one for one in self.heat.asked if one.startswith('config ')]

    def test_outputs_are_masked_as_they_are_stored(self):
        run = self.hidden_run()
        tail = 'x' * runs.TAIL
        self.answer(deploy_stderr=f'hunter2 {tail}', size='hunter2')
        run = self.show(run)
        self.assertEqual('hunter2', run.outputs['size'])
        self.assertEqual(
            f'****** {tail}', self.runs.outputs(run)['deploy_stderr']
        )

    def test_messages_about_progress_are_masked(self):
        run = self.hidden_run()
        url = self.inputs()['deploy_progress_url']
        self.put(url, {'message': 'logging in with hunter2'})
        self.assertEqual('logging in with ******', self.show(run).message)

    def test_a_value_for_this_run_alone_is_masked(self):
        run = self.hidden_run(inputs={'password': 'other-word'})
        self.answer(deploy_stdout='hunter2 other-word')
        # Of the stack's own value this server was given nothing.
        self.assertEqual(
            'hunter2 ******', self.show(run).outputs['deploy_stdout']
        )

    def test_nothing_is_shown_once_nobody_knows_what_is_hidden(self):
        run = self.hidden_run()
        url = self.inputs()['deploy_signal_id']
        self.now += 700
        self.show(run)
        self.put(
            url,
            {
                # What is masked decides nothing.
                'deploy_status_code': '0',
                'deploy_stdout': 'hunter2',
                'size': '1',
            },
        )
        late = self.show(run).late
        self.assertEqual(masking.MASK, late.outputs['deploy_stdout'])
        self.assertEqual('1', late.outputs['size'])
        self.assertEqual('complete', late.status)

    def test_runs_without_hidden_inputs_ask_heat_for_nothing(self):
        run = self.start(timeout=600)
        self.answer(deploy_stdout='hunter2')
        self.heat.asked.clear()
        self.assertEqual('hunter2', self.show(run).outputs['deploy_stdout'])
        self.assertFalse(self.asked_for_configs())
        run = self.hidden_run()
        self.answer()
        self.heat.asked.clear()
        self.show(run)
        self.assertEqual(1, len(self.asked_for_configs()))
