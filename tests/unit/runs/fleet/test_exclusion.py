# SPDX-License-Identifier: Apache-2.0
"""An action runs at most once at a time on a deployment, whoever starts it."""

import collections
import contextlib
import dataclasses
import json

import hypothesis
from hypothesis import strategies as st
import pytest

from heat_plugins import errors
from heat_plugins.objectstore import exclusive
from heat_plugins.runs.fleet import exclusions
from heat_plugins.runs.fleet import fleets
from heat_plugins.runs.fleet import operations
from heat_plugins.runs.fleet import overview
from heat_plugins.runs.fleet.records import binding
from heat_plugins.runs.fleet.records import layout
from heat_plugins.runs.fleet.records import operation_records
from heat_plugins.runs.records import record_names
from heat_plugins.runs.records import records
from heat_plugins.runs.start import orders
from tests.unit import examples
from tests.unit.runs.fleet import simulation

_SECOND = '20270115T080001Z-00c0ffee'
_EXAMPLES = hypothesis.settings(
    max_examples=examples.number(20), deadline=None, derandomize=True
)

_State = operations.State


class World(simulation.World):
    """A world with single runs, whose results somebody waits for."""

    def single(self, member=0):
        service = self.service()
        (target,) = service.find('s0', f'db{member}')
        return service.start(target, orders.RunOrder(action='BACKUP'))

    def settled(self, run):
        return self.service().show('s0', run.id)

    def second(self, order, **limits):
        """Return another operation on the same targets."""
        limits = dataclasses.replace(order.limits, **limits)
        return dataclasses.replace(order, id=_SECOND, limits=limits)

    @property
    def busiest(self):
        """How many runs the busiest server has now."""
        counts = collections.Counter(one.server_id for one in self.given)
        return max(counts.values(), default=0)


@pytest.fixture
def world():
    return World(3, stacks=1)


def states(found):
    return [one.state and one.state.value for one in found.attempts]


def test_an_operation_skips_a_target_on_which_the_action_runs(world):
    run = world.single()
    found = simulation.run(world, [world.begin(world.order())])
    assert states(found) == ['skipped', 'complete', 'complete']
    assert found.attempts[0].reason == f'BACKUP already runs: {run.id}'
    assert found.control.phase is operations.Phase.COMPLETE
    assert found.control.reason == 'All 2 succeeded; BACKUP already ran on 1'
    assert len(overview.runs_of(found)) == 2
    assert world.executed.keys() & {found.run_id(0)} == set()


def test_an_operation_that_has_run_nothing_is_not_complete(world):
    for member in range(3):
        world.single(member)
    found = simulation.run(world, [world.begin(world.order())])
    assert states(found) == ['skipped'] * 3
    assert found.control.phase is operations.Phase.FAILED
    assert found.control.reason == 'BACKUP already runs on 3'


def test_a_retry_that_has_run_nothing_is_not_complete(world):
    world.fail, world.silent = {0}, {0}
    order = world.order(timeout=60)
    simulation.run(world, [world.begin(order)])
    world.single()
    seal = world.seals[order.id]
    world.tools().records.request(seal, world.now, do='retry', who='ann')
    found = simulation.run(world, [world.advancer(order)])
    assert states(found) == ['skipped', 'complete', 'complete']
    assert found.control.phase is operations.Phase.FAILED
    assert found.control.reason == 'BACKUP already runs on 1'


def test_scripts_of_operations_exclude_nothing(world):
    config = {
        **{'id': '', 'name': None, 'group': 'script', 'options': {}},
        **{'inputs': [], 'outputs': [], 'config': 'uptime'},
    }
    order = world.order()
    # As `Finder.server` makes them: what is deployed is the server.
    members = [
        dataclasses.replace(one, deployment_id=one.server_id)
        for one in order.members
    ]
    orders = [
        dataclasses.replace(
            each, action='APPLY', config=config, members=tuple(members)
        )
        for each in (order, world.second(order))
    ]
    former, latter = (world.begin(each) for each in orders)
    former.step()
    latter.step()
    assert latter.operation.live == former.operation.live == [0, 1, 2]
    assert simulation.run(world, [latter]).count(_State.COMPLETE) == 3
    assert simulation.run(world, [former]).count(_State.COMPLETE) == 3


def test_a_single_run_whose_result_has_come_is_settled_and_not_in_the_way(
    world,
):
    run = world.single()
    for _ in range(60):
        world.sleep(1)
    found = simulation.run(world, [world.begin(world.order())])
    assert states(found) == ['complete'] * 3
    assert world.settled(run).state is _State.COMPLETE


