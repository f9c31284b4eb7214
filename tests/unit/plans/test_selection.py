# SPDX-License-Identifier: Apache-2.0
"""Capabilities are read, and environments chosen among them."""

import testtools

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import selection
from tests.unit.plans import fakes

SMALL = 'environments/small.yaml'
LARGE = 'environments/large.yaml'
BACKUP = 'environments/backup.yaml'
LOST = 'environments/lost.yaml'


def read(enabled=('base.yaml',), text=fakes.MAP, **more):
    return capabilities.read(
        None if text is None else text.decode(),
        fakes.content(**more),
        enabled,
    )


def requiring(**requires):
    """Return capabilities whose environments require each other."""
    listed = [
        {'file': f'{name}.yaml', 'requires': [f'{r}.yaml' for r in needed]}
        for name, needed in requires.items()
    ]
    text = texts.dump(
        {'topics': [{'environment_groups': [{'environments': listed}]}]}
    )
    return capabilities.read(text, [one['file'] for one in listed], ())


class CapabilitiesTest(testtools.TestCase):
    def test_topics_groups_and_environments_are_read_in_order(self):
        [topic] = read().topics
        self.assertEqual('Basics', topic.title)
        self.assertEqual(
            ['Base', 'Size', 'Extras'], [group.title for group in topic.groups]
        )
        self.assertEqual(
            [False, True, False],
            [group.mutually_exclusive for group in topic.groups],
        )
        large = topic.groups[1].environments[1]
        self.assertEqual(
            capabilities.OptionalEnvironment(
                path=LARGE, title='Large', requires=('base.yaml',)
            ),
            large,
        )

    def test_what_the_map_names_and_the_plan_lacks_is_a_warning(self):
        found = read(**{'base.yaml': None})
        self.assertFalse(found.environments[LOST].present)
        self.assertIn(
            f'capabilities-map.yaml names {LOST}, which the plan does not '
            'have',
            found.warnings,
        )
        self.assertIn(
            f'{SMALL} requires base.yaml, which the plan does not have',
            found.warnings,
        )

    def test_what_the_map_does_not_name_is_in_a_last_topic(self):
        found = read(
            enabled=('own.yaml',),
            **{
                'environments/more.yaml': b'',
                'environments/more.j2.yaml': b'',
                'environments/README': b'',
            },
        )
        [group] = found.topics[-1].groups
        self.assertEqual(capabilities.OTHER, found.topics[-1].title)
        self.assertEqual(
            [
                ('environments/more.yaml', False, True),
                ('own.yaml', True, False),
            ],
            [
                (one.path, one.enabled, one.present)
                for one in group.environments
            ],
        )

    def test_an_environment_may_come_twice(self):
        text = fakes.MAP.replace(LOST.encode(), SMALL.encode())
        found = read(text=text)
        self.assertEqual(('base.yaml',), found.environments[SMALL].requires)

    def test_a_plan_without_a_map_has_its_environments(self):
        [topic] = read(text=None).topics
        self.assertEqual(
            ['base.yaml', BACKUP, LARGE, SMALL],
            [one.path for one in topic.groups[0].environments],
        )

    def test_a_map_that_is_none_is_refused(self):
        for text in (
            b'[1]',
            b'topics: {a: b}',
            b'topics: [1]',
            b'topics: [{environment_groups: '
            b'[{environments: [{file: a.yaml, requires: b.yaml}]}]}]',
            b'topics: [{environment_groups: [{environments: [{title: x}]}]}]',
            b'topics: [{environment_groups: '
            b'[{environments: [{file: ../x.yaml}]}]}]',
        ):
            self.assertRaises(errors.Invalid, read, text=text)


