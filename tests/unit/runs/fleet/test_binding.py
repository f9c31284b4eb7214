# SPDX-License-Identifier: Apache-2.0
"""What a user who may write into the container of operations gets by that."""

import contextlib
import dataclasses
import json

import pytest

from heat_plugins import errors
from heat_plugins import stored
from heat_plugins.objectstore import lease
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_requests
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from tests.unit.runs.fleet import simulation

ONE = {'max_concurrent': operations.Share(1)}


class Attacked:
    """An operation whose first canary has succeeded, and its objects."""

    def __init__(self, silent=(), **limits):
        limits = limits or {'canary': 1, 'approve_after_canary': True}
        self.world = simulation.World(3, silent=silent)
        self.order = self.world.order(**limits)
        self.advancer = self.world.begin(self.order)
        self.work(40)
        self.objects = self.world.cluster.container(
            simulation.CONTAINER
        ).objects

    def work(self, seconds, advancer=None):
        for _ in range(seconds):
            (advancer or self.advancer).step()
            self.world.sleep(1)

    def after_a_restart(self):
        """Return what another process advances the operation by."""
        self.world.sleep(60)
        return self.door.advancer(self.order.id)

    @property
    def door(self):
        return fleets.Fleets(self.world.heat, self.world.tools())

    def name(self, kind):
        names = [one for one in sorted(self.objects) if kind in one]
        return names[-1]


def changed(content, **values):
    found = json.loads(content)
    target = found.get('value', found)
    target.update(values)
    return json.dumps(found).encode()


def assert_refused(attacked, what):
    """Nobody acts on the operation; each says which object was changed."""
    executed = dict(attacked.world.executed)
    for act in (
        lambda: attacked.after_a_restart().step(),
        lambda: attacked.door.show(attacked.order.id),
        lambda: attacked.door.request(attacked.order.id, 'resume'),
        lambda: attacked.door.delete(attacked.order.id),
    ):
        with pytest.raises(errors.Tampered, match=what) as caught:
            act()
        assert 'access control list' in str(caught.value)
    attacked.world.sleep(60)
    assert attacked.world.executed == executed
    attacked.door.delete(attacked.order.id, force=True)


def test_another_script_in_an_order_does_not_run():
    attacked = Attacked()
    name = layout.order(attacked.order.id)
    members = json.loads(attacked.objects[name])['members']
    members[1]['server_id'] = 'server-of-another-stack'
    attacked.objects[name] = changed(
        attacked.objects[name],
        members=members,
        config={'config': '#!/bin/sh\nrm -rf /'},
    )
    assert_refused(attacked, f'Object {name}')


@pytest.mark.parametrize('kind', ['/control', '/00000'])
def test_a_state_that_was_changed_is_not_believed(kind):
    attacked = Attacked()
    name = attacked.name(kind)
    found = json.loads(attacked.objects[name])
    if kind == '/control':
        found['value']['approved'] = True
    else:
        found['value'][0] = {}
    attacked.objects[name] = json.dumps(found).encode()
    assert_refused(attacked, f'Object {name}')


@pytest.mark.parametrize(
    'content', [b'{"began_at": 1, "approved": true}', b'[]', b'3', b'null']
)
def test_a_record_as_a_former_release_wrote_it_is_none(content):
    attacked = Attacked()
    name = attacked.name('/control')
    attacked.objects[name] = content
    assert_refused(attacked, f'Object {name}')


def test_a_state_cannot_be_moved_to_another_epoch():
    attacked = Attacked()
    control, shard = attacked.name('/control'), attacked.name('/00000')
    for name in (control, shard):
        moved = name.replace('/000001/', '/000002/')
        attacked.objects[moved] = attacked.objects[name]
    attacked.objects[lease.name(2, layout.leads(attacked.order.id))] = b'{}'
    assert_refused(attacked, '/000002/control')


