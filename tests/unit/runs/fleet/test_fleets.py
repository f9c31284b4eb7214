# SPDX-License-Identifier: Apache-2.0
"""Which targets an operation has, and how long it is remembered."""

import contextlib
import dataclasses
from unittest import mock

import pytest

from heat_plugins import errors
from heat_plugins import metrics
from heat_plugins.objectstore import lease
from heat_plugins.runs import runs
from heat_plugins.runs.fleet import advancing
from heat_plugins.runs.fleet import fleet_targets
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.start import orders
from tests.unit import counted
from tests.unit.runs.fleet import simulation
from tests.unit.runs.fleet import test_cost


@pytest.fixture
def world():
    return simulation.World(2)


def choose(world, action='BACKUP', **wanted):
    door = fleets.Fleets(world.heat, world.tools())
    return fleet_targets.Chooser(world.heat, door.pool).choose(
        fleet_targets.Wanted(**wanted), orders.RunOrder(action=action)
    )


@pytest.mark.parametrize('named', ['db1', 'id', 'd?1'])
def test_a_resource_is_named_by_its_path_its_id_or_a_pattern(world, named):
    if named == 'id':
        named = world.members[1].deployment_id
    (target,) = choose(world, resources=[named]).targets
    assert target.resource == 'db1'


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
        assert target.resource == 'db9'
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
    monkeypatch.setattr(operations, 'MOST', 1)
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
            chosen,
            operations.OperationLimits(),
            orders.RunOrder(action='BACKUP'),
        )
    assert set(world.heat.configs) == world.configs


def test_a_creation_that_is_interrupted_leaves_no_object(world):
    door = fleets.Fleets(world.heat, world.tools())
    chosen = choose(world, stacks=['s0'])
    with (
        mock.patch.object(
            operation_records.OperationRecords,
            'write_order',
            side_effect=KeyboardInterrupt,
        ),
        pytest.raises(KeyboardInterrupt),
    ):
        door.create(
            chosen,
            operations.OperationLimits(),
            orders.RunOrder(action='BACKUP'),
        )
    container = world.cluster.container(simulation.CONTAINER)
    assert container is None or not container.objects


TICK = '20270115T080000Z-00c0ffee'


def create_tick(world, who, is_alone=lambda: False):
    door = fleets.Fleets(world.heat, world.tools(who))
    return door.create(
        choose(world, stacks=['s0']),
        operations.OperationLimits(),
        orders.RunOrder(action='BACKUP'),
        operation_id=TICK,
        is_alone=is_alone,
    )


def test_who_was_alone_with_a_tick_leaves_its_successor_s(world):
    before, successors = world.cluster.before, []

    def late(request):
        is_lease = request.url.partition('?')[0].endswith(f'{TICK}/000001')
        if request.method == 'PUT' and is_lease and not successors:
            # It takes effect after all that another process does.
            successors.append(None)
            successors[0] = create_tick(world, 'successor')
            successors[0].step()
        before(request)

    world.cluster.before = late
    with pytest.raises(errors.Unavailable, match='Another process creates'):
        create_tick(world, 'slow', lambda: not successors)
    (successor,) = successors
    while not successor.step().ended:
        world.sleep(1)
    assert successor.operation.control.phase is operations.Phase.COMPLETE
    assert set(world.executed.values()) == {1}


def test_who_creates_a_tick_too_late_leaves_its_successor_s(world):
    register, others = binding.register, []

    def slow(heat, order, seal):
        registered = register(heat, order, seal)
        if not others:
            others.append(None)
            # As long as a request may take.
            world.now += lease.EXPIRY + 15
            others.append(create_tick(world, 'successor'))
        return registered

    with (
        mock.patch.object(binding, 'register', slow),
        pytest.raises(errors.Unavailable, match='Another process creates'),
    ):
        create_tick(world, 'late')
    simulation.run(world, [others[1]])
    door = fleets.Fleets(world.heat, world.tools())
    assert door.show(TICK).control.phase is operations.Phase.COMPLETE


def test_all_order_a_tick_alike_and_count_its_time_from_its_begin(world):
    created = record_names.started_at(TICK)
    world.now = created + 3600.5
    advancer = create_tick(world, 'a')
    assert advancer.operation.order.created_at == created
    assert advancer.operation.control.began_at == created + 3600


def test_a_tick_that_could_not_be_created_is_retried_at_once(world):
    world.heat.failing['create_deployment'] = errors.Denied('no', 403)
    with pytest.raises(errors.Denied):
        create_tick(world, 'a')
    del world.heat.failing['create_deployment']
    advancer = create_tick(world, 'b')
    assert advancer.is_leading


