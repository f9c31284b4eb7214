# SPDX-License-Identifier: Apache-2.0
"""Capabilities are read, and environments chosen among them."""

import pytest

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


def read(enabled=(BASE,), text=fakes.MAP, **more):
    text = None if text is None else text.decode()
    return capabilities.read(text, fakes.content(**more), enabled)


def requiring(**requires):
    """Return capabilities whose environments require each other."""
    listed = [
        {'file': f'{name}.yaml', 'requires': [f'{r}.yaml' for r in needed]}
        for name, needed in requires.items()
    ]
    groups = [{'environments': listed}]
    text = texts.dump({'topics': [{'environment_groups': groups}]})
    return capabilities.read(text, [one['file'] for one in listed], ())


def select(enabled, choices, offered=None):
    """Choose among environments; entries may be given in place of paths."""
    entries = [
        environments.Entry(path=one) if isinstance(one, str) else one
        for one in enabled
    ]
    plan = environments.PlanEnvironment(
        template='root.yaml', environments=tuple(entries)
    )
    offered = offered or read(enabled=plan.enabled)
    found = selection.select(plan, offered, choices).environments
    return [entry.path or entry for entry in found]


def test_topics_groups_and_environments_are_read_in_order():
    # An environment may come twice.
    text = fakes.MAP + b'          - {file: environments/small.yaml}\n'
    found = read(text=text, **{BASE: None})
    [topic] = found.topics
    assert topic.title == 'Basics'
    groups = [(one.title, one.mutually_exclusive) for one in topic.groups]
    assert groups == [('Base', False), ('Size', True), ('Extras', False)]
    assert topic.groups[1].environments[1] == capabilities.OptionalEnvironment(
        path=LARGE, title='Large', requires=(BASE,)
    )
    assert found.environments[SMALL].requires == (BASE,)
    assert not found.environments[LOST].present
    lost = f'capabilities-map.yaml names {LOST}, which the plan does not have'
    assert lost in found.warnings
    lost = f'{SMALL} requires {BASE}, which the plan does not have'
    assert lost in found.warnings


def test_other_environments_are_in_a_last_topic():
    more = ('more.yaml', 'more.j2.yaml', 'README')
    more = {f'environments/{name}': b'' for name in more}
    *_, topic = read(enabled=('own.yaml',), **more).topics
    assert topic.title == capabilities.OTHER
    others = topic.groups[0].environments
    found = [(one.path, one.enabled, one.present) for one in others]
    first = 'environments/more.yaml', False, True
    assert found == [first, ('own.yaml', True, False)]
    [topic] = read(text=None).topics
    paths = [one.path for one in topic.groups[0].environments]
    assert paths == [BASE, BACKUP, LARGE, SMALL]


WRONG = b'{file: a.yaml, requires: b.yaml}', b'{title: x}', b'{file: ../x}'
LISTED = b'topics: [{environment_groups: [{environments: [%s]}]}]'


@pytest.mark.parametrize(
    'text',
    [b'[1]', b'topics: {a: b}', b'topics: [1]', *(LISTED % w for w in WRONG)],
)
def test_a_map_that_is_none_is_refused(text):
    with pytest.raises(errors.Invalid):
        read(text=text)


DATA = environments.Entry(data={'parameters': {}})


@pytest.mark.parametrize(
    ('before', 'choices', 'after'),
    [
        ([BASE], {SMALL: True}, [BASE, SMALL]),
        ([BASE, SMALL], {SMALL: True}, [BASE, SMALL]),
        ([BASE, SMALL], {SMALL: False}, [BASE]),
        ([BASE], {BACKUP: True, LARGE: True}, [BASE, LARGE, BACKUP]),
        ([BASE, SMALL], {LARGE: True, SMALL: False}, [BASE, LARGE]),
        ([LOST], {LOST: False}, []),
        # Former violations can be repaired in steps.
        ([SMALL, LARGE], {BASE: True}, [BASE, SMALL, LARGE]),
        ([BASE, SMALL, LARGE], {SMALL: False}, [BASE, LARGE]),
        # Those written out keep their places.
        ([BASE, DATA, SMALL], {SMALL: 0, LARGE: 1}, [BASE, DATA, LARGE]),
    ],
)
def test_environments_are_enabled_and_disabled(before, choices, after):
    assert select(before, choices) == after


@pytest.mark.parametrize(
    ('before', 'choices', 'words'),
    [
        ([BASE], {BACKUP: True}, [f'{BACKUP} requires {LARGE}']),
        ([BASE, SMALL], {BASE: False}, [SMALL]),
        ([BASE, SMALL], {LARGE: True}, [SMALL, LARGE, '(Size)']),
        ([], {LOST: True}, [LOST, 'not an environment of the plan']),
        ([], {'bse.yaml': True}, ['did you mean "base.yaml"?']),
        ([], {'nope.yaml': False}, ['nope.yaml']),
    ],
)
def test_a_wrong_choice_is_refused(before, choices, words):
    with pytest.raises(errors.Invalid) as caught:
        select(before, choices)
    for word in words:
        assert word in str(caught.value)


def test_a_requirement_that_the_plan_lacks_does_not_count():
    offered = read(enabled=(), **{BASE: None})
    assert select([], {SMALL: True}, offered) == [SMALL]


def test_each_follows_its_requirements():
    several = {'z': '', 'y': '', 'c': 'y', 'a': '', 'x': 'a'}
    for requires, before, choices, after in (
        ({'c': 'b', 'b': 'a', 'a': ''}, '', 'cba', 'abc'),
        (several, 'zcy', 'xa', 'zycax'),
        # They are enabled together, in a circle.
        ({'a': 'b', 'b': 'c', 'c': 'a', 'd': ''}, '', 'abcd', 'cbad'),
    ):
        offered = requiring(**requires)
        before = [f'{name}.yaml' for name in before]
        chosen = {f'{name}.yaml': True for name in choices}
        found = select(before, chosen, offered)
        assert found == [f'{name}.yaml' for name in after]
    with pytest.raises(errors.Invalid):
        select([], {'a.yaml': True}, offered)