def test_a_state_cannot_be_moved_to_another_operation():
    attacked = Attacked()
    order = dataclasses.replace(attacked.order, id='20270115T080001Z-11c0ffee')
    attacked.world.begin(order).release()
    for name in list(attacked.objects):
        if order.id in name and '/states/' in name:
            other = name.replace(order.id, attacked.order.id)
            attacked.objects[other] = attacked.objects[name]
    assert_refused(attacked, 'Object')


@pytest.mark.parametrize(
    'content', [b'{"do": "resume", "who": "demo"}', b'', b'[]', b'{"code":1}']
)
def test_an_unsigned_request_does_nothing(content, caplog):
    attacked = Attacked()
    for at in (0, 1e10):
        name = layout.new_request(attacked.order.id, at)
        attacked.objects[name] = content
    attacked.work(40)
    assert len(attacked.world.executed) == 1
    (warning,) = caplog.records
    assert layout.requests(attacked.order.id) in warning.getMessage()
    # It pushes no true one out, and leaves.
    attacked.work(30)
    assert not any('/requests/' in one for one in attacked.objects)
    attacked.door.request(attacked.order.id, 'resume')
    attacked.work(90)
    assert len(attacked.world.executed) == 3


def test_a_request_that_was_followed_does_nothing_again():
    attacked = Attacked(silent=[1], **ONE)
    book = attacked.world.tools().records
    seal = attacked.world.seals[attacked.order.id]
    kept = {}
    for _ in range(fleet_requests.KEPT):
        for what in ('pause', 'resume'):
            book.request(seal, attacked.world.now, do=what, who='ann')
            kept |= {
                name: content
                for name, content in attacked.objects.items()
                if '/requests/' in name
            }
            attacked.work(2)
    attacked.advancer.release()
    assert len(kept) == 2 * fleet_requests.KEPT
    advancer = attacked.after_a_restart()
    handled = advancer.step().control.handled
    assert len(handled) == fleet_requests.KEPT
    for name, content in kept.items():
        attacked.objects[name] = content
        attacked.work(3, advancer)
        assert advancer.operation.control.paused_by is None
    assert advancer.operation.control.handled == handled


def test_a_user_whose_clock_is_behind_is_heard():
    attacked = Attacked()
    ahead = attacked.world.now + 500
    seal = attacked.world.seals[attacked.order.id]
    attacked.world.tools().records.request(seal, ahead, do='pause', who='ann')
    attacked.work(3)
    assert attacked.advancer.operation.control.paused_by == 'ann'
    attacked.advancer.release()
    advancer = attacked.door.request(attacked.order.id, 'resume')
    assert advancer.operation.control.paused_by is None
    assert len(advancer.operation.control.handled) == 2


def test_what_heat_no_longer_knows_is_not_believed():
    attacked = Attacked()
    binding.forget(attacked.world.heat, attacked.order.id)
    assert_refused(attacked, 'Heat has no config of the group')


def test_several_in_heat_are_as_none():
    attacked = Attacked()
    heat = attacked.world.heat
    binding.register(
        heat, attacked.order, binding.Binding.new(attacked.order.id, b'')
    )
    assert_refused(attacked, 'or several')
    assert heat.deployments(attacked.order.id) == []


def test_what_ended_is_retried_with_its_proof():
    world = simulation.World(3, fail=[1])
    order = world.order()
    operation_id = order.id
    door = fleets.Fleets(world.heat, world.tools())
    simulation.run(world, [world.begin(order)])
    row = world.heat.rows[world.registered[operation_id]]
    assert row.status == binding.COMPLETE
    world.fail.clear()
    advancer = door.request(operation_id, 'retry')
    row = world.heat.rows[row.id]
    assert row.status == binding.IN_PROGRESS
    found = simulation.run(world, [advancer])
    assert found.control.phase is operations.Phase.COMPLETE
    assert world.heat.rows[row.id].status == binding.COMPLETE
    door.delete(operation_id)
    assert row.id not in world.heat.rows
    assert row.config_id not in world.heat.configs


