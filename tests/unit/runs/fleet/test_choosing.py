# SPDX-License-Identifier: Apache-2.0
"""What is read of many targets to choose them, and when they are started."""

import dataclasses

import pytest

from heat_plugins import errors
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.start import orders
from tests.unit.runs.fleet import simulation

SERVERS = {f'n{number}': f'server-{number}' for number in range(6)}


@pytest.fixture
def world():
    """Return a stack with one group, and what Heat has of its members."""
    world = simulation.World(0, stacks=1)
    world.rows = world.heat.add_group(world.stacks[0], 'fleet', SERVERS)
    world.original = set(world.heat.rows)
    for number, row in enumerate(world.rows.values()):
        change(world, row, database=f'db{number}')
    world.heat.asked.clear()
    return world


def change(world, row, **values):
    """Give a server other values than the config had."""
    config = world.heat.configs[row.config_id]
    world.heat.configs[row.config_id] = dataclasses.replace(
        config,
        inputs=[
            {**each, 'value': values.get(each['name'], each['value'])}
            for each in config.inputs
        ],
    )


def door(world, who='ann'):
    return fleets.Fleets(world.heat, world.tools(who))


def choose(world, action='BACKUP', inputs=None, **wanted):
    order = orders.RunOrder(action=action, inputs=inputs or {})
    wanted = fleet_targets.Wanted(**{'stacks': ['s0'], **wanted})
    chooser = fleet_targets.Chooser(world.heat, door(world).pool)
    return chooser.choose(wanted, order)


def read(world):
    """Return the configs that Heat was asked for."""
    return [
        each.partition(' ')[2]
        for each in world.heat.asked
        if each.startswith('config ')
    ]


def begin(world, **order):
    chosen = choose(world, **order)
    return door(world).create(
        chosen,
        operations.OperationLimits(),
        orders.RunOrder(action='BACKUP', inputs=order.get('inputs', {})),
    )


def given(world):
    """Return the values that servers are given for a run, by server."""
    return {
        row.server_id: {
            each['name']: each['value']
            for each in world.heat.configs[row.config_id].inputs
        }
        for row in world.given
    }


def test_servers_that_were_given_the_same_cost_two_configs(world):
    chosen = choose(world)
    assert len(chosen.targets) == len(SERVERS)
    assert len(set(chosen.variants)) == 1
    # The first, the last, and that of the template.
    assert len(read(world)) == 3


@pytest.mark.parametrize('engines', [simulation.nobody, simulation.everybody])
def test_each_server_is_given_its_own_values(world, engines):
    world.engines = engines
    advancer = begin(world)
    advancer.step()
    assert {
        server: values['database'] for server, values in given(world).items()
    } == {server: f'db{server[-1]}' for server in SERVERS.values()}
    assert {
        server: values['deploy_server_id']
        for server, values in given(world).items()
    } == {server: server for server in SERVERS.values()}


def test_a_command_alone_reads_no_config_twice(world):
    begin(world).step()
    assert len(read(world)) == len(set(read(world))) == len(SERVERS) + 1


def test_what_a_server_is_given_meanwhile_counts(world):
    advancer = begin(world)
    row = world.rows['n4']
    newer = dataclasses.replace(
        world.heat.configs.pop(row.config_id), id='newer', name='newer'
    )
    world.heat.configs[newer.id] = newer
    world.heat.rows[row.id] = dataclasses.replace(row, config_id=newer.id)
    advancer.step()
    names = {world.heat.configs[row.config_id].name for row in world.given}
    assert names == {'fleet-BACKUP', 'newer-BACKUP'}


@pytest.mark.parametrize(
    ('wanted', 'said'),
    [
        ({'action': 'BAKCUP'}, 'did you mean "BACKUP"'),
        ({'inputs': {'levle': 9}}, 'did you mean "level"'),
        ({'inputs': {'level': 'x'}}, 'must be a number'),
    ],
)
def test_a_mistake_is_told_before_anything_starts(world, wanted, said):
    with pytest.raises(errors.Error, match=said):
        choose(world, **wanted)


