# SPDX-License-Identifier: Apache-2.0
"""plan-environment.yaml is read, and written as it was."""

import testtools

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.objectstore import stores
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import plans

FULL = {
    'version': 1.0,
    'name': 'shop',
    'description': 'A shop\n',
    'template': 'root.yaml',
    'environments': [
        {'path': 'base.yaml'},
        {'data': {'parameter_defaults': {'a': 1}}},
        {'path': './environments//more.yaml'},
    ],
    'parameter_defaults': {
        'size': 3,
        'script': '#!/bin/sh\nrun\n',
        'day': '2020-01-01',
    },
    'passwords': {'Key': 'hunter2', 'Other': None},
    'derived_parameters': {'cores': '2'},
    'resource_registry': {'OS::A::B': 'b.yaml'},
    'workflow_parameters': {'w': {'x': 1}},
    'own_section': [1, 2],
}


class PlanEnvironmentTest(testtools.TestCase):
    def read(self, **more):
        return environments.PlanEnvironment.from_text(
            texts.dump({**FULL, **more})
        )

    def test_every_section_is_read(self):
        found = self.read()
        assert found.version == '1.0'
        assert found.description == 'A shop'
        assert found.enabled == ('base.yaml', 'environments/more.yaml')
        assert found.environments[1].data == {'parameter_defaults': {'a': 1}}
        assert found.passwords['Key'] == 'hunter2'
        assert found.more == {'own_section': [1, 2]}

    def test_what_is_written_reads_the_same(self):
        found = self.read()
        assert environments.PlanEnvironment.from_text(found.to_text()) == found

    def test_no_value_is_shown(self):
        assert 'hunter2' not in repr(self.read())
        assert 'size' not in repr(self.read())

    def test_of_one_that_comes_twice_the_last_counts(self):
        found = self.read(
            environments=[{'path': 'a'}, {'path': 'b'}, {'path': './a'}]
        )
        assert found.enabled == ('b', 'a')

    def test_what_is_no_such_file_is_refused(self):
        for text in (
            '[1]',
            'a: [',
            'template: ../root.yaml',
            'template: [1]',
            'name: x',
            'template: a\nenvironments: {a: b}',
            'template: a\nenvironments: [base.yaml]',
            'template: a\nenvironments: [{path: /etc/x}]',
            'template: a\nenvironments: [{data: 1}]',
            'template: a\nenvironments: [{path: a, data: {}}]',
            'template: a\nparameter_defaults: [1]',
            'template: a\npasswords: hunter2',
        ):
            error = self.assertRaises(
                errors.Invalid, environments.PlanEnvironment.from_text, text
            )
            assert 'hunter2' not in str(error)


class LimitTest(testtools.TestCase):
    def test_nothing_is_written_that_could_not_be_read_again(self):
        deep = []
        for _ in range(150):
            deep = [deep]
        endless = []
        for _ in range(5000):
            endless = [endless]
        for value in ('x' * 2**24, [1] * 200_000, deep, endless):
            found = environments.PlanEnvironment(
                template='a', parameter_defaults={'a': value}
            )
            self.assertRaises(errors.Invalid, found.to_text)


class PlanTest(testtools.TestCase):
    def plan(self, **entries):
        return plans.Plan(
            name='plan',
            container='plan',
            rendered=False,
            environment=environments.PlanEnvironment(template='a'),
            entries={
                path: stores.ListedObject(name=path, size=1, etag=etag)
                for path, etag in entries.items()
            },
        )

    def test_a_hash_tells_contents_apart(self):
        one = self.plan(a='1', b='2').content_hash
        assert self.plan(b='2', a='1').content_hash == one
        for other in ({'a': '1'}, {'a': '2', 'b': '1'}, {'a': '1', 'c': '2'}):
            assert self.plan(**other).content_hash != one

    def test_names_are_those_that_heat_and_stores_take(self):
        for name in ('abc', 'A.b-c_1', 'x' * 180):
            assert plans.check_name(name) == name
        for name in (
            'ab',
            'heat-plugins-uploads',
            '1abc',
            'a/b',
            'ä' * 3,
            'x' * 181,
        ):
            self.assertRaises(errors.Invalid, plans.check_name, name)
