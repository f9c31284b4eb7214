# SPDX-License-Identifier: Apache-2.0
"""Capabilities are read, and environments chosen among them."""

import testtools

from heat_plugins import errors
from heat_plugins.content import texts
from heat_plugins.plans.content import capabilities
from heat_plugins.plans.content import environments
from heat_plugins.plans.content import selection
from tests.unit.plans import fakes

BASE = 'base.yaml'
SMALL = 'environments/small.yaml'
LARGE = 'environments/large.yaml'
BACKUP = 'environments/backup.yaml'
LOST = 'environments/lost.yaml'


def read(enabled=('base.yaml',), text=fakes.MAP, **more):
    return capabilities.read(
        None if text is None else text.decode(), fakes.content(**more), enabled
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
        assert topic.title == 'Basics'
        assert [group.title for group in topic.groups] == [
            'Base',
            'Size',
            'Extras',
        ]
        assert [group.mutually_exclusive for group in topic.groups] == [
            False,
            True,
            False,
        ]
        large = topic.groups[1].environments[1]
        assert large == capabilities.OptionalEnvironment(
            path=LARGE, title='Large', requires=('base.yaml',)
        )

    def test_missing_files_are_warnings(self):
        found = read(**{'base.yaml': None})
        assert not found.environments[LOST].present
        for warning in (
            f'capabilities-map.yaml names {LOST}, which the plan does not '
            'have',
            f'{SMALL} requires base.yaml, which the plan does not have',
        ):
            assert warning in found.warnings

    def test_other_environments_are_in_a_last_topic(self):
        more = ('environments/more.yaml', 'environments/more.j2.yaml')
        more = dict.fromkeys([*more, 'environments/README'], b'')
        *_, topic = read(enabled=('own.yaml',), **more).topics
        assert topic.title == capabilities.OTHER
        assert [
            (one.path, one.enabled, one.present)
            for one in topic.groups[0].environments
        ] == [
            ('environments/more.yaml', False, True),
            ('own.yaml', True, False),
        ]
        [topic] = read(text=None).topics
        paths = [one.path for one in topic.groups[0].environments]
        assert paths == ['base.yaml', BACKUP, LARGE, SMALL]

    def test_an_environment_may_come_twice(self):
        text = fakes.MAP.replace(LOST.encode(), SMALL.encode())
        found = read(text=text)
        assert found.environments[SMALL].requires == ('base.yaml',)

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
        entries = [environments.Entry(path=path) for path in enabled]
        plan = environments.PlanEnvironment(
            template='root.yaml', environments=tuple(entries)
        )
        offered = offered or read(enabled=enabled)
        found = selection.select(plan, offered, choices, **options)
        return [*found.enabled]

    def test_environments_are_enabled_and_disabled(self):
        for before, choices, after in (
            ([BASE], {SMALL: True}, [BASE, SMALL]),
            ([BASE, SMALL], {SMALL: True}, [BASE, SMALL]),
            ([BASE, SMALL], {SMALL: False}, [BASE]),
            ([BASE], {BACKUP: True, LARGE: True}, [BASE, LARGE, BACKUP]),
            ([BASE, SMALL], {LARGE: True, SMALL: False}, [BASE, LARGE]),
            ([LOST], {LOST: False}, []),
            # Former violations can be repaired in steps.
            ([SMALL, LARGE], {BASE: True}, [BASE, SMALL, LARGE]),
            ([BASE, SMALL, LARGE], {SMALL: False}, [BASE, LARGE]),
        ):
            assert self.select(before, choices) == after

    def test_a_wrong_choice_is_refused(self):
        for before, choices, words in (
            ([BASE], {BACKUP: True}, [f'{BACKUP} requires {LARGE}']),
            ([BASE, SMALL], {BASE: False}, [SMALL]),
            ([BASE, SMALL], {LARGE: True}, [SMALL, LARGE, '(Size)']),
            ([], {LOST: True}, [LOST, 'not an environment of the plan']),
            ([], {'nope.yaml': True}, ['nope.yaml']),
            ([], {'nope.yaml': False}, ['nope.yaml']),
            ([], {'bse.yaml': True}, ['did you mean "base.yaml"?']),
        ):
            error = self.assertRaises(
                errors.Invalid, self.select, before, choices
            )
            for word in words:
                assert word in str(error)

    def test_a_requirement_that_the_plan_lacks_does_not_count(self):
        offered = read(enabled=(), **{BASE: None})
        assert self.select([], {SMALL: True}, offered) == [SMALL]

    def test_each_follows_its_requirements_and_else_the_order_stays(self):
        for requires, before, choices, after in (
            ({'c': ['b'], 'b': ['a'], 'a': []}, '', 'cba', 'abc'),
            (
                {'z': [], 'y': [], 'c': ['y'], 'a': [], 'x': ['a']},
                'zcy',
                'xa',
                'zycax',
            ),
        ):
            found = self.select(
                [f'{name}.yaml' for name in before],
                {f'{name}.yaml': True for name in choices},
                requiring(**requires),
            )
            assert found == [f'{name}.yaml' for name in after]

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
        assert (found[0].path, found[1], found[2].path) == (
            'base.yaml',
            data,
            LARGE,
        )

    def test_those_that_require_each_other_are_enabled_together(self):
        offered = requiring(a=['b'], b=['c'], c=['a'], d=[])
        everything = {f'{name}.yaml': True for name in 'abcd'}
        found = self.select([], everything, offered)
        assert set(found) == everything.keys()
        self.assertRaises(
            errors.Invalid, self.select, [], {'a.yaml': True}, offered
        )
