# SPDX-License-Identifier: Apache-2.0
"""The plan in contrib/examples is whole, and its choices are choices."""

import pathlib

import testtools
import yaml

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
        return self.plans.select(
            'shop',
            {
                f'environments/{name}.yaml': wanted
                for name, wanted in choices.items()
            },
        )

    def test_it_refers_to_all_of_its_templates_and_to_nothing_else(self):
        found = self.plans.resolve(self.plan)
        self.assertEqual((), found.warnings)
        for path in ('tiers/web.yaml', 'scripts/greet.sh'):
            self.assertIn(path, found.files)
        nested = yaml.safe_load(found.files['tiers/web.yaml'])
        self.assertEqual(
            {'get_file': 'scripts/greet.sh'},
            nested['resources']['config']['properties']['config'],
        )

    def test_its_map_names_what_there_is(self):
        found = self.plans.capabilities(self.plan)
        self.assertEqual((), found.warnings)
        self.assertEqual(['Shop'], [topic.title for topic in found.topics])

    def test_one_of_its_languages_can_be_chosen(self):
        self.assertRaises(errors.Invalid, self.select, french=True)
        plan = self.select(french=True, english=False)
        self.assertEqual(
            'environments/french.yaml', plan.environment.enabled[-1]
        )
        self.assertRaises(errors.Invalid, self.select, polite=True)

    def test_what_requires_another_comes_after_it(self):
        plan = self.select(polite=True)
        self.assertEqual(
            ['base', 'english', 'polite'],
            [pathlib.Path(path).stem for path in plan.environment.enabled],
        )

    def test_a_password_is_made_for_its_servers(self):
        self.assertEqual(
            ['WebPassword'], list(self.plan.environment.passwords)
        )

    def test_its_servers_have_a_role(self):
        [role] = self.plans.roles(self.plan)
        self.assertEqual(('Web', 1), (role.name, role.count))
