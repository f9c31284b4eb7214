# SPDX-License-Identifier: Apache-2.0
"""Which targets a run has."""

import pytest

from heat_plugins import errors
from heat_plugins.runs import ordering
from heat_plugins.runs import run_records
from heat_plugins.runs.targets import selecting
from tests.unit.runs import fake_heat


class World:
    """Two stacks of one deployment each, on servers of their own."""

    def __init__(self, actions=('BACKUP',)):
        self.heat = fake_heat.Heat()
        self.stacks = [self.heat.add_stack(name) for name in ('s0', 's1')]
        self.config = {
            'configs': [
                {'actions': [each], 'tool': 'script', 'config': 'true'}
                for each in ('CREATE', *actions)
            ]
        }
        self.rows = [
            self.add(stack, f'db{n}', f'server-{n}')
            for n, stack in enumerate(self.stacks)
        ]

    def add(self, stack, name, server):
        return self.heat.add_deployment(
            stack, name=name, server=server, config=self.config
        )


@pytest.fixture
def world():
    return World()


def choose(world, action='BACKUP', **wanted):
    chooser = selecting.Chooser(world.heat)
    return chooser.choose(ordering.Start(run='', action=action, **wanted))


@pytest.mark.parametrize(
    ('shown', 'is_target'),
    [
        ({'metadata': {'tier': 'front', 'role': 'other'}}, True),
        ({'metadata': {'tier': 'back'}}, False),
        ({'metadata': None}, False),
        (None, False),
    ],
)
def test_metadata_is_the_template_s_and_nova_s(world, shown, is_target):
    stack = world.stacks[0]
    world.add(stack, 'far', 'of no resource')
    world.add(stack, 'db9', 'id-9')
    world.heat.add_resource(
        stack, 'nova', 'OS::Nova::Server', 'id-9', metadata={'role': 'web'}
    )
    world.heat.attributes['nova', 'show'] = shown
    wanted = {'stacks': ['s0'], 'metadata': {'role': 'web', 'tier': 'front'}}
    if is_target:
        (target,) = choose(world, **wanted).targets
        assert target.resource == 'db9'
    else:
        with pytest.raises(errors.NotFound, match='has other metadata'):
            choose(world, **wanted)


def test_metadata_that_a_function_gives_are_nova_s(world):
    stack = world.stacks[0]
    world.add(stack, 'db9', 'id-9')
    world.heat.add_resource(
        stack,
        'nova',
        'OS::Nova::Server',
        'id-9',
        metadata={'role': {'get_attr': ['roles', 'value']}},
    )
    world.heat.attributes['nova', 'show'] = {'metadata': {'role': 'proxy'}}
    wanted = {'stacks': ['s0'], 'metadata': {'role': 'proxy'}}
    (target,) = choose(world, **wanted).targets
    assert target.resource == 'db9'


@pytest.mark.parametrize(
    ('wanted', 'said'),
    [
        ({'tags': ['none']}, 'No stack has the tag none'),
        ({'stacks': ['s0', 's1']}, '2 targets are more than'),
        ({'stacks': ['s0'], 'action': 'CREATE'}, 'action CREATE; there are'),
    ],
)
def test_what_has_no_targets_or_too_many_is_refused(
    world, monkeypatch, wanted, said
):
    monkeypatch.setattr(run_records, 'MOST', 1)
    with pytest.raises(errors.Error, match=said):
        choose(world, **wanted)


def test_what_heat_alone_runs_has_no_targets():
    with pytest.raises(errors.NotFound, match='only Heat runs CREATE'):
        choose(World(actions=()), 'CREATE', stacks=['s0'])