def test_what_is_left_of_a_run_that_has_ended_goes_first(world):
    """Its starter could not take it from its server."""
    run = world.single()
    store = records.Records(world.cluster.store(), run.stack_id)
    store.write(
        dataclasses.replace(
            run,
            state=_State.CANCELLED,
            ended_at=run.started_at,
            row_id=None,
        )
    )
    advancer = world.begin(world.order())
    advancer.step()
    assert world.busiest == 1
    assert store.opened() == []


def test_an_operation_that_waits_takes_its_turn(world):
    run = world.single()
    order = world.order(
        if_running=operations.WAIT,
        max_concurrent=operations.Share(1),
    )
    advancer = world.begin(order)
    for _ in range(5):
        advancer.step()
        world.sleep(1)
        assert world.busiest <= 1
    # It holds no place meanwhile.
    assert advancer.operation.attempts[1].number == 1
    waiting = advancer.operation.attempts[0]
    assert waiting.reason == f'BACKUP already runs: {run.id}'
    found = simulation.run(world, [advancer])
    assert states(found) == ['complete'] * 3
    assert set(world.executed.values()) == {1}
    first = world.settled(run)
    assert first.ended_at <= found.attempts[0].started_at


def test_a_skipped_canary_gives_its_place_to_another(world):
    world.single()
    found = simulation.run(world, [world.begin(world.order(canary=1))])
    assert states(found) == ['skipped', 'complete', 'complete']


def test_what_was_skipped_can_be_retried(world):
    run = world.single()
    order = world.order()
    advancer = world.begin(order)
    simulation.run(world, [advancer])
    while not world.settled(run).ended:
        world.sleep(1)
    seal = world.seals[order.id]
    world.tools().records.request(seal, world.now, do='retry', who='ann')
    found = simulation.run(world, [world.advancer(order)])
    assert states(found) == ['complete'] * 3


def test_a_single_run_gives_way_to_that_of_an_operation(world):
    world.silent = {0}
    advancer = world.begin(world.order())
    advancer.step()
    with pytest.raises(errors.AlreadyRunning) as raised:
        world.single()
    assert raised.value.run_id == advancer.operation.run_id(0)
    assert advancer.operation.run_id(0) in str(raised.value)
    # Another action is another claim.
    service = world.service()
    (target,) = service.find('s0', 'db0')
    assert service.start(target, orders.RunOrder(action='FAIL/OVER'))


def test_a_single_run_starts_once_the_operation_has_ended_there(world):
    world.silent = {1}
    advancer = world.begin(world.order())
    while not (advancer.operation.attempts[0].state or _State.WAITING).ended:
        advancer.step()
        world.sleep(1)
    advancer.release()
    assert not advancer.operation.ended
    assert world.single()


@pytest.mark.parametrize('is_older_first', [True, False])
def test_of_two_operations_one_runs_on_each_target(world, is_older_first):
    order = world.order()
    orders = [order, world.second(order)]
    first, second = orders if is_older_first else orders[::-1]
    former, latter = world.begin(first), world.begin(second)
    former.step()
    # Until its record says that it does not give way.
    world.silent = {0, 1, 2}
    while not latter.operation.ended:
        former.step()
        latter.step()
        world.sleep(1)
    assert states(latter.operation) == ['skipped'] * 3
    assert latter.operation.attempts[2].reason == (
        f'BACKUP already runs: {first.id}.2.1'
    )
    assert former.operation.live == [0, 1, 2]


def test_nothing_is_listed_of_an_operation_that_has_ended(world):
    order = world.order()
    simulation.run(world, [world.begin(order)])
    simulation.run(world, [world.begin(world.second(order))])
    container = world.cluster.container(simulation.CONTAINER)
    prefix = layout.live('BACKUP')
    assert [one for one in container.objects if one.startswith(prefix)] == []


def test_an_operation_that_cannot_be_read_holds_nothing(world):
    order = world.order()
    advancer = world.begin(order)
    advancer.step()
    container = world.cluster.container(simulation.CONTAINER)
    container.objects[layout.order(order.id)] = b'{}'
    assert world.single()


def test_a_stack_that_cannot_be_looked_into_stops_no_operation(
    world, monkeypatch, caplog
):
    def opened(self, *args):
        raise errors.Denied('403', 403)

    monkeypatch.setattr(records.Records, 'opened', opened)
    found = simulation.run(world, [world.begin(world.order())])
    assert states(found) == ['complete'] * 3
    warnings = [one for one in caplog.messages if 'Cannot tell' in one]
    assert len(warnings) == 1