def test_who_may_create_no_deployments_registers_nothing(world):
    door = fleets.Fleets(world.heat, world.tools())
    chosen = choose(world, stacks=['s0'])
    world.heat.failing['create_deployment'] = errors.Denied('no', 403)
    with pytest.raises(errors.Denied):
        door.create(
            chosen,
            operations.OperationLimits(),
            orders.RunOrder(action='BACKUP'),
        )
    assert set(world.heat.configs) == world.configs
    assert world.cluster.container(simulation.CONTAINER) is None


def test_the_runs_of_a_stack_have_their_outputs_whole(world):
    world.stdout = 'x' * (runs.TAIL + 1)
    tools = world.tools()
    door = overview.OperationRuns(tools.records, world.heat)
    for name in ('20270115T080000Z-00c0ffee', '20270115T080000Z-11c0ffee'):
        order = dataclasses.replace(world.order(), id=name)
        one = world.begin(order)
        simulation.run(world, [one])

    def listed(**wanted):
        wanted = dict.fromkeys(('action', 'since', 'limit')) | wanted
        return door.history(world.stacks[0].id, lambda run: True, **wanted)

    newest, oldest = listed()
    assert overview.run_of(*door.find(newest.id)) == newest
    assert listed(action='OTHER') == []
    assert listed(limit=1) == [newest]
    assert len(newest.outputs['deploy_stdout']) == runs.TAIL
    whole = tools.objects(newest).outputs(newest)
    assert whole['deploy_stdout'] == world.stdout
    container = world.cluster.container(simulation.CONTAINER)
    del container.objects[layout.outputs(*layout.attempt_of(oldest.id))]
    assert tools.objects(oldest).outputs(oldest) == oldest.outputs
    # What is repeated must be proved; a list shows it all the same.
    name = layout.order(oldest.operation)
    container.objects[name] += b' '
    with pytest.raises(errors.Tampered, match=name):
        door.find(oldest.id)
    assert listed() == [newest, oldest]


def test_what_has_not_ended_is_not_forgotten(world):
    order = world.order()
    world.begin(order)
    door = fleets.Fleets(world.heat, world.tools())
    with pytest.raises(errors.Refused, match='is running; cancel it first'):
        door.delete(order.id, force=True)


def test_an_unreadable_record_is_forgotten_by_force_alone(world):
    order = world.order()
    world.begin(order)
    door = fleets.Fleets(world.heat, world.tools())
    container = world.cluster.container(simulation.CONTAINER)
    container.objects[layout.control(order.id, 1)] = b'{}'
    with pytest.raises(errors.Tampered, match='Check the access control list'):
        door.delete(order.id)
    before = set(world.heat.rows)
    assert door.delete(order.id, force=True) == order.id
    # Nor does Heat know of it any longer.
    assert before - set(world.heat.rows) == {world.registered[order.id]}
    assert len(world.configs - set(world.heat.configs)) == 1


def test_the_oldest_that_have_ended_are_forgotten():
    world, _ = test_cost.operated(4)
    door = fleets.Fleets(
        world.heat, world.tools(), record_names.Retention(number=2)
    )
    newest = [one.id for one in door.history(fleets.Filter())]
    heads = world.tools().records.heads
    # Of this one a user says that it has ended.
    order = dataclasses.replace(world.order(), id=newest[3])
    world.begin(order)
    heads.write(dataclasses.replace(heads.read(newest[0]), id=newest[3]))
    before = len(world.cluster.seen)
    door.forget_surplus()
    # Whether an operation has ended does not take its attempts.
    read = [
        one.where
        for one in world.cluster.seen[before:]
        if one.method == 'GET' and one.where.endswith('/00000')
    ]
    assert read == []
    assert [one.id for one in door.history(fleets.Filter())] == [
        *newest[:2],
        newest[3],
    ]


def test_what_a_backfill_has_run_is_as_old_as_its_end():
    world, _ = test_cost.operated(3)
    heads = world.tools().records.heads
    newest = heads.ids()[-1]
    head = heads.read(newest)
    # Of a tick more than 90 days ago.
    tick = record_names.id_of_tick('nightly', int(world.now) - 200 * 86400)
    heads.write(
        dataclasses.replace(head, id=tick, ended_at=head.ended_at + 60)
    )
    door = fleets.Fleets(
        world.heat, world.tools(), record_names.Retention(number=2)
    )
    door.forget_surplus()
    assert heads.ids() == [tick, newest]


def test_what_cannot_be_checked_is_not_forgotten():
    world, _ = test_cost.operated(3)
    heads = world.tools().records.heads
    oldest = heads.ids()[0]
    head = heads.read(oldest)
    order = dataclasses.replace(world.order(), id=oldest)
    world.begin(order).release()
    heads.write(head)
    objects = world.cluster.container(simulation.CONTAINER).objects
    door = fleets.Fleets(
        world.heat, world.tools(), record_names.Retention(number=2)
    )
    objects[layout.order(oldest)] += b' '
    door.forget_surplus()
    assert oldest in heads.ids()
    # Nor is what somebody else has made look as if it had never begun.
    for name in list(objects):
        if name.startswith(f'operations/states/{oldest}'):
            del objects[name]
    objects[layout.order(oldest)] = objects[layout.order(oldest)][:-1]
    door.forget_surplus()
    assert oldest in heads.ids()


