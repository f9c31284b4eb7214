# SPDX-License-Identifier: Apache-2.0
"""References are found, rewritten in place, and fetched once."""

import dataclasses

import testtools
import yaml

from heat_plugins import errors
from heat_plugins import yaml_reading
from heat_plugins.content import texts
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import references

ROOT = 'heat_template_version: 2021-04-16\n'


class ResolveTest(testtools.TestCase):
    def setUp(self):
        super().setUp()
        self.files = {'root.yaml': ROOT}
        self.plan = environments.PlanEnvironment(template='root.yaml')
        self.asked = []

    def fetch(self, paths):
        self.asked += paths
        return {
            path: self.files[path].encode()
            for path in paths
            if path in self.files
        }

    def resolve(self, *enabled, **more):
        plan = dataclasses.replace(
            self.plan,
            environments=tuple(
                environments.Entry(path=path) for path in enabled
            ),
            **more,
        )
        return references.resolve(plan, self.fetch)

    def test_files_are_keyed_by_paths_from_the_root(self):
        self.files |= {
            'root.yaml': f'{ROOT}resources: {{a: {{type: ./n/one.yaml}}}}\n',
            'n/one.yaml': (
                f'{ROOT}resources:\n'
                '  b: {type: two.yaml}\n'
                '  c: {properties: {config: {get_file: ../s/run.sh}}}\n'
            ),
            'n/two.yaml': ROOT,
            's/run.sh': '#!/bin/sh\n',
        }
        found = self.resolve()
        assert set(found.files) == {'n/one.yaml', 'n/two.yaml', 's/run.sh'}
        assert 'type: n/one.yaml' in found.template
        one = yaml.safe_load(found.files['n/one.yaml'])
        assert one['resources']['b']['type'] == 'n/two.yaml'
        assert one['resources']['c']['properties']['config'] == {
            'get_file': 's/run.sh'
        }
        assert found.warnings == ()

    def test_all_else_of_a_file_means_the_same(self):
        text = (
            '# a comment\n'
            f'{ROOT}'
            'resources:\n'
            '  "a": &a\n'
            '    type: {}\n'
            '    properties: {{when: 2020-01-01, on: yes, n: 0644, 1: "1"}}\n'
            '  b: *a\n'
            '  c: {{<<: *a, properties: {{get_file: {}}}}}\n'
            '  d: {{after: "type: ../x/no.yaml\\n  é\\n", f: 1.50, g: ~}}\n'
        )
        self.files |= {
            'a/root.yaml': text.format('../x/é.yaml', '../x/c'),
            'x/é.yaml': ROOT,
            'x/c': '',
        }
        self.plan = environments.PlanEnvironment(template='a/root.yaml')
        found = self.resolve()
        assert set(found.files) == {'x/é.yaml', 'x/c'}
        assert yaml_reading.load(found.template) == yaml_reading.load(
            text.format('x/é.yaml', 'x/c')
        )

    def test_a_file_whose_references_need_no_change_stays_as_it_is(self):
        text = f'# a comment\n{ROOT}x: {{type:   a.yaml}}  # odd\n'
        self.files |= {'root.yaml': text, 'a.yaml': ROOT}
        assert self.resolve().template == text

    def test_registries_lead_to_templates(self):
        self.files |= {
            'e/env.yaml': (
                'resource_registry:\n'
                '  OS::Own::A: ../n/one.yaml\n'
                '  OS::Own::*: two.yaml\n'
                '  OS::Own::B: OS::Heat::None\n'
                '  OS::Own::D:\n'
                '  resources:\n'
                '    server: {OS::Own::C: three.yaml, hooks: pre-create}\n'
                '    other: {restricted_actions: replace}\n'
                'parameter_defaults: {type: none.yaml, get_file: nope}\n'
            ),
            'n/one.yaml': f'{ROOT}x: {{get_file: here}}',
            'n/here': '',
            'e/two.yaml': ROOT,
            'e/three.yaml': ROOT,
        }
        found = self.resolve('e/env.yaml')
        assert set(found.files) == {*self.files} - {'root.yaml'}
        assert found.environments == ('e/env.yaml',)
        registry = yaml.safe_load(found.files['e/env.yaml'])[
            'resource_registry'
        ]
        assert registry['OS::Own::A'] == 'n/one.yaml'
        assert registry['OS::Own::*'] == 'e/two.yaml'
        assert registry['resources']['server']['hooks'] == 'pre-create'

    def test_a_template_that_is_a_file_of_another_is_walked_too(self):
        self.files |= {
            'root.yaml': f'{ROOT}x: {{get_file: n/stack}}',
            'n/stack': f'{ROOT}x: {{get_file: script}}',
            'n/script': 'x: {get_file: nope}',
        }
        found = self.resolve()
        assert set(found.files) == {'n/stack', 'n/script'}
        assert found.files['n/script'] == 'x: {get_file: nope}'

    def test_each_file_is_fetched_once(self):
        self.files |= {
            'root.yaml': f'{ROOT}a: [{{type: a.yaml}}, {{type: ./a.yaml}}]',
            'a.yaml': f'{ROOT}x: {{type: root.yaml}}\ny: {{get_file: a.yaml}}',
            'env.yaml': 'resource_registry: {OS::A::B: a.yaml}',
        }
        found = self.resolve('env.yaml')
        assert sorted(self.asked) == sorted(self.files)
        assert 'other.yaml' not in found.files
        # It is not only the root, but also what another one refers to.
        assert found.files['root.yaml'] == found.template

    def test_a_reference_out_of_the_plan_is_refused(self):
        for path in (
            '../x.yaml',
            '/etc/x.yaml',
            'a/../../x.yaml',
            'file:///etc/x.yaml',
        ):
            for root, environment, by in (
                (f'x: {{type: {path}}}', '', 'root.yaml'),
                (f'x: {{get_file: "{path}"}}', '', 'root.yaml'),
                ('', f'resource_registry: {{A::B: {path}}}', 'env.yaml'),
            ):
                self.files['root.yaml'] = f'{ROOT}{root}'
                self.files['env.yaml'] = environment or '{}'
                error = self.assertRaises(
                    errors.Invalid, self.resolve, 'env.yaml'
                )
                assert (
                    f'{by} refers to {path!r}, which is no path within the '
                    'plan. Put the file into the plan, and give its path '
                    f'relative to {by}'
                ) in str(error)

    def test_missing_files(self):
        self.files |= {
            'root.yaml': f'{ROOT}x: {{get_file: n/nope}}',
            'env.yaml': 'resource_registry: {OS::A::B: lost.yaml}',
        }
        assert {*self.resolve('env.yaml').warnings} == {
            'env.yaml refers to lost.yaml, which the plan does not have',
            'root.yaml refers to n/nope, which the plan does not have',
        }
        # The root template and environments are necessary.
        for path in ('env.yaml', 'root.yaml'):
            del self.files[path]
            error = self.assertRaises(errors.Invalid, self.resolve, 'env.yaml')
            assert path in str(error)

    def test_binary_files(self):
        def resolve(**files):
            files = {f'{name}.yaml': data for name, data in files.items()}
            return references.resolve(
                self.plan, lambda paths: {path: files[path] for path in paths}
            )

        root = f'{ROOT}x: {{get_file: image.yaml}}'.encode()
        found = resolve(root=root, image=b'\xff\xd8')
        assert found.files['image.yaml'] == '/9g=\n'
        root = f'{ROOT}x: {{type: n.yaml}}'.encode()
        error = self.assertRaises(
            errors.Invalid, resolve, root=root, n=b'\xff\xd8'
        )
        assert 'n.yaml is not in UTF-8' in str(error)

    def test_what_is_set_goes_over_files_and_those_over_passwords(self):
        self.files['env.yaml'] = 'parameter_defaults: {a: 1}'
        self.files['n/own.yaml'] = ROOT
        self.plan = dataclasses.replace(
            self.plan,
            environments=(
                environments.Entry(path='env.yaml'),
                environments.Entry(data={'parameter_defaults': {'b': 2}}),
            ),
            passwords={'p': 'hunter2', 'q': None},
            derived_parameters={'d': 1, 'e': 1},
            parameter_defaults={'e': 2},
            resource_registry={'OS::A::B': './n/own.yaml'},
        )
        found = references.resolve(self.plan, self.fetch)
        content = [
            yaml.safe_load(found.files[key]) for key in found.environments
        ]
        assert content == [
            {'parameter_defaults': {'p': 'hunter2'}},
            {'parameter_defaults': {'a': 1}},
            {'parameter_defaults': {'b': 2}},
            {
                'parameter_defaults': {'d': 1, 'e': 2},
                'resource_registry': {'OS::A::B': 'n/own.yaml'},
            },
        ]
        assert 'n/own.yaml' in found.files

    def test_what_is_too_large_for_heat_loses_comments_and_layout(self):
        text = (
            f'{ROOT}'
            'resources:\n'
            '  a: &a\n'
            '    type: n/one.yaml\n'
            "    properties: {day: 2020-01-01, on: yes, n: 0644, s: '1'}\n"
            '  b: {<<: *a}\n'
            '  c: {properties: {config: {get_file: run.sh}}}\n'
            + ('# ' + 'x' * 98 + '\n')
            * 6000
        )
        script = '# x\n' * 200_000
        self.files |= {
            'root.yaml': text,
            'n/one.yaml': text.replace('n/one', 'two').replace(
                'run', '../run'
            ),
            'n/two.yaml': ROOT,
            'run.sh': script,
            'env.yaml': 'parameter_defaults: {a: 2020-01-01}  # x\n',
        }
        found = self.resolve('env.yaml')
        assert found.files['run.sh'] == script
        expected = texts.load(text, '')
        assert texts.load(found.template, '') == expected
        expected = texts.load(text.replace('n/one', 'n/two'), '')
        one = found.files['n/one.yaml']
        assert texts.load(one, '') == expected
        assert len(one) < 1000
        assert '#' not in found.files['env.yaml']