def test_an_operation_waits_for_a_store_that_is_out_of_order(
    world, monkeypatch
):
    def opened(self, *args):
        raise errors.Unavailable('503')

    advancer = world.begin(world.order())
    with monkeypatch.context() as context:
        context.setattr(records.Records, 'opened', opened)
        with pytest.raises(errors.Unavailable):
            advancer.step()
    assert world.given == []
    found = simulation.run(world, [advancer])
    assert states(found) == ['complete'] * 3


def test_an_operation_of_the_former_release_takes_its_claims(world):
    # It has recorded runs, but is not listed and says nothing of claims.
    order = world.order()
    advancer = world.begin(order)
    advancer.step()
    container = world.cluster.container(simulation.CONTAINER)
    del container.objects[layout.live('BACKUP') + order.id]
    advancer.release()
    assert world.tools().is_led(order.id) is False
    found = simulation.run(world, [world.advancer(order)])
    assert states(found) == ['complete'] * 3


def end(world, *advancers):
    """Advance operations to their ends; see that all take their turns."""
    for _ in range(400):
        assert world.busiest <= 1
        if all(one.operation.ended for one in advancers):
            break
        for one in advancers:
            one.step()
        world.sleep(1)
    assert all(one.operation.ended for one in advancers)
    assert all(times == 1 for times in world.executed.values())


class Interloper:
    """Starts something else in the middle of a process's requests."""

    def __init__(self, world, act):
        self._world = world
        self._act = act
        self._before = world._count
        self.at = None
        world._count = self._count

    def _count(self, kind):
        self._before(kind)
        if self.at is not None and self._world.requests >= self.at:
            self.at = None
            self._act()


def test_of_a_single_run_in_the_middle_of_an_operation_one_starts():
    for at in range(1, 25):
        world = World(1, stacks=1)
        advancer = world.begin(world.order())
        started = []

        def act(world=world, started=started):
            with contextlib.suppress(errors.AlreadyRunning):
                started.append(world.single())

        interloper = Interloper(world, act)
        interloper.at = world.requests + at
        end(world, advancer)
        # One of them ran, or one after the other.
        assert started or states(advancer.operation) == ['complete']


def test_of_an_operation_in_the_middle_of_a_single_run_one_starts():
    for at in range(1, 40):
        world = World(1, stacks=1)
        advancer = world.begin(world.order())
        interloper = Interloper(world, advancer.step)
        interloper.at = world.requests + at
        with contextlib.suppress(errors.AlreadyRunning):
            world.single()
        interloper.at = None
        end(world, advancer)
        assert world.executed or world.given


def test_of_an_operation_in_the_middle_of_another_one_starts():
    for at in range(1, 45):
        for is_older_first in (True, False):
            world = World(1, stacks=1)
            order = world.order()
            orders = [order, world.second(order)]
            first, second = orders if is_older_first else orders[::-1]
            former, latter = world.begin(first), world.begin(second)
            interloper = Interloper(world, latter.step)
            interloper.at = world.requests + at
            former.step()
            interloper.at = None
            assert world.busiest <= 1
            end(world, former, latter)
            assert world.executed


@_EXAMPLES
@hypothesis.given(
    st.lists(st.sampled_from('ab012+'), min_size=10, max_size=60),
    st.sampled_from([operations.SKIP, operations.WAIT]),
    st.integers(0, 2**16),
)
def test_no_server_has_two_runs_of_an_action_at_a_time(acts, wish, seed):
    world = World(3, stacks=1, seed=seed)
    order = world.order(if_running=wish)
    first, second = world.begin(order), world.begin(world.second(order))
    for act in acts:
        if act == '+':
            world.sleep(3)
        elif act in 'ab':
            (first if act == 'a' else second).step()
        else:
            with contextlib.suppress(errors.AlreadyRunning):
                world.single(int(act))
        assert world.busiest <= 1
    end(world, first, second)
    for found in (first.operation, second.operation):
        has_run = 'complete' in states(found)
        assert found.control.phase is (
            operations.Phase.COMPLETE if has_run else operations.Phase.FAILED
        )
    if wish == operations.WAIT:
        assert states(first.operation) == ['complete'] * 3
        assert states(second.operation) == ['complete'] * 3


def test_an_announcement_of_the_future_is_in_nobodys_way(world):
    (container,) = {one.id for one in world.stacks}
    opened = records.Records(world.cluster.store(), container)
    world.cluster.store().put_container(opened.container, {})
    row = world.order().members[0].deployment_id
    key = record_names.Key(
        run_id=record_names.new_run_id(world.now + 86_400),
        deployment_id=row,
        action='BACKUP',
    )
    exclusive.announce(
        opened.store, opened.container, record_names.open_name(key)
    )
    found = simulation.run(world, [world.begin(world.order())])
    assert states(found) == ['complete'] * 3


