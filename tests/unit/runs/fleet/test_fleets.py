# SPDX-License-Identifier: Apache-2.0
"""Which targets an operation has, and how long it is remembered."""

import dataclasses
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins.runs import run as runs
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import limits as limit_values
from heat_plugins.runs.fleet import operation_runs
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.records import retention
from heat_plugins.runs.start import starting
from tests.unit.runs.fleet import simulation
from tests.unit.runs.fleet import test_cost


@pytest.fixture
def world():
    return simulation.World(2)


def choose(world, action='BACKUP', **wanted):
    door = fleets.Fleets(world.heat, world.tools())
    return fleet_targets.Chooser(world.heat, door.pool).choose(
        fleet_targets.Wanted(**wanted), starting.Order(action=action)
    )


@pytest.mark.parametrize('named', ['db1', 'id', 'd?1'])
def test_a_resource_is_named_by_its_path_its_id_or_a_pattern(world, named):
    if named == 'id':
        named = world.members[1].deployment_id
    (target,) = choose(world, resources=[named]).targets
    assert target.path == 'db1'


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
    world.heat.add_deployment(stack, 'far', server='of no resource')
    world.heat.add_deployment(stack, 'db9', server='id-9')
    world.heat.add_resource(
        stack, 'nova', 'OS::Nova::Server', 'id-9', metadata={'role': 'web'}
    )
    world.heat.attributes['nova', 'show'] = shown
    wanted = {'stacks': ['s0'], 'metadata': {'role': 'web', 'tier': 'front'}}
    if is_target:
        (target,) = choose(world, **wanted).targets
        assert target.path == 'db9'
    else:
        with pytest.raises(errors.NotFound, match='has other metadata'):
            choose(world, **wanted)


@pytest.mark.parametrize(
    ('wanted', 'said'),
    [
        ({'tags': ['none']}, 'No stack has the tag none'),
        ({'stacks': ['s0', 's1']}, '2 targets are more than an operation'),
        ({'stacks': ['s0'], 'action': 'CREATE'}, 'action CREATE; there are'),
    ],
)
def test_what_has_no_targets_or_too_many_is_refused(
    world, monkeypatch, wanted, said
):
    monkeypatch.setattr(fleet_targets, 'MOST', 1)
    with pytest.raises(errors.Error, match=said):
        choose(world, **wanted)


def test_what_heat_alone_runs_has_no_targets():
    with pytest.raises(errors.NotFound, match='only Heat runs CREATE'):
        choose(simulation.World(1, actions=()), 'CREATE', stacks=['s0'])


def test_what_cannot_be_recorded_leaves_nothing_in_heat(world):
    door = fleets.Fleets(world.heat, world.tools())
    chosen = choose(world, stacks=['s0'])
    with (
        mock.patch.object(
            advancing.Advancer, 'begin', side_effect=KeyboardInterrupt
        ),
        pytest.raises(KeyboardInterrupt),
    ):
        door.create(
            chosen, limit_values.Limits(), starting.Order(action='BACKUP')
        )
    assert set(world.heat.configs) == world.configs


def test_the_runs_of_a_stack_have_their_outputs_whole(world):
    world.stdout = 'x' * (runs.TAIL + 1)
    door = operation_runs.OperationRuns(world.tools().book)
    for name in ('20270115T080000Z-00c0ffee', '20270115T080000Z-11c0ffee'):
        order = dataclasses.replace(world.order(), id=name)
        one = world.advancer(order)
        one.begin()
        simulation.run(world, [one])

    def listed(**wanted):
        wanted = dict.fromkeys(('action', 'since', 'limit')) | wanted
        return door.history(world.stacks[0].id, lambda run: True, **wanted)

    newest, oldest = listed()
    assert listed(action='OTHER') == []
    assert listed(limit=1) == [newest]
    assert len(newest.outputs['deploy_stdout']) == runs.TAIL
    assert door.outputs(newest)['deploy_stdout'] == world.stdout
    container = world.cluster.container(simulation.CONTAINER)
    del container.objects[layout.outputs(*layout.attempt_of(oldest.id))]
    assert door.outputs(oldest) == oldest.outputs


def test_what_has_not_ended_is_not_forgotten(world):
    order = world.order()
    world.advancer(order).begin()
    door = fleets.Fleets(world.heat, world.tools())
    with pytest.raises(errors.Refused, match='is running; cancel it first'):
        door.delete(order.id, force=True)


def test_an_unreadable_record_is_forgotten_by_force_alone(world):
    order = world.order()
    world.advancer(order).begin()
    door = fleets.Fleets(world.heat, world.tools())
    container = world.cluster.container(simulation.CONTAINER)
    container.objects[layout.control(order.id, 1)] = b'{}'
    with pytest.raises(errors.Error, match='has an unreadable record'):
        door.delete(order.id)
    assert door.delete(order.id, force=True) == order.id


def test_the_oldest_that_have_ended_are_forgotten():
    world, _ = test_cost.operated(4)
    door = fleets.Fleets(
        world.heat, world.tools(), retention.Retention(number=2)
    )
    newest = [one['id'] for one in door.history(fleets.Filter())]
    heads = world.tools().book.heads
    # This one is retried meanwhile.
    retried = heads.read(newest[3]) | {'state': 'running', 'ended_at': None}
    with mock.patch.object(
        type(heads), 'newest', return_value=list(heads.newest())
    ):
        heads.write(newest[3], retried)
        door.forget_surplus()
    assert [one['id'] for one in door.history(fleets.Filter())] == [
        *newest[:2],
        newest[3],
    ]