class SelectTest(testtools.TestCase):
    def select(self, enabled, choices, offered=None, **options):
        plan = environments.PlanEnvironment(
            template='root.yaml',
            environments=tuple(
                environments.Entry(path=path) for path in enabled
            ),
        )
        offered = offered or read(enabled=enabled)
        return selection.select(plan, offered, choices, **options).enabled

    def refused(self, enabled, choices, *words, offered=None):
        error = self.assertRaises(
            errors.Invalid, self.select, enabled, choices, offered
        )
        for word in words:
            self.assertIn(word, str(error))

    def test_what_is_chosen_is_enabled_and_disabled(self):
        enabled = self.select(['base.yaml'], {SMALL: True})
        self.assertEqual(('base.yaml', SMALL), enabled)
        self.assertEqual(('base.yaml',), self.select(enabled, {SMALL: False}))
        self.assertEqual(enabled, self.select(enabled, {SMALL: True}))

    def test_what_is_required_has_to_be_enabled(self):
        self.refused(
            ['base.yaml'], {BACKUP: True}, f'{BACKUP} requires {LARGE}'
        )
        self.assertEqual(
            ('base.yaml', LARGE, BACKUP),
            self.select(['base.yaml'], {BACKUP: True, LARGE: True}),
        )

    def test_what_is_required_cannot_be_disabled(self):
        self.refused(['base.yaml', SMALL], {'base.yaml': False}, SMALL)

    def test_what_excludes_each_other_is_not_enabled_together(self):
        self.refused(
            ['base.yaml', SMALL], {LARGE: True}, SMALL, LARGE, '(Size)'
        )
        self.assertEqual(
            ('base.yaml', LARGE),
            self.select(['base.yaml', SMALL], {LARGE: True, SMALL: False}),
        )

    def test_what_is_not_there_is_not_enabled(self):
        self.refused([], {LOST: True}, LOST, 'not an environment of the plan')
        self.refused([], {'nope.yaml': True}, 'nope.yaml')
        self.refused([], {'nope.yaml': False}, 'nope.yaml')

    def test_an_environment_that_may_be_meant_is_named(self):
        self.refused([], {'bse.yaml': True}, 'did you mean "base.yaml"?')
        self.assertEqual((), self.select([LOST], {LOST: False}))

    def test_a_requirement_that_the_plan_lacks_does_not_count(self):
        offered = read(enabled=(), **{'base.yaml': None})
        self.assertEqual(
            (SMALL,), self.select([], {SMALL: True}, offered=offered)
        )

    def test_what_was_wrong_before_can_be_mended_in_steps(self):
        after = self.select([SMALL, LARGE], {'base.yaml': True})
        self.assertEqual(('base.yaml', SMALL, LARGE), after)
        self.assertEqual(
            ('base.yaml', LARGE), self.select(after, {SMALL: False})
        )

    def test_each_follows_what_it_requires(self):
        offered = requiring(c=['b'], b=['a'], a=[])
        self.assertEqual(
            ('a.yaml', 'b.yaml', 'c.yaml'),
            self.select([], {f'{name}.yaml': True for name in 'cba'}, offered),
        )

    def test_else_the_order_stays(self):
        offered = requiring(z=[], y=[], c=['y'], a=[], x=['a'])
        self.assertEqual(
            ('z.yaml', 'y.yaml', 'c.yaml', 'a.yaml', 'x.yaml'),
            self.select(
                ['z.yaml', 'c.yaml', 'y.yaml'],
                {'x.yaml': True, 'a.yaml': True},
                offered,
            ),
        )

    def test_environments_written_out_keep_their_places(self):
        data = environments.Entry(data={'parameters': {}})
        plan = environments.PlanEnvironment(
            template='root.yaml',
            environments=(
                environments.Entry(path='base.yaml'),
                data,
                environments.Entry(path=SMALL),
            ),
        )
        found = selection.select(
            plan, read(), {SMALL: False, LARGE: True}
        ).environments
        self.assertEqual(
            ('base.yaml', data, LARGE),
            (found[0].path, found[1], found[2].path),
        )

    def test_those_that_require_each_other_are_enabled_together(self):
        offered = requiring(a=['b'], b=['c'], c=['a'], d=[])
        everything = {f'{name}.yaml': True for name in 'abcd'}
        self.assertEqual(
            everything.keys(), set(self.select([], everything, offered))
        )
        self.refused([], {'a.yaml': True}, 'requires', offered=offered)
