# SPDX-License-Identifier: Apache-2.0
"""The plan in contrib/examples is whole, and its choices are choices."""

import pathlib

import testtools

from heat_plugins import errors
from heat_plugins.content import sources
from tests.unit.plans import fakes

EXAMPLE = pathlib.Path(__file__).parents[3] / 'contrib/examples/plan'


class ExampleTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.plans = fakes.Cloud().plans
        self.plan = self.plans.create('shop', sources.from_directory(EXAMPLE))

    def select(self, **choices):
        """Choose environments; return those that are enabled."""
        choices = {f'environments/{k}.yaml': v for k, v in choices.items()}
        enabled = self.plans.select('shop', choices).environment.enabled
        return [pathlib.Path(path).stem for path in enabled]

    def test_it_is_complete(self):
        found = self.plans.resolve(self.plan)
        assert found.warnings == ()
        assert {'tiers/web.yaml', 'scripts/greet.sh'} <= found.files.keys()
        found = self.plans.capabilities(self.plan)
        assert found.warnings == ()
        assert [topic.title for topic in found.topics] == ['Shop']
        passwords = self.plan.environment.passwords
        assert list(passwords) == ['WebPassword']
        [role] = self.plans.roles(self.plan)
        assert (role.name, role.count) == ('Web', 1)

    def test_one_of_its_languages_can_be_chosen(self):
        self.assertRaises(errors.Invalid, self.select, french=True)
        assert self.select(polite=True) == ['base', 'english', 'polite']
        assert self.select(french=True, english=False, polite=False) == [
            'base',
            'french',
        ]
