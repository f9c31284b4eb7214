# SPDX-License-Identifier: Apache-2.0
"""What a deployment would change in a stack."""

import json

import yaml

from heat_plugins import errors
from heat_plugins.plans.deploy import comparing
from tests.unit.plans import fake_heat
from tests.unit.plans import fakes


class ComparingTest(fakes.PlanCase):
    def deployed(self, name='plan'):
        """Let the stack hold what the plan is now; return it."""
        content = self.plans.resolve(self.plans.load(name))
        self.heat.become(name, 'CREATE_COMPLETE')
        template = yaml.load(content.template, yaml.BaseLoader)
        template['parameters']['secret']['hidden'] = True
        environment = fake_heat.answer(content)['Environment']
        held = (template, environment, dict(content.files))
        self.heat.contents[name] = held
        return held

    def found(self):
        return {
            (one.kind, one.change, one.name): one.detail
            for one in comparing.differences(self.plans, 'plan')
        }

    def test_a_plan_without_a_stack_has_nothing_to_compare(self):
        self.assertRaises(
            errors.NotFound, comparing.differences, self.plans, 'plan'
        )

    def test_files_that_came_went_or_changed(self):
        self.deployed()
        self.plans.update(
            'plan', {'scripts/run.sh': b'#!/bin/sh\necho hello\n'}
        )
        found = self.found()
        self.assertEqual([('file', 'changed', 'scripts/run.sh')], list(found))
        self.assertIn('+echo hello', *found.values())

    def test_parameters_with_their_former_and_new_values(self):
        self.deployed()
        self.plans.update('plan', {'base.yaml': fakes.environment(who='me')})
        found = self.found()
        self.assertEqual('"you" -> "me"', found['parameter', 'changed', 'who'])
        # Its file shows by its values alone.
        self.assertEqual('', found['file', 'changed', 'base.yaml'])
        self.plans.update('plan', {'base.yaml': b'{}'})
        self.assertEqual('"you"', self.found()['parameter', 'removed', 'who'])

    def test_secrets_are_masked_wherever_else_they_stand(self):
        held = self.deployed()
        own = self.plans.load('plan').environment.passwords['secret']
        self.plans.update(
            'plan',
            {
                'base.yaml': fakes.environment(who=f'http://a:{own}@b'),
                'scripts/run.sh': f'curl -u me:{own} b\n'.encode(),
            },
        )
        defaults = held[1]['parameter_defaults']
        defaults.update(secret='the-former-one', who='the-former-one')
        found = self.found()
        self.assertEqual(
            '"******" -> "http://a:******@b"',
            found['parameter', 'changed', 'who'],
        )
        self.assertIn(
            'me:****** b', found['file', 'changed', 'scripts/run.sh']
        )
        self.assertNotIn(own, str(found))

    def test_what_heat_masks_itself_is_not_compared(self):
        held = self.deployed()
        held[1]['parameter_defaults']['secret'] = '******'
        self.assertEqual({}, self.found())

    def test_so_are_values_that_no_template_knows_any_more(self):
        held = self.deployed()
        held[1]['parameter_defaults']['forgotten'] = 'a-password'
        self.assertNotIn('a-password', json.dumps(list(self.found().values())))

    def test_what_heat_keeps_encrypted_is_not_compared(self):
        held = self.deployed()
        held[1]['parameter_defaults']['secret'] = ['cryptography', 'xyz']
        held[1]['encrypted_param_names'] = ['secret']
        self.assertEqual({}, self.found())

    def test_a_template_that_was_changed_past_the_plan(self):
        held = self.deployed()
        held[0]['resources']['other'] = {'type': 'OS::Heat::None'}
        found = self.found()
        self.assertIn('-  other:', found['template', 'changed', ''])

    def test_types_that_stand_for_others_now(self):
        held = self.deployed()
        held[1]['resource_registry']['A::B'] = 'gone.yaml'
        self.assertEqual(
            '"gone.yaml"', self.found()['registry', 'removed', 'A::B']
        )