@pytest.mark.parametrize('engines', [simulation.nobody, simulation.everybody])
def test_what_only_one_server_lacks_is_its_failure(world, engines):
    world.engines = engines
    change(world, world.rows['n3'], password=None)
    rewrite(world, 'n4')
    operation = begin(world).step()
    reasons = {
        operation.order.members[n].server_id: attempt.reason
        for n, attempt in enumerate(operation.attempts)
        if attempt.state is runs.State.FAILED
    }
    assert reasons.keys() == {'server-3', 'server-4'}
    assert 'input "password" has no value' in reasons['server-3']
    assert 'fleet.n4 has no action BACKUP' in reasons['server-4']
    assert len(world.given) == 4


def rewrite(world, *names):
    """Let servers have been given a config without an action."""
    for name in names:
        config = world.heat.configs[world.rows[name].config_id]
        world.heat.configs[config.id] = dataclasses.replace(
            config, config={'configs': config.config['configs'][:1]}
        )


@pytest.mark.parametrize('former', [1, 2, 3, 4, 5])
def test_what_was_given_before_an_update_is_told_from_what_is_new(
    world, former
):
    states = world.heat.attributes['fleet', 'members']
    # The group lists them by their names.
    late = ['n4', 'n0', 'n3', 'n1', 'n5', 'n2']
    for minute, name in enumerate(late):
        states[name]['delivered_at'] = f'2027-01-15T08:0{minute}:00Z'
    rewrite(world, *late[:former])
    chosen = choose(world)
    targets = {each.server_id[-1] for each in chosen.targets}
    assert targets == {name[-1] for name in late[former:]}
    left_out = {each.resource for each in chosen.left_out}
    assert left_out == {f'fleet.{name}' for name in late[:former]}


def test_names_without_a_target_are_known(world):
    states = world.heat.attributes['fleet', 'members']
    for minute, name in enumerate(sorted(states, key='n2'.__ne__)):
        states[name]['delivered_at'] = f'2027-01-15T08:0{minute}:00Z'
    rewrite(world, 'n2')
    names = ['fleet', 'fleet.n2', 'gone', 'gone*']
    assert choose(world, resources=names).unmet == ['fleet.n2', 'gone']


def test_an_update_and_its_rollback_hide_nothing_between_them(world):
    states = world.heat.attributes['fleet', 'members']
    rewrite(world, 'n2', 'n3')
    for minute, (name, state) in enumerate(states.items()):
        state['delivered_at'] = f'2027-01-15T08:0{minute}:00Z'
        config = world.heat.configs[world.rows[name].config_id]
        state['config_digest'] = config.digest
    world.heat.asked.clear()
    chosen = choose(world)
    left_out = {each.resource for each in chosen.left_out}
    assert left_out == {'fleet.n2', 'fleet.n3'}
    assert sum(one.startswith('config ') for one in world.heat.asked) <= 5


def test_a_template_that_is_forbidden_is_not_asked_for_again(world):
    world.heat.failing = {'template': errors.Denied('no')}
    assert len(choose(world).targets) == len(SERVERS)
    assert sum(each.startswith('template ') for each in world.heat.asked) == 1


@pytest.mark.parametrize('name', SERVERS)
def test_a_config_that_is_gone_stands_for_no_other(world, name):
    del world.heat.configs[world.rows[name].config_id]
    # Who starts the run sees it.
    assert len(choose(world).targets) >= len(SERVERS) - 1


def test_a_single_target_has_its_own_values(world):
    for name, server in SERVERS.items():
        world.heat.add_resource(
            world.stacks[0],
            f'server_{name}',
            'OS::Heat::DeployedServer',
            server,
            metadata={'name': name},
        )
    (target,) = choose(world, metadata={'name': 'n4'}).targets
    assert not target.is_own
    world.service().start(target, orders.RunOrder(action='BACKUP'))
    assert given(world)['server-4']['database'] == 'db4'


def test_what_is_no_member_of_a_group_has_its_own(world):
    heat, (root,) = world.heat, world.stacks
    for n in range(3):
        nested = heat.add_stack(f'nested{n}', root.id)
        heat.add_resource(
            root, f'tier{n}', 'OS::Heat::Stack', nested.id, nested.id
        )
        heat.add_deployment(nested)
    chosen = choose(world, resources=['tier*'])
    assert [each.is_own for each in chosen.targets] == [True] * 3
