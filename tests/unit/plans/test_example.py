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
        self.assertEqual((), found.warnings)
        self.assertLessEqual(
            {'tiers/web.yaml', 'scripts/greet.sh'}, found.files.keys()
        )
        found = self.plans.capabilities(self.plan)
        self.assertEqual((), found.warnings)
        self.assertEqual(['Shop'], [topic.title for topic in found.topics])
        passwords = self.plan.environment.passwords
        self.assertEqual(['WebPassword'], list(passwords))
        [role] = self.plans.roles(self.plan)
        self.assertEqual(('Web', 1), (role.name, role.count))

    def test_one_of_its_languages_can_be_chosen(self):
        self.assertRaises(errors.Invalid, self.select, french=True)
        self.assertEqual(
            ['base', 'english', 'polite'], self.select(polite=True)
        )
        self.assertEqual(
            ['base', 'french'],
            self.select(french=True, english=False, polite=False),
        )