@pytest.mark.parametrize('is_refused', [True, False])
def test_a_start_that_does_not_come_about_has_an_end(
    world, monkeypatch, is_refused
):
    def start(*args, **more):
        raise errors.Unavailable('Heat is out of order')

    def others(self, order, members):
        other = exclusions.Other(run_id='r', is_decided=False)
        return dict.fromkeys(members, other)

    if is_refused:
        monkeypatch.setattr(exclusions.Exclusion, 'others', others)
    else:
        monkeypatch.setattr(world.heat, 'create_config', start)
    begun = world.now
    found = simulation.run(world, [world.begin(world.order(timeout=900))])
    limit = 900 if is_refused else 300
    assert limit <= world.now - begun <= limit + 30
    assert states(found) == ['timed-out' if is_refused else 'failed'] * 3


def test_a_seal_that_proves_nothing_reads_what_others_run(world):
    # The holder of a claim is named to whoever may not read Heat's config.
    order = world.order()
    world.begin(order).step()
    book = world.tools().records
    seal = binding.Unchecked(operation_id=order.id)
    assert book.show(seal).live == [0, 1, 2]
    deployments = {one.deployment_id for one in order.members}

    def denied(server_id):
        raise errors.Denied('403', 403)

    world.heat.server_configs = denied
    assert running(world, order).keys() == deployments


def running(world, order, deployments=None):
    """Return what another process sees to run on the targets of an order."""
    tools = world.tools()
    if deployments is None:
        deployments = {one.deployment_id for one in order.members}
    return exclusions.OtherOperations(tools).running('BACKUP', deployments)


def test_what_heat_does_not_prove_holds_nothing(world, caplog):
    order = world.order()
    world.begin(order).step()
    container = world.cluster.container(simulation.CONTAINER)
    name = layout.shard(order.id, 1, 0)
    content = container.objects[name]
    assert b'starting' in content
    container.objects[name] = content.replace(b'starting', b'running')
    assert running(world, order) == {}
    assert 'was not written by heat-plugins' in caplog.text
    assert world.single()


def test_a_forged_operation_holds_nothing(world):
    order = world.order()
    world.begin(order).step()
    # As if a former release had recorded it, but Heat knows of none.
    del world.heat.rows[world.registered[order.id]]
    assert running(world, order) == {}
    container = world.cluster.container(simulation.CONTAINER)
    for name, content in list(container.objects.items()):
        if '/states/' in name:
            value = json.loads(content)['value']
            container.objects[name] = json.dumps(value).encode()
    assert running(world, order) == {}


def test_only_what_is_wanted_is_proved(world):
    order = world.order()
    world.begin(order).step()
    world.heat.server_configs = None
    assert running(world, order, ['another']) == {}


def test_leftovers_of_many_operations_hide_none(world):
    order = world.order()
    world.begin(order).step()
    book = world.tools().records
    head = book.heads.read(order.id)
    for n in range(40):
        former = f'20270114T0800{n:02}Z-00c0ffee'
        ended = dataclasses.replace(
            head, id=former, state=operations.Phase.COMPLETE
        )
        book.heads.write(ended)
        name = layout.live('BACKUP') + former
        book.store.put_object(book.container, name, b'{}')
    before = len(world.cluster.seen)
    assert len(running(world, order)) == 3
    # One for each that has ended.
    assert len(world.cluster.seen) - before < 60


def test_operations_on_other_deployments_are_read_once(world):
    world = World(12, stacks=1)
    reaches = operation_records.Reaches()
    counts = []
    for n, member in enumerate(world.members):
        order = dataclasses.replace(
            world.order(), id=f'20270114T0800{n:02}Z-00c0ffee'
        )
        order = dataclasses.replace(order, members=(member,))
        world.begin(order).step()
        tools = world.tools()
        tools = dataclasses.replace(
            tools,
            records=operation_records.OperationRecords(
                tools.store, tools.records.pool, reaches=reaches
            ),
        )
        before = len(world.cluster.seen)
        others = exclusions.OtherOperations(tools)
        assert not others.running('BACKUP', {'another deployment'})
        counts.append(len(world.cluster.seen) - before)
    # The container, the listing, and the head and order of what is new.
    assert counts == [4] * 12
    assert not any('/met' in one.where for one in world.cluster.seen[:before])
    assert others.running('BACKUP', {world.members[5].deployment_id})


