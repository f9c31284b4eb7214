# SPDX-License-Identifier: Apache-2.0
"""What later commands need of a plan's files is checked as they come in."""

import testtools

from heat_plugins import errors
from heat_plugins.plans.content import plan_checking
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
JINJA = b"""\
heat_template_version: 2021-04-16
resources:
{% for role in roles %}
  {{ role.name }}:
    properties: {a: {{ '{' }}get_attr: [{{ role.name }}, x}}
{% endfor %}
"""


class CheckingTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.cloud = fakes.Cloud()
        self.plans = self.cloud.plans

    def refused(self, call, *arguments, **options):
        error = self.assertRaises(errors.Invalid, call, *arguments, **options)
        return str(error)

    def create(self, **files):
        options = {'render': files.pop('render', False)}
        content = fakes.content(
            **{name.replace('__', '/'): one for name, one in files.items()}
        )
        return self.plans.create('shop', content, **options)

    def with_file(self, path, content, **options):
        return self.plans.create(
            'shop', fakes.content(**{path: content}), **options
        )

    def test_a_nested_template_that_is_not_yaml_is_refused_at_creation(self):
        said = self.refused(self.with_file, 'nodes/node.yaml', BAD)
        self.assertEqual(
            'nodes/node.yaml is not YAML at line 4, column 4: while parsing '
            "a flow sequence, did not find expected ',' or ']'",
            said,
        )
        self.assertRaises(errors.NotFound, self.plans.load, 'shop')

    def test_one_that_nothing_refers_to_may_be_anything(self):
        self.with_file('nodes/unused.yaml', BAD)

    def test_the_jinja_template_and_its_line_are_named(self):
        content = fakes.content(
            **{
                'nodes/node.yaml': None,
                'nodes/node.j2.yaml': JINJA,
                'roles_data.yaml': b'[{name: Web}]',
            }
        )
        said = self.refused(self.plans.create, 'shop', content, render=True)
        self.assertIn('nodes/node.yaml is not YAML at line 5, column', said)
        self.assertIn(
            'Jinja rendered it from line 5 of nodes/node.j2.yaml; correct '
            'that',
            said,
        )

    def test_the_plan_s_own_files_are_read(self):
        for path, content, reason in (
            ('capabilities-map.yaml', b'topics: {a: b}', 'topics of'),
            ('capabilities-map.yaml', b'topics: [', 'is not YAML at line'),
            ('roles_data.yaml', b'a: b', 'must be a list of roles'),
        ):
            said = self.refused(self.with_file, path, content)
            self.assertIn(path, said)
            self.assertIn(reason, said)

    def test_an_absolute_path_is_refused_with_its_line(self):
        said = self.refused(
            self.with_file, 'nodes/node.yaml', LINKING % b'/etc/motd'
        )
        self.assertEqual(
            "nodes/node.yaml refers at line 5 to '/etc/motd', which is an "
            'absolute path. Put the file into the plan, and give its path '
            'relative to nodes/node.yaml',
            said,
        )
        for path, what in (
            (b'../../x', 'which leads out of the plan'),
            (b'https://host/x', 'which is a URL'),
        ):
            self.assertIn(
                what,
                self.refused(
                    self.with_file, 'nodes/node.yaml', LINKING % path
                ),
            )

    def test_an_update_is_refused_for_new_files_alone(self):
        self.with_file('environments/large.yaml', b'a: [')
        self.assertIn(
            'nodes/node.yaml is not YAML',
            self.refused(self.plans.update, 'shop', {'nodes/node.yaml': BAD}),
        )
        # It was put there past us.
        self.cloud.swift.store().put_object('shop', 'nodes/node.yaml', BAD)
        self.plans.update('shop', {'scripts/run.sh': b'#!/bin/bash\n'})
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
        self.assertIn('nodes/bad.yaml is not YAML at line 4', said)
        plan = self.plans.load('shop')
        self.assertEqual(('base.yaml',), plan.environment.enabled)

    def test_what_heat_reads_and_the_c_loader_does_not_is_written_anew(self):
        text = LINKING % b'../scripts/run.sh' + (
            b'outputs: {a: {value: {get_attr:[config, config]}}}\n'
        )
        plan = self.with_file('nodes/node.yaml', text)
        found = self.plans.resolve(plan).files['nodes/node.yaml']
        self.assertIn('get_attr: [config, config]', found)
        self.assertIn('get_file: "scripts/run.sh"', found)

    def test_little_is_written_anew(self):
        self.patch(references, 'REWRITTEN', 10)
        text = LINKING % b'x' + b'outputs: {a:[b]}\n'
        said = self.refused(self.with_file, 'nodes/node.yaml', text)
        self.assertIn('nodes/node.yaml is not YAML at line 6', said)

    def test_what_is_enabled_has_a_limit(self):
        self.patch(references, 'LARGEST', 1000)
        said = self.refused(self.with_file, 'scripts/run.sh', b'x' * 1000)
        self.assertIn('exceed 1000 characters', said)

    def test_jinja_templates_are_named_where_they_are_not_rendered(self):
        for files in (
            {'root.yaml': None, 'root.j2.yaml': b''},
            {'plan-environment.yaml': None, 'root.j2.yaml': b''},
        ):
            said = self.refused(
                self.plans.create, 'shop', fakes.content(**files)
            )
            self.assertIn('render them with --render', said)


class SourceLineTest(testtools.TestCase):
    def test_a_line_is_found_by_what_jinja_leaves(self):
        template = 'a\n  {{ x }}: {b: {{y}} c}\n# {% raw %}\n  d\n  d\n{{ x }}'
        for made, line in (
            ('a', 1),
            ('  Web: {b: 1 c}', 2),
            ('  Web: {b: 1 c', None),
            ('  d', None),
            ('', None),
            ('x' * 501, None),
        ):
            self.assertEqual(
                line, plan_checking._source_line(made, 1, template), made
            )
