# SPDX-License-Identifier: Apache-2.0
"""What later commands need of a plan's files is checked as they come in."""

import testtools

from heat_plugins import errors
from heat_plugins.plans.content import references
from tests.unit.plans import fakes

BAD = b'heat_template_version: 2021-04-16\nresources:\n  a: [b\n  c: d\n'
LINKING = b"""\
heat_template_version: 2021-04-16
resources:
  config:
    type: OS::Heat::SoftwareConfig
    properties: {config: {get_file: %s}}
"""


class CheckingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.plans = self.cloud.plans

    def refused(self, call, *arguments, **options):
        error = self.assertRaises(errors.Invalid, call, *arguments, **options)
        return str(error)

    def with_file(self, path, content, **options):
        return self.plans.create(
            'shop', fakes.content(**{path: content}), **options
        )

    def test_a_nested_template_that_is_not_yaml_is_refused_at_creation(self):
        said = self.refused(self.with_file, 'nodes/node.yaml', BAD)
        assert said == (
            'nodes/node.yaml is not YAML at line 4, column 4: while parsing '
            "a flow sequence, did not find expected ',' or ']'"
        )
        self.assertRaises(errors.NotFound, self.plans.load, 'shop')

    def test_one_that_nothing_refers_to_may_be_anything(self):
        self.with_file('nodes/unused.yaml', BAD)

    def test_an_update_is_refused_for_a_file_that_is_enabled(self):
        self.with_file('environments/large.yaml', b'a: [')
        assert 'nodes/node.yaml is not YAML' in self.refused(
            self.plans.update, 'shop', {'nodes/node.yaml': BAD}
        )
        # It was put there past us.
        self.cloud.swift.store().put_object('shop', 'nodes/node.yaml', BAD)
        self.plans.update('shop', {'nodes/node.yaml': LINKING % b'x'})
        self.plans.resolve(self.plans.load('shop'))

    def test_an_environment_is_enabled_with_all_that_it_refers_to(self):
        registry = b'resource_registry: {"A::B::C": ../nodes/bad.yaml}\n'
        self.plans.create(
            'shop',
            fakes.content(
                **{
                    'environments/large.yaml': registry,
                    'nodes/bad.yaml': BAD,
                }
            ),
        )
        said = self.refused(
            self.plans.select, 'shop', {'environments/large.yaml': True}
        )
        assert 'nodes/bad.yaml is not YAML at line 4' in said
        plan = self.plans.load('shop')
        assert plan.environment.enabled == ('base.yaml',)

    def test_what_is_enabled_has_a_limit(self):
        self.patch(references, 'LARGEST', 1000)
        said = self.refused(self.with_file, 'scripts/run.sh', b'x' * 1000)
        assert 'exceed 1000 characters' in said

    def test_jinja_templates_are_named_where_they_are_not_rendered(self):
        for files in (
            {'root.yaml': None, 'root.j2.yaml': b''},
            {'plan-environment.yaml': None, 'root.j2.yaml': b''},
        ):
            said = self.refused(
                self.plans.create, 'shop', fakes.content(**files)
            )
            assert 'render them with --render' in said