def test_a_head_that_is_not_read_once_is_no_deletion(world):
    world.silent = {0, 1, 2}
    order = world.order()
    world.begin(order).step()
    objects = world.cluster.container(simulation.CONTAINER).objects
    head = objects.pop(layout.head(order.id))
    assert running(world, order)
    objects[layout.head(order.id)] = head
    with pytest.raises(errors.AlreadyRunning):
        world.single()


def test_an_operation_that_is_created_again_has_its_own_deployments(world):
    world.silent = {0, 1, 2}
    order, reaches = world.order(), operation_records.Reaches()
    last = {world.members[2].deployment_id}
    for members in (2, 3):
        its = dataclasses.replace(order, members=order.members[:members])
        advancer = world.begin(its)
        advancer.step()
        tools = world.tools()
        book = operation_records.OperationRecords(
            tools.store, tools.records.pool, reaches=reaches
        )
        others = exclusions.OtherOperations(
            dataclasses.replace(tools, records=book)
        )
        found = others.running('BACKUP', last)
        assert found.keys() == (last if members == 3 else set())
        fleets.Fleets(world.heat, tools).forget(order.id)
        del world.seals[order.id]


def test_what_may_not_be_read_is_not_taken_for_nothing(world):
    world.silent = {0, 1, 2}
    world.begin(world.order()).step()
    before = world.cluster.before

    def deny(request):
        for folder in ('orders', 'heads'):
            if request.method == 'GET' and f'/{folder}/' in request.url:
                raise errors.Denied('403', 403)
        before(request)

    world.cluster.before = deny
    with pytest.raises(errors.Denied):
        world.single()


def test_as_many_deployments_are_remembered_as_there_is_room_for(monkeypatch):
    monkeypatch.setattr(operation_records, '_REMEMBERED', 500)
    reaches = operation_records.Reaches()
    for n in (*'012', '2'):
        reaches.add('p', n, 'd', frozenset({'a' * 100}))
    assert [reaches.of('p', n, 'd') is None for n in '012'] == [
        *(True, False),
        False,
    ]
    assert reaches.of('another', '2', 'd') is None
    assert reaches.of('p', '2', 'another') is None
    reaches.add('p', '3', 'd', frozenset({'a' * 1000}))
    assert not reaches._known


def test_more_operations_than_are_read_are_told(world, monkeypatch, caplog):
    monkeypatch.setattr(operation_records, '_OTHERS', 1)
    order = world.order()
    world.begin(order).step()
    world.begin(world.second(order)).step()
    assert len(running(world, order)) == 3
    assert 'More than 1 operations with BACKUP' in caplog.text


def test_the_head_of_what_is_retried_is_written_at_once(world):
    world.fail = {0}
    order = world.order()
    advancer = world.begin(order)
    simulation.run(world, [advancer])
    seal = world.seals[order.id]
    world.tools().records.request(seal, world.now, do='retry', who='ann')
    advancer.step()
    assert advancer.operation.live == [0]
    assert running(world, order)


def test_what_no_process_advances_holds_its_targets_for_a_while(world):
    world.silent = {0, 1, 2}
    order = world.order(timeout=100)
    advancer = world.begin(order)
    advancer.step()
    world.now += 600
    assert len(running(world, order)) == 3
    world.now += 200
    assert running(world, order) == {}
    assert world.single()


def test_what_a_process_advances_holds_its_targets(world):
    world.silent = {0, 1, 2}
    order = world.order(timeout=100)
    world.begin(order).step()
    world.now += 900
    # It leads, but a service is out of order.
    world.advancer(order).lead()
    assert len(running(world, order)) == 3


def test_the_message_names_the_commands_of_the_operation(world):
    world.silent = {0}
    advancer = world.begin(world.order())
    advancer.step()
    with pytest.raises(errors.AlreadyRunning) as raised:
        world.single()
    assert str(raised.value).endswith(
        f'operation wait|cancel {advancer.operation.id}'
    )


def test_who_takes_over_again_looks_again(world):
    order = world.order(max_concurrent=operations.Share(1))
    advancer = world.begin(order)
    advancer.step()
    advancer.release()
    # It still runs when the operation comes to that server.
    world.silent = {1}
    world.single(1)
    # Nobody has notified it: as if that was deleted with what had come.
    container = world.cluster.container(simulation.CONTAINER)
    container.objects.pop(layout.met(order.id), None)
    found = simulation.run(world, [advancer])
    assert states(found) == ['complete', 'skipped', 'complete']
