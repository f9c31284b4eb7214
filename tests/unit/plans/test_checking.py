# SPDX-License-Identifier: Apache-2.0
"""What later commands need of a plan's files is checked as they come in."""

import pathlib

import pytest

from heat_plugins import errors
from heat_plugins.content import sources
from heat_plugins.plans.content import references
from tests.unit.plans import fakes

BAD = b'heat_template_version: 2021-04-16\nresources:\n  a: [b\n  c: d\n'
GOOD = b'heat_template_version: 2021-04-16\n'
LARGE = 'environments/large.yaml'

EXAMPLE = pathlib.Path(__file__).parents[3] / 'contrib/examples/plan'


@pytest.fixture
def cloud():
    return fakes.Cloud()


def create(cloud, files):
    return cloud.plans.create('shop', fakes.content(**files))


def test_a_plan_has_no_file_that_heat_cannot_read(cloud):
    said = (
        'nodes/node.yaml is not YAML at line 4, column 4: while parsing a '
        "flow sequence, did not find expected ',' or ']'"
    )
    with pytest.raises(errors.Invalid) as caught:
        create(cloud, {'nodes/node.yaml': BAD})
    assert str(caught.value) == said
    with pytest.raises(errors.NotFound):
        cloud.plans.load('shop')
    # What nothing refers to may be anything.
    registry = b'resource_registry: {"A::B::C": ../nodes/bad.yaml}\n'
    create(cloud, {LARGE: registry, 'nodes/bad.yaml': BAD})
    with pytest.raises(errors.Invalid, match=r'nodes/bad\.yaml is not YAML'):
        cloud.plans.select('shop', {LARGE: True})
    plan = cloud.plans.load('shop')
    assert plan.environment.enabled == ('base.yaml',)
    with pytest.raises(errors.Invalid, match=r'nodes/node\.yaml is not YAML'):
        cloud.plans.update('shop', {'nodes/node.yaml': BAD})
    # It was put there past us.
    cloud.write_past_checks('nodes/node.yaml', BAD, 'shop')
    cloud.plans.update('shop', {'nodes/node.yaml': GOOD})
    cloud.plans.resolve(cloud.plans.load('shop'))


def test_what_is_enabled_has_a_limit(cloud, monkeypatch):
    monkeypatch.setattr(references, 'LARGEST', 1000)
    with pytest.raises(errors.Invalid, match='exceed 1000 characters'):
        create(cloud, {'scripts/run.sh': b'x' * 1000})


@pytest.mark.parametrize('lost', ['root.yaml', 'plan-environment.yaml'])
def test_jinja_templates_are_named_where_they_are_not_rendered(cloud, lost):
    with pytest.raises(errors.Invalid, match='render them with --render'):
        create(cloud, {lost: None, 'root.j2.yaml': b''})


def test_the_example_is_complete_and_its_choices_are_choices(cloud):
    def select(**choices):
        choices = {f'environments/{k}.yaml': v for k, v in choices.items()}
        enabled = cloud.plans.select('shop', choices).environment.enabled
        return [pathlib.Path(path).stem for path in enabled]

    plan = cloud.plans.create('shop', sources.from_directory(EXAMPLE))
    found = cloud.plans.resolve(plan)
    assert found.warnings == ()
    assert {'tiers/web.yaml', 'scripts/greet.sh'} <= found.files.keys()
    found = cloud.plans.capabilities(plan)
    assert found.warnings == ()
    assert [topic.title for topic in found.topics] == ['Shop']
    assert list(plan.environment.passwords) == ['WebPassword']
    [role] = cloud.plans.roles(plan)
    assert (role.name, role.count) == ('Web', 1)
    with pytest.raises(errors.Invalid):
        select(french=True)
    assert select(polite=True) == ['base', 'english', 'polite']
    chosen = select(french=True, english=False, polite=False)
    assert chosen == ['base', 'french']