class Former:
    """An operation that a command of a former release has begun."""

    def __init__(self, **world):
        self.world = simulation.World(2, **world)
        self.order = self.world.order()
        self.config = self.world.heat.add_config(
            name=self.order.id,
            group=binding.FORMER_GROUP,
            config=json.dumps({'stacks': self.order.stack_ids}),
            inputs=[],
            outputs=[],
        )
        seal = binding.Former(operation_id=self.order.id)
        self.advancer = advancing.Advancer(
            self.world.tools(), self.order, seal
        )
        self.advancer.begin(self.config.id)
        self.advancer.step()
        self.advancer.release()

    @property
    def door(self):
        return fleets.Fleets(self.world.heat, self.world.tools())


def test_an_operation_of_a_former_release_is_finished():
    former = Former()
    former.door.request(former.order.id, 'pause').release()
    advancer = former.door.request(former.order.id, 'resume')
    found = simulation.run(former.world, [advancer])
    assert found.control.phase is operations.Phase.COMPLETE
    assert former.config.id not in former.world.heat.configs
    assert former.door.show(former.order.id).ended
    former.door.delete(former.order.id)


def test_one_that_has_ended_is_started_anew():
    former = Former(fail=[1])
    advancer = former.door.advancer(former.order.id)
    simulation.run(former.world, [advancer])
    with pytest.raises(errors.Refused, match='Start the action again'):
        former.door.request(former.order.id, 'retry')


def test_a_run_of_one_is_deleted_with_all_others_alone():
    former = Former()
    advancer = former.door.advancer(former.order.id)
    simulation.run(former.world, [advancer])
    objects = former.world.cluster.container(simulation.CONTAINER).objects
    before = dict(objects)
    with pytest.raises(errors.Refused, match='operation delete'):
        former.world.service().delete('s0', f'{former.order.id}.0.1')
    assert objects == before


@pytest.mark.parametrize('name', ['another', None])
def test_one_that_heat_does_not_know_is_not_advanced(name):
    former = Former()
    configs = former.world.heat.configs
    if name is None:
        del configs[former.config.id]
    else:
        configs[former.config.id] = dataclasses.replace(
            former.config, name=name
        )
    for act in (
        lambda: former.door.advancer(former.order.id),
        lambda: former.door.show(former.order.id),
    ):
        with pytest.raises(errors.Tampered, match='Heat knows nothing of'):
            act()


class Forged:
    """An operation of a former release that Heat has never known."""

    def __init__(self):
        self.former = Former()
        self.world, self.order = self.former.world, self.former.order
        del self.world.heat.configs[self.former.config.id]
        self.objects = self.world.cluster.container(
            simulation.CONTAINER
        ).objects
        self.name = next(one for one in self.objects if '/control' in one)
        # As if nothing had started.
        del self.objects[self.name.replace('/control', '/00000')]
        self.controls = {
            ended: changed(
                self.objects[self.name],
                phase='complete' if ended else 'running',
                registered=self.former.config.id,
            )
            for ended in (True, False)
        }
        self.reads = 0

    def swap_after(self, reads):
        """Show it as ended, and as running once it was read that often."""
        self.objects[self.name] = self.controls[True]
        before = self.world.cluster.before

        def swapped(request):
            before(request)
            if request.method == 'GET' and f'{self.name}?' in request.url:
                ended = self.reads < reads
                self.objects[self.name] = self.controls[ended]
                self.reads += 1

        self.world.cluster.before = swapped


@pytest.mark.parametrize('reads', range(6))
def test_one_that_changes_between_two_reads_runs_nowhere(reads):
    forged = Forged()
    forged.swap_after(reads)
    runs = set(forged.world.heat.rows)

    def wait():
        for _ in range(reads + 1):
            forged.former.door.advancer(forged.order.id).step()

    with pytest.raises(errors.Tampered, match='Heat knows nothing of'):
        wait()
    assert forged.reads > reads
    assert set(forged.world.heat.rows) == runs