def test_an_engine_that_answers_advances_what_a_command_has_started(world):
    order = world.order()
    asked, leading = [], []
    sleep = world.sleep

    def look():
        engine = world.advancer(order, 'engine')
        if engine.lead():
            leading.append(engine)

    def slept(seconds):
        sleep(seconds)
        if asked and not leading:
            look()

    def ask(operation_id):
        asked.append(operation_id)
        # As the command has not released it yet, it looks again.
        look()
        assert not leading

    world.sleep, world.heat.engine = slept, ask
    command = world.begin(order)
    assert command.hand_over()
    assert asked == [order.id]
    (engine,) = leading
    command.step()
    assert not command.is_leading
    found = simulation.run(world, [engine, command])
    assert found.control.phase.value == 'complete'
    assert set(world.executed.values()) == {1}


def test_what_no_engine_begins_with_the_command_advances(world):
    order = world.order()
    world.heat.engine = lambda operation_id: None
    command = world.begin(order)
    before = world.now
    assert not command.hand_over()
    assert world.now - before <= 16
    found = simulation.run(world, [command])
    assert found.control.phase.value == 'complete'


def test_a_command_sees_a_retry_through(world):
    world.fail = {0}
    order = world.order()
    ended = simulation.run(world, [world.begin(order)])
    assert ended.control.phase.value == 'failed'
    world.fail = set()
    asked = []
    world.heat.engine = asked.append
    door = fleets.Fleets(world.heat, world.tools())
    command = door.request(order.id, 'retry')
    # Engines know of it, and wait until it is released.
    assert asked == [order.id]
    assert not command.hand_over()
    assert command.is_leading


@pytest.mark.parametrize('failure', [None, errors.Denied('no', 403)])
def test_where_no_engine_answers_a_command_leads_on(world, failure):
    command = world.begin(world.order())
    world.heat.failing |= {'set_status': failure} if failure else {}
    before = world.now
    assert not command.hand_over()
    assert command.is_leading
    assert world.now == before


def test_nothing_is_left_of_one_whose_leader_died_at_the_end(world):
    order = world.order()
    advancer = world.begin(order)
    simulation.run(world, [advancer])
    records = world.tools().records
    records.announce(order)
    door = fleets.Fleets(world.heat, world.tools())
    door.delete(order.id)
    assert world.cluster.container(simulation.CONTAINER) is None


def test_a_run_is_counted_once_although_its_end_is_not_recorded_at_first(
    world,
):
    order = world.order()
    advancer = world.begin(order)
    record, failed = advancer._journal.record, []

    def fail(operation):
        has_ended = any(each.ended_at for each in operation.attempts)
        if has_ended and len(failed) < 3:
            failed.append(operation)
            raise errors.Unavailable('503')
        record(operation)

    advancer._journal.record = fail
    with counted.Counted() as counts:
        simulation.run(world, [advancer])
    assert counts.of(metrics.RUNS) == {'complete': len(order.members)}


@pytest.mark.parametrize('follow', [True, False])
def test_lists_show_the_end_although_its_leader_died_there(world, follow):
    order = world.order()
    advancer = world.begin(order)
    write = advancer._records.heads.write

    def die(head):
        if head.ended:
            raise simulation.Killed
        write(head)

    advancer._records.heads.write = die
    with contextlib.suppress(simulation.Killed):
        simulation.run(world, [advancer])
    world.sleep(300)
    heads = world.tools().records.heads
    assert not heads.read(order.id).ended
    other = world.advancer(order, 'bob')
    if follow:
        other.step()
    else:
        # As an engine does with what has ended.
        other.take_out()
    assert heads.read(order.id).ended
    assert not other.is_leading


@pytest.mark.parametrize(('drawn', 'is_to_tidy'), [(0, True), (19, False)])
def test_some_ticks_forget_what_is_surplus(drawn, is_to_tidy):
    with mock.patch.object(fleets.secrets, 'randbelow', return_value=drawn):
        assert fleets.is_tick_to_tidy() is is_to_tidy


def test_a_creation_at_a_tick_forgets_nothing_while_it_leads(world):
    with (
        mock.patch.object(fleets.secrets, 'randbelow', return_value=0),
        mock.patch.object(fleets.Fleets, 'forget_surplus') as forget,
    ):
        create_tick(world, 'a')
    assert forget.call_count == 0
