# SPDX-License-Identifier: Apache-2.0
"""What a deployment would change in a stack."""

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

    def test_files_and_parameters_with_their_former_and_new_values(self):
        self.deployed()
        script = {'scripts/run.sh': b'#!/bin/sh\necho hello\n'}
        self.plans.update('plan', script)
        [(key, detail)] = self.found().items()
        assert key == ('file', 'changed', 'scripts/run.sh')
        assert '+echo hello' in detail
        self.plans.update('plan', {'base.yaml': fakes.environment(who='me')})
        found = self.found()
        assert found['parameter', 'changed', 'who'] == '"you" -> "me"'
        # Its file shows by its values alone.
        assert found['file', 'changed', 'base.yaml'] == ''
        self.plans.update('plan', {'base.yaml': b'{}'})
        assert self.found()['parameter', 'removed', 'who'] == '"you"'

    def test_secrets_are_masked_wherever_else_they_stand(self):
        held = self.deployed()
        own = self.plans.load('plan').environment.passwords['secret']
        environment = fakes.environment(who=f'http://a:{own}@b')
        script = f'curl -u me:{own} b\n'.encode()
        files = {'base.yaml': environment, 'scripts/run.sh': script}
        self.plans.update('plan', files)
        defaults = held[1]['parameter_defaults']
        defaults.update(secret='the-former-one', who='the-former-one')
        # No template has it any more.
        defaults['forgotten'] = 'a-password'
        found = self.found()
        shown = '"******" -> "http://a:******@b"'
        assert found['parameter', 'changed', 'who'] == shown
        assert 'me:****** b' in found['file', 'changed', 'scripts/run.sh']
        for value in (own, 'a-password', 'the-former-one'):
            assert value not in str(found)

    def test_what_heat_masks_or_encrypts_is_not_compared(self):
        held = self.deployed()
        for value, encrypted in (
            ('******', []),
            (['cryptography', 'xyz'], ['secret']),
        ):
            held[1]['parameter_defaults']['secret'] = value
            held[1]['encrypted_param_names'] = encrypted
            assert self.found() == {}

    def test_a_stack_that_was_changed_past_the_plan(self):
        with self.assertRaises(errors.NotFound):
            self.found()
        held = self.deployed()
        held[1]['resource_registry']['A::B'] = 'gone.yaml'
        assert self.found()['registry', 'removed', 'A::B'] == '"gone.yaml"'
        held[0]['resources']['other'] = {'type': 'OS::Heat::None'}
        found = self.found()
        assert '-  other:' in found['template', 'changed', '']