@pytest.mark.parametrize('reads', [100, 1, 2])
def test_one_that_has_ended_deletes_no_config_of_another(reads):
    forged = Forged()
    heat = forged.world.heat
    other = heat.add_config()
    for ended, content in forged.controls.items():
        forged.controls[ended] = changed(content, registered=other.id)
    # Running until it is led, or has ended all the time.
    forged.swap_after(reads)
    name = layout.new_request(forged.order.id, 0)
    forged.objects[name] = b'{"do": "retry", "who": "eve"}'
    with contextlib.suppress(errors.Tampered):
        for _ in range(5):
            forged.former.door.advancer(forged.order.id).step()
    assert other.id in heat.configs


def test_one_whose_end_heat_does_not_know_deletes_nothing():
    former = Former()
    heat = former.world.heat
    other = heat.add_config()
    seal = binding.Former(operation_id=former.order.id)
    ended = former.advancer.operation.changed(
        phase=operations.Phase.COMPLETE, registered=other.id
    )
    assert binding.finish(heat, ended, seal).control.registered is None
    assert other.id in heat.configs


def test_a_former_release_reads_no_state_of_this_one():
    attacked = Attacked()
    sealed = json.loads(attacked.objects[attacked.name('/control')])
    with pytest.raises(ValueError, match='not a Control'):
        stored.read(operations.Control, sealed)
    # Nor do its engines find the operation.
    groups = {one.group for one in attacked.world.heat.configs.values()}
    assert binding.FORMER_GROUP not in groups


def test_the_key_is_shown_nowhere():
    world = simulation.World(1)
    order = world.order()
    seal = world.tools().records.bind(order)
    key = seal.key.hex()
    assert len(seal.key) == 32
    assert key not in repr(seal)
    text = seal.text(['s'])
    assert binding.Binding.parse(order.id, text) == seal
    for wrong in (text[1:], None, 3, 'null', '{}'):
        with pytest.raises(ValueError, match=r'\w') as caught:
            binding.Binding.parse(order.id, wrong)
        assert key not in str(caught.value)
    with pytest.raises(ValueError, match='another operation'):
        binding.Binding.parse('another', text)
    with pytest.raises(ValueError, match='another version'):
        binding.Binding.parse(
            order.id, text.replace('"version": 1', '"version": 2')
        )
    with pytest.raises(ValueError, match='key is invalid'):
        binding.Binding.parse(order.id, text.replace(key, 'x' * 64))


def bound(**values):
    text = binding.Binding.new('x', b'').text(['one'])
    return json.dumps({**json.loads(text), **values})


@pytest.mark.parametrize(
    'values',
    [
        {'order': 'é' * 64},
        {'order': 'A' * 64},
        {'order': 'a' * 64 + '\n'},
        {'key': ''},
        {'key': 'ab ' * 21 + 'a'},
        {'key': '0' * 62},
        {'version': True},
        {'version': 1.0},
        {'version': 2},
        {'operation': 'y'},
    ],
)
def test_a_config_that_is_nearly_a_binding_is_none(values):
    assert binding.Binding.parse('x', bound()).operation_id == 'x'
    with pytest.raises(ValueError, match='another operation'):
        binding.Binding.parse('x', bound(**values))


def test_an_operation_whose_config_is_invalid_can_be_deleted():
    attacked = Attacked()
    world = attacked.world
    config, _ = world.bound[attacked.order.id]
    world.heat.configs[config.id] = dataclasses.replace(
        config,
        config=config.config.replace(attacked.advancer._seal.order, 'é'),
    )
    with pytest.raises(errors.Tampered, match='no valid config'):
        attacked.door.show(attacked.order.id)
    attacked.door.delete(attacked.order.id, force=True)
    assert attacked.door.history(fleets.Filter()) == []
